"""From imported rankings to result rows, as a search of ours would have left them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from backend.core import judging
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.imported_rankings import Hit, Ranking
from backend.core.matching import Targets, merge
from backend.core.types import Level, Outcome, Passage, Question
from backend.models import Chunk, Document, Workspace
from backend.services import diagnoses
from backend.services.finished_runs import Made
from backend.services.rankings import SNIPPET_LENGTH
from backend.services.results import ResultRow

# How much of each ranking is kept beyond what is scored, for scoring it again.
LEAST_KEPT = 100
_NOBODY = UUID(int=0)
_BATCH = 500
_IDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Makes the rows. `labels`: see matching.labels."""

    workspace: Workspace
    level: Level
    threshold: float
    top_k: int
    sources: frozenset[str]
    labels: Mapping[str, str]
    missing: Outcome

    @property
    def kept(self) -> int:
        return max(LEAST_KEPT, self.top_k + 1)

    def rows(self, asked: Sequence[Question], rankings: Mapping[str, Ranking]) -> Iterator[Made]:
        """In the set's order. Raises ValidationError at the end where labels look at text that no result has."""
        n_blind = 0
        for start in range(0, len(asked), _BATCH):
            batch = list(enumerate(asked[start : start + _BATCH], start=start))
            known = self._passages(
                hit.id for _, question in batch if (one := rankings.get(question.key)) for hit in one.hits
            )
            for ordinal, question in batch:
                ranking = rankings.get(question.key)
                if ranking is None:
                    yield Made(row=self._without(ordinal, question), unanswerable=question.unanswerable)
                    continue
                passages = [self._passage(hit, known) for hit in ranking.hits]
                n_blind += _is_blind(question, passages)
                yield Made(row=self._row(ordinal, question, ranking.hits, passages), unanswerable=question.unanswerable)
        if n_blind:
            message = (
                f"The labels of {n_blind} questions look at text, and results of theirs come without: give each result "
                "its text (JSONL, `results`), or label by document."
            )
            raise ValidationError(
                message, field="file", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="file")]
            )

    def _passages(self, ids: Iterable[str]) -> dict[str, Passage]:
        """Those ids that are passages or documents of this workspace: rankings of our own come back as they were."""
        wanted = list({key for text in ids if (key := as_id(text)) is not None})
        found: dict[str, Passage] = {}
        for start in range(0, len(wanted), _IDS):
            some = wanted[start : start + _IDS]
            chunks = Chunk.objects.filter(id__in=some, index__knowledge_base__workspace=self.workspace)
            for key, document, path, source, text, ordinal in chunks.values_list(
                "id", "document_id", "path", "source_name", "text", "ordinal"
            ):
                found[str(key)] = Passage(
                    id=str(key), document_id=str(document), path=path, source=source, text=text, ordinal=ordinal
                )
            documents = Document.objects.filter(id__in=some, knowledge_base__workspace=self.workspace)
            for key, path, source in documents.values_list("id", "path", "source__name"):
                found[str(key)] = Passage(id=str(key), document_id=str(key), path=path, source=source, text="")
        return found

    def _passage(self, hit: Hit, known: Mapping[str, Passage]) -> Passage:
        if not hit.text and not hit.document and hit.id in known:
            return known[hit.id]
        document = hit.document or hit.id
        source, path = self.split(document)
        key = self.labels.get(hit.id, hit.id) if self.level is Level.PASSAGE and not hit.document else hit.id
        return Passage(id=key, document_id=document, path=path, source=source, text=hit.text)

    def split(self, document: str) -> tuple[str, str]:
        """(source, path), as a label is read: a prefix counts where it is a source's name, so URLs stay whole."""
        if document in self.labels:
            return "", self.labels[document]
        prefix, colon, path = document.partition(":")
        if colon and path and prefix in self.sources:
            return prefix, self.labels.get(path, path)
        return "", document

    def _row(self, ordinal: int, question: Question, hits: Sequence[Hit], passages: Sequence[Passage]) -> ResultRow:
        targets = Targets(merge(question.expectations))
        judged = judging.judge(passages, targets, level=self.level, threshold=self.threshold, top_k=self.top_k)
        ranking: list[dict[str, Any]] = []
        for rank, (hit, passage) in enumerate(zip(hits, passages, strict=True), start=1):
            found = targets.satisfied_by(passage)
            if rank > self.kept and not found:
                continue
            entry: dict[str, Any] = {
                "r": rank,
                "c": passage.id,
                "d": passage.document_id,
                "p": passage.path,
                "s": passage.source,
                "o": passage.ordinal,
                "k": {},
            }
            if hit.score is not None:
                entry["k"] = {diagnoses.ENGINE: [rank, hit.score]}
            if found:
                entry["x"] = list(found)
            if passage.text:
                entry["t"] = passage.text[:SNIPPET_LENGTH]
            ranking.append(entry)
        return ResultRow(
            run_id=_NOBODY,
            ordinal=ordinal,
            question_key=question.key,
            outcome=Outcome.OK if passages else Outcome.EMPTY,
            first_rank=judging.first_rank(judged),
            judged=judged.to_json(),
            ranking=ranking,
            depth=len(passages),
        )

    def _without(self, ordinal: int, question: Question) -> ResultRow:
        if self.missing is Outcome.EMPTY:
            return self._row(ordinal, question, (), ())
        return ResultRow(
            run_id=_NOBODY,
            ordinal=ordinal,
            question_key=question.key,
            outcome=Outcome.NOT_RUN,
            reason="The imported file has no ranking for this question.",
        )


def _is_blind(question: Question, passages: Iterable[Passage]) -> bool:
    """Whether a label looks at text and a result that it may be about has none."""
    reads = any(each.content_contains or each.text for one in question.expectations for each in one.any_of)
    return reads and any(not passage.text for passage in passages)


def as_id(text: str) -> UUID | None:
    try:
        key = UUID(text)
    except ValueError:
        return None
    # UUID() takes other spellings as well; an id has one.
    return key if str(key) == text else None
