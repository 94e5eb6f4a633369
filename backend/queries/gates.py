"""Gates and what they said, as API, console and commands show them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.models import Gate, GateCheck, Workspace
from backend.queries.lookups import get


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """`results` are (run, rule, status, sentence, value)."""

    id: UUID
    gate: UUID
    evaluation: UUID
    revision: int
    outcome: str
    results: tuple[Mapping[str, Any], ...]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    id: UUID
    name: str
    rules: tuple[Mapping[str, Any], ...]
    schedule: UUID | None
    schedule_name: str
    enabled: bool
    last: CheckRow | None
    created_at: datetime


def of(workspace: Workspace) -> QuerySet[Gate]:
    return Gate.objects.filter(workspace=workspace).select_related("schedule", "workspace").order_by("-id")


def get_gate(workspace: Workspace, key: object) -> Gate:
    """Raises NotFoundError."""
    return get(of(workspace), key, what="gate")


def rows(found: Iterable[Gate]) -> list[GateRow]:
    """One query beside that of the list."""
    gates = list(found)
    latest = GateCheck.objects.filter(gate__in=gates).order_by("gate", "-id").distinct("gate")
    last = {check.gate_id: check_row(check) for check in latest}
    return [
        GateRow(
            id=one.id,
            name=one.name,
            rules=tuple(one.rules),
            schedule=one.schedule_id,
            schedule_name=one.schedule.name if one.schedule is not None else "",
            enabled=one.enabled,
            last=last.get(one.id),
            created_at=one.created_at,
        )
        for one in gates
    ]


def checks_of(gate: Gate) -> QuerySet[GateCheck]:
    """The latest first."""
    return GateCheck.objects.filter(gate=gate).order_by("-id")


def check_row(check: GateCheck) -> CheckRow:
    return CheckRow(
        id=check.id,
        gate=check.gate_id,
        evaluation=check.evaluation_id,
        revision=check.revision,
        outcome=check.outcome,
        results=tuple(check.report["results"]),
        created_at=check.created_at,
    )
