"""Repairs what died: lost doorbells, run-out leases, evaluations that nobody closed. The tick and `manage.py sweep`.

Each step is its own transaction and takes a bounded number of rows; two sweepers at once are harmless.
"""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from backend import logs
from backend.core.errors import ErrorCode
from backend.core.states import Lane, SliceKind, SliceState
from backend.core.types import Outcome
from backend.models import Slice
from backend.services import evaluations, giving_up, ingestion, jobs, pump, results, slices, tallies
from backend.services.slices import Lease
from backend.services.tallies import Event

DEATHS_TO_SPLIT = 2
MOST_DEATHS = 5
_LIMIT = 500
_PULSE = "sweeper"
_log = logs.get("sweeper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep repaired."""

    n_rung_again: int = 0
    n_expired: int = 0
    n_split: int = 0
    n_given_up: int = 0
    n_advanced: int = 0
    n_left_over: int = 0
    n_handed_out: int = 0
    skipped_leases: bool = False


def sweep() -> Swept:
    """All repairs once, then the pump. After a gap of its own (PostgreSQL was down, nobody swept) leases get one more
    lease of time: their holders could not renew them either."""
    gap = _pulse()
    n_rung = ring_again()
    n_expired = n_split = n_given_up = 0
    if not gap:
        n_expired, n_split, n_given_up = expire()
    n_given_up += end_overdue()
    n_advanced = advance()
    n_left_over = close_left_over()
    tallies.flush(at_once=True)
    return Swept(
        n_rung_again=n_rung,
        n_expired=n_expired,
        n_split=n_split,
        n_given_up=n_given_up,
        n_advanced=n_advanced,
        n_left_over=n_left_over,
        n_handed_out=pump.run(),
        skipped_leases=gap,
    )


def tick() -> Swept | None:
    """One sweep a tick, however many ticks there are: two clocks send twice, and those that nobody took lie in wait."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM backend_pulse WHERE name = %s AND at > now() - make_interval(secs => %s))",
            [_PULSE, settings.TICK_SECONDS / 2],
        )
        if cursor.fetchone()[0]:
            return None
    return sweep()


def _pulse() -> bool:
    """Note that a sweep ran; True while leases must not be judged since no sweep ran for longer than a lease."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(7_301_001)")
        cursor.execute(
            "SELECT name, EXTRACT(epoch FROM now() - at) FROM backend_pulse WHERE name = ANY(%s)",
            [[_PULSE, f"{_PULSE}:resumed"]],
        )
        ages = {row[0]: float(row[1]) for row in cursor.fetchall()}
        lease = settings.SLICE_LEASE_SECONDS
        resumed = _PULSE in ages and ages[_PULSE] > max(lease, 3 * settings.TICK_SECONDS)
        names = [_PULSE, f"{_PULSE}:resumed"] if resumed else [_PULSE]
        for name in names:
            cursor.execute(
                "INSERT INTO backend_pulse (name, at, lane, slots) VALUES (%s, now(), '', 0) "
                "ON CONFLICT (name) DO UPDATE SET at = excluded.at",
                [name],
            )
    return resumed or ages.get(f"{_PULSE}:resumed", lease + 1) < lease


