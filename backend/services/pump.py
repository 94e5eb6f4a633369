"""Hands waiting slices out: `pending` to `queued` and a doorbell, a bounded number at a time, the least-served first.

Called after each submit, after each slice, and by the tick. Two pumps at once are harmless: each takes other rows.
"""

import time
from collections.abc import Collection
from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from backend import dispatch
from backend.core.states import Lane
from backend.dispatch import Doorbell

_SLOTS_SECONDS = 5

# Free places of a lane go to the workspaces in turn, and within one to its owners in turn: the nth waiting slice of an
# owner (or workspace) ranks behind those of every other that has fewer in flight. New questions (root slices) wait
# while their evaluation has `window`, or their workspace its own number, of questions begun and not ended, so that
# neither waiting pools nor messages grow with the size or number of runs. The first of an evaluation that has none
# begun goes all the same: others of its workspace may wait for a provider that it does not need.
_TAKE = """
WITH busy AS (
    SELECT COALESCE(evaluation_id, ingestion_id, job_id) AS owner, workspace_id, lane, count(*) AS n,
           count(*) FILTER (WHERE quarantined) AS n_quarantined, sum(cardinality(items)) AS n_items
    FROM backend_slice WHERE state IN ('queued', 'leased') GROUP BY 1, 2, 3
), lane_busy AS (
    SELECT COALESCE(sum(n), 0) AS n, COALESCE(sum(n_quarantined), 0) AS n_quarantined FROM busy WHERE lane = %(lane)s
), owners AS (
    SELECT e.id AS owner, e.workspace_id, e.id AS evaluation_id, NULL::uuid AS ingestion_id, NULL::uuid AS job_id,
           (SELECT COALESCE(sum(n_items), 0) FROM busy b WHERE b.owner = e.id) AS n_at_work,
           (SELECT COALESCE(sum(cardinality(o.items)), 0) FROM backend_slice o
            WHERE o.evaluation_id = e.id AND o.state = 'pending' AND NOT o.root) AS n_between
    FROM backend_evaluation e
    WHERE e.state IN ('queued', 'preparing', 'running', 'aggregating', 'cancelling')
      AND EXISTS (SELECT 1 FROM backend_slice p WHERE p.evaluation_id = e.id AND p.state = 'pending')
    UNION ALL
    SELECT i.id, i.workspace_id, NULL, i.id, NULL, 0, 0
    FROM backend_ingestion i WHERE i.state IN ('queued', 'running')
    UNION ALL
    SELECT j.id, j.workspace_id, NULL, NULL, j.id, 0, 0
    FROM backend_job j WHERE j.state IN ('queued', 'running')
), workspaces AS (
    SELECT o.workspace_id, COALESCE((w.limits ->> 'questions_in_flight')::int, %(workspace_window)s) AS most,
           sum(o.n_between) + COALESCE((SELECT sum(n_items) FROM busy b WHERE b.workspace_id = w.id), 0) AS n_begun,
           COALESCE((SELECT sum(n) FROM busy b WHERE b.workspace_id = w.id AND b.lane = %(lane)s), 0) AS n_busy
    FROM owners o JOIN backend_workspace w ON w.id = o.workspace_id GROUP BY o.workspace_id, w.id
), waiting AS (
    SELECT c.id, o.workspace_id, c.root, c.n_items, COALESCE(own.n, 0) + c.place AS turn, c.created_at,
           o.n_at_work + o.n_between + c.n_opened - c.n_items AS n_before
    FROM owners o
    CROSS JOIN LATERAL (
        SELECT s.id, s.created_at, s.root, cardinality(s.items) AS n_items,
               row_number() OVER w AS place,
               COALESCE(sum(cardinality(s.items)) FILTER (WHERE s.root) OVER w, 0) AS n_opened
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
), opening AS (
    SELECT waiting.*, COALESCE(sum(n_items) FILTER (WHERE root) OVER (
               PARTITION BY workspace_id ORDER BY turn, created_at, id), 0) - n_items AS n_opened
    FROM waiting WHERE NOT root OR n_before < %(window)s
), next AS (
    SELECT o.id, o.turn, o.created_at,
           w.n_busy + row_number() OVER (PARTITION BY workspace_id ORDER BY turn, created_at, id) AS workspace_turn
    FROM opening o JOIN workspaces w USING (workspace_id)
    WHERE NOT root OR n_before = 0 OR w.n_begun + n_opened < w.most
    ORDER BY workspace_turn, turn, created_at LIMIT GREATEST(%(cap)s - (SELECT n FROM lane_busy), 0)
), taken AS (
    SELECT s.id FROM backend_slice s JOIN next ON next.id = s.id
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
        cursor.execute(
            _TAKE,
            {
                "lane": lane.value,
                "cap": capacity(lane),
                "window": settings.EVALUATION_WINDOW,
                "workspace_window": settings.WORKSPACE_WINDOW,
            },
        )
        doorbells = [Doorbell(slice_id=row[0], delivery=row[1], lane=row[2]) for row in cursor.fetchall()]
    # Sorted: what a parent inserted first is worked on first.
    dispatch.ring(sorted(doorbells, key=lambda bell: bell.slice_id))
    return len(doorbells)


# How full the lanes are, and in which of them an evaluation, or anybody, has something waiting.
_FULL = """
SELECT l.lane,
       (SELECT count(*) FROM backend_slice s WHERE s.lane = l.lane AND s.state = 'queued'),
       (SELECT count(*) FROM backend_slice s WHERE s.lane = l.lane AND s.state = 'leased'),
       EXISTS (SELECT 1 FROM backend_slice s
               WHERE s.evaluation_id = %s AND s.state = 'pending' AND s.lane = l.lane),
       EXISTS (SELECT 1 FROM backend_slice s WHERE s.state = 'pending' AND s.lane = l.lane)
