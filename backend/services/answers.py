"""Answers of an evaluation: which are owed, written once judged, counted into a run's record of its own.

An answer is made from a ranking that is stored: its slice is born in the commit that writes the result, or, in a
retry, from the good results whose answer is not judged. Nothing here changes a result or a metric of retrieval.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from backend.core.answers import figures
from backend.core.answers.figures import AnswerRow
from backend.core.answers.kinds import AnswerOutcome
from backend.core.states import Lane, SliceKind
from backend.core.types import Outcome
from backend.models import Answer, Chunk, Slice
from backend.services import run_numbers
from backend.services.plans import Plan
from backend.services.results import ResultRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One answer as it is stored."""

    run_id: UUID
    ordinal: int
    question_key: str
    outcome: AnswerOutcome
    code: str = ""
    reason: str = ""
    text: str = ""
    abstained: bool = False
    faithfulness: float | None = None
    relevance: float | None = None
    correctness: float | None = None
    n_repeats: int = 0
    claims: list[Any] = field(default_factory=list)
    passages: list[Any] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    units: Mapping[str, float] = field(default_factory=dict)


def children(plan: Plan, rows: Sequence[ResultRow], *, epoch: int) -> list[Slice]:
    """The slices of the answers that these results make possible; none where no answers were asked for."""
    if plan.answers is None:
        return []
    return [
        _slice(plan, run_id=row.run_id, ordinal=row.ordinal, key=row.question_key, epoch=epoch)
        for row in rows
        if row.outcome is Outcome.OK and row.ranking
    ]


_OWED = """
SELECT x.run_id, x.ordinal, x.question_key
FROM backend_result x
JOIN backend_run r ON r.id = x.run_id
JOIN backend_evaluation e ON e.id = r.evaluation_id
LEFT JOIN backend_answer a ON a.run_id = x.run_id AND a.ordinal = x.ordinal
WHERE e.id = %(evaluation)s AND x.outcome = 'ok' AND x.ranking <> '[]'::jsonb
  AND (a.id IS NULL OR (a.outcome <> 'judged' AND a.epoch < e.epoch))
ORDER BY x.ordinal, x.run_id
"""


def owed(evaluation_id: UUID) -> list[tuple[UUID, int, str]]:
    """(run, question, key) of the good results without a judged answer and without one of this epoch."""
    with connection.cursor() as cursor:
        cursor.execute(_OWED, {"evaluation": evaluation_id})
        return [(row[0], row[1], row[2]) for row in cursor.fetchall()]


def insert_owed(plan: Plan, *, epoch: int) -> int:
    """For a retry: the answers that stored rankings still owe."""
    if plan.answers is None:
        return 0
    waiting = owed(plan.evaluation_id)
    Slice.objects.bulk_create(
        [_slice(plan, run_id=run_id, ordinal=ordinal, key=key, epoch=epoch) for run_id, ordinal, key in waiting],
        batch_size=500,
        ignore_conflicts=True,
    )
    return len(waiting)


def fill_missing(plan: Plan, *, epoch: int, outcome: AnswerOutcome, code: str, reason: str) -> int:
    """What was not answered by the end gets this outcome; in the caller's transaction."""
    if plan.answers is None:
        return 0
    waiting = owed(plan.evaluation_id)
    write(
        [
            Written(run_id=run_id, ordinal=ordinal, question_key=key, outcome=outcome, code=code, reason=reason)
            for run_id, ordinal, key in waiting
        ],
        epoch=epoch,
    )
    return len(waiting)


