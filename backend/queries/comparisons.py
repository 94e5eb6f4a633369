"""Runs compared question by question, from their stored judged lists: no search."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from backend.core import comparison
from backend.core.comparison import Candidate, Comparison, Paired, Pairing, Side
from backend.core.comparison.sides import differences
from backend.core.comparison.verdicts import DEFAULT_MARGIN
from backend.core.errors import ErrorCode, Fault, NotFoundError, TouchstoneError, ValidationError, together
from backend.core.measuring import Measurer
from backend.core.metric_keys import MetricKey
from backend.core.types import GOOD_OUTCOMES, Level, Outcome
from backend.models import Question, Run, Workspace
from backend.queries import reused
from backend.queries import runs as run_queries
from backend.queries.runs import RunRow

# Fixed, so that the same runs give the same verdict.
SEED = 20_240_101
MOST_CANDIDATES = 20
MOST_TAGS = 100
_BATCH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class TagDelta:
    """The primary metric over the questions of one tag: delta and interval, no verdict (that is the whole set's)."""

    tag: str
    paired: Paired


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison, the runs it is about in its order (the baseline first), and the questions' texts by key: of
    those whose set is still there. `by_tag`: for each candidate, the first hundred tags by name."""

    comparison: Comparison
    runs: tuple[RunRow, ...]
    texts: Mapping[str, str]
    by_tag: tuple[tuple[TagDelta, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Runs that may be compared, the baseline first."""

    runs: tuple[Run, ...]
    primary: MetricKey
    margin: float

    @property
    def n_questions(self) -> int:
        return max(run.evaluation.n_questions for run in self.runs)


def check(
    workspace: Workspace,
    *,
    baseline: object,
    candidates: Sequence[object],
    primary_metric: str = "",
    margin: float = DEFAULT_MARGIN,
) -> Asked:
    """What is asked for, without reading a result. Raises NotFoundError, ValidationError."""
    if not 1 <= len(candidates) <= MOST_CANDIDATES:
        raise _invalid(f"Name 1 to {MOST_CANDIDATES} candidates.", "candidates")
    keys = list(dict.fromkeys([str(baseline), *map(str, candidates)]))
    if len(keys) != len(candidates) + 1:
        raise _invalid("The baseline and the candidates are different runs, each named once.", "candidates")
    runs: list[Run] = []
    refused: list[TouchstoneError] = []
    for key in keys:
        try:
            runs.append(run_queries.get_run(workspace, key))
        except NotFoundError as error:
            refused.append(error)
    refused += [
        _invalid(f"The run {run.id} has not ended: wait for its figures.", "candidates")
        for run in runs
        if not run_queries.is_final(run)
    ]
    if refused:
        raise together(refused)
    primary = MetricKey.parse(primary_metric or runs[0].primary_metric)
    return Asked(runs=tuple(runs), primary=primary, margin=margin)


def compare(
    workspace: Workspace,
    *,
    baseline: object,
    candidates: Sequence[object],
    primary_metric: str = "",
    margin: float = DEFAULT_MARGIN,
) -> Compared:
    """Reads every judged list of the runs. Raises NotFoundError, and ValidationError for runs without results or a
    metric that they were not measured with."""
    asked_for = check(workspace, baseline=baseline, candidates=candidates, primary_metric=primary_metric, margin=margin)
    runs, primary = asked_for.runs, asked_for.primary
    # Runs of one set are mostly measured alike: what one list gives is worked out once for all of them.
    measurers: dict[tuple[str, ...], Measurer] = {}
    read = [_read(run, measurers) for run in runs]
    sides = [_side(run, one) for run, one in zip(runs, read, strict=True)]
    # A run that is not comparable was asked other questions, or counts them otherwise.
    alike = [one for side, one in zip(sides, read, strict=True) if not differences(sides[0], side)]
    asked = _eligible(alike, runs[0])
    made = comparison.compare(sides[0], sides[1:], primary=primary, eligible=asked, seed=SEED, margin=margin)
    texts: dict[str, str] = {}
    tags: dict[str, set[str]] = {}
    version_id = runs[0].evaluation.question_set_version_id
    for key, text, names in Question.objects.filter(version=version_id).values_list("key", "text", "tags"):
        texts[key] = text
        for name in names:
            tags.setdefault(name, set()).add(key)
    return Compared(
        comparison=made,
        runs=tuple(run_queries.row(run) for run in runs),
        texts=texts,
        by_tag=_by_tag(made.candidates, tags, primary=primary, eligible=asked),
    )


def _eligible(read: Sequence["_Read"], baseline: Run) -> list[str]:
    """The questions with R >= 1 that are not unanswerable, in the baseline's order. What no judged list tells is read
    from the set, so that a pair has the same questions whichever runs stand beside it; without its set such a question
    counts as one that can be scored."""
    eligible: dict[str, bool | None] = {}
    for one in read:
        for key, known in one.eligible.items():
            if eligible.get(key) is None:
                eligible[key] = known
    questions = Question.objects.filter(version=baseline.evaluation.question_set_version_id)
    if None in eligible.values() or len(eligible) < questions.count():
        for key, expect, unanswerable in questions.order_by("ordinal").values_list("key", "expect", "unanswerable"):
            if eligible.get(key) is None:
                has_relevant = any(one.get("grade", 1.0) >= baseline.threshold for one in expect)
                eligible[key] = has_relevant and not unanswerable
    return [key for key, is_eligible in eligible.items() if is_eligible is not False]


def _by_tag(
    candidates: Sequence[Candidate],
    tags: Mapping[str, Collection[str]],
    *,
    primary: MetricKey,
    eligible: Collection[str],
) -> tuple[tuple[TagDelta, ...], ...]:
    """All at once, since draws are shared. Empty for a candidate that is not comparable."""
    keys_of = {tag: [key for key in eligible if key in tags[tag]] for tag in sorted(tags)[:MOST_TAGS]}
    asked: list[tuple[int, str]] = []
    pairings: list[Pairing] = []
    for at, candidate in enumerate(candidates):
        if candidate.primary is None:
            continue
        deltas = {delta.key: delta for delta in candidate.deltas}
        for tag, keys in keys_of.items():
            if keys:
                there = [deltas[key] for key in keys if key in deltas]
                asked.append((at, tag))
                pairings.append(
                    Pairing(
                        metric=primary,
                        baseline=[one.baseline for one in there],
                        candidate=[one.candidate for one in there],
                        n_eligible=len(keys),
                    )
                )
    found: list[list[TagDelta]] = [[] for _ in candidates]
    for (at, tag), paired in zip(asked, comparison.pair_all(pairings, seed=SEED), strict=True):
        found[at].append(TagDelta(tag=tag, paired=paired))
    return tuple(map(tuple, found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A run's questions by key. `eligible` None: an error, which has no judged list."""

    values: dict[str, dict[str, float | None]]
    first_ranks: dict[str, int | None]
    eligible: dict[str, bool | None]


def _read(run: Run, measurers: dict[tuple[str, ...], Measurer]) -> _Read:
    keys = [MetricKey.parse(key) for key in run.evaluation.plan["keys"]]
    measurer = measurers.setdefault(tuple(map(str, keys)), Measurer(keys))
    values: dict[str, dict[str, float | None]] = {str(key): {} for key in keys}
    read = _Read(values=values, first_ranks={}, eligible={})
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT x.question_key, x.outcome, x.first_rank, x.judged::text, COALESCE(q.unanswerable, false)
            FROM backend_result x
            LEFT JOIN backend_question q ON q.version_id = %s AND q.ordinal = x.ordinal
            WHERE x.run_id = %s ORDER BY x.ordinal
            """,
            [run.evaluation.question_set_version_id, run.id],
        )
        while rows := cursor.fetchmany(_BATCH):
            for key, outcome, first_rank, judged_text, unanswerable in rows:
                judged, measured = (None, {}) if judged_text is None else measurer.of(json.loads(judged_text))
                read.eligible[key] = False if unanswerable else None if judged is None else judged.n_relevant > 0
                if judged is None or not read.eligible[key] or Outcome(outcome) not in GOOD_OUTCOMES:
                    continue
                read.first_ranks[key] = first_rank
                for name, value in measured.items():
                    values[name][key] = value
    return read


def _side(run: Run, read: _Read) -> Side:
    return Side(
        name=f"{run.name} ({run.label or f'…{str(run.id)[-6:]}'})",
        question_set=run_queries.question_set_of(run),
        set_hash=run.set_hash,
        level=Level(run.level),
        threshold=run.threshold,
        definitions=run.metric_definitions,
        top_k=run.top_k,
        values=read.values,
        first_ranks=read.first_ranks,
        corpus_fingerprint=run.corpus_fingerprint,
        measured_in=reused.measured_in(run),
        is_copy=reused.is_copy(run),
    )


def _invalid(message: str, field: str) -> ValidationError:
    return ValidationError(
        message, field=field, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=field)]
    )
