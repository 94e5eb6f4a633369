"""A month's spending as API and commands show it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from backend.core import prices
from backend.core.errors import ValidationError
from backend.models import SpendMonth, Workspace

_MONTH = re.compile(r"[12][0-9]{3}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The calls of one provider for one purpose. `amount` None: no price is known for it. `n_estimated` of the calls
    have a unit that was counted here, since the answer did not tell it."""

    provider: str
    purpose: str
    n_calls: int
    n_estimated: int
    units: Mapping[str, float]
    amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthReport:
    """`spent` and `lines` are in `currency`; calls without a price count nothing."""

    month: str
    currency: str
    spent: Decimal
    lines: tuple[Line, ...]


def parse_month(text: str | None) -> date:
    """The first day of `2026-11`; of the present month (UTC) where nothing is given. Raises ValidationError."""
    if not text:
        return timezone.now().date().replace(day=1)
    if not _MONTH.fullmatch(text):
        raise ValidationError(f"month is written like 2026-11, not {text!r}.", field="month")
    return date(int(text[:4]), int(text[5:]), 1)


def of_month(workspace: Workspace, month: date) -> MonthReport:
    """Two queries; the rows of one month are summed in the database."""
    currency = prices.parse(settings.PRICES).currency
    kept = SpendMonth.objects.filter(workspace=workspace, month=month, currency=currency).first()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH mine AS (
                SELECT * FROM backend_spendentry
                WHERE workspace_id = %s AND month = %s AND currency IN ('', %s)
            ), summed AS (
                SELECT provider, purpose, sum(n_calls) AS n_calls,
                       COALESCE(sum(n_calls) FILTER (WHERE is_estimated), 0) AS n_estimated, sum(amount) AS amount
                FROM mine GROUP BY 1, 2
            ), units AS (
                SELECT provider, purpose, unit.key, sum(unit.value::float8) AS total
                FROM mine, jsonb_each_text(units) AS unit GROUP BY 1, 2, 3
            )
            SELECT s.provider, s.purpose, s.n_calls, s.n_estimated, s.amount,
                   ARRAY(SELECT u.key FROM units u WHERE (u.provider, u.purpose) = (s.provider, s.purpose) ORDER BY 1),
                   ARRAY(SELECT u.total FROM units u WHERE (u.provider, u.purpose) = (s.provider, s.purpose)
                         ORDER BY u.key)
            FROM summed s ORDER BY s.amount DESC NULLS LAST, s.provider, s.purpose
            """,
            [workspace.id, month, currency],
        )
        lines = tuple(_line(*row) for row in cursor.fetchall())
    return MonthReport(
        month=f"{month:%Y-%m}", currency=currency, spent=Decimal(0) if kept is None else kept.amount, lines=lines
    )


def _line(provider: str, purpose: str, n_calls: int, n_estimated: int, amount: Decimal | None, *units: Any) -> Line:
    names, totals = units
    return Line(
        provider=provider,
        purpose=purpose,
        n_calls=int(n_calls),
        n_estimated=int(n_estimated),
        units=dict(zip(names, totals, strict=True)),
        amount=amount,
    )
