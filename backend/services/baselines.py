"""Baselines: the runs that a person approved to compare others with. Nothing else makes, replaces or moves one."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from backend.core.configs import fingerprint
from backend.core.errors import ConflictError, NotFoundError
from backend.core.metrics import METRIC_DEFINITIONS_VERSION
from backend.core.states import EvaluationState, RunState
from backend.models import Baseline, Evaluation, Run, Workspace
from backend.services import corpus_snapshots

MAX_LABEL = 200


def subject_of(run: Run) -> str:
    """What a baseline is the baseline of: the set (whatever its version), the scope, and the configuration's name. Not
    the configuration itself: a changed one is what is to be compared."""
    version = run.evaluation.question_set_version
    owner = str(version.question_set_id) if version is not None else run.evaluation.set_name
    return fingerprint([owner, run.evaluation.scope, run.name])


def approve(workspace: Workspace, run_id: UUID, *, approved_by: str, now: datetime, label: str = "") -> Baseline:
    """Make a run the baseline of its subject, and retire the one before. The same run again changes nothing.

    Raises NotFoundError, and ConflictError for a run whose numbers are not whole: not ended, questions without a
    result, documents that changed under it, metrics of another definition.
    """
    try:
        with transaction.atomic():
            run = _locked(workspace, run_id)
            refusal = why_not(run)
            if refusal:
                raise ConflictError(refusal)
            subject = subject_of(run)
            in_force = (
                Baseline.objects.select_for_update()
                .filter(workspace=workspace, subject=subject, retired_at__isnull=True)
                .first()
            )
            if in_force is not None and in_force.run_id == run.id:
                return in_force
            if in_force is not None:
                Baseline.objects.filter(id=in_force.id).update(retired_at=now)
            version = run.evaluation.question_set_version
            made = Baseline.objects.create(
                workspace=workspace,
                run=run,
                question_set_id=None if version is None else version.question_set_id,
                subject=subject,
                name=run.name,
                label=label[:MAX_LABEL] or run.label,
                set_name=run.evaluation.set_name,
                set_hash=run.set_hash,
                metric_definitions=run.metric_definitions,
                code_version=run.code_version,
                primary_metric=run.primary_metric,
                approved_by=approved_by,
                approved_at=now,
            )
    except IntegrityError as error:
        raise ConflictError("Another baseline was approved for this at the same moment: look at it first.") from error
    corpus_snapshots.keep_for(run.evaluation, now=now)
    return made


def retire(workspace: Workspace, baseline_id: UUID, *, now: datetime) -> None:
    """It stays in the history; its run may be tried again and deleted. Raises NotFoundError."""
    found = Baseline.objects.filter(workspace=workspace, id=baseline_id).first()
    if found is None:
        raise NotFoundError("baseline", baseline_id)
    Baseline.objects.filter(id=baseline_id, retired_at__isnull=True).update(retired_at=now)


def why_not(run: Run) -> str:
    """A sentence for a run that cannot be a baseline; empty for one that can."""
    state = run.evaluation.state
    if state != EvaluationState.COMPLETED or run.state != RunState.SCORED:
        said = run.state if state == EvaluationState.COMPLETED else state
        return f"Only a complete run can be a baseline; this one is {said}."
    n = sum(run.counts.get(name, 0) for name in ("n_error", "n_not_run", "n_cancelled"))
    if n:
        return f"{n:,} of {run.counts.get('n_total', 0):,} questions have no result: retry them first."
    if run.corpus_changed:
        return "The documents changed while it ran: run it again over documents that stay as they are."
    if run.metric_definitions != METRIC_DEFINITIONS_VERSION:
        return "Its metrics follow other definitions than today's: run it again."
    return ""


def in_force(workspace: Workspace, runs: Sequence[Run]) -> dict[UUID, Baseline]:
    """The baseline of each run's subject, by the run's id, where there is one."""
    subjects = {run.id: subject_of(run) for run in runs}
    found = Baseline.objects.filter(
        workspace=workspace, subject__in=set(subjects.values()), retired_at__isnull=True
    ).select_related("run__evaluation")
    by_subject = {baseline.subject: baseline for baseline in found}
    return {run_id: by_subject[subject] for run_id, subject in subjects.items() if subject in by_subject}


def _locked(workspace: Workspace, run_id: UUID) -> Run:
    """The run, its evaluation locked: nobody tries it again meanwhile."""
    found = Run.objects.filter(workspace=workspace, id=run_id).values_list("evaluation_id", flat=True).first()
    if found is None or not Evaluation.objects.select_for_update().filter(id=found).exists():
        raise NotFoundError("run", run_id)
    run = Run.objects.select_related("evaluation__question_set_version").filter(id=run_id).first()
    if run is None:
        raise NotFoundError("run", run_id)
    return run
