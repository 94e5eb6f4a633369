"""Schedules: kept, and started when they are due. Beat only ticks; which slots were dealt with is in our rows.

Several clocks do no harm: a schedule's row is locked while it is looked at, and a slot can be written once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F

from backend import logs
from backend.core import cron
from backend.core.alerts import AlertKind
from backend.core.errors import ConflictError, ErrorCode, Fault, TouchstoneError, ValidationError
from backend.core.states import TERMINAL, FiringState
from backend.models import Evaluation, Firing, KnowledgeBase, QuestionSet, Schedule, Workspace
from backend.providers.base import ProviderError
from backend.services import alerts, corpus_snapshots, evaluation_requests, evaluations, submissions
from backend.services.alerts import Told
from backend.services.evaluation_requests import Request

GRACE_SECONDS = 6 * 3600
# Less would call a slot missed that a busy clock looks at a little late.
LEAST_GRACE_SECONDS, MOST_GRACE_SECONDS = 120, 7 * 86_400
MAX_NAME = 200
_MOST_SLOTS = 10_000
_BATCH = 20
# Later than this is not when it was due, and is said so.
_ON_TIME = timedelta(minutes=2)
# What may be different by the time it runs.
_FOR_NOW = frozenset({ErrorCode.KB_NOT_READY, ErrorCode.KB_EMPTY, ErrorCode.SPEND_LIMIT})
_log = logs.get("schedules")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a schedule is made of. `request` is the body of `POST evaluations`."""

    name: str
    request: Mapping[str, Any]
    cron: str
    time_zone: str = "UTC"
    enabled: bool = True
    grace_seconds: int = GRACE_SECONDS


def create(workspace: Workspace, given: Settings, *, now: datetime) -> Schedule:
    """Its first slot is the first one after now. Raises ValidationError with every fault, NotFoundError for a set or
    scope that is not the workspace's, ConflictError for a name that is taken."""
    values = _checked(workspace, given, now=now)
    try:
        with transaction.atomic():
            return Schedule.objects.create(workspace=workspace, **values)
    except IntegrityError as error:
        raise ConflictError(f"There is a schedule {given.name!r} already.") from error


def update(schedule: Schedule, *, changes: Mapping[str, Any], now: datetime) -> Schedule:
    """Changes the fields of Settings that are given, from the next slot on; what has run keeps what it ran with.

    Switched on again, it does not catch up what it slept through.
    """
    workspace = schedule.workspace
    with transaction.atomic():
        locked = Schedule.objects.select_for_update().get(id=schedule.id)
        old = Settings(
            name=locked.name,
            request=locked.request,
            cron=locked.cron,
            time_zone=locked.time_zone,
            enabled=locked.enabled,
            grace_seconds=locked.grace_seconds,
        )
        given = Settings(**{**{name: getattr(old, name) for name in old.__slots__}, **changes})
        values = _checked(workspace, given, now=now)
        # Another name is no other time: a slot that is due now still is.
        if (given.cron, given.time_zone, given.enabled) == (old.cron, old.time_zone, old.enabled):
            values["next_run_at"] = locked.next_run_at
        try:
            with transaction.atomic():
                Schedule.objects.filter(id=locked.id).update(**values, revision=F("revision") + 1)
        except IntegrityError as error:
            raise ConflictError(f"There is a schedule {given.name!r} already.") from error
    schedule.refresh_from_db()
    return schedule


def delete(schedule: Schedule, *, now: datetime) -> None:
    """With its history; the evaluations it started stay, its gates watch nothing."""
    with transaction.atomic():
        alerts.drop(schedule.workspace, reason=f"The schedule {schedule.name} was deleted", now=now, schedule=schedule)
        schedule.delete()


def run_now(schedule: Schedule, *, now: datetime) -> Firing:
    """Outside its times; the slots stay as they are. Raises ConflictError while its last evaluation runs, and what
    `evaluations.start` raises."""
    with transaction.atomic():
        locked = Schedule.objects.select_for_update().select_related("workspace").get(id=schedule.id)
        running = _running(locked)
        if running is not None:
            raise ConflictError(f"Its evaluation {running.id} is {running.state}: wait for it, or cancel it.")
        evaluation = _start(locked, now=now)
        return Firing.objects.create(
            schedule=locked,
            slot_at=now,
            manual=True,
            state=FiringState.STARTED,
            evaluation=evaluation,
            request=locked.request,
            revision=locked.revision,
        )


