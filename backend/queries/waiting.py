"""What an open evaluation waits for: providers that are stalled (the circuit is open) or asked for a pause."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.db import connection

from backend.core.states import EvaluationState
from backend.models import Evaluation


class Pause(StrEnum):
    """`stalled`: it failed many times in a row and is probed now and then. `held`: it asked to be left alone."""

    STALLED = "stalled"
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFor:
    """`code` and `reason` are of its last failure; `retry_at` is when it is asked next; `gives_up_at` when what waits
    for a stalled provider ends PROVIDER_UNAVAILABLE (None for one that is held: it is waited for as it asks)."""

    provider: str
    state: Pause
    since: datetime | None
    code: str
    reason: str
    retry_at: datetime | None
    gives_up_at: datetime | None


def of(evaluation: Evaluation) -> tuple[WaitingFor, ...]:
    """One query, and a second one where some provider of the workspace is not well."""
    if evaluation.state != EvaluationState.RUNNING:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT provider, stalled_at, probe_at, held_at, CASE WHEN hold_until > now() THEN hold_until END, code,
                   reason
            FROM backend_providerstate
            WHERE workspace_id = %s AND (stalled_at IS NOT NULL OR hold_until > now()) ORDER BY provider
            """,
            [evaluation.workspace_id],
        )
        unwell = cursor.fetchall()
        if not unwell:
            return ()
        cursor.execute(
            "SELECT DISTINCT kind, reranker FROM backend_slice "
            "WHERE evaluation_id = %s AND state IN ('pending', 'queued', 'leased')",
            [evaluation.id],
        )
        still_open = cursor.fetchall()
    needed = {str(reranker) for _, reranker in still_open if reranker}
    if any(kind == "embed" for kind, _ in still_open):
        needed |= set(_embedders(evaluation))
    if any(kind == "answer" for kind, _ in still_open):
        answers = evaluation.plan.get("answers") or {}
        needed |= {str(answers.get("llm")), str(answers.get("judge"))}
    return tuple(_told(evaluation, *row) for row in unwell if row[0] in needed)


def _embedders(evaluation: Evaluation) -> Iterable[str]:
    scope = evaluation.plan["scope"]
    return (str(index["embedder"]) for index in (*scope["indexes"], *scope.get("alternatives", ())))


def _told(
    evaluation: Evaluation,
    provider: str,
    stalled_at: datetime | None,
    probe_at: datetime | None,
    held_at: datetime | None,
    hold_until: datetime | None,
    code: str,
    reason: str,
) -> WaitingFor:
    gives_up_at = None
    if stalled_at is not None:
        # As services/provider_states counts: an older stall is probed again for this evaluation.
        begun = max(stalled_at, evaluation.started_at or stalled_at)
        gives_up_at = begun + timedelta(seconds=settings.PROVIDER_STALL_SECONDS)
    return WaitingFor(
        provider=provider,
        state=Pause.HELD if stalled_at is None else Pause.STALLED,
        since=held_at if stalled_at is None else stalled_at,
        code=code,
        reason=reason,
        retry_at=max((at for at in (probe_at, hold_until) if at is not None), default=None),
        gives_up_at=gives_up_at,
    )
