"""Where the missed questions of a run were lost: stored rankings and resolved labels put together.

Nothing here is stored but the resolved labels: causes follow from the rows at any k.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.core import configs, diagnosis, metrics
from backend.core.diagnosis import Asked, Diagnosed, Expected, QuestionLoss, RankedPassage, StagePassage, Summary
from backend.core.judging import JudgedList
from backend.core.resolving import LabelState
from backend.core.states import RunKind
from backend.core.types import Level
from backend.models import LabelResolution, ResolvedLabel, Run
from backend.queries import diagnosis as queries
from backend.search.types import SearchScope
from backend.services import labels, retention

IMPORTED = "imported"
# The one stage of an imported ranking: the engine that made it.
ENGINE = "engine"
# What a run without a reranker is measured by: the pool that one would get by default.
_POOL = configs.RetrievalConfig(name="", base="hybrid").rerank_depth


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLosses:
    """`by_question`: by ordinal, for the scored questions with an expectation. `corpus_changed`: the labels could not
    be looked up in the corpus the run saw, so `not indexed` and its like tell how it is today."""

    by_question: Mapping[int, QuestionLoss]
    corpus_changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    summary: Summary
    corpus_changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSurvey:
    """`lost`: by cause, the ordinals of the first questions lost by it."""

    summary: Summary
    corpus_changed: bool
    lost: Mapping[str, Sequence[int]]


def prepare(run: Run) -> None:
    """Resolve the labels while the corpus is the one the run saw: after its numbers are written.

    Costs one pass over the passages that content labels may be in; nothing where it was done before.
    """
    if _has_labels(run):
        _resolution(run)


def of(run: Run, ordinals: Sequence[int], *, k: int | None = None) -> RunLosses:
    """Some questions of a run, such as those of a page; `k` as for results. Five queries.

    Resolves the labels first where `prepare` did not.
    """
    view = _View(run, k=run.top_k if k is None else k, ordinals=ordinals)
    rows = list(queries.scored(run, ordinals=ordinals))
    return RunLosses(
        by_question={
            row.ordinal: loss for row in rows if (loss := view.loss(row.ordinal, _read(row, view.level))) is not None
        },
        corpus_changed=view.corpus_changed,
    )


def summarise(run: Run, *, k: int | None = None) -> RunSummary:
    """Over all scored questions of a run and by tag. Reads every ranking: about a second for 2,000 questions."""
    view = _View(run, k=run.top_k if k is None else k)
    # Before the rows are read: resolving has a transaction of its own.
    view.look_up()
    return RunSummary(
        summary=diagnosis.summarise(_diagnosed(run, view), k=view.asked.k), corpus_changed=view.corpus_changed
    )


def survey(run: Run, *, k: int | None = None, most: int) -> RunSurvey:
    """`summarise`, and the first `most` questions that each cause lost."""
    view = _View(run, k=run.top_k if k is None else k)
    view.look_up()
    every = list(_diagnosed(run, view))
    lost: dict[str, list[int]] = {}
    for one in every:
        if one.loss.cause is not None and len(lost.setdefault(one.loss.cause.value, [])) < most:
            lost[one.loss.cause.value].append(one.ordinal)
    return RunSurvey(summary=diagnosis.summarise(every, k=view.asked.k), corpus_changed=view.corpus_changed, lost=lost)


def _diagnosed(run: Run, view: "_View") -> Iterator[Diagnosed]:
    for row in queries.scored(run):
        read = _read(row, view.level)
        loss = view.loss(row.ordinal, read)
        if loss is None:
            continue
        passages = [passage for _, passage in read.passages]
        relevant = read.relevant
        yield Diagnosed(
            loss=loss,
            tags=view.questions[row.ordinal].tags if row.ordinal in view.questions else (),
            ceiling=None
            if view.has_gaps
            else diagnosis.ceiling(read.passages, relevant, level=view.level, k=view.asked.k, depth=view.pool),
            recall=metrics.recall(read.judged, k=view.asked.k),
            n_relevant=len(relevant),
            move=diagnosis.move(passages, relevant)
            if view.asked.rerank_depth is not None and not view.has_gaps
            else None,
            reached=None
            if view.asked.imported
            else diagnosis.reached(passages, relevant, k=view.asked.k, depth=view.pool),
            ordinal=row.ordinal,
        )


class _View:
    """What all questions of a run share while they are diagnosed."""

    def __init__(self, run: Run, *, k: int, ordinals: Sequence[int] | None = None) -> None:
        retention.check_whole(run)
        self.level = Level(run.level)
        rerank_depth = None
        self.pool = _POOL
        if run.mode != IMPORTED:
            config = configs.from_stored(run.config)
            self.pool = config.rerank_depth
            rerank_depth = config.rerank_depth if config.reranker else None
        # Scored by other labels than decided what was kept: of a passage that is not there nobody knows where it was.
        self.has_gaps = run.kind == RunKind.RESCORED and run.origin.get("set_hash") != run.set_hash
        self.asked = Asked(k=k, rerank_depth=rerank_depth, imported=run.mode == IMPORTED or self.has_gaps)
        self.questions = queries.asked(run.evaluation.question_set_version_id, ordinals=ordinals)
        self.corpus_changed = False
        self._run = run
        self._ordinals = ordinals
        self._labels: dict[int, dict[int, ResolvedLabel]] | None = None
        self._has_looked = False

    def look_up(self) -> dict[int, dict[int, ResolvedLabel]] | None:
        """The labels by question and expectation; None where there are none any more. Read when first asked for."""
        if not self._has_looked and _has_labels(self._run):
            resolution, is_same = _resolution(self._run)
            self.corpus_changed = not is_same
            found = labels.of(resolution, ordinals=self._ordinals)
            self._labels = {ordinal: {row.expectation: row for row in rows} for ordinal, rows in found.items()}
        self._has_looked = True
        return self._labels

    def loss(self, ordinal: int, read: "_Read") -> QuestionLoss | None:
        """None for a question without a figure, and for one whose labels nobody knows any more."""
        question = self.questions.get(ordinal)
        if not read.relevant or (question is not None and question.unanswerable):
            return None
        passages = [passage for _, passage in read.passages]
        within = {
            index for one in passages if one.final is not None and one.final <= self.asked.k for index in one.satisfied
        }
        # A question that was found whole has nothing to look up.
        told = {} if within.issuperset(read.relevant) else self.look_up()
        if told is None and not self.asked.imported:
            satisfied = {index for one in passages for index in one.satisfied}
            if not satisfied.issuperset(read.relevant):
                return None
        known = (told or {}).get(ordinal, {})
        expected = [_expected(index, known.get(index)) for index in sorted(read.relevant)]
        return diagnosis.diagnose(passages, expected, asked=self.asked)


def _expected(index: int, row: ResolvedLabel | None) -> Expected:
    if row is None:
        return Expected(index=index)
    return Expected(index=index, state=LabelState(row.state), documents=frozenset(map(str, row.documents)))


def _has_labels(run: Run) -> bool:
    return run.mode != IMPORTED and run.evaluation.question_set_version_id is not None


def unresolved(
    run: Run, *, ordinals: Sequence[int] | None = None
) -> tuple[LabelResolution, list[ResolvedLabel]] | None:
    """The labels of the run's set, or of some of its questions, that nothing in its scope satisfies; None where they
    are not known any more."""
    if not _has_labels(run):
        return None
    resolution, _ = _resolution(run)
    every = [row for rows in labels.of(resolution, ordinals=ordinals).values() for row in rows]
    return resolution, [row for row in every if LabelState(row.state) is not LabelState.RESOLVED]


def _resolution(run: Run) -> tuple[LabelResolution, bool]:
    version = run.evaluation.question_set_version
    if version is None:
        raise ValueError("the set of this run is gone")
    scope = SearchScope.from_json(run.evaluation.plan["scope"])
    indexes = scope.indexes_for(configs.from_stored(run.config).index)
    return labels.at_generations(version, scope, indexes=indexes, generations=run.generations)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    judged: JudgedList
    relevant: frozenset[int]
    passages: list[tuple[str, RankedPassage]]


def _read(row: queries.Scored, level: Level) -> _Read:
    judged = JudgedList.from_json(row.judged)
    return _Read(
        judged=judged,
        relevant=frozenset(index for index in range(judged.n_expectations) if judged.is_relevant(index)),
        passages=[*_passages(row.ranking, level=level, top_k=judged.top_k), *_cut(row.cut, level=level)],
    )


def _passages(ranking: Sequence[Mapping[str, Any]], *, level: Level, top_k: int) -> list[tuple[str, RankedPassage]]:
    """What is kept of a ranking. All up to the (top_k + 1)-th key of the final list is, so ranks counted here hold
    within top_k; of what satisfies something the ranks beyond are stored (`l`)."""
    stages = [{name: int(value[0]) for name, value in item["k"].items()} for item in ranking]
    counted = diagnosis.level_ranks(
        [StagePassage(document=item["d"], stages=places) for item, places in zip(ranking, stages, strict=True)],
        level=level,
        top_k=top_k,
    )
    found = []
    for place, item in enumerate(ranking):
        ranks: Mapping[str, int] = item.get("l") or counted[place]
        if level is Level.PASSAGE:
            ranks = {**stages[place], diagnosis.FINAL: int(item["r"])}
        found.append(
            (
                str(item["c"]),
                RankedPassage(
                    document=str(item["d"]),
                    satisfied=tuple(item.get("x", ())),
                    level=ranks,
                    places=stages[place],
                ),
            )
        )
    return found


def _cut(items: Sequence[Mapping[str, Any]], *, level: Level) -> list[tuple[str, RankedPassage]]:
    """What a score floor cut: its ranks before it, and none in the final list."""
    found = []
    for item in items:
        places = {name: int(value[0]) for name, value in item["k"].items()}
        found.append(
            (
                str(item["c"]),
                RankedPassage(
                    document=str(item["d"]),
                    satisfied=tuple(item.get("x", ())),
                    level=places if level is Level.PASSAGE else item.get("l") or {},
                    places=places,
                ),
            )
        )
    return found
