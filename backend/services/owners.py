"""The evaluation row as a lock: children are born only under it, so that cancel and completion see all of them."""

from uuid import UUID

from django.db import connection


def is_open(evaluation_id: UUID, *, epoch: int) -> bool:
    """Lock the evaluation FOR SHARE and tell whether it still wants children; inside a slice's commit.

    Cancel locks it FOR UPDATE, so either it sees the child or the child is not born. A commit that is told False
    inserts none: whoever closes the evaluation writes the rows they owed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT state, epoch FROM backend_evaluation WHERE id = %s FOR SHARE", [evaluation_id])
        row = cursor.fetchone()
    return row is not None and row[0] in {"preparing", "running"} and row[1] == epoch
