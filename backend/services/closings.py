"""An evaluation of a schedule has ended: gates are to be checked and alerts told. A job, inserted by the commit that
ends it, so that a crash right after loses none."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from backend.core.states import OPEN_JOBS, TERMINAL, FiringState, JobKind, Lane
from backend.models import Evaluation, Firing, Job
from backend.services import jobs

# How long a closing may go without its checks before the tick asks again.
_LATE_SECONDS = 60.0


def announce(evaluation_id: UUID) -> None:
    """Inside the transaction that ends an evaluation. Nothing for one that no schedule started."""
    firing = Firing.objects.filter(evaluation=evaluation_id, state=FiringState.STARTED).first()
    if firing is not None:
        evaluation = Evaluation.objects.select_related("workspace").get(id=evaluation_id)
        jobs.start(evaluation.workspace, JobKind.GATE, {"evaluation": str(evaluation_id)}, lane=Lane.SEARCH)


def repair() -> int:
    """Closings whose checks are late and that no open job is about: a job that failed, or one that was never there."""
    late = (
        Firing.objects.filter(
            state=FiringState.STARTED,
            evaluation__state__in=TERMINAL,
            evaluation__finished_at__lt=Now() - timedelta(seconds=_LATE_SECONDS),
        )
        .filter(Q(checked_revision__lt=F("evaluation__revision")) | Q(checked_revision=-1))
        .values_list("evaluation_id", flat=True)
    )
    n = 0
    for evaluation_id in list(late[:20]):
        with transaction.atomic():
            recent = Job.objects.filter(kind=JobKind.GATE, payload__evaluation=str(evaluation_id)).filter(
                Q(state__in=OPEN_JOBS) | Q(created_at__gt=Now() - timedelta(seconds=_LATE_SECONDS))
            )
            if evaluation_id is not None and not recent.exists():
                announce(evaluation_id)
                n += 1
    return n
