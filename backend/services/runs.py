"""Runs once they are there: labelled, pinned, deleted."""

from uuid import UUID

from django.db import transaction

from backend.core.errors import ConflictError, ErrorCode, Fault, NotFoundError, ValidationError
from backend.core.states import OPEN_EVALUATIONS, OPEN_SLICES, EvaluationState, SliceKind, SliceState
from backend.models import Baseline, Evaluation, Run, Slice, Workspace
from backend.services import evaluations, in_use, slices

MAX_LABEL = 200


def update(workspace: Workspace, run_id: UUID, *, label: str | None = None, pinned: bool | None = None) -> Run:
    """Change what is given. Raises NotFoundError, ValidationError."""
    if label is not None and (len(label) > MAX_LABEL or "\x00" in label):
        message = f"label is a text of at most {MAX_LABEL} characters."
        raise ValidationError(
            message, field="label", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="label")]
        )
    changes = {name: value for name, value in (("label", label), ("pinned", pinned)) if value is not None}
    if changes and not Run.objects.filter(workspace=workspace, id=run_id).update(**changes):
        raise NotFoundError("run", run_id)
    run = Run.objects.filter(workspace=workspace, id=run_id).first()
    if run is None:
        raise NotFoundError("run", run_id)
    return run


def delete(workspace: Workspace, run_id: UUID, *, force: bool = False) -> None:
    """Delete a run with its results, and its evaluation with the last of its runs.

    Raises ConflictError while the evaluation is open; `force` cancels it first (but waits for none that is writing
    its numbers just now).
    """
    run = Run.objects.filter(workspace=workspace, id=run_id).select_related("evaluation").first()
    if run is None:
        raise NotFoundError("run", run_id)
    in_use.check_no_baseline(Run.objects.filter(id=run.id))
    if run.evaluation.state in OPEN_EVALUATIONS:
        if not force:
            raise ConflictError(
                f"The run's evaluation is {run.evaluation.state}: wait until it has ended, or delete with force, which "
                "cancels it."
            )
        evaluations.cancel(workspace, run.evaluation_id)
        _take_leases_away(run.evaluation_id)
    with transaction.atomic():
        evaluation = Evaluation.objects.select_for_update().get(id=run.evaluation_id)
        if evaluation.state in OPEN_EVALUATIONS and evaluation.state != EvaluationState.CANCELLING:
            raise ConflictError(f"The run's evaluation is {evaluation.state} again: wait until it has ended.")
        in_use.check_no_baseline(Run.objects.filter(id=run.id))
        # What it was the baseline of, once.
        Baseline.objects.filter(run=run).delete()
        run.delete()
        is_last = not evaluation.runs.exists()
        if is_last:
            evaluation.delete()
    if not is_last:
        evaluations.advance(run.evaluation_id)


def _take_leases_away(evaluation_id: UUID) -> None:
    """So that no worker writes a result of the run that goes: its commit finds the lease lost. Before the evaluation
    is locked: a commit locks its slice first, and then the evaluation."""
    held = Slice.objects.filter(evaluation=evaluation_id, state__in=OPEN_SLICES).exclude(kind=SliceKind.AGGREGATE)
    slices.close(list(held.values_list("id", flat=True)), SliceState.CANCELLED)
