"""Alerts, who is told of them, and what became of each message."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.core.alerts import AlertState
from backend.models import Alert, AlertTarget, Delivery, Workspace
from backend.queries.lookups import get


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """`reason` is what kept the last attempt from arriving."""

    id: UUID
    target: UUID
    target_name: str
    event: str
    state: str
    n_attempts: int
    reason: str
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRow:
    """`because` is what changed since it was well; `lost` are question keys, not their texts."""

    id: UUID
    kind: str
    state: str
    title: str
    sentences: tuple[str, ...]
    because: tuple[str, ...]
    causes: Mapping[str, Any]
    lost: tuple[str, ...]
    recovery: str
    schedule: UUID | None
    schedule_name: str
    gate: UUID | None
    gate_name: str
    evaluation: UUID | None
    opened_at: datetime
    resolved_at: datetime | None
    deliveries: tuple[DeliveryRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    id: UUID
    name: str
    kind: str
    address: str
    with_texts: bool
    enabled: bool
    last: DeliveryRow | None
    created_at: datetime


def of(workspace: Workspace, *, state: str = "") -> QuerySet[Alert]:
    """Newest first."""
    found = Alert.objects.filter(workspace=workspace, **({"state": state} if state else {}))
    return found.select_related("schedule", "gate").prefetch_related("deliveries__target").order_by("-id")


def n_open(workspace: Workspace) -> int:
    return Alert.objects.filter(workspace=workspace, state=AlertState.OPEN).count()


def get_alert(workspace: Workspace, key: object) -> Alert:
    """Raises NotFoundError."""
    return get(of(workspace), key, what="alert")


def row(alert: Alert) -> AlertRow:
    """Without a query where the alert comes from `of`."""
    detail = alert.detail
    return AlertRow(
        id=alert.id,
        kind=alert.kind,
        state=alert.state,
        title=alert.title,
        sentences=tuple(detail.get("sentences", ())),
        because=tuple(detail.get("because", ())),
        causes=detail.get("causes", {}),
        lost=tuple(detail.get("lost", ())),
        recovery=str(alert.recovery.get("title", "")),
        schedule=alert.schedule_id,
        schedule_name=alert.schedule.name if alert.schedule is not None else "",
        gate=alert.gate_id,
        gate_name=alert.gate.name if alert.gate is not None else "",
        evaluation=alert.evaluation_id,
        opened_at=alert.opened_at,
        resolved_at=alert.resolved_at,
        deliveries=tuple(delivery_row(one) for one in sorted(alert.deliveries.all(), key=lambda one: one.id)),
    )


def targets_of(workspace: Workspace) -> QuerySet[AlertTarget]:
    return AlertTarget.objects.filter(workspace=workspace).select_related("workspace").order_by("-id")


def get_target(workspace: Workspace, key: object) -> AlertTarget:
    """Raises NotFoundError."""
    return get(targets_of(workspace), key, what="alert target")


def target_rows(found: Iterable[AlertTarget]) -> list[TargetRow]:
    """One query beside that of the list."""
    targets = list(found)
    latest = Delivery.objects.filter(target__in=targets).select_related("target").order_by("target", "-id")
    last = {one.target_id: delivery_row(one) for one in latest.distinct("target")}
    return [
        TargetRow(
            id=one.id,
            name=one.name,
            kind=one.kind,
            address=one.address,
            with_texts=one.with_texts,
            enabled=one.enabled,
            last=last.get(one.id),
            created_at=one.created_at,
        )
        for one in targets
    ]


def delivery_row(delivery: Delivery) -> DeliveryRow:
    return DeliveryRow(
        id=delivery.id,
        target=delivery.target_id,
        target_name=delivery.target.name,
        event=delivery.event,
        state=delivery.state,
        n_attempts=delivery.n_attempts,
        reason=delivery.reason,
        created_at=delivery.created_at,
        ended_at=delivery.ended_at,
    )
