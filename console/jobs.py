"""What works in the background beside evaluations: all of it, one with what it made; the export of a run."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect, render

from backend.core.states import JobKind
from backend.queries import exports, jobs, runs
from backend.queries.jobs import JobRow
from backend.services import long_jobs
from console import paging
from console.access import PageRequest, page

_WORDS = {
    JobKind.PREFLIGHT: "check of labels",
    JobKind.COMPARISON: "comparison of runs",
    JobKind.RESCORE: "run scored again",
    JobKind.IMPORT: "import of a run",
    JobKind.EXPORT: "export of a run",
    JobKind.GENERATE: "questions from documents",
    JobKind.GATE: "gate's check",
    JobKind.ALERT: "message of an alert",
    JobKind.SURVEY: "where questions were lost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """`said`: what kind of work it is, in words. `percent` None while nobody knows how much there is."""

    job: JobRow
    said: str
    percent: str | None


@page()
def every(request: PageRequest) -> HttpResponse:
    rows = paging.cut(request, jobs.of(request.workspace))
    return render(request, "jobs/list.html", {"rows": rows, "shown": [_shown(one) for one in jobs.rows(rows.rows)]})


@page()
def one(request: PageRequest, job_id: str) -> HttpResponse:
    """Changes by itself until its end, and then has what was made."""
    found = jobs.look(request.workspace, job_id)
    run = jobs.run_of(request.workspace, found.id)
    return render(request, "jobs/job.html", {"shown": _shown(found), "run": run})


@page()
def export(request: PageRequest, run_id: str) -> HttpResponse:
    """A run as a file: at once, or by a job where it has many questions. Asking again finds that job."""
    run = runs.get_run(request.workspace, run_id)
    form = exports.form_of(request.GET.get("format") or exports.Format.JSON)
    if not long_jobs.is_long(run.evaluation.n_questions):
        return redirect(f"/api/v1/runs/{run.id}/export?format={form.value}")
    exports.check_writable(run, form)
    job = long_jobs.start_export(
        request.workspace, run, form=form.value, baseline="", created_by=f"user:{request.user.pk}"
    )
    return redirect("job", job.id)


def _shown(job: JobRow) -> Shown:
    known = job.n_total and job.n_done
    percent = f"{min(100, 100 * job.n_done / job.n_total):.0f}" if known else None
    return Shown(job=job, said=_WORDS[JobKind(job.kind)], percent=percent)
