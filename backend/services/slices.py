"""Slices: claimed, renewed and committed by conditional updates that carry the holder's token (fencing).

A late copy of a message, a zombie worker or a second claim changes nothing: each write checks delivery or token.
All times are the database's.
"""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction

from backend.core.states import OPEN_SLICES, Lane, SliceKind, SliceState
from backend.models import Slice

# What the owner's state must be for a slice of this kind to be worked on.
_OWNER_ALLOWS = """
    ((s.evaluation_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM backend_evaluation e
        WHERE e.id = s.evaluation_id AND e.epoch = s.epoch AND e.state = ANY(CASE s.kind
            WHEN 'prepare' THEN ARRAY['queued', 'preparing']
            WHEN 'aggregate' THEN ARRAY['aggregating', 'cancelling']
            ELSE ARRAY['preparing', 'running'] END)))
    OR (s.ingestion_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM backend_ingestion i WHERE i.id = s.ingestion_id AND i.state IN ('queued', 'running')))
    OR (s.job_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM backend_job j WHERE j.id = s.job_id AND j.state IN ('queued', 'running'))))
"""
_CLAIM = f"""
UPDATE backend_slice s
SET state = 'leased', token = %(token)s, lease_until = now() + make_interval(secs => %(lease)s),
    deadline_at = now() + make_interval(secs => %(deadline)s)
WHERE s.id = %(id)s AND s.state = 'queued' AND s.delivery = %(delivery)s AND {_OWNER_ALLOWS}
RETURNING s.kind, s.lane, s.workspace_id, s.evaluation_id, s.ingestion_id, s.epoch, s.items, s.reranker, s.pool,
          s.tries, s.quarantined, s.payload, s.job_id
"""  # noqa: S608  constants only
_RENEW = f"""
UPDATE backend_slice s SET lease_until = now() + make_interval(secs => %(lease)s)
WHERE s.id = %(id)s AND s.state = 'leased' AND s.token = %(token)s AND s.deadline_at > now() AND {_OWNER_ALLOWS}
"""  # noqa: S608  constants only
_FENCE = """
UPDATE backend_slice SET lease_until = now() + make_interval(secs => %s)
WHERE id = %s AND token = %s AND state = 'leased'
"""
_FENCE_AND_END = """
UPDATE backend_slice
SET state = 'done', payload = NULL, token = NULL, lease_until = NULL, finished_at = now()
WHERE id = %s AND token = %s AND state = 'leased'
"""


class LeaseLostError(Exception):
    """The slice is somebody else's now, or its owner was cancelled: stop, write nothing."""


@dataclass(slots=True, kw_only=True)
class Lease:
    """A claimed slice. `lost` is set by the heartbeat; `deadline` is in seconds of time.monotonic()."""

    slice_id: UUID
    token: UUID
    kind: SliceKind
    lane: Lane
    workspace_id: UUID
    evaluation_id: UUID | None
    ingestion_id: UUID | None
    job_id: UUID | None = None
    epoch: int
    items: tuple[int, ...]
    reranker: str
    pool: str
    tries: int
    quarantined: bool
    payload: dict[str, Any]
    deadline: float
    lost: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raises LeaseLostError when the heartbeat found the lease taken away, or the slice's time is up."""
        if self.lost.is_set() or time.monotonic() > self.deadline:
            raise LeaseLostError(str(self.slice_id))

    @property
    def evaluation(self) -> UUID:
        """The evaluation's id; for kinds that belong to one."""
        if self.evaluation_id is None:
            raise ValueError(f"a slice of kind {self.kind} belongs to no evaluation")
        return self.evaluation_id

    @property
    def ingestion(self) -> UUID:
        if self.ingestion_id is None:
            raise ValueError(f"a slice of kind {self.kind} belongs to no ingestion")
        return self.ingestion_id

    @property
    def job(self) -> UUID:
        if self.job_id is None:
            raise ValueError(f"a slice of kind {self.kind} belongs to no job")
        return self.job_id

    @property
    def owner(self) -> UUID | None:
        """Whose slice it is: an evaluation's, an ingestion's or a job's."""
        return self.evaluation_id or self.ingestion_id or self.job_id

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def call_seconds(self, *, local: bool) -> float:
        """How long one call to a provider may take: a model in this process has the slice's time, a server less."""
        return self.seconds_left if local else min(settings.PROVIDER_TIMEOUT_SECONDS, self.seconds_left)


