"""The service's state in numbers, from its rows: what an operator watches and alarms on (docs/operations.md)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A figure by its labels. `name` without prefix; times in seconds."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    values: dict[tuple[str, ...], float] = field(default_factory=dict)


_QUERIES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (
        "slices",
        "Slices that are open, by state, kind and lane.",
        ("state", "kind", "lane"),
        """
        SELECT state, kind, lane, count(*) FROM backend_slice
        WHERE state IN ('pending', 'queued', 'leased') GROUP BY 1, 2, 3
        """,
    ),
    (
        "slice_wait_seconds",
        "Age of the oldest slice that is handed out and not taken, by lane. High: too few workers, or lost messages.",
        ("lane",),
        "SELECT lane, EXTRACT(epoch FROM now() - min(queued_at)) FROM backend_slice WHERE state = 'queued' GROUP BY 1",
    ),
    (
        "leases_overdue",
        "Leases that ran out and were not taken back yet. Above 0 for long: nobody sweeps.",
        (),
        "SELECT count(*) FROM backend_slice WHERE state = 'leased' AND lease_until < now()",
    ),
    (
        "doorbells_rung_again",
        "Doorbells rung again for open slices. Rising steadily: the broker loses messages.",
        ("lane",),
        """
        SELECT lane, sum(n_rings) FROM backend_slice
        WHERE state IN ('pending', 'queued', 'leased') AND n_rings > 0 GROUP BY 1
        """,
    ),
    (
        "slice_deaths",
        "Workers that died over slices that are open.",
        ("kind",),
        """
        SELECT kind, sum(deaths) FROM backend_slice
        WHERE state IN ('pending', 'queued', 'leased') AND deaths > 0 GROUP BY 1
        """,
    ),
    (
        "slices_quarantined",
        "Open slices in quarantine: their worker died at least twice.",
        (),
        "SELECT count(*) FROM backend_slice WHERE state IN ('pending', 'queued', 'leased') AND quarantined",
    ),
    (
        "evaluations",
        "Evaluations that have not ended, by state.",
        ("state",),
        """
        SELECT state, count(*) FROM backend_evaluation
        WHERE state NOT IN ('completed', 'failed', 'cancelled') GROUP BY 1
        """,
    ),
    (
        "evaluation_age_seconds",
        "Age of the oldest evaluation in each state that is not an end.",
        ("state",),
        """
        SELECT state, EXTRACT(epoch FROM now() - min(created_at)) FROM backend_evaluation
        WHERE state NOT IN ('completed', 'failed', 'cancelled') GROUP BY 1
        """,
    ),
    (
        "ingestions",
        "Ingestions that have not ended, by state.",
        ("state",),
        "SELECT state, count(*) FROM backend_ingestion WHERE state IN ('queued', 'running') GROUP BY 1",
    ),
    (
        "jobs",
        "Jobs that have not ended, by kind and state.",
        ("kind", "state"),
        """
        SELECT kind, state, count(*) FROM backend_job
        WHERE state IN ('queued', 'running', 'cancelling') GROUP BY 1, 2
        """,
    ),
    (
        "providers_stalled",
        "Providers that failed 20 times in a row and are being probed.",
        (),
        "SELECT count(*) FROM backend_providerstate WHERE stalled_at IS NOT NULL",
    ),
    (
        "provider_hold_seconds",
        "The longest time that a provider still asks us to wait (Retry-After).",
        (),
        """
        SELECT COALESCE(max(EXTRACT(epoch FROM hold_until - now())), 0) FROM backend_providerstate
        WHERE hold_until > now()
        """,
    ),
    (
        "pulse_age_seconds",
        "Time since something last showed life: the sweeper, each worker of the last day.",
        ("name",),
        "SELECT name, EXTRACT(epoch FROM now() - at) FROM backend_pulse WHERE at > now() - interval '1 day'",
    ),
    (
        "worker_slots",
        "Slots of the workers seen in the last minute, by lane.",
        ("lane",),
        "SELECT lane, sum(slots) FROM backend_pulse WHERE lane <> '' AND at > now() - interval '60 seconds' GROUP BY 1",
    ),
)


def read() -> Iterator[Gauge]:
    """Each figure by one small query over open rows: the cost does not grow with the history."""
    for name, help_, labels, sql in _QUERIES:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            values = {tuple(str(part) for part in row[:-1]): float(row[-1]) for row in cursor.fetchall()}
        yield Gauge(name=name, help=help_, labels=labels, values=values)