def fire_due(*, now: datetime) -> int:
    """Deal with every slot that has come; from the tick. Returns how many evaluations were started."""
    due = Schedule.objects.filter(enabled=True, next_run_at__lte=now).order_by("next_run_at")
    return sum(_fire(schedule_id, now=now) for schedule_id in list(due.values_list("id", flat=True)[:_BATCH]))


def _fire(schedule_id: UUID, *, now: datetime) -> int:
    """The latest slot within the grace runs, those before it are covered by it, and older ones were missed."""
    with transaction.atomic():
        schedule = (
            Schedule.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("workspace")
            .filter(id=schedule_id, enabled=True, next_run_at__lte=now)
            .first()
        )
        if schedule is None or schedule.next_run_at is None:
            return 0
        times = cron.parse(schedule.cron, schedule.time_zone)
        slots = cron.passed(times, since=schedule.next_run_at, now=now, most=_MOST_SLOTS)
        grace = timedelta(seconds=schedule.grace_seconds)
        missed = [slot for slot in slots if now - slot > grace]
        current = [slot for slot in slots if now - slot <= grace]
        Schedule.objects.filter(id=schedule.id).update(next_run_at=cron.next_slot(times, after=now))
        if missed:
            _miss(schedule, missed, now=now)
        if len(current) > 1:
            _note(
                schedule,
                current[0],
                FiringState.COVERED,
                n_slots=len(current) - 1,
                reason=f"{len(current) - 1:,} slots passed while nothing looked at the clock; the one after them ran.",
            )
        if not current:
            return 0
        return _run(schedule, current[-1], on_time=len(slots) == 1 and now - current[-1] <= _ON_TIME, now=now)


def _run(schedule: Schedule, slot: datetime, *, on_time: bool, now: datetime) -> int:
    running = _running(schedule)
    if running is not None:
        reason = f"The evaluation {running.id} of an earlier slot is still {running.state}: this slot was skipped."
        _note(schedule, slot, FiringState.SKIPPED, reason=reason)
        return 0
    late = "" if on_time else f"Caught up {_ago(now - slot)} late: nothing had looked at the clock."
    try:
        with transaction.atomic():
            firing = _note(schedule, slot, FiringState.STARTED, reason=late, caught_up=bool(late))
            if firing is None:
                return 0
            evaluation = _start(schedule, now=now)
            Firing.objects.filter(id=firing.id).update(evaluation=evaluation)
    except (TouchstoneError, ProviderError) as error:
        _note(schedule, slot, FiringState.FAILED, code=error.code.value, reason=error.message)
        alerts.open_(
            schedule.workspace,
            kind=AlertKind.NOT_RUN,
            key=f"not_run:{schedule.id}",
            told=Told(title=f"{schedule.name} could not start", sentences=[f"{error.message} ({error.code.value})"]),
            now=now,
            schedule=schedule,
        )
        _log.warning("schedule_not_started", schedule=str(schedule.id), code=error.code.value)
        return 0
    if on_time:
        told = Told(title=f"{schedule.name} runs at its times again")
        alerts.resolve(schedule.workspace, _missed_key(schedule), told=told, now=now)
    return 1


def _start(schedule: Schedule, *, now: datetime) -> Evaluation:
    request = submissions.parse(_body(schedule.request, name=schedule.name))
    evaluation = evaluations.start(schedule.workspace, request, now=now)
    corpus_snapshots.keep_for(evaluation, now=now)
    return evaluation