def claim(slice_id: UUID, *, delivery: int) -> Lease | None:
    """`queued` to `leased`, if this is the delivery that was handed out last and the owner still wants it.

    None: an old or doubled message, or a cancelled owner; nothing was written.
    """
    token = uuid4()
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM,
            {
                "token": token,
                "lease": settings.SLICE_LEASE_SECONDS,
                "deadline": settings.SLICE_DEADLINE_SECONDS,
                "id": slice_id,
                "delivery": delivery,
            },
        )
        row = cursor.fetchone()
    if row is None:
        return None
    return Lease(
        slice_id=slice_id,
        token=token,
        kind=SliceKind(row[0]),
        lane=Lane(row[1]),
        workspace_id=row[2],
        evaluation_id=row[3],
        ingestion_id=row[4],
        job_id=row[12],
        epoch=row[5],
        items=tuple(row[6]),
        reranker=row[7],
        pool=row[8],
        tries=row[9],
        quarantined=row[10],
        payload=_payload(row[11]),
        deadline=time.monotonic() + settings.SLICE_DEADLINE_SECONDS,
    )


def renew(lease: Lease) -> bool:
    """Extend the lease, if it is still ours and its owner still wants it. The heartbeat calls this."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, {"lease": settings.SLICE_LEASE_SECONDS, "id": lease.slice_id, "token": lease.token})
        return bool(cursor.rowcount == 1)


def is_held(lease: Lease) -> bool:
    """Whether the slice is still ours: neither ended, given back nor taken away."""
    return Slice.objects.filter(id=lease.slice_id, token=lease.token, state=SliceState.LEASED).exists()


@contextmanager
def commit(lease: Lease, *, finish: bool = False) -> Iterator[None]:
    """One transaction whose writes count only while the lease is ours; `finish` ends the slice in it.

    Raises LeaseLostError (and rolls back) when the token is no longer the slice's.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            if finish:
                cursor.execute(_FENCE_AND_END, [lease.slice_id, lease.token])
            else:
                cursor.execute(_FENCE, [settings.SLICE_LEASE_SECONDS, lease.slice_id, lease.token])
            ours = cursor.rowcount == 1
        if not ours:
            lease.lost.set()
            raise LeaseLostError(str(lease.slice_id))
        yield


def end(lease: Lease, state: SliceState, *, code: str = "", reason: str = "") -> None:
    """Close a slice that is ours; inside `commit`."""
    _close([lease.slice_id], state, code=code, reason=reason)


def shrink(lease: Lease, items: Sequence[int]) -> None:
    """Say which questions are still to do; inside `commit`, with the rows of those that are done."""
    Slice.objects.filter(id=lease.slice_id).update(items=list(items))


def _payload(stored: Any) -> dict[str, Any]:
    """A JSON column read by a plain cursor: text, since Django keeps psycopg from decoding it."""
    value: dict[str, Any] = json.loads(stored) if isinstance(stored, str) else stored or {}
    return value


def release(lease: Lease, *, wait_seconds: float = 0.0, used_try: bool = False) -> None:
    """Give the slice back, to be handed out again not before `wait_seconds` from now. Frees the worker's slot."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backend_slice
            SET state = 'pending', token = NULL, lease_until = NULL, tries = tries + %s,
                not_before = now() + make_interval(secs => %s)
            WHERE id = %s AND token = %s AND state = 'leased'
            """,
            [int(used_try), max(0.0, wait_seconds), lease.slice_id, lease.token],
        )


def close(slice_ids: Sequence[UUID], state: SliceState, *, code: str = "", reason: str = "") -> int:
    """Close open slices whatever their holder does: the holder's next write is refused."""
    return _close(slice_ids, state, code=code, reason=reason)


def open_of(evaluation_id: UUID) -> list[UUID]:
    """Also those of an earlier epoch."""
    return list(Slice.objects.filter(evaluation_id=evaluation_id, state__in=OPEN_SLICES).values_list("id", flat=True))


def _close(slice_ids: Sequence[UUID], state: SliceState, *, code: str, reason: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backend_slice
            SET state = %s, code = %s, reason = %s, payload = NULL, token = NULL, lease_until = NULL,
                finished_at = now()
            WHERE id = ANY(%s) AND state IN ('pending', 'queued', 'leased')
            """,
            [state.value, code, reason, list(slice_ids)],
        )
        return int(cursor.rowcount)
