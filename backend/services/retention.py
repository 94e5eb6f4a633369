"""Old evaluations keep their numbers and lose their rankings and snippets (docs/nightly.md).

Of each knowledge base the last KEEP_EVALUATIONS stay whole; runs that are pinned or a baseline in force always do. What
is left of the others (metrics, and each question's judged list and first rank) is what comparisons need.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from backend.core.errors import ConflictError
from backend.core.states import TERMINAL
from backend.models import Answer, Evaluation, Result, Run

_BATCH = 5000


# Days in which what a broken attempt left is looked for.
_AGAIN_DAYS = 7


def prune(*, now: datetime) -> int:
    """A run is marked first, so that nothing takes it for whole while its rankings go in batches; what a break leaves
    goes the next time. Returns how many runs were marked."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT r.id, r.evaluation_id FROM backend_run r
            JOIN (
                SELECT e.id, row_number() OVER (
                    PARTITION BY e.workspace_id, base.id ORDER BY e.created_at DESC, e.id DESC) AS place
                FROM backend_evaluation e
                LEFT JOIN LATERAL (
                    SELECT knowledge_base_id AS id FROM backend_run WHERE evaluation_id = e.id LIMIT 1) base ON true
                WHERE e.state IN ('completed', 'failed', 'cancelled')
            ) ranked ON ranked.id = r.evaluation_id
            WHERE ranked.place > %s AND r.pruned_at IS NULL AND NOT r.pinned AND NOT EXISTS (
                SELECT 1 FROM backend_baseline b WHERE b.run_id = r.id AND b.retired_at IS NULL)
            ORDER BY r.id LIMIT 1000
            """,
            [settings.KEEP_EVALUATIONS],
        )
        marked = [run_id for run_id, evaluation_id in cursor.fetchall() if _mark(run_id, evaluation_id, now=now)]
    for run_id in marked + _left(besides=marked, now=now):
        while True:
            some = Result.objects.filter(run=run_id).exclude(ranking=[], cut=[]).values_list("id", flat=True)[:_BATCH]
            if not Result.objects.filter(id__in=list(some)).update(ranking=[], cut=[]):
                break
        # Of judged answers the scores stay, and what was written goes.
        Answer.objects.filter(run=run_id).update(text="", claims=[], passages=[], replies=[])
    return len(marked)


def _mark(run_id: UUID, evaluation_id: UUID, *, now: datetime) -> bool:
    """False for one that is tried again, or was pinned, just now."""
    with transaction.atomic():
        ended = Evaluation.objects.select_for_update(no_key=True).filter(id=evaluation_id, state__in=TERMINAL)
        return bool(ended) and Run.objects.filter(id=run_id, pinned=False).update(pruned_at=now) == 1


def _left(*, besides: Sequence[UUID], now: datetime) -> list[UUID]:
    recent = Run.objects.filter(pruned_at__gt=now - timedelta(days=_AGAIN_DAYS)).exclude(id__in=besides)
    whole = Result.objects.filter(run=OuterRef("id")).exclude(ranking=[], cut=[])
    return list(recent.filter(Exists(whole)).values_list("id", flat=True))


def check_whole(*runs: Run) -> None:
    """Raises ConflictError where rankings are asked for that are gone."""
    for run in runs:
        if run.pruned_at is not None:
            raise ConflictError(
                f"The rankings of this run were removed on {run.pruned_at:%Y-%m-%d}, since {settings.KEEP_EVALUATIONS} "
                "newer evaluations of its base are kept whole. Its figures stay. Pin a run to keep all of it."
            )
