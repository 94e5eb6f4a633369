"""What can outlast a request, as jobs: preflight, comparison, re-scoring, import and export of large sets.

Each is begun here and worked on here; what comes of it is what the address gives at once for a small set: a document
(the job's file) or a run (`result["run"]`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from backend.core.states import FileRole, JobKind, JobState, Lane
from backend.models import Job, JobFile, QuestionSetVersion, Run, Workspace
from backend.queries import comparisons, questions
from backend.queries.comparisons import Asked, Compared
from backend.services import exporting, importing, jobs, preflight, rescoring
from backend.services.jobs import File
from backend.services.preflight import Report
from backend.services.slices import Lease

# Above so many questions it is a job.
MOST_AT_ONCE = 5000
_FAILURE_STANDS = timedelta(minutes=10)
_JSON = "application/json"


def is_long(n_questions: int) -> bool:
    return n_questions > MOST_AT_ONCE


# ---- preflight
def start_preflight(
    workspace: Workspace, version: QuestionSetVersion, scope: Mapping[str, Any], *, created_by: str
) -> Job:
    payload = {"set": str(version.question_set_id), "version": version.number, "scope": dict(scope)}
    return _start(workspace, JobKind.PREFLIGHT, payload, created_by=created_by, n_total=version.n_questions)


def run_preflight(lease: Lease, job: Job) -> None:
    question_set = questions.get_set(job.workspace, job.payload["set"])
    version = questions.get_version(question_set, job.payload["version"])
    report = preflight.run(job.workspace, version, job.payload["scope"])
    jobs.finish(lease, file=_document("preflight.json", preflight_as_json(report)))


def preflight_as_json(report: Report) -> dict[str, Any]:
    told: dict[str, Any] = _plain(report)
    return told


# ---- comparison
def start_comparison(workspace: Workspace, asked: Asked, *, created_by: str) -> Job:
    n_total = asked.n_questions
    return _start(workspace, JobKind.COMPARISON, _comparison(asked), created_by=created_by, n_total=n_total)


def _comparison(asked: Asked) -> dict[str, Any]:
    return {
        "baseline": str(asked.runs[0].id),
        "candidates": [str(run.id) for run in asked.runs[1:]],
        "primary_metric": str(asked.primary),
        "margin": asked.margin,
    }


def comparison_of(workspace: Workspace, asked: Asked, *, created_by: str) -> Job:
    """The latest job with this comparison that was begun when these runs were as they are now, else a new one: for a
    page that is looked at again and again. One that failed is tried again after ten minutes."""
    payload = _comparison(asked)
    since = max((run.finished_at for run in asked.runs if run.finished_at is not None), default=None)
    found = Job.objects.filter(workspace=workspace, kind=JobKind.COMPARISON, payload=payload)
    found = found.exclude(state__in=[JobState.CANCELLING, JobState.CANCELLED])
    found = found.exclude(state=JobState.FAILED, created_at__lt=timezone.now() - _FAILURE_STANDS)
    if since is not None:
        found = found.filter(created_at__gte=since)
    return found.order_by("-id").first() or start_comparison(workspace, asked, created_by=created_by)


def compared_by(job: Job) -> dict[str, Any] | None:
    """What came of a comparison's job; None before its end."""
    file = JobFile.objects.filter(job=job, role=FileRole.OUTPUT).first()
    told: dict[str, Any] | None = None if file is None else json.loads(bytes(file.data))
    return told


def run_comparison(lease: Lease, job: Job) -> None:
    compared = comparisons.compare(job.workspace, **job.payload)
    jobs.finish(lease, file=_document("comparison.json", comparison_as_json(compared)))


def comparison_as_json(compared: Compared) -> dict[str, Any]:
    """The answer of `POST comparisons`."""
    told = compared.comparison
    rows = [_plain(run) for run in compared.runs]
    return {
        "baseline": rows[0],
        "primary_metric": told.primary_metric,
        "seed": told.seed,
        "margin": told.margin,
        "candidates": [
            {
                "run": row,
                **_plain(candidate.decision),
                "primary": None if candidate.primary is None else _plain(candidate.primary),
                "others": _plain(candidate.others),
                "by_tag": [{"tag": one.tag, **_plain(one.paired)} for one in tags],
                "transitions": None if candidate.transitions is None else _plain(candidate.transitions),
                "deltas": [{**_plain(one), "question": compared.texts.get(one.key)} for one in candidate.deltas],
                "warnings": list(candidate.warnings),
            }
            for row, candidate, tags in zip(rows[1:], told.candidates, compared.by_tag, strict=True)
        ],
    }


