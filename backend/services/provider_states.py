"""What all workers know of a provider: holds it asked for, failures in a row, and when it counts as stalled.

In PostgreSQL: a flushed broker must not release a hold. After FAILURES_TO_STALL failures in a row the provider is
stalled: one call probes it every PROVIDER_PROBE_SECONDS, and after PROVIDER_STALL_SECONDS what still waits for it
ends with PROVIDER_UNAVAILABLE. A call has MOST_TRIES attempts; a 429 uses none.
"""

import random
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection

from backend import logs
from backend.providers.base import ProviderError, ProviderFault
from backend.search.pacing import PacedError
from backend.services import tallies
from backend.services.slices import Lease
from backend.services.tallies import Event

MOST_TRIES = 4
FAILURES_TO_STALL = 20
_BACKOFF_FIRST_SECONDS = 0.5
_BACKOFF_MOST_SECONDS = 20.0
_RATE_WAIT_SECONDS = 5.0
_log = logs.get("providers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a call may go out now. `wait_seconds` until it may; `gave_up` when it stalled for too long; `ailing` when
    failures are on record, which a success clears."""

    wait_seconds: float = 0.0
    gave_up: bool = False
    stalled: bool = False
    ailing: bool = False
    reason: str = ""


def standing(
    workspace_id: UUID,
    provider: str,
    *,
    evaluation_id: UUID | None = None,
    ingestion_id: UUID | None = None,
    job_id: UUID | None = None,
) -> Standing:
    """Ask before a call. While stalled, exactly one caller per probe interval is let through.

    The time after which it is given up counts from the start of the evaluation, ingestion or job, where the stall is
    older: a provider that died yesterday is probed again for today's run.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT GREATEST(0, EXTRACT(epoch FROM hold_until - now())), stalled_at IS NOT NULL,
                   EXTRACT(epoch FROM now() - GREATEST(
                       stalled_at,
                       (SELECT started_at FROM backend_evaluation WHERE id = %s),
                       (SELECT created_at FROM backend_ingestion WHERE id = %s),
                       (SELECT started_at FROM backend_job WHERE id = %s))) > %s, reason, n_failures
            FROM backend_providerstate WHERE workspace_id = %s AND provider = %s
            """,
            [evaluation_id, ingestion_id, job_id, settings.PROVIDER_STALL_SECONDS, workspace_id, provider],
        )
        row = cursor.fetchone()
        if row is None:
            return Standing()
        hold, stalled, too_long, reason = float(row[0] or 0), bool(row[1]), bool(row[2]), str(row[3])
        if hold > 0:
            return Standing(wait_seconds=hold + _spread(hold), stalled=stalled, reason=reason)
        if not stalled:
            return Standing(ailing=row[4] > 0)
        if too_long:
            return Standing(gave_up=True, stalled=True, reason=reason)
        cursor.execute(
            """
            UPDATE backend_providerstate SET probe_at = now() + make_interval(secs => %s)
            WHERE workspace_id = %s AND provider = %s AND (probe_at IS NULL OR probe_at <= now())
            """,
            [settings.PROVIDER_PROBE_SECONDS, workspace_id, provider],
        )
        if cursor.rowcount == 1:
            return Standing(stalled=True, ailing=True, reason=reason)
    return Standing(wait_seconds=settings.PROVIDER_PROBE_SECONDS * random.uniform(0.5, 1), stalled=True, reason=reason)  # noqa: S311


def check(lease: Lease, provider: str) -> Standing:
    """Ask before a call that this slice would make. Raises PacedError while the provider is held or being probed by
    another; `gave_up` is the caller's to deal with."""
    found = standing(
        lease.workspace_id,
        provider,
        evaluation_id=lease.evaluation_id,
        ingestion_id=lease.ingestion_id,
        job_id=lease.job_id,
    )
    if found.wait_seconds > 0:
        raise PacedError(f"{provider} is not to be called yet. {found.reason}".strip(), wait_seconds=found.wait_seconds)
    return found


def gave_up_on(provider: str, standing: Standing) -> str:
    """The sentence for what waited for a provider that stayed away."""
    seconds = settings.PROVIDER_STALL_SECONDS
    waited = f"{seconds / 60:.3g} minutes" if seconds >= 120 else f"{seconds:.3g} seconds"
    return f"{provider} did not answer for {waited} and was given up. {standing.reason}".strip()


def succeeded(workspace_id: UUID, provider: str) -> None:
    """An answer came: the provider is well. Writes only when it was not."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backend_providerstate SET n_failures = 0, stalled_at = NULL, probe_at = NULL, code = '',
                   reason = ''
            WHERE workspace_id = %s AND provider = %s AND (n_failures > 0 OR stalled_at IS NOT NULL)
            """,
            [workspace_id, provider],
        )


