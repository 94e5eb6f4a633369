"""Evaluations as API, console and commands show them: state, progress, and their runs with the numbers so far."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Prefetch, QuerySet

from backend.core import pace
from backend.core.pace import Pace
from backend.core.states import TERMINAL, EvaluationState
from backend.core.types import Outcome
from backend.models import Evaluation, Run, Workspace
from backend.queries import partial, runs, waiting
from backend.queries.lookups import get
from backend.queries.runs import RunRow, SetRef
from backend.queries.waiting import WaitingFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`n_done` of `n_questions` questions have a result in the run that is furthest behind; `n_results` of
    `n_results_total` are there. `by_outcome` counts results by how the question ended."""

    n_questions: int
    n_done: int
    n_results: int
    n_results_total: int
    by_outcome: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """`code` and `reason` say why it failed. `elapsed_seconds` counts from its start, or its submission before that."""

    id: UUID
    state: str
    is_final: bool
    question_set: SetRef
    scope: Mapping[str, Any]
    n_questions: int
    level: str
    top_k: int
    ks: tuple[int, ...]
    primary_metric: str
    cache: bool
    wait_for_index: bool
    label: str
    metadata: Mapping[str, Any]
    epoch: int
    revision: int
    code: str
    reason: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline_at: datetime
    elapsed_seconds: float
    runs: tuple[RunRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationDetail:
    """`eta_seconds` and `questions_per_second` are from what was seen in this epoch; None where nothing can be said.
    A question counts once, whatever the number of runs. `waiting_for`: the providers that keep it from going on.
    `is_current`: the numbers so far are of all rows, not of those of a moment ago. `counts_only`: there are too many
    rows for numbers before the end."""

    evaluation: EvaluationRow
    progress: Progress
    eta_seconds: float | None
    questions_per_second: float | None = None
    waiting_for: tuple[WaitingFor, ...] = ()
    is_current: bool = True
    counts_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """A run's rows of this epoch: how many, how many of late, and when the first came."""

    n: int = 0
    n_lately: int = 0
    first_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is known without reading judged lists. `tag` changes whenever what `detail` says would, time aside."""

    evaluation: Evaluation
    runs: tuple[Run, ...]
    progress: Progress
    outcomes: Mapping[UUID, Mapping[str, int]]
    n_this_epoch: int
    first_at: datetime | None
    recent: Mapping[UUID, Recent]
    waiting_for: tuple[WaitingFor, ...]
    tag: str


def of(workspace: Workspace) -> QuerySet[Evaluation]:
    """A workspace's evaluations, newest first, their runs loaded with them."""
    ordered = Run.objects.select_related("knowledge_base").order_by("ordinal")
    return (
        Evaluation.objects.filter(workspace=workspace)
        .select_related("question_set_version")
        .prefetch_related(Prefetch("runs", queryset=ordered))
        .order_by("-id")
    )


def get_evaluation(workspace: Workspace, key: object) -> Evaluation:
    """Raises NotFoundError."""
    return get(of(workspace), key, what="evaluation")


def row(evaluation: Evaluation, *, now: datetime) -> EvaluationRow:
    """As in a list: the runs with their stored numbers. Without a query where it comes from `of`."""
    return _row(evaluation, [runs.row(_with(run, evaluation)) for run in evaluation.runs.all()], now=now)


# What there is of each run, by ending. Of an open evaluation summed from what its commits noted, whose number depends
# on the number of questions much less; of one that has ended counted, since what a worker of an older release wrote was
# noted by nobody.
_NOTED = "SELECT run_id, outcome, epoch, n, created_at FROM backend_progressentry"
_COUNTED = "SELECT run_id, outcome, epoch, 1 AS n, created_at FROM backend_result"
_SUM = """
SELECT run_id, outcome, sum(n), COALESCE(sum(n) FILTER (WHERE is_new), 0),
       min(created_at) FILTER (WHERE is_new), max(created_at),
       COALESCE(sum(n) FILTER (WHERE is_new AND created_at > now() - make_interval(secs => %(lately)s)), 0)
FROM (SELECT *, epoch >= %(epoch)s AND created_at >= %(since)s AS is_new FROM ({source}) each) there
WHERE run_id = ANY(%(runs)s) AND (outcome IN ('ok', 'empty') OR epoch >= %(epoch)s)
GROUP BY run_id, outcome ORDER BY run_id, outcome
"""


def look(workspace: Workspace, key: object) -> Look:
    """Four queries, whatever the number of questions; one more while a provider is not well. Raises NotFoundError."""
    evaluation = get_evaluation(workspace, key)
    found = tuple(_with(run, evaluation) for run in evaluation.runs.all())
    outcomes: dict[UUID, dict[str, int]] = {run.id: {} for run in found}
    recent: dict[UUID, Recent] = {}
    n_this_epoch, first_at, last_at = 0, None, None
    with connection.cursor() as cursor:
        cursor.execute(
            _SUM.format(source=_COUNTED if evaluation.state in TERMINAL else _NOTED),
            {
                "epoch": evaluation.epoch,
                "runs": [run.id for run in found],
                "lately": pace.RECENT_SECONDS,
                # What was taken over, before anything was asked, says nothing of the pace.
                "since": evaluation.started_at or evaluation.created_at,
            },
        )
        for run_id, outcome, n, n_new, first, last, n_lately in cursor.fetchall():
            outcomes[run_id][outcome] = int(n)
            before = recent.get(run_id, Recent())
            recent[run_id] = Recent(
                n=before.n + int(n_new),
                n_lately=before.n_lately + int(n_lately),
                first_at=min((at for at in (before.first_at, first) if at is not None), default=None),
            )
            n_this_epoch += int(n_new)
            first_at = min((at for at in (first_at, first) if at is not None), default=None)
            last_at = max((at for at in (last_at, last) if at is not None), default=None)
    total = {outcome.value: sum(counts.get(outcome.value, 0) for counts in outcomes.values()) for outcome in Outcome}
    progress = Progress(
        n_questions=evaluation.n_questions,
        n_done=min((sum(counts.values()) for counts in outcomes.values()), default=0),
        n_results=sum(total.values()),
        n_results_total=evaluation.n_questions * len(found),
        by_outcome=total,
    )
    waiting_for = waiting.of(evaluation)
    return Look(
        evaluation=evaluation,
        runs=found,
        progress=progress,
        outcomes=outcomes,
        n_this_epoch=n_this_epoch,
        first_at=first_at,
        recent=recent,
        waiting_for=waiting_for,
        tag=_tag(evaluation, found, outcomes, last_at, waiting_for),
    )


def detail(seen: Look, *, now: datetime) -> EvaluationDetail:
    """One query more where runs are open and few rows are there; else their counts only."""
    evaluation, progress = seen.evaluation, seen.progress
    open_runs = [run for run in seen.runs if not runs.is_final(run)]
    numbers: Mapping[UUID, Mapping[str, Any]] = {}
    is_current = True
    n_rows = sum(sum(seen.outcomes[run.id].values()) for run in open_runs)
    if open_runs and 0 < n_rows <= partial.MOST_ROWS:
        numbers, is_current = partial.lately(
            evaluation.id,
            n_rows=n_rows,
            run_ids=[run.id for run in open_runs],
            keys=evaluation.plan["keys"],
            version_id=evaluation.question_set_version_id,
            epoch=evaluation.epoch,
        )
    shown = [
        runs.row(run)
        if runs.is_final(run)
        else runs.row(run, metrics=numbers.get(run.id, {}), counts=_counts(seen.outcomes[run.id]))
        for run in seen.runs
    ]
    return EvaluationDetail(
        evaluation=_row(evaluation, shown, now=now),
        progress=progress,
        eta_seconds=_eta(seen, now=now),
        questions_per_second=_rate(seen, now=now),
        waiting_for=seen.waiting_for,
        is_current=is_current,
        counts_only=n_rows > partial.MOST_ROWS,
    )


def _with(run: Run, evaluation: Evaluation) -> Run:
    """A prefetched run knows its evaluation, but not the version that was loaded with it."""
    run.evaluation = evaluation
    return run


def _counts(outcomes: Mapping[str, int]) -> dict[str, int]:
    """The counts that are certain before the end, by the names of the final ones."""
    return {
        "n_total": sum(outcomes.values()),
        "n_error": outcomes.get(Outcome.ERROR, 0),
        "n_cancelled": outcomes.get(Outcome.CANCELLED, 0),
        "n_not_run": outcomes.get(Outcome.NOT_RUN, 0),
    }


def _taken(seen: Look, *, now: datetime) -> float | None:
    """Seconds since the first row of this epoch, while that says something of the next ones."""
    if seen.evaluation.state != EvaluationState.RUNNING or seen.first_at is None:
        return None
    taken = (now - seen.first_at).total_seconds()
    return taken if seen.n_this_epoch >= pace.LEAST and taken > 0 else None


def _rate(seen: Look, *, now: datetime) -> float | None:
    taken = _taken(seen, now=now)
    return None if taken is None or not seen.runs else round(seen.n_this_epoch / len(seen.runs) / taken, 2)


def _eta(seen: Look, *, now: datetime) -> float | None:
    """None also while a provider keeps it waiting: how long that lasts, nobody knows."""
    if _taken(seen, now=now) is None or seen.waiting_for:
        return None
    paces = []
    for run in seen.runs:
        one = seen.recent.get(run.id, Recent())
        paces.append(
            Pace(
                n_left=seen.evaluation.n_questions - sum(seen.outcomes[run.id].values()),
                n_done=one.n,
                n_recent=one.n_lately,
                seconds=0.0 if one.first_at is None else max(0.0, (now - one.first_at).total_seconds()),
            )
        )
    left = pace.seconds_left(paces)
    return None if left is None else round(left, 1)


def _tag(
    evaluation: Evaluation,
    found: Sequence[Run],
    outcomes: Mapping[UUID, Mapping[str, int]],
    last_at: datetime | None,
    waiting_for: Sequence[WaitingFor],
) -> str:
    said = [
        str(evaluation.id),
        evaluation.state,
        evaluation.epoch,
        evaluation.revision,
        evaluation.label,
        evaluation.code,
        str(last_at),
        [
            [str(run.id), run.state, run.label, run.pinned, str(run.pruned_at), run.stop_code, _base_name(run)]
            for run in found
        ],
        [[str(run_id), sorted(counts.items())] for run_id, counts in sorted(outcomes.items())],
        evaluation.question_set_version_id is None,
        [[one.provider, one.state, one.code, str(one.since), str(one.retry_at)] for one in waiting_for],
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def _base_name(run: Run) -> str | None:
    return None if run.knowledge_base is None else run.knowledge_base.name


def _row(evaluation: Evaluation, shown: Sequence[RunRow], *, now: datetime) -> EvaluationRow:
    version = evaluation.question_set_version
    plan = evaluation.plan
    begun = evaluation.started_at or evaluation.created_at
    return EvaluationRow(
        id=evaluation.id,
        state=evaluation.state,
        is_final=evaluation.state in TERMINAL,
        question_set=SetRef(
            id=None if version is None else version.question_set_id,
            version=None if version is None else version.number,
            name=evaluation.set_name,
            content_hash=shown[0].question_set.content_hash if shown else "",
        ),
        scope=evaluation.scope,
        n_questions=evaluation.n_questions,
        level=plan["level"],
        top_k=plan["top_k"],
        ks=tuple(plan["ks"]),
        primary_metric=plan["primary_metric"],
        cache=evaluation.use_cache,
        wait_for_index=evaluation.wait_for_index,
        label=evaluation.label,
        metadata=evaluation.metadata,
        epoch=evaluation.epoch,
        revision=evaluation.revision,
        code=evaluation.code,
        reason=evaluation.reason,
        created_at=evaluation.created_at,
        started_at=evaluation.started_at,
        finished_at=evaluation.finished_at,
        deadline_at=evaluation.deadline_at,
        elapsed_seconds=round(max(0.0, ((evaluation.finished_at or now) - begun).total_seconds()), 3),
        runs=tuple(shown),
    )