def write(rows: Sequence[Written], *, epoch: int) -> None:
    """Insert; a row that is there is replaced unless it is judged or of a later epoch."""
    with connection.cursor() as cursor:
        for row in rows:
            cursor.execute(
                """
                INSERT INTO backend_answer (run_id, ordinal, question_key, epoch, outcome, code, reason, text,
                    abstained, faithfulness, relevance, correctness, n_repeats, claims, passages, replies, units,
                    created_at)
                VALUES (%(run_id)s, %(ordinal)s, %(question_key)s, %(epoch)s, %(outcome)s, %(code)s, %(reason)s,
                    %(text)s, %(abstained)s, %(faithfulness)s, %(relevance)s, %(correctness)s, %(n_repeats)s,
                    %(claims)s, %(passages)s, %(replies)s, %(units)s, now())
                ON CONFLICT (run_id, ordinal) DO UPDATE SET question_key = excluded.question_key,
                    epoch = excluded.epoch, outcome = excluded.outcome, code = excluded.code, reason = excluded.reason,
                    text = excluded.text, abstained = excluded.abstained, faithfulness = excluded.faithfulness,
                    relevance = excluded.relevance, correctness = excluded.correctness,
                    n_repeats = excluded.n_repeats, claims = excluded.claims, passages = excluded.passages,
                    replies = excluded.replies, units = excluded.units, created_at = excluded.created_at
                WHERE backend_answer.outcome <> 'judged' AND backend_answer.epoch <= excluded.epoch
                """,
                {
                    **{name: getattr(row, name) for name in _PLAIN},
                    "outcome": row.outcome.value,
                    "epoch": epoch,
                    **{name: _json(getattr(row, name)) for name in ("claims", "passages", "replies", "units")},
                },
            )


_PLAIN = (
    "run_id",
    "ordinal",
    "question_key",
    "code",
    "reason",
    "text",
    "abstained",
    "faithfulness",
    "relevance",
    "correctness",
    "n_repeats",
)


def stopped(evaluation_id: UUID, *, epoch: int) -> tuple[str, str] | None:
    """Why no answer of this epoch can succeed any more, once one has found out."""
    rows = Answer.objects.filter(run__evaluation_id=evaluation_id, epoch=epoch, outcome=AnswerOutcome.NOT_RUN)
    return rows.values_list("code", "reason").first()


def passages_of(ranking: Sequence[Mapping[str, Any]], *, limit: int) -> list[dict[str, Any]]:
    """The first passages of a stored ranking with their whole text; those that are gone since are left out."""
    first = sorted(ranking, key=lambda entry: int(entry["r"]))[:limit]
    texts = dict(Chunk.objects.filter(id__in=[entry["c"] for entry in first]).values_list("id", "text"))
    return [
        {"rank": entry["r"], "passage": entry["c"], "path": entry["p"], "text": texts[UUID(str(entry["c"]))]}
        for entry in first
        if UUID(str(entry["c"])) in texts
    ]


def figures_of(plan: Plan, run_id: UUID) -> dict[str, Any]:
    """What the run's record says of its answers; empty where none were asked for."""
    if plan.answers is None:
        return {}
    return {
        **plan.answers.to_json(),
        # A model that judges its own answers is kind to them: whoever reads the figures should know.
        "judges_itself": plan.answers.llm == plan.answers.judge,
        **figures.compute(_rows(run_id), n_total=plan.n_questions, seed=run_numbers.SEED),
    }


def _rows(run_id: UUID) -> Iterator[AnswerRow]:
    names = ("outcome", "code", "faithfulness", "relevance", "correctness", "abstained", "units")
    for values in Answer.objects.filter(run_id=run_id).order_by("ordinal").values(*names).iterator(2000):
        yield AnswerRow(**{**values, "outcome": AnswerOutcome(values["outcome"])})


def _slice(plan: Plan, *, run_id: UUID, ordinal: int, key: str, epoch: int) -> Slice:
    return Slice(
        workspace_id=plan.workspace_id,
        evaluation_id=plan.evaluation_id,
        epoch=epoch,
        kind=SliceKind.ANSWER,
        lane=Lane.PROVIDER,
        items=[ordinal],
        first=ordinal,
        last=ordinal,
        pool=run_id.hex,
        payload={"run": str(run_id), "key": key},
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
