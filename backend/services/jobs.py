"""Jobs: work that outlasts a request and is no evaluation. Started, moved on by their holder, closed, cancelled.

A job has one slice, claimed, fenced and swept as all are. Locks are taken in one order: slice, then job. Each move of a
job is one conditional update in the commit that fences its slice, so a zombie worker, or one whose job was cancelled,
writes nothing. What a job does is in backend/services/handlers/job.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from backend.core.errors import ConflictError, ErrorCode, Fault, NotFoundError
from backend.core.states import FileRole, JobKind, JobState, Lane, SliceKind, SliceState
from backend.models import Job, JobFile, Slice, Workspace
from backend.services import pump, slices
from backend.services.slices import Lease, LeaseLostError

KEPT_DAYS = 30
_MOST_FAULTS = 100


class LaterError(Exception):
    """Raised by a handler: hand this job out again in `wait_seconds`. With `used_try`, `lease.tries` rises."""

    def __init__(self, *, wait_seconds: float, used_try: bool = True) -> None:
        super().__init__(wait_seconds)
        self.wait_seconds = wait_seconds
        self.used_try = used_try


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """Bytes that are too large for a payload or a result."""

    name: str
    media_type: str
    data: bytes


def start(
    workspace: Workspace,
    kind: JobKind,
    payload: Mapping[str, Any],
    *,
    lane: Lane = Lane.CONTROL,
    created_by: str = "",
    n_total: int = 0,
    wait_seconds: float = 0.0,
    file: File | None = None,
) -> Job:
    """A job in the caller's transaction: no commit, no job. Handed out after it, `wait_seconds` later.

    `lane`: what only reads and writes rows for a moment is `control`; computing is `search`; calls over a network are
    `provider`. `payload` is JSON; it is kept after the end, and never shown.
    """
    now = timezone.now()
    with transaction.atomic():
        job = Job.objects.create(
            workspace=workspace,
            kind=kind,
            payload=dict(payload),
            n_total=n_total,
            created_by=created_by,
            deadline_at=now + timedelta(seconds=wait_seconds + settings.EVALUATION_DEADLINE_SECONDS),
        )
        if file is not None:
            _keep(job.id, file, role=FileRole.INPUT)
        Slice.objects.create(
            workspace=workspace,
            job=job,
            kind=SliceKind.JOB,
            lane=lane,
            not_before=now + timedelta(seconds=wait_seconds) if wait_seconds else None,
        )
        pump.ring_later()
    return job


def begin(lease: Lease) -> Job:
    """The job of a slice that was just claimed, now `running`. Raises LeaseLostError when it is wanted no more."""
    with slices.commit(lease):
        _move(lease, state=JobState.RUNNING, started_at=Coalesce("started_at", Now()))
    return Job.objects.select_related("workspace").get(id=lease.job)


def progress(
    lease: Lease, n_done: int, n_total: int | None = None, *, payload: Mapping[str, Any] | None = None
) -> None:
    """Say how far it is, and renew the lease; `payload` replaces the job's own, so that a worker who takes over goes
    on from there. Raises LeaseLostError when the job was cancelled or is somebody else's: stop."""
    change: dict[str, Any] = {"n_done": n_done}
    if n_total is not None:
        change["n_total"] = n_total
    if payload is not None:
        change["payload"] = dict(payload)
    with slices.commit(lease):
        _move(lease, **change)


@contextmanager
def finishing(lease: Lease, *, file: File | None = None) -> Iterator[dict[str, Any]]:
    """End a job together with writes of one's own, in one transaction: what is put into the yielded dict is its
    result. Raises LeaseLostError, and rolls everything back, when the job was cancelled or is somebody else's."""
    result: dict[str, Any] = {}
    with slices.commit(lease, finish=True):
        yield result
        if file is not None:
            _keep(lease.job, file, role=FileRole.OUTPUT)
        _move(lease, state=JobState.COMPLETED, result=result, finished_at=Now())
        Job.objects.filter(id=lease.job, n_total__gt=0).update(n_done=F("n_total"))
        JobFile.objects.filter(job=lease.job, role=FileRole.INPUT).delete()


def finish(lease: Lease, result: Mapping[str, Any] | None = None, *, file: File | None = None) -> None:
    """Completed, with what came of it."""
    with finishing(lease, file=file) as told:
        told.update(result or {})


def fail(lease: Lease, *, code: ErrorCode, reason: str, faults: Sequence[Fault] = ()) -> None:
    """Failed for good, by its holder."""
    with slices.commit(lease):
        slices.end(lease, SliceState.GIVEN_UP, code=code.value, reason=reason)
        _fail(lease.job, code=code, reason=reason, faults=faults)


