"""What is in use is not deleted, unless by force: what an open evaluation uses (it is cancelled first), what a schedule
or a baseline is about. The run of a baseline in force is never changed or deleted."""

from django.db.models import QuerySet

from backend.core.errors import ConflictError
from backend.core.states import EvaluationState, SliceKind, SliceState
from backend.models import Baseline, Evaluation, Run, Schedule, Slice
from backend.services import slices

_CANCELLABLE = (EvaluationState.QUEUED, EvaluationState.PREPARING, EvaluationState.RUNNING)


def free(name: str, users: QuerySet[Evaluation], *, force: bool) -> None:
    """Raises ConflictError while there are users; with `force` they are cancelled, as evaluations.cancel does it: the
    sweeper closes what workers still hold. One that is writing its numbers needs neither set nor base any more."""
    ids = list(users.values_list("id", flat=True))
    if not ids:
        return
    if not force:
        raise ConflictError(f"An evaluation of {name!r} is not over yet. Wait, cancel it, or delete with force.")
    Evaluation.objects.filter(id__in=ids, state__in=_CANCELLABLE).update(state=EvaluationState.CANCELLING)
    waiting = Slice.objects.filter(
        evaluation__in=ids,
        evaluation__state=EvaluationState.CANCELLING,
        state__in=[SliceState.PENDING, SliceState.QUEUED],
    ).exclude(kind=SliceKind.AGGREGATE)  # which is what ends one that was cancelled before
    slices.close(list(waiting.values_list("id", flat=True)), SliceState.CANCELLED)


def check_kept(name: str, *, schedules: QuerySet[Schedule], baselines: QuerySet[Baseline], force: bool) -> None:
    """Raises ConflictError while a schedule or a baseline in force is about it. By force they stay: the schedule says
    at its next slot what it lacks, and the baseline is one of a thing that is gone."""
    if force:
        return
    schedule = schedules.order_by("name").first()
    if schedule is not None:
        raise ConflictError(f"The schedule {schedule.name!r} uses {name!r}. Change it first, or delete with force.")
    baseline = baselines.filter(retired_at__isnull=True).order_by("id").first()
    if baseline is not None:
        raise ConflictError(
            f"The baseline {baseline.name!r} ({baseline.set_name}) stands on {name!r}. Retire it first, or delete with "
            "force."
        )


def check_no_baseline(runs: QuerySet[Run]) -> None:
    """Raises ConflictError where one of these runs is a baseline in force: its numbers are what others are held to."""
    found = Baseline.objects.filter(run__in=runs, retired_at__isnull=True).order_by("id").first()
    if found is not None:
        raise ConflictError(
            f"The run {found.name!r} ({found.set_name}) is a baseline: retire that first, or approve another run."
        )
