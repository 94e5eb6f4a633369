"""What a workspace may have: its own limits, and the installation's where it has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from django.conf import settings
from django.db import transaction

from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.models import Workspace
from backend.search import ledger

OPEN_EVALUATIONS, QUESTIONS_IN_FLIGHT = "open_evaluations", "questions_in_flight"
NAMES = (ledger.LIMIT, OPEN_EVALUATIONS, QUESTIONS_IN_FLIGHT)
_MOST_MONEY = Decimal(10) ** 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """In force. `spend_per_month` is in the currency of TOUCHSTONE_PRICES, None: no limit. `own`: those that the
    workspace sets itself."""

    spend_per_month: Decimal | None
    open_evaluations: int
    questions_in_flight: int
    own: tuple[str, ...]


def of(workspace: Workspace) -> Limits:
    kept = workspace.limits
    spend = kept.get(ledger.LIMIT)
    return Limits(
        spend_per_month=settings.SPEND_PER_MONTH if spend is None else Decimal(spend),
        open_evaluations=int(kept.get(OPEN_EVALUATIONS) or settings.OPEN_EVALUATIONS),
        questions_in_flight=int(kept.get(QUESTIONS_IN_FLIGHT) or settings.WORKSPACE_WINDOW),
        own=tuple(name for name in NAMES if kept.get(name) is not None),
    )


def change(workspace: Workspace, changes: Mapping[str, Any]) -> Limits:
    """Set some of them; None gives one back to the installation's. Raises ValidationError with every fault.

    In force at once: the next question is handed out, and the next call made, by the new ones.
    """
    values, faults = {}, []
    for name, value in changes.items():
        try:
            values[name] = _value(name, value)
        except ValueError as error:
            faults.append(Fault(code=ErrorCode.VALIDATION, message=str(error), field=name))
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    with transaction.atomic():
        locked = Workspace.objects.select_for_update(no_key=True).get(id=workspace.id)
        kept = {**locked.limits, **values}
        workspace.limits = {name: value for name, value in kept.items() if value is not None}
        Workspace.objects.filter(id=workspace.id).update(limits=workspace.limits)
    return of(workspace)


def _value(name: str, value: Any) -> str | int | None:
    if name not in NAMES:
        raise ValueError(f"There is no limit {name!r}. There are: {', '.join(NAMES)}.")
    if value is None:
        return None
    if name == ledger.LIMIT:
        try:
            amount = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite() or not 0 <= amount < _MOST_MONEY:
            raise ValueError(f"{name} is an amount of at least 0, or null for none of its own, not {value!r}.")
        # As text: what is exact stays so in JSON.
        return str(amount)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise ValueError(f"{name} is a whole number from 1 to 1,000,000, or null for none of its own, not {value!r}.")
    return value
