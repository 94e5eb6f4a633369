"""Two runs side by side, question by question, in one metric: what pictures of a comparison show. No test is made."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from backend.core import comparison
from backend.core.comparison import QuestionDelta, Transitions
from backend.core.judging import JudgedList
from backend.core.metric_keys import MetricKey, compute
from backend.models import Run

_BATCH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """In the baseline's question order; only questions that both scored."""

    deltas: tuple[QuestionDelta, ...]
    transitions: Transitions


def of(baseline: Run, candidate: Run, *, metric: str) -> Pairing:
    """One query over the judged lists of both. Raises ValidationError for a metric that looks deeper than a run."""
    key = MetricKey.parse(metric, top_k=min(baseline.top_k, candidate.top_k))
    deltas = []
    before_ranks: dict[str, int | None] = {}
    after_ranks: dict[str, int | None] = {}
    for name, before_rank, before, after_rank, after in _rows(baseline, candidate):
        one, other = _value(key, before), _value(key, after)
        if one is None or other is None:
            continue
        deltas.append(QuestionDelta(key=name, baseline=one, candidate=other, delta=other - one))
        before_ranks[name], after_ranks[name] = before_rank, after_rank
    return Pairing(
        deltas=tuple(deltas),
        transitions=comparison.transitions(before_ranks, after_ranks, top_k=min(baseline.top_k, candidate.top_k)),
    )


def _value(key: MetricKey, stored: str) -> float | None:
    return compute(key, JudgedList.from_json(json.loads(stored)))


def _rows(baseline: Run, candidate: Run) -> Iterator[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT b.question_key, b.first_rank, b.judged::text, c.first_rank, c.judged::text
            FROM backend_result b
            JOIN backend_result c ON c.run_id = %(candidate)s AND c.question_key = b.question_key
            LEFT JOIN backend_question q ON q.version_id = %(version)s AND q.ordinal = b.ordinal
            WHERE b.run_id = %(baseline)s AND b.judged IS NOT NULL AND c.judged IS NOT NULL
              AND b.outcome IN ('ok', 'empty') AND c.outcome IN ('ok', 'empty') AND NOT COALESCE(q.unanswerable, false)
            ORDER BY b.ordinal
            """,
            {
                "baseline": baseline.id,
                "candidate": candidate.id,
                "version": baseline.evaluation.question_set_version_id,
            },
        )
        while rows := cursor.fetchmany(_BATCH):
            yield from rows
