"""Which run really measured what another took over (services/reuse.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from backend.queries.runs import RunRow

REUSED = "reused"
_MOST_STEPS = 10_000
# A nightly run over what does not change takes over from the one of the night before, which did the same: as far back
# as all that a run has was taken over.
_SOURCES = """
WITH RECURSIVE back AS (
    SELECT id AS run_id, (origin->>'reused_from')::uuid AS earlier, 1 AS step
    FROM backend_run WHERE id = ANY(%(runs)s) AND origin ? 'reused_from'
    UNION ALL
    SELECT back.run_id, (run.origin->>'reused_from')::uuid, back.step + 1
    FROM back JOIN backend_run run ON run.id = back.earlier
    JOIN backend_evaluation evaluation ON evaluation.id = run.evaluation_id
    WHERE run.origin ? 'reused_from' AND (run.cost->>'reused')::float8 >= evaluation.n_questions
      AND back.step < %(most)s
)
SELECT DISTINCT ON (back.run_id) back.run_id, run.id, run.name, run.created_at
FROM back JOIN backend_run run ON run.id = back.earlier
ORDER BY back.run_id, back.step DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run that results were taken over from, and when it began to measure them."""

    id: UUID
    name: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """`n` of `n_total` results of a run, or of an evaluation's runs, are those of the `sources` that are still there.
    `at`: when these measured, as far as minutes tell; None where they did at several times."""

    n: int
    n_total: int
    sources: tuple[Source, ...]

    @property
    def at(self) -> datetime | None:
        minutes = {one.at.replace(second=0, microsecond=0) for one in self.sources}
        return self.sources[0].at if len(minutes) == 1 else None


def of_run(run: RunRow) -> TakenOver | None:
    """None, and no query, where it took nothing over."""
    return of_runs([run])


def of_runs(shown: Sequence[RunRow]) -> TakenOver | None:
    """All of them together. One query; none, and None, where no run took anything over."""
    n = {run.id: int(run.cost.get(REUSED) or 0) for run in shown}
    if not any(n.values()):
        return None
    with connection.cursor() as cursor:
        cursor.execute(_SOURCES, {"runs": [run.id for run in shown if n[run.id]], "most": _MOST_STEPS})
        found = {key: Source(id=source, name=name, at=at) for key, source, name, at in cursor.fetchall()}
    return TakenOver(
        n=sum(n.values()),
        n_total=sum(run.n_questions for run in shown),
        sources=tuple(dict.fromkeys(found[run.id] for run in shown if run.id in found)),
    )
