"""Hands waiting slices out: `pending` to `queued` and a doorbell, a bounded number at a time, the least-served first.

Called after each submit, after each slice, and by the tick. Two pumps at once are harmless: each takes other rows.
"""

import itertools
import time
from collections.abc import Collection, Iterable
from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from backend import dispatch
from backend.core.states import Lane
from backend.dispatch import Doorbell

_SLOTS_SECONDS = 5
_hand_outs = {lane: itertools.count(1) for lane in Lane}

# Free places of a lane go to the workspaces in turn, and within one to its owners in turn, by questions: a waiting
# slice ranks by how many its owner (and workspace) would have in flight with it, so that all slices of a run of 20
# questions pass the next one of 50 (fair queueing by finish). Every eighth time its own do not count, and a stream of
# small runs keeps no large one from getting on. What an ingestion does in one slice weighs as much as the longest of an
# evaluation. New questions (root slices) wait while their
# evaluation has `window`, or their workspace its own number, of questions begun and not ended, so that neither waiting
# pools nor messages grow with the size or number of runs. The first of an evaluation that has none begun goes all the
# same: others of its workspace may wait for a provider that it does not need.
_TAKE = """
WITH busy AS (
    SELECT COALESCE(evaluation_id, ingestion_id, job_id) AS owner, workspace_id, count(*) FILTER (WHERE here) AS n,
           count(*) FILTER (WHERE here AND quarantined) AS n_quarantined, sum(cardinality(items)) AS n_items,
           sum(weight) FILTER (WHERE here) AS weight
    FROM (SELECT *, lane = %(lane)s AS here, {weight} AS weight
          FROM backend_slice WHERE state IN ('queued', 'leased')) s GROUP BY 1, 2
), lane_busy AS (
    SELECT COALESCE(sum(n), 0) AS n, COALESCE(sum(n_quarantined), 0) AS n_quarantined FROM busy
), between_steps AS (
    SELECT evaluation_id AS owner, workspace_id, sum(cardinality(items)) AS n_items
    FROM backend_slice WHERE state = 'pending' AND NOT root AND evaluation_id IS NOT NULL GROUP BY 1, 2
), ready AS (
    SELECT id, COALESCE(evaluation_id, ingestion_id, job_id) AS owner, root, created_at, cardinality(items) AS n_items,
           {weight} AS weight, quarantined
    FROM backend_slice
    WHERE state = 'pending' AND lane = %(lane)s AND (not_before IS NULL OR not_before <= now())
), due AS (
    -- What is in quarantine goes alone.
    SELECT * FROM ready
    WHERE NOT quarantined OR ((SELECT n_quarantined FROM lane_busy) = 0 AND id = (
        SELECT id FROM ready WHERE quarantined ORDER BY created_at, id LIMIT 1))
), due_of AS (
    SELECT owner, bool_or(NOT root) AS has_step, min(weight) AS least FROM due GROUP BY owner
), owners AS (
    SELECT d.owner, COALESCE(e.workspace_id, i.workspace_id, j.workspace_id) AS workspace_id,
           COALESCE(e.created_at, i.created_at, j.created_at) AS created_at, d.has_step,
           d.least, COALESCE(b.weight, 0) AS weight, COALESCE(b.n_items, 0) + COALESCE(s.n_items, 0) AS n_begun
    FROM due_of d
    LEFT JOIN backend_evaluation e ON e.id = d.owner
    LEFT JOIN backend_ingestion i ON i.id = d.owner
    LEFT JOIN backend_job j ON j.id = d.owner
    LEFT JOIN busy b ON b.owner = d.owner
    LEFT JOIN between_steps s ON s.owner = d.owner
    WHERE e.state IN ('queued', 'preparing', 'running', 'aggregating', 'cancelling')
       OR i.state IN ('queued', 'running') OR j.state IN ('queued', 'running')
), workspaces AS (
    SELECT w.id AS workspace_id, COALESCE((w.limits ->> 'questions_in_flight')::int, %(workspace_window)s) AS most,
           COALESCE((SELECT sum(b.n_items) FROM between_steps b WHERE b.workspace_id = w.id), 0)
           + COALESCE((SELECT sum(b.n_items) FROM busy b WHERE b.workspace_id = w.id), 0) AS n_begun,
           COALESCE((SELECT sum(b.weight) FROM busy b WHERE b.workspace_id = w.id), 0) AS weight
    FROM backend_workspace w WHERE w.id IN (SELECT workspace_id FROM owners)
), chosen AS (
    -- Of each workspace no more owners than there are places: those whose turn it is first, oldest first.
    SELECT * FROM (
        SELECT o.*, row_number() OVER (
                   PARTITION BY o.workspace_id
                   ORDER BY o.weight + CASE WHEN %(by_finish)s THEN o.least ELSE 0 END, o.created_at, o.owner) AS place
        FROM owners o JOIN workspaces w USING (workspace_id)
        WHERE o.has_step OR o.n_begun = 0 OR (o.n_begun < %(window)s AND w.n_begun < w.most)
    ) ranked WHERE place <= %(cap)s
), waiting AS (
    SELECT d.id, o.workspace_id, d.root, d.n_items, d.weight, d.created_at,
           o.weight + d.ahead + CASE WHEN %(by_finish)s THEN d.weight ELSE 0 END AS turn,
           o.n_begun + d.n_opened - d.n_items AS n_before
    FROM chosen o
    JOIN (
        SELECT due.*, row_number() OVER w AS place,
               sum(weight) OVER w - weight AS ahead,
               COALESCE(sum(n_items) FILTER (WHERE root) OVER w, 0) AS n_opened
        FROM due WHERE owner IN (SELECT owner FROM chosen)
        WINDOW w AS (PARTITION BY owner ORDER BY root, created_at, id)
    ) d ON d.owner = o.owner AND d.place <= %(cap)s
), opening AS (
    SELECT waiting.*, COALESCE(sum(n_items) FILTER (WHERE root) OVER (
               PARTITION BY workspace_id ORDER BY turn, created_at, id), 0) - n_items AS n_opened
    FROM waiting WHERE NOT root OR n_before < %(window)s
), next AS (
    SELECT o.id, o.turn, o.created_at,
           w.weight + sum(o.weight) OVER (PARTITION BY workspace_id ORDER BY turn, created_at, id)
               - CASE WHEN %(by_finish)s THEN 0 ELSE o.weight END AS workspace_turn
    FROM opening o JOIN workspaces w USING (workspace_id)
    WHERE NOT root OR n_before = 0 OR w.n_begun + n_opened < w.most
    ORDER BY workspace_turn, turn, created_at LIMIT GREATEST(%(cap)s - (SELECT n FROM lane_busy), 0)
), taken AS (
    SELECT s.id FROM backend_slice s
    WHERE s.id = ANY(ARRAY(SELECT id FROM next)) AND s.state = 'pending' FOR UPDATE OF s SKIP LOCKED
)
UPDATE backend_slice s
SET state = 'queued', delivery = s.delivery + 1, queued_at = now(), not_before = NULL
FROM taken WHERE s.id = taken.id
RETURNING s.id, s.delivery, s.lane
""".format(weight="CASE WHEN ingestion_id IS NULL THEN GREATEST(cardinality(items), 1) ELSE 50 END")  # noqa: S608  constants only


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
                "by_finish": next(_hand_outs[lane]) % 8 != 0,
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

    Slices are many and short: what was handed out beyond the slots is let go down by half before there is more, so that
    handing out, which costs as much as the rest of such a slice, is done for several at once. Those that are handed out
    come by here again. One whose message was lost does not: while it counts as handed out, no slot stands idle for it.
    """
    if evaluation_id is None:
        return run_lane(lane)
    n = 0
    for one, n_queued, n_leased, has_waiting, has_any in _how_full(Lane, evaluation_id):
        is_low = has_any and (n_queued <= _spare(one) // 2 or n_queued + n_leased < _slots(one))
        has_place = has_waiting and n_queued + n_leased < capacity(one)
        if is_low if one is lane else has_place:
            n += run_lane(one)
    return n


def _how_full(lanes: Iterable[Lane], evaluation_id: UUID | None) -> list[tuple[Lane, int, int, bool, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(_FULL, [evaluation_id, [lane.value for lane in lanes]])
        return [(Lane(row[0]), *row[1:]) for row in cursor.fetchall()]


# Somebody else waits in this lane, pending or at the broker, who is not at work in it or has less left to do than the
# rest of a slice. New questions do not count while their evaluation has others at work or a step waiting anywhere: what
# keeps them waiting may be its window. Nor does anything while a step of theirs waits for a provider, or a slice in
# quarantine: what could not be handed out is given no place.
_KEPT_WAITING = """
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT bool_or(here AND waits AND NOT root) AS next_waits,
               bool_or(here AND waits AND root) AND NOT bool_or(is_step AND NOT is_due) AS first_waits,
               bool_or(here AND state = 'leased') AS is_here, bool_or(state = 'leased' OR is_step) AS is_somewhere,
               sum(GREATEST(cardinality(items), 1)) FILTER (WHERE here) AS n_left
        FROM (
            SELECT *, state <> 'leased' AND NOT quarantined AND is_due AS waits
            FROM (
                SELECT *, lane = %(lane)s AS here, not_before IS NULL OR not_before <= now() AS is_due,
                       state = 'pending' AND NOT root AND evaluation_id IS NOT NULL AS is_step
                FROM backend_slice
                WHERE state IN ('pending', 'queued', 'leased') AND evaluation_id IS DISTINCT FROM %(owner)s
            ) s
        ) open
        GROUP BY COALESCE(evaluation_id, ingestion_id, job_id)
    ) others
    WHERE ((next_waits OR first_waits) AND n_left < %(n_left)s)
       OR (next_waits AND NOT is_here) OR (first_waits AND NOT is_somewhere)
)
"""


def keeps_others_waiting(lane: Lane, *, evaluation_id: UUID, n_left: int) -> bool:
    """Whether an evaluation that is at work in a lane should give its place back, with `n_left` questions of its slice
    to do: another has no place, or fewer questions than that."""
    with connection.cursor() as cursor:
        cursor.execute(_KEPT_WAITING, {"owner": evaluation_id, "lane": lane.value, "n_left": n_left})
        return bool(cursor.fetchone()[0])


def capacity(lane: Lane) -> int:
    """How many slices of a lane may be handed out at once: more than the slots of the workers seen lately (so that a
    worker never waits for the next), at least by what is configured for one worker."""
    slots = _slots(lane)
    return slots + max(2 if lane is Lane.PROVIDER else 1, slots // 2)


def _spare(lane: Lane) -> int:
    """How many may wait at the workers of a lane, beyond those that are worked on."""
    return capacity(lane) - _slots(lane)


def _slots(lane: Lane) -> int:
    configured = {Lane.CONTROL: 1, Lane.SEARCH: settings.SEARCH_SLOTS, Lane.PROVIDER: settings.PROVIDER_SLOTS}[lane]
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
        for lane, n_queued, n_leased, _, has_any in _how_full(lanes, None):
            if has_any and n_queued + n_leased < capacity(lane):
                run_lane(lane)

    transaction.on_commit(run_quietly, robust=True)


def wake(slice_id: UUID) -> None:
    """Let a slice that waits for its time be handed out at once."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backend_slice SET not_before = NULL WHERE id = %s AND state = 'pending'", [slice_id])
