"""What a workspace measures: each question set on each base, with its latest figure, its course and its schedule."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from backend.core.alerts import AlertState
from backend.core.states import RunState
from backend.models import Alert, Baseline, Run, Schedule, Workspace

MOST_PAIRS, MOST_POINTS = 24, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A run's headline. `mean` None: nothing was scored by this metric."""

    run_id: UUID
    name: str
    at: datetime
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    n_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One set on one base. `latest` is the best configuration of the latest evaluation, `points` its means over the
    latest runs of its name, oldest first. `change` is against the approved baseline of that name, where there is one,
    else against the run before; None where there is neither, or they are measured by different metrics."""

    set_id: UUID
    set_name: str
    base_id: UUID
    base_name: str
    evaluation_id: UUID
    n_runs: int
    latest: Figure
    points: tuple[float, ...]
    change: float | None
    is_against_baseline: bool
    next_run_at: datetime | None = None


def of(workspace: Workspace, *, most: int = MOST_PAIRS) -> list[Course]:
    """The latest measured pairs first. Five queries, however many runs there are."""
    pairs = _pairs(workspace, most=most)
    if not pairs:
        return []
    runs = list(
        Run.objects.filter(evaluation__in={pair[3] for pair in pairs.values()}, state=RunState.SCORED)
        .only("id", "evaluation", "knowledge_base", "name", "created_at", "primary_metric", "metrics", "ordinal")
        .order_by("ordinal")
    )
    best = {
        key: max(found, key=_goodness)
        for key, pair in pairs.items()
        if (found := [run for run in runs if (run.evaluation_id, run.knowledge_base_id) == (pair[3], key[1])])
    }
    points = _points({key: run.name for key, run in best.items()})
    approved = _approved(workspace, {run.name for run in best.values()})
    next_at = _next(workspace)
    courses = []
    for key, run in best.items():
        set_name, base_name, n_runs, evaluation_id = pairs[key]
        course = points.get(key, [])
        values = [mean for metric, mean in course if metric == run.primary_metric]
        latest = _figure(run)
        against = approved.get((key[0], key[1], run.name))
        before = None
        if against is not None and against[0] != run.id and against[1] == run.primary_metric:
            before = against[2]
        elif against is None and len(values) > 1:
            before = values[-2]
        courses.append(
            Course(
                set_id=key[0],
                set_name=set_name,
                base_id=key[1],
                base_name=base_name,
                evaluation_id=evaluation_id,
                n_runs=n_runs,
                latest=latest,
                points=tuple(values),
                change=None if before is None or latest.mean is None else latest.mean - before,
                is_against_baseline=against is not None,
                next_run_at=next_at.get(key),
            )
        )
    return courses


def open_alerts(workspace: Workspace) -> QuerySet[Alert]:
    """Newest first."""
    return Alert.objects.filter(workspace=workspace, state=AlertState.OPEN).order_by("-opened_at", "-id")


_Pair = tuple[str, str, int, UUID]
_Key = tuple[UUID, UUID]


def _pairs(workspace: Workspace, *, most: int) -> dict[_Key, _Pair]:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT s.id, s.name, b.id, b.name, found.n, e.evaluation_id
            FROM (
                SELECT v.question_set_id AS set_id, r.knowledge_base_id AS base_id,
                       count(DISTINCT r.evaluation_id) AS n, (array_agg(r.id ORDER BY r.id DESC))[1] AS latest
                FROM backend_run r
                JOIN backend_evaluation e ON e.id = r.evaluation_id
                JOIN backend_questionsetversion v ON v.id = e.question_set_version_id
                WHERE r.workspace_id = %(workspace)s AND r.state = 'scored' AND r.knowledge_base_id IS NOT NULL
                GROUP BY 1, 2 ORDER BY latest DESC LIMIT %(most)s
            ) found
            JOIN backend_questionset s ON s.id = found.set_id
            JOIN backend_knowledgebase b ON b.id = found.base_id
            JOIN backend_run e ON e.id = found.latest
            ORDER BY found.latest DESC
            """,
            {"workspace": workspace.id, "most": most},
        )
        return {
            (set_id, base_id): (set_name, base_name, n, evaluation_id)
            for set_id, set_name, base_id, base_name, n, evaluation_id in cursor.fetchall()
        }


