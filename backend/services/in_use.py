"""What an open evaluation uses is not deleted under it, unless by force: then the evaluation is cancelled first."""

from django.db.models import QuerySet

from backend.core.errors import ConflictError
from backend.core.states import EvaluationState, SliceState
from backend.models import Evaluation, Slice
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
    )
    slices.close(list(waiting.values_list("id", flat=True)), SliceState.CANCELLED)