def _body(request: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    return {"label": name, **request}


def _miss(schedule: Schedule, slots: Sequence[datetime], *, now: datetime) -> None:
    n, zone = len(slots), cron.parse(schedule.cron, schedule.time_zone).zone
    times = f"{slots[0].astimezone(zone):%Y-%m-%d %H:%M}"
    if n > 1:
        times += f" to {slots[-1].astimezone(zone):%Y-%m-%d %H:%M}"
    said = f"{n:,} {'slot' if n == 1 else 'slots'} ({times} {schedule.time_zone}) passed without a run"
    reason = (
        f"{said}: nothing looked at the clock within the grace of {_ago(timedelta(seconds=schedule.grace_seconds))}."
    )
    _note(schedule, slots[0], FiringState.MISSED, n_slots=n, reason=reason)
    told = Told(
        title=f"{schedule.name}: {'a night was' if n == 1 else f'{n:,} nights were'} missed", sentences=[reason]
    )
    alerts.open_(
        schedule.workspace,
        kind=AlertKind.MISSED,
        key=_missed_key(schedule),
        told=told,
        now=now,
        schedule=schedule,
    )
    _log.warning("slots_missed", schedule=str(schedule.id), n=n)


def _note(schedule: Schedule, slot: datetime, state: FiringState, **values: Any) -> Firing | None:
    """None where this slot was dealt with already."""
    firing = Firing(
        schedule=schedule,
        slot_at=slot,
        state=state,
        request=schedule.request,
        revision=schedule.revision,
        **values,
    )
    Firing.objects.bulk_create([firing], ignore_conflicts=True)
    return Firing.objects.filter(id=firing.id).first()


def _running(schedule: Schedule) -> Evaluation | None:
    return Evaluation.objects.filter(firings__schedule=schedule.id).exclude(state__in=TERMINAL).order_by("id").first()


def _missed_key(schedule: Schedule) -> str:
    return f"missed:{schedule.id}"


def _ago(age: timedelta) -> str:
    minutes = int(age.total_seconds() // 60)
    if minutes < 120:
        return f"{minutes} minutes"
    return f"{minutes // 60} hours" if minutes < 48 * 60 else f"{minutes // 1440} days"


def _checked(workspace: Workspace, given: Settings, *, now: datetime) -> dict[str, Any]:
    """The row's values. Every fault of form is told together."""
    faults: list[Fault] = []
    if not given.name or len(given.name) > MAX_NAME:
        faults.append(_fault(f"name is a text of 1 to {MAX_NAME} characters.", "name"))
    if not LEAST_GRACE_SECONDS <= given.grace_seconds <= MOST_GRACE_SECONDS:
        said = f"grace_seconds is from {LEAST_GRACE_SECONDS} to {MOST_GRACE_SECONDS:,} (a week)."
        faults.append(_fault(said, "grace_seconds"))
    times = request = None
    try:
        times = cron.parse(given.cron, given.time_zone)
    except ValidationError as error:
        faults += error.faults
    try:
        request = submissions.parse(_body(given.request, name=given.name[: submissions.MAX_LABEL]))
    except ValidationError as error:
        faults += [
            Fault(code=one.code, message=one.message, field=f"evaluation.{one.field}" if one.field else "evaluation")
            for one in error.faults
        ]
    if faults or times is None or request is None:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    question_set, base = _named(workspace, request)
    return {
        "name": given.name,
        "request": dict(given.request),
        "question_set": question_set,
        "knowledge_base": base,
        "cron": times.expression,
        "time_zone": given.time_zone,
        "enabled": given.enabled,
        "grace_seconds": given.grace_seconds,
        "next_run_at": cron.next_slot(times, after=now) if given.enabled else None,
    }


def _named(workspace: Workspace, request: Request) -> tuple[QuestionSet | None, KnowledgeBase | None]:
    """The set and base it is about, once all that it names was looked for."""
    try:
        resolved = evaluation_requests.resolve(workspace, request)
    except TouchstoneError as error:
        codes = {fault.code for fault in error.faults} or {error.code}
        if not codes <= _FOR_NOW:
            raise
        key = request.question_set.partition("@")[0]
        base = request.scope.get("knowledge_base")
        return (
            QuestionSet.objects.filter(workspace=workspace, id=key).first() if key else None,
            KnowledgeBase.objects.filter(workspace=workspace, id=base).first() if isinstance(base, str) else None,
        )
    return resolved.version.question_set, resolved.scoped.knowledge_base


def _fault(message: str, field: str) -> Fault:
    return Fault(code=ErrorCode.VALIDATION, message=message, field=field)


def of_request(request: Request) -> dict[str, Any]:
    """A request as a schedule keeps it: without what was left out."""
    return {name: value for name, value in asdict(request).items() if value not in (None, "", {}, [])}
