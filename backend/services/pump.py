"""Hands waiting slices out: `pending` to `queued` and a doorbell, a bounded number at a time, the least-served first.

Called after each submit, after each slice, and by the tick. Two pumps at once are harmless: each takes other rows.
"""

import time
from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from backend import dispatch
from backend.core.states import Lane
from backend.dispatch import Doorbell

_SLOTS_SECONDS = 5

# Free places of a lane are filled from each owner in turn: an owner's nth waiting slice ranks behind every other
# owner's slices that have fewer in flight. New questions (root slices) wait while their evaluation has `window`
# questions begun and not ended, so that neither waiting pools nor messages grow with the size of a run.
_TAKE = """
WITH busy AS (
    SELECT COALESCE(evaluation_id, ingestion_id, job_id) AS owner, workspace_id, lane,
           count(*) AS n, count(*) FILTER (WHERE quarantined) AS n_quarantined
    FROM backend_slice WHERE state IN ('queued', 'leased') GROUP BY 1, 2, 3
), lane_busy AS (
    SELECT COALESCE(sum(n), 0) AS n, COALESCE(sum(n_quarantined), 0) AS n_quarantined FROM busy WHERE lane = %(lane)s
), owners AS (
    SELECT e.id AS owner, e.workspace_id, e.id AS evaluation_id, NULL::uuid AS ingestion_id, NULL::uuid AS job_id,
           (SELECT COALESCE(sum(cardinality(o.items)), 0) FROM backend_slice o
            WHERE o.evaluation_id = e.id
              AND ((o.state IN ('queued', 'leased')) OR (o.state = 'pending' AND NOT o.root))) AS n_begun
    FROM backend_evaluation e
    WHERE e.state IN ('queued', 'preparing', 'running', 'aggregating', 'cancelling')
      AND EXISTS (SELECT 1 FROM backend_slice p WHERE p.evaluation_id = e.id AND p.state = 'pending')
    UNION ALL
    SELECT i.id, i.workspace_id, NULL, i.id, NULL, 0
    FROM backend_ingestion i WHERE i.state IN ('queued', 'running')
    UNION ALL
    SELECT j.id, j.workspace_id, NULL, NULL, j.id, 0
    FROM backend_job j WHERE j.state IN ('queued', 'running')
), waiting AS (
    SELECT c.id, COALESCE(own.n, 0) + c.place AS turn, COALESCE(ws.n, 0) AS workspace_busy, c.created_at
    FROM owners o
    CROSS JOIN LATERAL (
        SELECT s.id, s.created_at, s.root, cardinality(s.items) AS n_items,
               row_number() OVER w AS place,
               COALESCE(sum(cardinality(s.items)) FILTER (WHERE s.root) OVER w, 0) AS n_begun
        FROM (
            SELECT p.id, p.root, p.created_at, p.items FROM backend_slice p
            WHERE p.state = 'pending' AND p.lane = %(lane)s
              AND (p.evaluation_id = o.evaluation_id OR p.ingestion_id = o.ingestion_id OR p.job_id = o.job_id)
              AND (p.not_before IS NULL OR p.not_before <= now())
              AND (NOT p.quarantined OR (SELECT n_quarantined FROM lane_busy) = 0)
            ORDER BY p.root, p.created_at, p.id LIMIT %(cap)s
        ) s
        WINDOW w AS (ORDER BY s.root, s.created_at, s.id)
    ) c
    LEFT JOIN busy own ON own.owner = o.owner AND own.lane = %(lane)s
    LEFT JOIN (SELECT workspace_id, sum(n) AS n FROM busy WHERE lane = %(lane)s GROUP BY 1) ws
      ON ws.workspace_id = o.workspace_id
    WHERE NOT c.root OR o.n_begun + c.n_begun - c.n_items < %(window)s
    ORDER BY 2, 3, 4 LIMIT GREATEST(%(cap)s - (SELECT n FROM lane_busy), 0)
), taken AS (
    SELECT s.id FROM backend_slice s JOIN waiting w ON w.id = s.id
    WHERE s.state = 'pending' FOR UPDATE OF s SKIP LOCKED
)
UPDATE backend_slice s
SET state = 'queued', delivery = s.delivery + 1, queued_at = now(), not_before = NULL
FROM taken WHERE s.id = taken.id
RETURNING s.id, s.delivery, s.lane
"""


def run() -> int:
    """Hand out what there is a place for, in every lane. Returns the number of slices handed out."""
    return sum(run_lane(lane) for lane in Lane)


def run_lane(lane: Lane) -> int:
    with connection.cursor() as cursor:
        # One statement, its own transaction: rows are locked, updated and told in one round trip.
        cursor.execute(_TAKE, {"lane": lane.value, "cap": capacity(lane), "window": settings.EVALUATION_WINDOW})
        doorbells = [Doorbell(slice_id=row[0], delivery=row[1], lane=row[2]) for row in cursor.fetchall()]
    # Sorted: what a parent inserted first is worked on first.
    dispatch.ring(sorted(doorbells, key=lambda bell: bell.slice_id))
    return len(doorbells)


def run_after(lane: Lane, *, evaluation_id: UUID | None) -> int:
    """After a slice of this lane ended: its place is free, and so may be a place in its evaluation's window."""
    n = run_lane(lane)
    if evaluation_id is not None and lane is Lane.PROVIDER:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT DISTINCT lane FROM backend_slice "
                "WHERE evaluation_id = %s AND state = 'pending' AND lane <> %s LIMIT 3",
                [evaluation_id, lane.value],
            )
            others = [Lane(row[0]) for row in cursor.fetchall()]
        n += sum(run_lane(other) for other in others)
    return n


def capacity(lane: Lane) -> int:
    """How many slices of a lane may be handed out at once: more than the slots of the workers seen lately (so that a
    worker never waits for the next), at least by what is configured for one worker."""
    configured = {Lane.CONTROL: 2, Lane.SEARCH: settings.SEARCH_SLOTS, Lane.PROVIDER: settings.PROVIDER_SLOTS}[lane]
    slots = max(configured, _slots_seen(lane, int(time.monotonic() / _SLOTS_SECONDS)))
    return slots + max(2, slots // 2) if lane is Lane.PROVIDER else 2 * slots


@lru_cache(maxsize=8)
def _slots_seen(lane: Lane, period: int) -> int:  # noqa: ARG001  the period is what lets the figure grow old
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(sum(slots), 0) FROM backend_pulse WHERE lane = %s AND at > now() - interval '60 seconds'",
            [lane.value],
        )
        return int(cursor.fetchone()[0])


def ring_later() -> None:
    """On commit, hand out what waits. Never raises: the rows are the truth, and the tick does it as well."""
    transaction.on_commit(_run_quietly, robust=True)


def _run_quietly() -> None:
    run()


def wake(slice_id: UUID) -> None:
    """Let a slice that waits for its time be handed out at once."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backend_slice SET not_before = NULL WHERE id = %s AND state = 'pending'", [slice_id])
