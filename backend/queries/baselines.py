"""Baselines as API, console and commands show them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.core.metrics import METRIC_DEFINITIONS_VERSION
from backend.models import Baseline, QuestionSetVersion, Run, Workspace
from backend.queries.lookups import get


class BaselineState(StrEnum):
    """`outdated`: in force, but the set's labels or the metrics' definitions have changed since: a person has to
    approve a run of the new ones."""

    IN_FORCE = "in_force"
    OUTDATED = "outdated"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """`headline` is the run's primary metric. `why` says what has changed since an outdated one was approved."""

    id: UUID
    run: UUID
    evaluation: UUID
    name: str
    label: str
    state: str
    why: str
    question_set: UUID | None
    set_name: str
    set_hash: str
    metric_definitions: str
    code_version: str
    primary_metric: str
    headline: Mapping[str, Any] | None
    approved_by: str
    approved_at: datetime
    retired_at: datetime | None


def of(workspace: Workspace, *, retired: bool = False) -> QuerySet[Baseline]:
    """Newest first; those in force, or with `retired` all that ever were."""
    found = Baseline.objects.filter(workspace=workspace).select_related("run")
    return (found if retired else found.filter(retired_at__isnull=True)).order_by("-id")


def get_baseline(workspace: Workspace, key: object) -> Baseline:
    """Raises NotFoundError."""
    return get(of(workspace, retired=True), key, what="baseline")


def rows(found: Iterable[Baseline]) -> list[BaselineRow]:
    """One query beside that of the list."""
    baselines = list(found)
    versions = (
        QuestionSetVersion.objects.filter(question_set__in={one.question_set_id for one in baselines})
        .order_by("question_set", "-number")
        .distinct("question_set")
    )
    latest = dict(versions.values_list("question_set", "content_hash"))
    return [_row(one, latest.get(one.question_set_id) if one.question_set_id else None) for one in baselines]


def _row(baseline: Baseline, latest_hash: str | None) -> BaselineRow:
    why = []
    if latest_hash is not None and latest_hash != baseline.set_hash:
        why.append("the set's labels have changed since")
    if baseline.metric_definitions != METRIC_DEFINITIONS_VERSION:
        why.append("the metrics are defined differently since")
    state = BaselineState.OUTDATED if why else BaselineState.IN_FORCE
    return BaselineRow(
        id=baseline.id,
        run=baseline.run_id,
        evaluation=baseline.run.evaluation_id,
        name=baseline.name,
        label=baseline.label,
        state=BaselineState.RETIRED if baseline.retired_at is not None else state,
        why="; ".join(why),
        question_set=baseline.question_set_id,
        set_name=baseline.set_name,
        set_hash=baseline.set_hash,
        metric_definitions=baseline.metric_definitions,
        code_version=baseline.code_version,
        primary_metric=baseline.primary_metric,
        headline=baseline.run.metrics.get(baseline.primary_metric),
        approved_by=baseline.approved_by,
        approved_at=baseline.approved_at,
        retired_at=baseline.retired_at,
    )


def get_run(workspace: Workspace, key: object) -> Run:
    """A run with what its approval looks at. Raises NotFoundError."""
    rows = Run.objects.filter(workspace=workspace).select_related("evaluation__question_set_version")
    return get(rows, key, what="run")
