"""Old evaluations keep their numbers and lose their rankings and snippets (docs/nightly.md).

Of each knowledge base the last KEEP_EVALUATIONS stay whole; runs that are pinned or a baseline in force always do. What
is left of the others (metrics, and each question's judged list and first rank) is what comparisons need.
"""

from datetime import datetime

from django.conf import settings
from django.db import connection

from backend.core.errors import ConflictError
from backend.models import Answer, Result, Run

_BATCH = 5000


def prune(*, now: datetime) -> int:
    """The rankings of a run go in batches; it is marked when none is left, so that a break costs nothing. Returns how
    many runs were pruned."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT r.id FROM backend_run r
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
        ids = [row[0] for row in cursor.fetchall()]
    for run_id in ids:
        while True:
            some = Result.objects.filter(run=run_id).exclude(ranking=[], cut=[]).values_list("id", flat=True)[:_BATCH]
            if not Result.objects.filter(id__in=list(some)).update(ranking=[], cut=[]):
                break
        # Of judged answers the scores stay, and what was written goes.
        Answer.objects.filter(run=run_id).update(text="", claims=[], passages=[], replies=[])
        Run.objects.filter(id=run_id).update(pruned_at=now)
    return len(ids)


def check_whole(*runs: Run) -> None:
    """Raises ConflictError where rankings are asked for that are gone."""
    for run in runs:
        if run.pruned_at is not None:
            raise ConflictError(
                f"The rankings of this run were removed on {run.pruned_at:%Y-%m-%d}, since {settings.KEEP_EVALUATIONS} "
                "newer evaluations of its base are kept whole. Its figures stay. Pin a run to keep all of it."
            )
