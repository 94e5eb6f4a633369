"""Which workers have shown life lately."""

from collections.abc import Iterable

from django.db import connection

from backend.core.states import Lane

FRESH_SECONDS = 60


def silent_lanes(lanes: Iterable[Lane] = tuple(Lane), *, seconds: float = FRESH_SECONDS) -> list[Lane]:
    """Those of these lanes that no worker has shown life in."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT lane FROM backend_pulse WHERE lane <> '' AND at > now() - make_interval(secs => %s)",
            [seconds],
        )
        alive = {row[0] for row in cursor.fetchall()}
    return [lane for lane in lanes if lane.value not in alive]
