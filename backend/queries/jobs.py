"""Jobs as API and commands show them: state, progress and result; never what they were given to work on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.core.errors import NotFoundError
from backend.core.states import OPEN_JOBS, FileRole
from backend.models import Job, JobFile, Run, Workspace
from backend.queries.lookups import get


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """The file that a job made."""

    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """`n_total` is 0 while nobody knows it. `code`, `reason` and `errors` (each fault of a refused input) say why it
    failed; `result` is there once it is completed. `tag` changes whenever anything else does."""

    id: UUID
    kind: str
    state: str
    is_final: bool
    n_done: int
    n_total: int
    result: Mapping[str, Any]
    file: FileRow | None
    code: str
    reason: str
    errors: Sequence[Mapping[str, Any]]
    created_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    tag: str


def of(workspace: Workspace, *, kind: str = "", state: str = "") -> QuerySet[Job]:
    rows = Job.objects.filter(workspace=workspace).defer("payload")
    if kind:
        rows = rows.filter(kind=kind)
    return rows.filter(state=state) if state else rows


def look(workspace: Workspace, key: object) -> JobRow:
    """Two queries. Raises NotFoundError."""
    return rows([get(of(workspace), key, what="job")])[0]


def rows(found: Sequence[Job]) -> list[JobRow]:
    """One query for the files of all."""
    files = {
        job_id: FileRow(name=name, media_type=media_type, size=size)
        for job_id, name, media_type, size in JobFile.objects.filter(
            job__in=[job.id for job in found], role=FileRole.OUTPUT
        ).values_list("job_id", "name", "media_type", "size")
    }
    return [
        JobRow(
            id=job.id,
            kind=job.kind,
            state=job.state,
            is_final=job.state not in OPEN_JOBS,
            n_done=job.n_done,
            n_total=job.n_total,
            result=job.result,
            file=files.get(job.id),
            code=job.code,
            reason=job.reason,
            errors=job.faults,
            created_by=job.created_by,
            created_at=job.created_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
            tag=_tag(job),
        )
        for job in found
    ]


def run_of(workspace: Workspace, key: object) -> UUID | None:
    """The run that the job is about, or that it made, if any and still there. Raises NotFoundError."""
    job = get(Job.objects.filter(workspace=workspace), key, what="job")
    told = job.result.get("run") or job.payload.get("run")
    runs = Run.objects.filter(workspace=workspace, id=told) if told else Run.objects.none()
    return runs.values_list("id", flat=True).first()


def file_of(workspace: Workspace, key: object) -> tuple[FileRow, bytes]:
    """What the job made. Raises NotFoundError when there is no such job, or no file of it (yet)."""
    job = get(of(workspace), key, what="job")
    made = JobFile.objects.filter(job=job, role=FileRole.OUTPUT).first()
    if made is None:
        raise NotFoundError("file of job", job.id)
    return FileRow(name=made.name, media_type=made.media_type, size=made.size), bytes(made.data)


def _tag(job: Job) -> str:
    told = [job.id, job.state, job.n_done, job.n_total, job.started_at, job.finished_at]
    return hashlib.sha256("|".join(str(part) for part in told).encode()).hexdigest()[:24]
