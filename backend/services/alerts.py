"""Alerts: opened when something breaks, resolved when it is well again; each change of state is told once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from backend.core import alerts
from backend.core.alerts import AlertKind, AlertState, DeliveryState, Event
from backend.core.states import JobKind, Lane
from backend.models import Alert, AlertTarget, Delivery, Gate, ProviderState, Question, Schedule, Workspace
from backend.services import jobs

KEPT_DAYS = 30
_MOST_TITLE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an alert says. `lost` are question keys, `version` where their texts are, should the owner allow them."""

    title: str
    sentences: Sequence[str] = ()
    because: Sequence[str] = ()
    causes: Mapping[str, Any] = field(default_factory=dict)
    lost: Sequence[str] = ()
    version_id: UUID | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "sentences": list(self.sentences),
            "because": list(self.because),
            "causes": dict(self.causes),
            "lost": list(self.lost),
        }


def open_(
    workspace: Workspace,
    *,
    kind: AlertKind,
    key: str,
    told: Told,
    now: datetime,
    schedule: Schedule | None = None,
    gate: Gate | None = None,
    evaluation_id: UUID | None = None,
) -> Alert | None:
    """Opens it and tells every target, in the caller's transaction. None where it is open already: the same state is
    not told twice."""
    with transaction.atomic():
        made = Alert.objects.bulk_create(
            [
                Alert(
                    workspace=workspace,
                    kind=kind,
                    key=key[:500],
                    title=told.title[:_MOST_TITLE],
                    detail=told.to_json(),
                    schedule=schedule,
                    gate=gate,
                    evaluation_id=evaluation_id,
                    opened_at=now,
                )
            ],
            ignore_conflicts=True,
        )[0]
        # Whether it is the one that is open now: of two at once, one came first.
        alert = Alert.objects.select_related("schedule", "gate").filter(id=made.id).first()
        if alert is None:
            return None
        _tell(alert, Event.OPENED, told)
    return alert


def resolve(workspace: Workspace, key: str, *, told: Told, now: datetime) -> Alert | None:
    """It is well again, which is told to every target. None where nothing was open."""
    with transaction.atomic():
        alert = (
            Alert.objects.select_for_update(of=("self",))
            .select_related("schedule", "gate")
            .filter(workspace=workspace, key=key[:500], state=AlertState.OPEN)
            .first()
        )
        if alert is None:
            return None
        Alert.objects.filter(id=alert.id).update(
            state=AlertState.RESOLVED, resolved_at=now, recovery={"title": told.title, **told.to_json()}
        )
        alert.refresh_from_db()
        _tell(alert, Event.RESOLVED, told)
    return alert


def supersede(workspace: Workspace, key: str, *, now: datetime) -> None:
    """Close it without a word: another alert says more of the same thing."""
    Alert.objects.filter(workspace=workspace, key=key[:500], state=AlertState.OPEN).update(
        state=AlertState.RESOLVED, resolved_at=now, recovery={"title": "It broke: see the alert after this one."}
    )


def open_keys(workspace: Workspace, **about: Any) -> set[str]:
    """The keys of the open alerts about something: `gate=`, `schedule=`, `kind=`."""
    return set(Alert.objects.filter(workspace=workspace, state=AlertState.OPEN, **about).values_list("key", flat=True))


def drop(workspace: Workspace, *, reason: str, now: datetime, **about: Any) -> None:
    """Close what is open about something that is going away."""
    for key in open_keys(workspace, **about):
        resolve(workspace, key, told=Told(title=reason), now=now)


def send_test(target: AlertTarget, *, now: datetime) -> Delivery:
    """A message of no consequence, to see whether it arrives."""
    body = {"event": Event.TEST.value, "title": "A test from Touchstone", "at": now.isoformat(), "sentences": []}
    with transaction.atomic():
        delivery = Delivery.objects.create(target=target, event=Event.TEST, body=body)
        _start(target.workspace, delivery)
    return delivery


def watch_providers(*, now: datetime) -> int:
    """Providers that stay stalled have died; one that answers again is well. From the tick."""
    n = 0
    limit = now - timedelta(seconds=settings.PROVIDER_STALL_SECONDS)
    dead = list(
        ProviderState.objects.filter(stalled_at__lt=limit)
        .select_related("workspace")
        .values_list("workspace", "provider", "reason")
    )
    keys = {(workspace, provider_key(provider)) for workspace, provider, _ in dead}
    known = {
        (workspace, key)
        for workspace, key in Alert.objects.filter(
            kind=AlertKind.PROVIDER, state=AlertState.OPEN, schedule=None
        ).values_list("workspace", "key")
    }
    for workspace_id, provider, reason in dead:
        if (workspace_id, provider_key(provider)) not in known:
            told = Told(title=f"{provider} does not answer", sentences=[reason] if reason else [])
            workspace = Workspace.objects.get(id=workspace_id)
            made = open_(workspace, kind=AlertKind.PROVIDER, key=provider_key(provider), told=told, now=now)
            n += made is not None
    for workspace_id, key in known - keys:
        provider = key.removeprefix("provider:")
        told = Told(title=f"{provider} answers again")
        n += resolve(Workspace.objects.get(id=workspace_id), key, told=told, now=now) is not None
    return n


def provider_key(provider: str) -> str:
    return f"provider:{provider}"


def forget(*, now: datetime) -> int:
    """Messages that ended long ago: what they said may hold texts. The alerts themselves stay."""
    old = Delivery.objects.filter(ended_at__lt=now - timedelta(days=KEPT_DAYS))
    return old.delete()[0]


def _tell(alert: Alert, event: Event, told: Told) -> None:
    targets = list(AlertTarget.objects.filter(workspace=alert.workspace_id, enabled=True).order_by("id"))
    if not targets:
        return
    texts = {}
    if told.lost and any(target.with_texts for target in targets):
        asked = Question.objects.filter(version=told.version_id, key__in=list(told.lost)[: alerts.MOST_LOST])
        texts = dict(asked.values_list("key", "text"))
    for target in targets:
        body = alerts.body(
            event=event,
            alert=_shown(alert, told),
            lost_questions=[{"id": key, "question": texts.get(key)} for key in told.lost],
            with_texts=target.with_texts,
        )
        delivery = Delivery.objects.create(target=target, alert=alert, event=event, body=body)
        _start(alert.workspace, delivery)


def _shown(alert: Alert, told: Told) -> dict[str, Any]:
    return {
        "alert": str(alert.id),
        "kind": alert.kind,
        "state": alert.state,
        "title": told.title,
        "sentences": list(told.sentences),
        "because": list(told.because),
        "causes": dict(told.causes),
        "workspace": alert.workspace.name,
        "schedule": None if alert.schedule is None else alert.schedule.name,
        "gate": None if alert.gate is None else alert.gate.name,
        "evaluation": None if alert.evaluation_id is None else str(alert.evaluation_id),
        "opened_at": alert.opened_at.isoformat(),
        "resolved_at": None if alert.resolved_at is None else alert.resolved_at.isoformat(),
        "url": f"{settings.PUBLIC_URL}/alerts/{alert.id}" if settings.PUBLIC_URL else "",
    }


def _start(workspace: Workspace, delivery: Delivery) -> None:
    jobs.start(workspace, JobKind.ALERT, {"delivery": str(delivery.id)}, lane=Lane.PROVIDER)


def end(delivery: Delivery, state: DeliveryState, *, now: datetime, reason: str = "") -> None:
    """One conditional update: a message ends once."""
    Delivery.objects.filter(id=delivery.id, state=DeliveryState.PENDING).update(
        state=state, ended_at=now, reason=reason
    )
