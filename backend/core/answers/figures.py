"""A run's figures of judged answers: means with intervals, over how many; and what was not judged, counted."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.core import summaries
from backend.core.answers.kinds import AnswerOutcome
from backend.core.resampling import bootstrap_intervals

SCORES = ("faithfulness", "relevance", "correctness")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    outcome: AnswerOutcome
    code: str = ""
    faithfulness: float | None = None
    relevance: float | None = None
    correctness: float | None = None
    abstained: bool = False
    units: Mapping[str, float] = field(default_factory=dict)


def compute(rows: Iterable[AnswerRow], *, n_total: int, seed: int) -> dict[str, Any]:
    """JSON values, never a NaN. The counts of the outcomes add up to `n_total`. A mean is over the judged answers that
    have the score: `n` says how many; faithfulness of an answer without a claim is none, and is counted apart."""
    counts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    units: Counter[str] = Counter()
    values: dict[str, list[float | None]] = {name: [] for name in SCORES}
    n_abstained = 0
    for row in rows:
        counts[row.outcome.value] += 1
        if row.code:
            codes[row.code] += 1
        units.update({name: amount for name, amount in row.units.items() if amount})
        if row.outcome is AnswerOutcome.JUDGED:
            n_abstained += row.abstained
            for name in SCORES:
                values[name].append(getattr(row, name))
    n_missing = n_total - counts.total()
    counts[AnswerOutcome.SKIPPED] += max(0, n_missing)
    metrics = {
        name: _summary([value for value in found if value is not None], seed=seed, n_total=n_total)
        for name, found in values.items()
        if any(value is not None for value in found)
    }
    return {
        "n_total": n_total,
        **{f"n_{outcome.value}": counts[outcome.value] for outcome in AnswerOutcome},
        "n_abstained": n_abstained,
        "metrics": metrics,
        "errors": dict(sorted(codes.items())),
        "cost": {name: round(float(amount), 6) for name, amount in sorted(units.items())},
    }


def _summary(values: list[float], *, seed: int, n_total: int) -> dict[str, Any]:
    low, high = bootstrap_intervals([values], seed=seed, confidence=summaries.CONFIDENCE)[0]
    return {"mean": summaries.mean(values), "low": low, "high": high, "n": len(values), "n_total": n_total}
