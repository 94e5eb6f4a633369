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


_MONTH = "date_trunc('month', now() AT TIME ZONE 'UTC')::date"
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
        "slices_rung_again",
        "Doorbells rung again for the slices that are open now.",
        ("lane",),
        """
        SELECT lane, sum(n_rings) FROM backend_slice
        WHERE state IN ('pending', 'queued', 'leased') AND n_rings > 0 GROUP BY 1
        """,
    ),
    (
        "slices_tried",
        "Open slices that were tried before, by how often: of 4 attempts the last one decides.",
        ("tries",),
        """
        SELECT tries, count(*) FROM backend_slice
        WHERE state IN ('pending', 'queued', 'leased') AND tries > 0 GROUP BY 1
        """,
    ),
    (
        "slices_delayed",
        "Slices that wait for their time (a provider's pause, a limit, a retry), by kind.",
        ("kind",),
        "SELECT kind, count(*) FROM backend_slice WHERE state = 'pending' AND not_before > now() GROUP BY 1",
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
        "evaluation_overdue_seconds",
        "How long the oldest open evaluation is past its deadline. Above a minute: nobody sweeps.",
        (),
        """
        SELECT COALESCE(max(EXTRACT(epoch FROM now() - deadline_at)), 0) FROM backend_evaluation
        WHERE state IN ('queued', 'preparing', 'running') AND deadline_at < now()
        """,
    ),
    (
        "jobs",
        "Jobs that have not ended, by state.",
        ("state",),
        "SELECT state, count(*) FROM backend_job WHERE state NOT IN ('completed', 'failed', 'cancelled') GROUP BY 1",
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
        "spent_this_month",
        "What providers have cost in this month (UTC), all workspaces together.",
        ("currency",),
        f"SELECT currency, sum(amount) FROM backend_spendmonth WHERE month = {_MONTH} GROUP BY 1",  # noqa: S608  a constant
    ),
    (
        "workspaces_out_of_money",
        "Workspaces that have reached their own spend limit of this month.",
        (),
        f"""
        SELECT count(*) FROM backend_spendmonth m JOIN backend_workspace w ON w.id = m.workspace_id
        WHERE m.month = {_MONTH} AND m.amount >= (w.limits ->> 'spend_per_month')::numeric
        """,  # noqa: S608  a constant
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


# What is counted since the installation began (services/tallies.py): name, what it is, its label.
_COUNTERS: tuple[tuple[str, str, str], ...] = (
    ("results", "Results written, by how the question ended.", "outcome"),
    ("provider_failures", "Failed calls to providers, by code. PROVIDER_RATE are the 429s.", "code"),
    ("slices_paced", "Slices handed back for want of leave to call a provider, by kind: its limit is reached.", "kind"),
    ("doorbells_dropped", "Messages that were old, doubled, or for work that had ended.", ""),
    ("doorbells_rung_again", "Messages sent again since nobody took them. Rising steadily: the broker loses them.", ""),
    ("commits_fenced", "Work that came too late, its lease being somebody else's, by kind of slice.", "kind"),
    (
        "leases_expired",
        "Leases of workers that died or stood still. Rising without deployments: workers are killed.",
        "",
    ),
    ("workers_lost", "Slices given up since each worker that had them died, by kind.", "kind"),
)


def counters() -> Iterator[Gauge]:
    """One query. A name that was never counted is 0, so that its first event shows as a rise."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, label, n FROM backend_tally")
        rows = cursor.fetchall()
    for name, help_, label in _COUNTERS:
        values: dict[tuple[str, ...], float] = {} if label else {(): 0.0}
        values |= {((row[1],) if label else ()): float(row[2]) for row in rows if row[0] == name}
        yield Gauge(name=name, help=help_, labels=(label,) if label else (), values=values)
