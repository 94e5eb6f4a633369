"""What calls cost: written down as soon as one is answered, and asked before the next (docs/decisions/0010).

A row per call, in the commit of its own: work that is repeated after a crash and finds its answer in the cache makes no
call and no row; a call that is made again is paid again, and counted again. Local models cost nothing and have none.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import connection

from backend.core import prices
from backend.models import Purpose
from backend.providers.base import ProviderError, ProviderFault

# Where a workspace keeps its limit (Workspace.limits), in the currency of TOUCHSTONE_PRICES.
LIMIT = "spend_per_month"
_MONTH = "date_trunc('month', now() AT TIME ZONE 'UTC')::date"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidFor:
    """What a call is made for. `owner` is the id of an evaluation, ingestion or job."""

    purpose: Purpose = Purpose.SEARCH
    owner: UUID | None = None


SEARCH = PaidFor()


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """The present month (UTC) of a workspace. `limit` None: there is none."""

    month: str
    spent: Decimal
    limit: Decimal | None
    currency: str

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    @property
    def sentence(self) -> str:
        """Why nothing more is paid for."""
        limit = self.limit or Decimal(0)
        return (
            f"The workspace's spend limit is reached: {self.spent:,.2f} of {limit:,.2f} {self.currency} are spent in "
            f"{self.month} (UTC). Raise the limit, or wait for the next month."
        )


# How Cohere counts: up to so many passages are one search unit.
_PASSAGES_A_SEARCH_UNIT = 100
# What a token is taken for where only the provider can count them.
CHARACTERS_A_TOKEN = 4


def search_units_of(n_passages: int) -> int:
    return math.ceil(n_passages / _PASSAGES_A_SEARCH_UNIT)


def tokens_of(texts: Iterable[str]) -> int:
    """A rough count, rounded up a text at a time."""
    return sum(math.ceil(len(text) / CHARACTERS_A_TOKEN) for text in texts)


def has_price(provider: str) -> bool:
    """Whether calls of this provider count: one without a price costs nothing that is known here."""
    return prices.priced_as(provider) in prices.parse(settings.PRICES).by_spec


def month(workspace_id: UUID) -> Month:
    """One look at two rows."""
    currency = prices.parse(settings.PRICES).currency
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT to_char({_MONTH}, 'YYYY-MM'), COALESCE(m.amount, 0), w.limits ->> %s
            FROM backend_workspace w
            LEFT JOIN backend_spendmonth m ON m.workspace_id = w.id AND m.month = {_MONTH} AND m.currency = %s
            WHERE w.id = %s
            """,  # noqa: S608  a constant
            [LIMIT, currency, workspace_id],
        )
        row = cursor.fetchone()
    name, spent, limit = row or ("", Decimal(0), None)
    wanted = settings.SPEND_PER_MONTH if limit is None else Decimal(limit)
    return Month(month=name, spent=spent, limit=wanted, currency=currency)


def check(workspace_id: UUID, provider: str) -> None:
    """Ask before a call. Raises ProviderError (SPEND_LIMIT, which stops the mode) when the month's limit is reached and
    the provider has a price. What is under way meanwhile still comes: the limit is passed by those calls at most."""
    if not has_price(provider):
        return
    now = month(workspace_id)
    if now.is_over:
        raise ProviderError(ProviderFault.SPEND, now.sentence)


def record(
    workspace_id: UUID,
    provider: str,
    *,
    units: Mapping[str, float],
    paid_for: PaidFor = SEARCH,
    estimates: Mapping[str, float] | None = None,
) -> Decimal | None:
    """Write down a call that was answered, whatever is made of the answer; returns what it cost, None where no price is
    known. `units` are those that the answer told and those that we can count for certain (calls); `estimates` stand in
    for a priced unit that the answer did not tell."""
    table = prices.parse(settings.PRICES)
    counted = {name: float(amount) for name, amount in units.items()}
    guessed = {
        name: float(amount)
        for name, amount in (estimates or {}).items()
        if name not in counted and name in table.by_spec.get(prices.priced_as(provider), {})
    }
    cost = table.of(provider, {**counted, **guessed})
    amount = None if cost is None else Decimal(repr(cost)).quantize(Decimal("1e-12"))
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH entry AS (
                INSERT INTO backend_spendentry
                    (workspace_id, month, provider, purpose, owner, n_calls, units, amount, currency, is_estimated, at)
                VALUES (%(workspace)s, {_MONTH}, %(provider)s, %(purpose)s, %(owner)s, 1, %(units)s, %(amount)s,
                        %(currency)s, %(guessed)s, now())
                RETURNING workspace_id, month, currency, amount
            )
            INSERT INTO backend_spendmonth AS m (workspace_id, month, currency, amount)
            SELECT workspace_id, month, currency, amount FROM entry WHERE amount > 0
            ON CONFLICT (workspace_id, month, currency) DO UPDATE SET amount = m.amount + excluded.amount
            """,  # noqa: S608  a constant
            {
                "workspace": workspace_id,
                "provider": provider,
                "purpose": paid_for.purpose.value,
                "owner": paid_for.owner,
                "units": json.dumps({**counted, **guessed}),
                "amount": amount,
                "currency": "" if amount is None else table.currency,
                "guessed": bool(guessed) and amount is not None,
            },
        )
    return amount


def fold() -> int:
    """Rows of the months before the last one become one each by provider, purpose and kind. Returns how many fewer
    there are. Sums stay; what is lost is which run a call was for, and when in the month."""
    keys = "workspace_id, month, provider, purpose, currency, is_estimated"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH many AS (
                SELECT {keys} FROM backend_spendentry
                WHERE month < {_MONTH} - interval '1 month' GROUP BY {keys} HAVING count(*) > 1
            ), gone AS (
                DELETE FROM backend_spendentry e USING many m
                WHERE (e.workspace_id, e.month, e.provider, e.purpose, e.currency, e.is_estimated)
                    = (m.workspace_id, m.month, m.provider, m.purpose, m.currency, m.is_estimated)
                RETURNING e.*
            ), sums AS (
                SELECT {keys}, unit.key, sum(unit.value::numeric) AS total
                FROM gone, jsonb_each_text(units) AS unit GROUP BY {keys}, unit.key
            ), counted AS (
                SELECT {keys}, jsonb_object_agg(key, total) AS units FROM sums GROUP BY {keys}
            ), kept AS (
                INSERT INTO backend_spendentry ({keys}, owner, n_calls, units, amount, at)
                SELECT {keys}, NULL, total.n_calls, COALESCE(counted.units, '{{}}'), total.amount, total.at
                FROM (SELECT {keys}, sum(n_calls) AS n_calls, sum(amount) AS amount, max(at) AS at
                      FROM gone GROUP BY {keys}) total
                LEFT JOIN counted USING ({keys})
                RETURNING 1
            )
            SELECT (SELECT count(*) FROM gone) - (SELECT count(*) FROM kept)
            """  # noqa: S608  constants
        )
        return int(cursor.fetchone()[0])