# ---- re-scoring
def start_rescore(workspace: Workspace, source: Run, request: rescoring.Request, *, created_by: str) -> Job:
    payload = {"run": str(source.id), "request": _plain(request)}
    n_total = source.evaluation.n_questions
    return _start(workspace, JobKind.RESCORE, payload, created_by=created_by, n_total=n_total)


def run_rescore(lease: Lease, job: Job) -> None:
    wanted = rescoring.Request(**job.payload["request"])
    source = UUID(job.payload["run"])
    _made(lease, lambda now: rescoring.rescore(job.workspace, source, wanted, now=now))


# ---- import
def start_import(
    workspace: Workspace,
    request: importing.Request,
    *,
    data: bytes | None = None,
    items: Sequence[Any] | None = None,
    n_questions: int,
    created_by: str,
) -> Job:
    content = json.dumps(items).encode() if items is not None else data or b""
    file = File(name=request.filename, media_type=_JSON if items is not None else "", data=content)
    payload = {"request": _plain(request), "is_body": items is not None}
    return _start(workspace, JobKind.IMPORT, payload, created_by=created_by, n_total=n_questions, file=file)


def run_import(lease: Lease, job: Job) -> None:
    wanted = importing.Request(**job.payload["request"])
    given = jobs.input_of(job)
    content: dict[str, Any] = {"items": json.loads(given)} if job.payload["is_body"] else {"data": given}
    _made(lease, lambda now: importing.import_run(job.workspace, wanted, **content, now=now))


# ---- export
def start_export(workspace: Workspace, run: Run, *, form: str, baseline: str, created_by: str) -> Job:
    """One that is open, or was made of the same numbers, is used again: asking again is how a caller looks for it."""
    payload = {"run": str(run.id), "form": form, "baseline": baseline, "of": _of(run)}
    same = Job.objects.filter(workspace=workspace, kind=JobKind.EXPORT, payload=payload)
    usable = same.exclude(state__in=[JobState.FAILED, JobState.CANCELLING, JobState.CANCELLED])
    found = usable.order_by("-id").first()
    if found is not None:
        return found
    n_total = run.evaluation.n_questions
    return _start(workspace, JobKind.EXPORT, payload, created_by=created_by, n_total=n_total)


def run_export(lease: Lease, job: Job) -> None:
    wanted = job.payload
    made = exporting.export(job.workspace, wanted["run"], form=wanted["form"], baseline=wanted["baseline"])
    pieces = []
    for n, piece in enumerate(made.text):
        pieces.append(piece.encode())
        if n % 1000 == 0:
            lease.check()
    jobs.finish(lease, file=File(name=made.filename, media_type=made.media_type, data=b"".join(pieces)))


def _of(run: Run) -> list[Any]:
    """What an export may show and somebody may change."""
    return [run.evaluation.revision, run.state, run.label, run.pinned]


def _start(
    workspace: Workspace,
    kind: JobKind,
    payload: Mapping[str, Any],
    *,
    created_by: str,
    n_total: int,
    file: File | None = None,
) -> Job:
    # Computing, mostly: the lane of the workers that have a core each.
    return jobs.start(workspace, kind, payload, lane=Lane.SEARCH, created_by=created_by, n_total=n_total, file=file)


def _made(lease: Lease, make: Callable[[datetime], Run]) -> None:
    """The run and the job's end in one transaction, whose slice is locked at its end only: a run of a job that was
    cancelled meanwhile, or given to another worker, is rolled back."""
    with transaction.atomic():
        run = make(timezone.now())
        with jobs.finishing(lease) as result:
            result["run"] = str(run.id)


def _document(name: str, value: Any) -> File:
    return File(name=name, media_type=_JSON, data=json.dumps(value, ensure_ascii=False).encode())


def _plain(value: Any) -> Any:
    """Plain JSON values, written as the API writes them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(one) for name, one in asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    return str(value) if isinstance(value, UUID) else value
