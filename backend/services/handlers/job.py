"""`job`: what each kind of job does.

A handler gets its lease and its job, and returns the result. One with writes of its own makes them in
`jobs.finishing(lease)` and returns None. It may run twice, after a worker's death: what it wrote before its end must
bear that, or be kept by `jobs.progress(..., payload=...)`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backend import logs
from backend.core.errors import Fault, TouchstoneError
from backend.core.states import JobKind
from backend.models import Job
from backend.providers.base import ProviderError
from backend.services import drafting, jobs, long_jobs, slices, surveys
from backend.services.handlers import closing, delivering
from backend.services.slices import Lease

Handler = Callable[[Lease, Job], Mapping[str, Any] | None]

HANDLERS: dict[JobKind, Handler] = {
    JobKind.PREFLIGHT: long_jobs.run_preflight,
    JobKind.COMPARISON: long_jobs.run_comparison,
    JobKind.RESCORE: long_jobs.run_rescore,
    JobKind.IMPORT: long_jobs.run_import,
    JobKind.EXPORT: long_jobs.run_export,
    JobKind.GENERATE: drafting.run,
    JobKind.GATE: closing.run,
    JobKind.SURVEY: surveys.handle,
    JobKind.ALERT: delivering.run,
}
# A worker of the release before does not know every kind: one of the next will.
_UNKNOWN_WAIT_SECONDS = 10.0
_log = logs.get("job")


def run(lease: Lease) -> None:
    """An expected failure ends the job with its code; a provider's that may pass is tried again as in any slice."""
    job = jobs.begin(lease)
    handler = HANDLERS.get(JobKind(job.kind)) if job.kind in set(JobKind) else None
    if handler is None:
        _log.warning("job_kind_unknown", job=str(job.id), job_kind=job.kind)
        slices.release(lease, wait_seconds=_UNKNOWN_WAIT_SECONDS)
        return
    try:
        result = handler(lease, job)
    except jobs.LaterError as later:
        slices.release(lease, wait_seconds=later.wait_seconds, used_try=later.used_try)
        return
    except TouchstoneError as error:
        jobs.fail(lease, code=error.code, reason=error.message, faults=_faults(error))
        return
    except ProviderError as error:
        if error.retryable and not error.fatal:
            raise
        jobs.fail(lease, code=error.code, reason=error.message)
        return
    # One that returns nothing may have ended its slice, or given it back, by itself.
    if result is not None or slices.is_held(lease):
        jobs.finish(lease, result)


def _faults(error: TouchstoneError) -> Sequence[Fault]:
    """All of them; of one that stands alone, where it is."""
    if error.faults or (error.line is None and error.field is None):
        return error.faults
    return [Fault(code=error.code, message=error.message, line=error.line, field=error.field)]