def _points(names: Mapping[_Key, str]) -> dict[_Key, list[tuple[str, float]]]:
    """(metric, mean) of the latest runs of each pair's configuration, oldest first."""
    if not names:
        return {}
    wanted = [(str(set_id), str(base_id), name) for (set_id, base_id), name in names.items()]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT w.set_id, w.base_id, r.primary_metric, r.mean
            FROM unnest(%(sets)s::uuid[], %(bases)s::uuid[], %(names)s::text[]) AS w(set_id, base_id, name)
            CROSS JOIN LATERAL (
                SELECT r.id, r.primary_metric, (r.metrics->r.primary_metric->>'mean')::float AS mean
                FROM backend_run r
                JOIN backend_evaluation e ON e.id = r.evaluation_id
                JOIN backend_questionsetversion v ON v.id = e.question_set_version_id
                WHERE v.question_set_id = w.set_id AND r.knowledge_base_id = w.base_id AND r.name = w.name
                      AND r.state = 'scored'
                ORDER BY r.id DESC LIMIT %(most)s
            ) r
            WHERE r.mean IS NOT NULL
            ORDER BY r.id
            """,
            {
                "sets": [one[0] for one in wanted],
                "bases": [one[1] for one in wanted],
                "names": [one[2] for one in wanted],
                "most": MOST_POINTS,
            },
        )
        found: dict[_Key, list[tuple[str, float]]] = {}
        for set_id, base_id, metric, mean in cursor.fetchall():
            found.setdefault((set_id, base_id), []).append((metric, mean))
        return found


def _approved(workspace: Workspace, names: set[str]) -> dict[tuple[UUID, UUID, str], tuple[UUID, str, float | None]]:
    """The baselines in force of these configurations: (run, metric, mean) by set, base and name."""
    rows = (
        Baseline.objects.filter(workspace=workspace, retired_at__isnull=True, name__in=names)
        .select_related("run")
        .only("question_set", "name", "run__id", "run__knowledge_base", "run__primary_metric", "run__metrics")
    )
    return {
        (one.question_set_id, one.run.knowledge_base_id, one.name): (
            one.run_id,
            one.run.primary_metric,
            _mean(one.run.metrics, one.run.primary_metric),
        )
        for one in rows
        if one.question_set_id is not None and one.run.knowledge_base_id is not None
    }


def _next(workspace: Workspace) -> dict[_Key, datetime]:
    """When each pair is evaluated next by a schedule."""
    found: dict[_Key, datetime] = {}
    rows = Schedule.objects.filter(workspace=workspace, enabled=True, next_run_at__isnull=False).order_by(
        "-next_run_at"
    )
    for set_id, base_id, at in rows.values_list("question_set", "knowledge_base", "next_run_at"):
        if set_id is not None and base_id is not None and at is not None:
            found[set_id, base_id] = at
    return found


def _goodness(run: Run) -> tuple[float, int]:
    mean = _mean(run.metrics, run.primary_metric)
    return (-1.0 if mean is None else mean, -run.ordinal)


def _figure(run: Run) -> Figure:
    told: Mapping[str, Any] = run.metrics.get(run.primary_metric) or {}
    return Figure(
        run_id=run.id,
        name=run.name,
        at=run.created_at,
        metric=run.primary_metric,
        mean=told.get("mean"),
        low=told.get("low"),
        high=told.get("high"),
        n=int(told.get("n", 0)),
        n_total=int(told.get("n_total", 0)),
    )


def _mean(metrics: Mapping[str, Any], key: str) -> float | None:
    told = metrics.get(key)
    return told.get("mean") if isinstance(told, Mapping) else None
