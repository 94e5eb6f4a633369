"""The rows of a run that is scored anew, from the stored ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from backend.core import judging, kept_rankings
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.folding import fold
from backend.core.kept_rankings import Kept, Known
from backend.core.matching import KnownPaths
from backend.core.types import GOOD_OUTCOMES, Level, Outcome, Question
from backend.models import Chunk, QuestionSetVersion, Result, Run
from backend.models import Question as QuestionRow
from backend.search.types import SearchScope
from backend.services import labels, plans
from backend.services.evaluation_requests import Measured
from backend.services.finished_runs import Made
from backend.services.rescoring.pieces import Piece, passage_of
from backend.services.rescoring.shortfall import Shortfall
from backend.services.results import ResultRow

_BATCH = 100
_NOBODY = UUID(int=0)


def kept_of(source: Run) -> Kept:
    stored = source.origin.get("kept")
    if stored is None:
        return Kept(level=Level(source.level), top_k=source.top_k)
    return Kept(level=Level(stored["level"]), top_k=int(stored["top_k"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    source: Run
    asked: QuestionSetVersion | None
    version: QuestionSetVersion
    measured: Measured
    threshold: float
    shortfall: Shortfall = field(default_factory=Shortfall)

    def rows(self) -> Iterator[Made]:
        """In the version's order. Raises ValidationError at the end if any question cannot be answered."""
        is_same = self.asked is not None and self.version.id == self.asked.id
        places = None if is_same else _places(self.source, self.asked)
        kept, known = kept_of(self.source), None if is_same else _known_paths(self.source)
        n_answered = 0
        rows = QuestionRow.objects.filter(version=self.version).order_by("ordinal")
        for batch in _batches(rows.iterator(chunk_size=_BATCH)):
            sources = {row.ordinal: _place(row, places) for row in batch}
            results = {
                one.ordinal: one
                for one in Result.objects.filter(
                    run=self.source, ordinal__in=[at for at in sources.values() if at >= 0]
                )
            }
            old = {} if is_same else _old_questions(self.asked, sources.values())
            pieces = [
                Piece.of(
                    row,
                    results.get(sources[row.ordinal]),
                    kept=kept,
                    known=known,
                    old=None if is_same else old.get(sources[row.ordinal]),
                    is_same=is_same,
                )
                for row in batch
            ]
            texts = _texts(self.source, [key for piece in pieces for key in piece.wanted])
            for piece in pieces:
                n_answered += piece.result is not None
                made = self._made(piece, texts=texts, kept=kept)
                if made is not None:
                    yield made
        self.shortfall.tell(self.measured)
        if not n_answered:
            message = "No question of this version was asked in the run: their ids or texts differ."
            raise ValidationError(
                message,
                field="version",
                faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="version")],
            )

    def _made(self, piece: "Piece", *, texts: Mapping[str, str], kept: Kept) -> Made | None:
        """None where it cannot be answered, which is counted."""
        row, result = piece.row, piece.result
        if result is None or Outcome(result.outcome) not in GOOD_OUTCOMES:
            return Made(row=_unscored(row, result), unanswerable=row.unanswerable)
        if result.outcome == Outcome.OK and not result.ranking:
            self.shortfall.n_forgotten += 1
            return None
        beginning = piece.beginning
        most = kept_rankings.deepest(
            beginning, kept=kept, level=self.measured.level, looks_at_content=piece.looks_at_content
        )
        if most is not None and most < self.measured.top_k:
            self.shortfall.n_too_short += 1
            self.shortfall.deepest = most if self.shortfall.deepest is None else min(most, self.shortfall.deepest)
            return None
        missing = [key for key in piece.needed if key not in texts]
        if missing:
            self.shortfall.n_without_text += 1
            self.shortfall.n_texts += len(missing)
            return None
        ranking = piece.satisfying(texts)
        made = self._row(piece, ranking, beginning=beginning, kept=kept)
        made = replace(made, cut=piece.cut(texts, kept=kept, level=self.measured.level))
        return Made(row=made, unanswerable=row.unanswerable)

    def _row(self, piece: "Piece", ranking: list[dict[str, Any]], *, beginning: Known, kept: Kept) -> ResultRow:
        result = piece.result
        if result is None:
            raise ValueError("a question without a result has no ranking")
        satisfied = {entry["c"]: tuple(entry.get("x", ())) for entry in ranking}
        judged = judging.judge(
            (passage_of(entry) for entry in beginning.entries),
            piece.targets,
            level=self.measured.level,
            threshold=self.threshold,
            top_k=self.measured.top_k,
            satisfied=lambda passage: satisfied[passage.id],
        )
        ranks = kept_rankings.among_documents(
            ranking, beginning=beginning, level=self.measured.level, top_k=self.measured.top_k, kept=kept
        )
        for place, entry in enumerate(ranking):
            entry.pop("l", None)
            if place in ranks:
                entry["l"] = ranks[place]
        return ResultRow(
            run_id=_NOBODY,
            ordinal=piece.row.ordinal,
            question_key=piece.row.key,
            outcome=Outcome(result.outcome),
            first_rank=judging.first_rank(judged),
            judged=judged.to_json(),
            ranking=ranking,
            depth=result.depth,
            timings=result.timings,
        )


def _places(source: Run, asked: QuestionSetVersion | None) -> dict[str, tuple[int, str | None]]:
    """The run's questions by key: their place, and their text where it is still known."""
    texts = dict(QuestionRow.objects.filter(version=asked).values_list("ordinal", "text")) if asked else {}
    rows = Result.objects.filter(run=source).values_list("question_key", "ordinal")
    return {key: (ordinal, texts.get(ordinal)) for key, ordinal in rows}


def _place(row: QuestionRow, places: Mapping[str, tuple[int, str | None]] | None) -> int:
    """Where the run has this question; -1 where it was not asked, or in other words."""
    if places is None:
        return row.ordinal
    ordinal, text = places.get(row.key, (-1, None))
    return ordinal if text is None or fold(text) == fold(row.text) else -1


def _old_questions(asked: QuestionSetVersion | None, ordinals: Any) -> dict[int, Question]:
    return {} if asked is None else plans.questions(asked.id, [at for at in ordinals if at >= 0])


def _known_paths(source: Run) -> KnownPaths | None:
    scope = SearchScope.from_json(source.evaluation.plan["scope"])
    if not scope.indexes:
        return None
    return labels.known_paths(scope, {UUID(key): number for key, number in source.generations.items()})


def _texts(source: Run, passages: Sequence[str]) -> dict[str, str]:
    """Of those that are still there, in this workspace."""
    ids = {key: wanted for wanted in passages if (key := _uuid(wanted)) is not None}
    if not ids:
        return {}
    rows = Chunk.objects.filter(id__in=list(ids), index__knowledge_base__workspace=source.workspace_id)
    return {ids[key]: text for key, text in rows.values_list("id", "text")}


def _unscored(row: QuestionRow, result: Result | None) -> ResultRow:
    if result is None:
        return ResultRow(
            run_id=_NOBODY,
            ordinal=row.ordinal,
            question_key=row.key,
            outcome=Outcome.NOT_RUN,
            reason="The run that was scored again did not ask this question, or in other words.",
        )
    return ResultRow(
        run_id=_NOBODY,
        ordinal=row.ordinal,
        question_key=row.key,
        outcome=Outcome(result.outcome),
        code=result.code,
        reason=result.reason,
    )


def _batches(rows: Iterator[QuestionRow]) -> Iterator[list[QuestionRow]]:
    batch: list[QuestionRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