def ring_again() -> int:
    """Slices whose doorbell was out for too long go back to waiting: no attempt is counted.

    Not while every slot of the lane is taken, for then the doorbell waits its turn, and another would only lie in the
    queue behind it; unless one that was rung much later is being worked on, for a queue keeps its order.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH lanes AS (
                SELECT w.lane, sum(w.slots) AS slots,
                       (SELECT count(*) FROM backend_slice l
                        WHERE l.lane = w.lane AND l.state = 'leased' AND l.lease_until > now()) AS n_leased
                FROM backend_pulse w WHERE w.lane <> '' AND w.at > now() - interval '60 seconds' GROUP BY w.lane
            )
            UPDATE backend_slice SET state = 'pending', n_rings = n_rings + 1
            WHERE id IN (
                SELECT s.id FROM backend_slice s
                WHERE s.state = 'queued' AND s.queued_at < now() - make_interval(secs => %(lost)s)
                  AND (NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.lane = s.lane AND lanes.n_leased >= lanes.slots)
                       OR EXISTS (SELECT 1 FROM backend_slice o
                                  WHERE o.lane = s.lane AND o.state = 'leased'
                                    AND o.queued_at > s.queued_at + make_interval(secs => %(lost)s)))
                ORDER BY s.queued_at LIMIT %(limit)s FOR UPDATE OF s SKIP LOCKED)
            """,
            {"lost": settings.DOORBELL_LOST_SECONDS, "limit": _LIMIT},
        )
        n = int(cursor.rowcount)
    if n:
        _log.warning("doorbells_lost", n=n)
        tallies.add(Event.DOORBELLS_RUNG_AGAIN, n)
    return n


def expire() -> tuple[int, int, int]:
    """Leases that ran out: back to waiting, split after two deaths, alone in quarantine after two more, and
    WORKER_LOST when its own child died there or after five deaths. Returns (expired, split, given up)."""
    n_split = n_given_up = 0
    lost = list(
        Slice.objects.raw(
            "SELECT * FROM backend_slice WHERE state = 'leased' AND lease_until < now() ORDER BY lease_until LIMIT %s",
            [_LIMIT],
        )
    )
    for piece in lost:
        verdict = _died(piece.id, piece.token, child_died=False)
        n_split += verdict == "split"
        n_given_up += verdict == "given_up"
    if lost:
        _log.warning("leases_expired", n=len(lost), n_split=n_split, n_given_up=n_given_up)
        tallies.add(Event.LEASES_EXPIRED, len(lost))
    return len(lost), n_split, n_given_up


def child_died(slice_id: UUID, *, delivery: int) -> None:
    """A worker saw its own child die over this slice, while it lives itself: no need to wait for the lease."""
    piece = Slice.objects.filter(id=slice_id, delivery=delivery, state=SliceState.LEASED).first()
    if piece is not None:
        _died(piece.id, piece.token, child_died=True)
        pump.run()


def _died(slice_id: UUID, token: UUID | None, *, child_died: bool) -> str:
    """Count a death, and decide. The row is locked and checked again: its holder may have ended it meanwhile."""
    with transaction.atomic():
        piece = (
            Slice.objects.select_for_update(skip_locked=True)
            .filter(id=slice_id, token=token, state=SliceState.LEASED)
            # Or renewed it: late, and all the same alive.
            .filter(**({} if child_died else {"lease_until__lt": Now()}))
            .first()
        )
        if piece is None:
            return "gone"
        piece.deaths += 1
        alone = _n_items(piece) <= 1
        if alone and (piece.deaths >= MOST_DEATHS or (child_died and piece.quarantined)):
            Slice.objects.filter(id=piece.id).update(deaths=piece.deaths)
            tallies.add(Event.WORKERS_LOST, label=piece.kind)
            if piece.ingestion_id is not None:
                _split(piece)
                return "given_up"
            giving_up.give_up(
                piece,
                code=ErrorCode.WORKER_LOST,
                reason=f"The worker process died {piece.deaths} times while working on this.",
            )
            return "given_up"
        if piece.deaths >= DEATHS_TO_SPLIT and not alone:
            _split(piece)
            return "split"
        quarantined = piece.quarantined or (
            piece.deaths >= DEATHS_TO_SPLIT and piece.kind not in {SliceKind.PREPARE, SliceKind.AGGREGATE}
        )
        Slice.objects.filter(id=piece.id).update(
            state=SliceState.PENDING,
            token=None,
            lease_until=None,
            deaths=piece.deaths,
            quarantined=quarantined,
            # Quarantine is a prefork child, never a thread: its death must be seen, and must cost nobody else.
            lane=Lane.SEARCH if quarantined else piece.lane,
        )
    return "waiting"


