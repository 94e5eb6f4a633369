"""What a run's page tells beyond its record: causes, funnel, tags, advice. Made once, kept with the run.

Each costs a pass over the run's rows, so a page must not make them again at every look, nor a nightly run make them
for nobody. They are made when somebody first asks: at once for a small run, by a Job for a large one.
"""

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from backend.core.states import OPEN_JOBS, JobKind, JobState, Lane
from backend.models import Job, Run, Workspace
from backend.queries import runs as run_queries
from backend.queries import tag_figures
from backend.queries.runs import SURVEY
from backend.services import advising, diagnoses, jobs
from backend.services.slices import Lease

VERSION: Final = 1
MOST_AT_ONCE = 1000
MOST_TAGS, MOST_LOST = 50, 100
_FAILURE_STANDS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`survey` None: it is being made by `job`, or the run has not ended, or its rankings are gone. `job` that failed
    says why in its reason."""

    survey: dict[str, Any] | None
    job: Job | None = None


def of(workspace: Workspace, run: Run) -> Asked:
    """The kept one, else made now (a second for 1,000 questions) or by a Job. Without a query where it is kept."""
    found = kept(run)
    if found is not None or not run_queries.is_final(run) or not run.counts or run.pruned_at is not None:
        return Asked(survey=found)
    if run.evaluation.n_questions <= MOST_AT_ONCE:
        return Asked(survey=make(run))
    return Asked(survey=None, job=_job(workspace, run))


def kept(run: Run) -> dict[str, Any] | None:
    """That of this closing of the evaluation: a retry writes new counts, and the old survey goes with the old ones."""
    found: dict[str, Any] | None = run.counts.get(SURVEY)
    return found if found is not None and found["version"] == VERSION else None


def handle(_: Lease, job: Job) -> dict[str, Any]:
    """A job's work. A run that is gone, or has begun anew, needs no survey."""
    run = run_queries.of(job.workspace).filter(id=UUID(job.payload["run"])).first()
    if run is not None and run_queries.is_final(run) and kept(run) is None:
        make(run)
    return {"run": job.payload["run"]}


def make(run: Run) -> dict[str, Any]:
    """Reads every ranking and judged list of the run; kept unless it was closed anew meanwhile."""
    told = diagnoses.survey(run, most=MOST_LOST)
    summary = told.summary
    figures = tag_figures.of(run, metrics=[run.primary_metric])
    by_tag = sorted(figures.by_tag, key=lambda one: (-one.n_questions, one.tag))[:MOST_TAGS]
    groups = [*by_tag, *([figures.untagged] if figures.untagged is not None and by_tag else [])]
    losses = {**summary.by_tag, "": summary.untagged}
    made: dict[str, Any] = {
        "version": VERSION,
        "k": summary.k,
        "n": summary.overall.n,
        "n_missed": summary.overall.n_missed,
        "n_wrong_passage": summary.overall.n_wrong_passage,
        "causes": {cause.value: n for cause, n in summary.overall.causes.items()},
        "lost": {cause: list(ordinals) for cause, ordinals in told.lost.items()},
        "corpus_changed": told.corpus_changed,
        "ceiling": summary.ceiling,
        "recall": summary.recall,
        "lift": None if summary.lift is None else asdict(summary.lift),
        "funnel": None if summary.funnel is None else asdict(summary.funnel),
        "n_tags": figures.n_tags,
        "by_tag": [
            {
                "tag": one.tag,
                "n_questions": one.n_questions,
                "n_missed": None if (lost := losses.get(one.tag)) is None else lost.n_missed,
                "metric": one.metrics[run.primary_metric],
            }
            for one in groups
        ],
        "must_pass": asdict(figures.must_pass),
        "unanswerable": asdict(figures.unanswerable),
        "advice": [asdict(one) for one in advising.of(run)],
    }
    made = json.loads(json.dumps(made))
    _keep(run, made)
    return made


def _keep(run: Run, made: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE backend_run r SET counts = r.counts || jsonb_build_object(%s::text, %s::jsonb)
            FROM backend_evaluation e
            WHERE e.id = r.evaluation_id AND r.id = %s AND e.revision = %s AND r.state = %s
            """,
            [SURVEY, json.dumps(made), run.id, run.evaluation.revision, run.state],
        )


def _job(workspace: Workspace, run: Run) -> Job:
    """The one that is at it, one that has failed of late, or a new one."""
    payload = {"run": str(run.id), "revision": run.evaluation.revision}
    found = (
        Job.objects.filter(workspace=workspace, kind=JobKind.SURVEY, payload=payload)
        .filter(Q(state__in=OPEN_JOBS) | Q(state=JobState.FAILED, created_at__gte=timezone.now() - _FAILURE_STANDS))
        .order_by("-created_at")
        .first()
    )
    return found or jobs.start(workspace, JobKind.SURVEY, payload, lane=Lane.SEARCH, n_total=run.evaluation.n_questions)
