"""Which run really measured what another took over (services/reuse.py)."""

from collections.abc import Mapping, Sequence
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
class Reused:
    """`n` of `n_questions` results of a run (`run_id`, `run_name`) are those of the run `source_id`, measured at `at`;
    both None where that was deleted."""

    run_id: UUID
    run_name: str
    n: int
    n_questions: int
    source_id: UUID | None = None
    source_name: str = ""
    at: datetime | None = None


def of(shown: Sequence[RunRow]) -> Mapping[UUID, Reused]:
    """By run, only of those that took something over. One query; none where no run did."""
    counted = {run.id: int(run.cost.get(REUSED) or 0) for run in shown}
    wanted = [run for run in shown if counted[run.id]]
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_SOURCES, {"runs": [run.id for run in wanted], "most": _MOST_STEPS})
        sources = {row[0]: row[1:] for row in cursor.fetchall()}
    found = {}
    for run in wanted:
        source_id, source_name, at = sources.get(run.id, (None, "", None))
        found[run.id] = Reused(
            run_id=run.id,
            run_name=run.name,
            n=counted[run.id],
            n_questions=run.n_questions,
            source_id=source_id,
            source_name=source_name,
            at=at,
        )
    return found