FROM unnest(%s::text[]) AS l (lane)
"""


def run_after(lane: Lane, *, evaluation_id: UUID | None) -> int:
    """After a slice of this lane ended: its place is free, and so may be a place in its evaluation's window.

    Slices of the provider lane are many and short: what was handed out beyond the slots is let go down by half before
    there is more, so that handing out, which costs as much as the rest of such a slice, is done for several at once.
    Those that are handed out come by here again.
    """
    if evaluation_id is None or lane is not Lane.PROVIDER:
        return run_lane(lane)
    with connection.cursor() as cursor:
        cursor.execute(_FULL, [evaluation_id, [one.value for one in Lane]])
        rows = cursor.fetchall()
    n = 0
    for name, n_queued, n_leased, has_waiting, has_any in rows:
        one = Lane(name)
        is_low = has_any and n_queued <= _spare(one) // 2
        has_place = has_waiting and n_queued + n_leased < capacity(one)
        if is_low if one is lane else has_place:
            n += run_lane(one)
    return n


def capacity(lane: Lane) -> int:
    """How many slices of a lane may be handed out at once: more than the slots of the workers seen lately (so that a
    worker never waits for the next), at least by what is configured for one worker."""
    slots = _slots(lane)
    return slots + max(2, slots // 2) if lane is Lane.PROVIDER else 2 * slots


def _spare(lane: Lane) -> int:
    """How many may wait at the workers of a lane, beyond those that are worked on."""
    return capacity(lane) - _slots(lane)


def _slots(lane: Lane) -> int:
    configured = {Lane.CONTROL: 2, Lane.SEARCH: settings.SEARCH_SLOTS, Lane.PROVIDER: settings.PROVIDER_SLOTS}[lane]
    return max(configured, _slots_seen(lane, int(time.monotonic() / _SLOTS_SECONDS)))


@lru_cache(maxsize=8)
def _slots_seen(lane: Lane, period: int) -> int:  # noqa: ARG001  the period is what lets the figure grow old
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(sum(slots), 0) FROM backend_pulse WHERE lane = %s AND at > now() - interval '60 seconds'",
            [lane.value],
        )
        return int(cursor.fetchone()[0])


def ring_later(lanes: Collection[Lane] = tuple(Lane)) -> None:
    """On commit, hand out what waits in these lanes. Never raises: the rows are the truth, and the tick does it too."""

    def run_quietly() -> None:
        for lane in lanes:
            run_lane(lane)

    transaction.on_commit(run_quietly, robust=True)


def wake(slice_id: UUID) -> None:
    """Let a slice that waits for its time be handed out at once."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backend_slice SET not_before = NULL WHERE id = %s AND state = 'pending'", [slice_id])
