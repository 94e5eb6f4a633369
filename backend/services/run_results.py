"""A page of a run's results, each missed question with where it was lost."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from backend.core.diagnosis import QuestionLoss
from backend.models import Run
from backend.queries import results
from backend.queries.results import ResultRow
from backend.services import diagnoses


def shown(run: Run, rows: Sequence[Any], k: int) -> list[ResultRow]:
    """Rows of `results.of`; a few queries for all of them together."""
    told = results.shown(run, rows, k=k)
    # Where a question was lost is read from its ranking, and old runs have none (services/retention.py).
    ordinals = [row.ordinal for row in told if row.found is not None and run.pruned_at is None]
    losses = diagnoses.of(run, ordinals, k=k).by_question if ordinals else {}
    return [_with_loss(row, losses.get(row.ordinal)) for row in told]


def _with_loss(row: ResultRow, loss: QuestionLoss | None) -> ResultRow:
    if loss is None:
        return row
    return replace(
        row,
        cause=loss.cause or "",
        wrong_passage=loss.wrong_passage,
        losses=[
            {
                "expectation": one.index,
                "cause": one.cause.value,
                "ranks": dict(one.ranks),
                "wrong_passage": one.wrong_passage,
            }
            for one in loss.expectations
            if one.cause is not None
        ],
    )
