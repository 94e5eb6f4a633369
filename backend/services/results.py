"""Result rows: inserted once, replaced only if not good and only by a higher epoch."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from backend.core.types import Outcome
from backend.services import tallies
from backend.services.tallies import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    run_id: UUID
    ordinal: int
    question_key: str
    outcome: Outcome
    code: str = ""
    reason: str = ""
    first_rank: int | None = None
    judged: dict[str, Any] | None = None
    ranking: list[Any] = field(default_factory=list)
    cut: list[Any] = field(default_factory=list)
    ann_recall: float | None = None
    depth: int = 0
    timings: dict[str, float] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)


# Each statement that writes results notes how many, in the same commit: see ProgressEntry.
_NOTED = """
WITH written AS ({statement} RETURNING run_id, epoch, outcome),
noted AS (
  INSERT INTO backend_progressentry (run_id, epoch, outcome, n, created_at)
  SELECT run_id, epoch, outcome, count(*), now() FROM written GROUP BY run_id, epoch, outcome
)
SELECT count(*) FROM written
"""


def noted(statement: str) -> str:
    """An INSERT into backend_result that tells progress as well, and answers with one number: rows written."""
    return _NOTED.format(statement=statement)


_WRITE = noted("""
INSERT INTO backend_result (run_id, ordinal, question_key, epoch, outcome, code, reason, first_rank, judged, ranking,
                            cut, ann_recall, depth, timings, units, created_at)
SELECT run_id, ordinal, question_key, %(epoch)s, outcome, code, reason, first_rank, judged, ranking, cut, ann_recall,
       depth, timings, units, now()
FROM jsonb_to_recordset(%(rows)s::jsonb)
  AS t (run_id uuid, ordinal int, question_key text, outcome text, code text, reason text, first_rank int,
        judged jsonb, ranking jsonb, cut jsonb, ann_recall float8, depth int, timings jsonb, units jsonb)
ORDER BY run_id, ordinal
ON CONFLICT (run_id, ordinal) DO UPDATE
SET question_key = excluded.question_key, epoch = excluded.epoch, outcome = excluded.outcome, code = excluded.code,
    reason = excluded.reason, first_rank = excluded.first_rank, judged = excluded.judged, ranking = excluded.ranking,
    cut = excluded.cut, ann_recall = excluded.ann_recall, depth = excluded.depth, timings = excluded.timings,
    units = excluded.units, created_at = excluded.created_at
WHERE backend_result.outcome NOT IN ('ok', 'empty') AND backend_result.epoch < excluded.epoch
""")


def write(rows: Sequence[ResultRow], *, epoch: int) -> int:
    """Insert the rows in one statement; returns how many were written (a row that must stay is left alone)."""
    if not rows:
        return 0
    # One document for all: as an array of texts each would be quoted twice on the way, and read twice.
    told = _json(
        [
            {
                "run_id": str(row.run_id),
                "ordinal": row.ordinal,
                "question_key": row.question_key,
                "outcome": row.outcome.value,
                "code": row.code,
                "reason": row.reason,
                "first_rank": row.first_rank,
                "judged": row.judged,
                "ranking": row.ranking,
                "cut": row.cut,
                "ann_recall": row.ann_recall,
                "depth": row.depth,
                "timings": row.timings,
                "units": row.units,
            }
            for row in rows
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, {"epoch": epoch, "rows": told})
        for outcome, n in Counter(row.outcome for row in rows).items():
            tallies.add(Event.RESULTS, n, label=outcome.value)
        return int(cursor.fetchone()[0])


# The (run, question) pairs of an evaluation that have no row of this epoch and no good row of an earlier one.
_MISSING = """
FROM backend_run r
JOIN backend_evaluation e ON e.id = r.evaluation_id
JOIN backend_question q ON q.version_id = e.question_set_version_id
LEFT JOIN backend_result x ON x.run_id = r.id AND x.ordinal = q.ordinal
WHERE e.id = %(evaluation)s AND (x.id IS NULL OR (x.outcome NOT IN ('ok', 'empty') AND x.epoch < e.epoch))
"""

_FILL = noted(f"""
INSERT INTO backend_result (run_id, ordinal, question_key, epoch, outcome, code, reason, ranking, depth, timings,
                            units, created_at)
SELECT r.id, q.ordinal, q.key, e.epoch, %(outcome)s, %(code)s, %(reason)s, '[]', 0, '{{}}', '{{}}', now()
{_MISSING} AND (%(ordinals)s::int[] IS NULL OR q.ordinal = ANY(%(ordinals)s::int[]))
ON CONFLICT (run_id, ordinal) DO UPDATE
SET epoch = excluded.epoch, outcome = excluded.outcome, code = excluded.code, reason = excluded.reason,
    judged = NULL, first_rank = NULL, ranking = excluded.ranking, created_at = excluded.created_at
WHERE backend_result.outcome NOT IN ('ok', 'empty') AND backend_result.epoch < excluded.epoch
""")


def fill_missing(
    evaluation_id: UUID,
    *,
    outcome: Outcome,
    code: str = "",
    reason: str = "",
    ordinals: Sequence[int] | None = None,
) -> int:
    """Give every pair that still owes a row this outcome (of all questions, or of some). Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            _FILL,
            {
                "evaluation": evaluation_id,
                "outcome": outcome.value,
                "code": code,
                "reason": reason,
                "ordinals": None if ordinals is None else list(ordinals),
            },
        )
        return int(cursor.fetchone()[0])


def note_anew(evaluation_id: UUID) -> None:
    """An evaluation goes on after its end: its progress begins with the results it has. In the transaction that opens
    it."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH runs AS (SELECT id FROM backend_run WHERE evaluation_id = %s),
            dropped AS (DELETE FROM backend_progressentry WHERE run_id IN (SELECT id FROM runs))
            INSERT INTO backend_progressentry (run_id, epoch, outcome, n, created_at)
            SELECT run_id, epoch, outcome, count(*), max(created_at) FROM backend_result
            WHERE run_id IN (SELECT id FROM runs) GROUP BY run_id, epoch, outcome
            """,
            [evaluation_id],
        )


def forget_progress() -> int:
    """What was noted of evaluations that have ended: they are counted by their results. Returns how many entries."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM backend_progressentry p USING backend_run r, backend_evaluation e
            WHERE r.id = p.run_id AND e.id = r.evaluation_id AND e.state IN ('completed', 'failed', 'cancelled')
            """
        )
        return int(cursor.rowcount)


def missing_ordinals(evaluation_id: UUID, *, limit: int | None = None) -> list[int]:
    """The questions that owe a row in at least one run, in order."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT q.ordinal {_MISSING} ORDER BY 1 LIMIT %(limit)s",
            {"evaluation": evaluation_id, "limit": limit},
        )
        return [row[0] for row in cursor.fetchall()]


def answered(run_ids: Sequence[UUID], ordinals: Sequence[int], *, epoch: int) -> set[tuple[UUID, int]]:
    """The pairs that need nothing more: a good row, or a row of this epoch."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT run_id, ordinal FROM backend_result
            WHERE run_id = ANY(%s) AND ordinal = ANY(%s) AND (outcome IN ('ok', 'empty') OR epoch >= %s)
            """,
            [list(run_ids), list(ordinals), epoch],
        )
        return {(row[0], row[1]) for row in cursor.fetchall()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
