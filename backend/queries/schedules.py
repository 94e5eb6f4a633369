"""Schedules and their history, as API, console and commands show them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.core import cron
from backend.core.states import TERMINAL
from backend.models import Alert, Firing, Schedule, Workspace
from backend.queries.lookups import get


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringRow:
    """`evaluation_state` is how far its evaluation is now; None where it started none."""

    id: UUID
    slot_at: datetime
    manual: bool
    state: str
    caught_up: bool
    n_slots: int
    code: str
    reason: str
    evaluation: UUID | None
    evaluation_state: str | None
    outcomes: Mapping[str, str]
    request: Mapping[str, Any]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """`set_name` and `base_name` are empty where these were deleted, or where it names neither. `upcoming` are its next
    three slots."""

    id: UUID
    name: str
    evaluation: Mapping[str, Any]
    question_set: UUID | None
    set_name: str
    knowledge_base: UUID | None
    base_name: str
    cron: str
    time_zone: str
    enabled: bool
    grace_seconds: int
    revision: int
    next_run_at: datetime | None
    upcoming: tuple[datetime, ...]
    is_running: bool
    last: FiringRow | None
    n_open_alerts: int
    created_at: datetime


def of(workspace: Workspace) -> QuerySet[Schedule]:
    """By id, newest first."""
    return Schedule.objects.filter(workspace=workspace).select_related("question_set", "knowledge_base").order_by("-id")


def get_schedule(workspace: Workspace, key: object) -> Schedule:
    """Raises NotFoundError."""
    return get(of(workspace).select_related("workspace"), key, what="schedule")


def rows(found: Iterable[Schedule]) -> list[ScheduleRow]:
    """Three queries, however many they are."""
    schedules = list(found)
    ids = [schedule.id for schedule in schedules]
    latest = Firing.objects.filter(schedule__in=ids).order_by("schedule", "-slot_at").distinct("schedule")
    last = {one.schedule_id: firing_row(one) for one in latest.select_related("evaluation")}
    running = set(
        Firing.objects.filter(schedule__in=ids, evaluation__isnull=False)
        .exclude(evaluation__state__in=TERMINAL)
        .values_list("schedule", flat=True)
    )
    open_alerts: dict[UUID, int] = {}
    for schedule_id in Alert.objects.filter(schedule__in=ids, state="open").values_list("schedule", flat=True):
        if schedule_id is not None:
            open_alerts[schedule_id] = open_alerts.get(schedule_id, 0) + 1
    return [
        ScheduleRow(
            id=one.id,
            name=one.name,
            evaluation=one.request,
            question_set=one.question_set_id,
            set_name=one.question_set.name if one.question_set is not None else "",
            knowledge_base=one.knowledge_base_id,
            base_name=one.knowledge_base.name if one.knowledge_base is not None else "",
            cron=one.cron,
            time_zone=one.time_zone,
            enabled=one.enabled,
            grace_seconds=one.grace_seconds,
            revision=one.revision,
            next_run_at=one.next_run_at,
            upcoming=_upcoming(one),
            is_running=one.id in running,
            last=last.get(one.id),
            n_open_alerts=open_alerts.get(one.id, 0),
            created_at=one.created_at,
        )
        for one in schedules
    ]


def history_of(schedule: Schedule) -> QuerySet[Firing]:
    """Its slots, the latest first."""
    found = Firing.objects.filter(schedule=schedule).select_related("evaluation")
    return found.prefetch_related("evaluation__gate_checks__gate").order_by("-id")


def firing_row(firing: Firing) -> FiringRow:
    """Of a firing whose evaluation was selected with it; `outcomes` by gate cost a query unless prefetched."""
    evaluation = firing.evaluation
    checks = [] if evaluation is None else sorted(evaluation.gate_checks.all(), key=lambda one: one.revision)
    return FiringRow(
        id=firing.id,
        slot_at=firing.slot_at,
        manual=firing.manual,
        state=firing.state,
        caught_up=firing.caught_up,
        n_slots=firing.n_slots,
        code=firing.code,
        reason=firing.reason,
        evaluation=firing.evaluation_id,
        evaluation_state=None if evaluation is None else evaluation.state,
        outcomes={check.gate.name: check.outcome for check in checks},
        request=firing.request,
        revision=firing.revision,
    )


def _upcoming(schedule: Schedule) -> tuple[datetime, ...]:
    if schedule.next_run_at is None:
        return ()
    times = cron.parse(schedule.cron, schedule.time_zone)
    return (schedule.next_run_at, *cron.upcoming(times, after=schedule.next_run_at, n=2))
