"""One metric over the runs of a set on a base, oldest first, and what changed between them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from backend.core.states import RunState
from backend.models import Run, Workspace
from backend.queries import runs

MOST = 60
DOCUMENTS, LABELS, CONFIGURATION = "documents", "questions", "configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run's mean with its interval. `changed`: what differs from the run before it."""

    run_id: UUID
    at: datetime
    label: str
    mean: float
    low: float
    high: float
    n: int
    n_total: int
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """`metric` is the one asked for, else the latest run's primary one: runs that were measured otherwise are left
    out. `name` is the configuration's."""

    metric: str
    name: str
    points: tuple[Point, ...]


def of(
    workspace: Workspace,
    *,
    question_set: str = "",
    knowledge_base: str = "",
    mode: str = "",
    name: str = "",
    metric: str = "",
    most: int = MOST,
) -> Trend:
    """The latest `most` scored runs of one configuration, found by `name` or `mode`, else the latest run's name. One
    query, two where neither is given. Raises NotFoundError for what is no id at all."""
    rows = runs.of(workspace, question_set=question_set, knowledge_base=knowledge_base, mode=mode).filter(
        state=RunState.SCORED
    )
    if not name and not mode:
        name = rows.values_list("name", flat=True).first() or ""
    if name:
        rows = rows.filter(name=name)
    return through(rows.defer("config", "origin")[:most], metric=metric)


def through(found: Iterable[Run], *, metric: str = "") -> Trend:
    """Runs that are loaded already, newest first."""
    newest = list(found)
    if not newest:
        return Trend(metric=metric, name="", points=())
    metric = metric or newest[0].primary_metric
    points: list[Point] = []
    before: Run | None = None
    for run in reversed(newest):
        told = run.metrics.get(metric)
        if told is None or told["mean"] is None:
            continue
        points.append(
            Point(
                run_id=run.id,
                at=run.created_at,
                label=run.label,
                mean=told["mean"],
                low=told["low"],
                high=told["high"],
                n=told["n"],
                n_total=told["n_total"],
                changed=() if before is None else _changed(before, run),
            )
        )
        before = run
    return Trend(metric=metric, name=newest[0].name, points=tuple(points))


def _changed(before: Run, after: Run) -> tuple[str, ...]:
    found = []
    if before.corpus_fingerprint != after.corpus_fingerprint:
        found.append(DOCUMENTS)
    if before.set_hash != after.set_hash:
        found.append(LABELS)
    if before.config_fingerprint != after.config_fingerprint:
        found.append(CONFIGURATION)
    return tuple(found)