def failed(workspace_id: UUID, provider: str, error: ProviderError) -> None:
    """A call failed in a way that says something of the provider's health: count it, and hold what it asked for."""
    if error.fault is ProviderFault.SPEND:
        return  # it was not asked
    tallies.add(Event.PROVIDER_FAILURES, label=error.code.value)
    hold = error.wait_seconds if error.fault is ProviderFault.RATE else None
    if error.fault is ProviderFault.RATE:
        hold = _RATE_WAIT_SECONDS if hold is None else hold
    counts = error.fault in {ProviderFault.SERVER, ProviderFault.TIMEOUT}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO backend_providerstate AS p
                (workspace_id, provider, n_failures, held_at, hold_until, code, reason)
            VALUES (%(workspace)s, %(provider)s, %(count)s, CASE WHEN %(hold)s::float8 IS NOT NULL THEN now() END,
                    now() + make_interval(secs => %(hold)s), %(code)s, %(reason)s)
            ON CONFLICT (workspace_id, provider) DO UPDATE
            SET n_failures = p.n_failures + %(count)s,
                -- Since when without a pause: a hold that is lengthened began with the first.
                held_at = CASE WHEN excluded.held_at IS NOT NULL AND COALESCE(p.hold_until < now(), true)
                               THEN now() ELSE p.held_at END,
                hold_until = GREATEST(p.hold_until, now() + make_interval(secs => %(hold)s)),
                stalled_at = CASE WHEN p.stalled_at IS NULL AND p.n_failures + %(count)s >= %(stall)s
                                  THEN now() ELSE p.stalled_at END,
                code = excluded.code,
                reason = excluded.reason
            """,
            {
                "workspace": workspace_id,
                "provider": provider,
                "count": int(counts),
                "hold": hold,
                "stall": FAILURES_TO_STALL,
                "code": error.code.value,
                "reason": error.message,
            },
        )


def will_try_again(lease: Lease, error: ProviderError, *, provider: str) -> bool:
    """Note a failure, and say whether this slice is worth handing out again."""
    failed(lease.workspace_id, provider, error)
    if error.fatal or not error.retryable:
        return False
    return error.fault is ProviderFault.RATE or lease.tries + 1 < MOST_TRIES


def wait_before_next(lease: Lease, error: ProviderError) -> float:
    """Seconds until the next attempt: what the provider asked for, and never less; else exponential with jitter."""
    if error.fault is ProviderFault.RATE:
        asked = _RATE_WAIT_SECONDS if error.wait_seconds is None else error.wait_seconds
        return asked + _spread(asked)
    most = min(_BACKOFF_MOST_SECONDS, _BACKOFF_FIRST_SECONDS * 2.0**lease.tries)
    return max(error.wait_seconds or 0.0, most * random.uniform(0.5, 1.0))  # noqa: S311  spreads load, keeps no secret


def _spread(seconds: float) -> float:
    """Up to a quarter more, so that waiters do not come back all at once."""
    return random.uniform(0, 0.25) * max(seconds, 0.4)  # noqa: S311