def give_up(job_id: UUID, *, code: ErrorCode, reason: str) -> None:
    """Failed for good, by who takes its slice away; in the transaction that closes that, before it is closed."""
    _fail(job_id, code=code, reason=reason)


def cancel(workspace: Workspace, job_id: UUID) -> Job:
    """Stop: at once when nobody works on it, else as soon as its worker notices; nothing more is written for it.

    Idempotent while cancelling and after. Raises ConflictError when it has ended otherwise.
    """
    with transaction.atomic():
        # The slice first, as everywhere.
        list(Slice.objects.select_for_update().filter(job=job_id, workspace=workspace).values_list("id"))
        job = Job.objects.select_for_update().filter(workspace=workspace, id=job_id).first()
        if job is None:
            raise NotFoundError("job", job_id)
        if job.state in {JobState.COMPLETED, JobState.FAILED}:
            raise ConflictError(f"This job is {job.state}: there is nothing left to cancel.")
        if job.state in {JobState.QUEUED, JobState.RUNNING}:
            Job.objects.filter(id=job.id).update(state=JobState.CANCELLING)
    settle(job.id)
    job.refresh_from_db()
    return job


def settle(job_id: UUID, *, ended: Lease | None = None) -> bool:
    """Close a job that is `cancelling` once nobody works on it. `ended` is a lease whose handler has returned."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT s.id, s.state = 'leased' AND s.lease_until >= now() AND s.token IS DISTINCT FROM %s
            FROM backend_slice s JOIN backend_job j ON j.id = s.job_id
            WHERE j.id = %s AND j.state = 'cancelling' AND s.state IN ('pending', 'queued', 'leased') FOR UPDATE OF s
            """,
            [ended.token if ended is not None else None, job_id],
        )
        rows = cursor.fetchall()
        if any(row[1] for row in rows):
            return False
        slices.close([row[0] for row in rows], SliceState.CANCELLED)
        moved = Job.objects.filter(id=job_id, state=JobState.CANCELLING)
        return bool(moved.update(state=JobState.CANCELLED, finished_at=Now()))


def sweep() -> int:
    """Jobs that nobody closed: cancelled ones whose worker is gone, and those past their deadline. For the sweeper."""
    cancelled = Job.objects.filter(state=JobState.CANCELLING).order_by("id").values_list("id", flat=True)[:100]
    n = sum(settle(job_id) for job_id in list(cancelled))
    overdue = Job.objects.filter(state__in=[JobState.QUEUED, JobState.RUNNING], deadline_at__lt=Now())
    for job_id in list(overdue.order_by("id").values_list("id", flat=True)[:100]):
        reason = "The job's deadline passed before it was done."
        with transaction.atomic():
            held = Slice.objects.select_for_update().filter(job=job_id).order_by("id")
            ids = list(held.values_list("id", flat=True))
            n += _fail(job_id, code=ErrorCode.DEADLINE, reason=reason)
            slices.close(ids, SliceState.GIVEN_UP, code=ErrorCode.DEADLINE, reason=reason)
    return n


def forget() -> int:
    """Delete what ended long ago, with its files. Once a day."""
    old = Job.objects.filter(finished_at__lt=Now() - timedelta(days=KEPT_DAYS)).order_by("id")
    ids = list(old.values_list("id", flat=True)[:10_000])
    Job.objects.filter(id__in=ids).delete()
    return len(ids)


def input_of(job: Job) -> bytes:
    """The file that `start` was given. Raises JobFile.DoesNotExist."""
    return bytes(JobFile.objects.get(job=job, role=FileRole.INPUT).data)


def _keep(job_id: UUID, file: File, *, role: FileRole) -> None:
    JobFile.objects.create(
        job_id=job_id,
        role=role,
        name=file.name[:300],
        media_type=file.media_type,
        size=len(file.data),
        data=file.data,
    )


def _move(lease: Lease, **change: Any) -> None:
    """Inside `slices.commit`: while the job is wanted; else everything in it is rolled back."""
    if not Job.objects.filter(id=lease.job, state__in=[JobState.QUEUED, JobState.RUNNING]).update(**change):
        lease.lost.set()
        raise LeaseLostError(str(lease.slice_id))


def _fail(job_id: UUID, *, code: ErrorCode, reason: str, faults: Sequence[Fault] = ()) -> int:
    told = [
        {"code": one.code.value, "detail": one.message, "line": one.line, "field": one.field}
        for one in faults[:_MOST_FAULTS]
    ]
    JobFile.objects.filter(job=job_id, role=FileRole.INPUT).delete()
    return Job.objects.filter(id=job_id, state__in=[JobState.QUEUED, JobState.RUNNING]).update(
        state=JobState.FAILED, code=code, reason=reason, faults=told, finished_at=Now()
    )