def _n_items(piece: Slice) -> int:
    """How many questions or documents; `prepare`, `aggregate` and jobs have none and cannot be split."""
    return len(piece.items) if piece.ingestion_id is None else len((piece.payload or {}).get("documents", ()))


def split(lease: Lease) -> bool:
    """Several questions of which one fails: each goes on alone. False where there is nothing to split."""
    if lease.evaluation_id is None or len(lease.items) < 2:
        return False
    with transaction.atomic():
        piece = Slice.objects.select_for_update().filter(id=lease.slice_id, token=lease.token).first()
        if piece is None or len(piece.items) < 2:
            return False
        _split(piece)
    return True


def _split(piece: Slice) -> None:
    """One slice per question; the payload goes to each. An ingestion's documents go into quarantine, and one that was
    alone there already is given up."""
    if piece.ingestion_id is not None:
        ingestion.on_slice_gone(piece, ErrorCode.WORKER_LOST)
    else:
        Slice.objects.bulk_create(
            [
                Slice(
                    workspace_id=piece.workspace_id,
                    evaluation_id=piece.evaluation_id,
                    epoch=piece.epoch,
                    kind=piece.kind,
                    lane=piece.lane,
                    root=piece.root,
                    items=[item],
                    first=item,
                    last=item,
                    reranker=piece.reranker,
                    pool=piece.pool,
                    payload=piece.payload,
                )
                for item in piece.items
            ],
            ignore_conflicts=True,
        )
    slices.close([piece.id], SliceState.SPLIT)


def end_overdue() -> int:
    """Evaluations past their deadline: what is open ends `error` with DEADLINE, and they are aggregated."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM backend_evaluation "
            "WHERE state IN ('queued', 'preparing', 'running') AND deadline_at < now() ORDER BY deadline_at LIMIT 20"
        )
        overdue = [row[0] for row in cursor.fetchall()]
    for evaluation_id in overdue:
        with transaction.atomic():
            if not evaluations.lock_for_end(evaluation_id):
                continue
            reason = "The evaluation's deadline passed before this question was done."
            results.fill_missing(evaluation_id, outcome=Outcome.ERROR, code=ErrorCode.DEADLINE, reason=reason)
            evaluations.close_open_slices(evaluation_id, code=ErrorCode.DEADLINE, reason=reason)
            evaluations.start_aggregating(evaluation_id)
    return len(overdue)


def close_left_over() -> int:
    """Slices of an evaluation that has ended, or of an earlier try: nobody may claim them, and others would give way to
    them for ever. Normally there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT s.id FROM backend_slice s JOIN backend_evaluation e ON e.id = s.evaluation_id
            WHERE (s.state IN ('pending', 'queued') OR (s.state = 'leased' AND s.lease_until < now()))
              AND (e.state IN ('completed', 'failed', 'cancelled') OR s.epoch < e.epoch)
            LIMIT %s
            """,
            [_LIMIT],
        )
        left = [row[0] for row in cursor.fetchall()]
    if left:
        _log.warning("slices_left_over", n=len(left))
    return slices.close(left, SliceState.CANCELLED)


def advance() -> int:
    """Evaluations, ingestions and jobs whose last slice ended while nobody looked.

    A cancelled evaluation waits for live leases only: nobody may claim what is waiting, a slice of a dead worker too.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT e.id FROM backend_evaluation e
            WHERE e.state IN ('running', 'cancelling', 'aggregating') AND NOT EXISTS (
                SELECT 1 FROM backend_slice s WHERE s.evaluation_id = e.id AND s.epoch = e.epoch
                AND ((s.state IN ('pending', 'queued') AND (e.state <> 'cancelling' OR s.kind = 'aggregate'))
                     OR (s.state = 'leased' AND s.lease_until >= now())))
            LIMIT 100
            """
        )
        waiting = [row[0] for row in cursor.fetchall()]
    n = sum(evaluations.advance(evaluation_id) for evaluation_id in waiting)
    return n + ingestion.finish_stale() + jobs.sweep()
