"""A run's numbers from its rows: metrics with intervals, counts of every ending, latency, what was paid."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from backend.core import judging, summaries
from backend.core.measuring import Measurer
from backend.core.metric_keys import MetricKey
from backend.core.spreads import Spread
from backend.core.states import RunState
from backend.core.summaries import Ending
from backend.core.types import Outcome
from backend.models import Question
from backend.services.plans import Plan

# The bootstrap's seed: fixed, so that the same results give the same interval.
SEED = 20_240_101


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    ordinal: int
    outcome: Outcome
    code: str = ""
    reason: str = ""
    judged: dict[str, Any] | None = None
    timings: dict[str, float] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)
    unanswerable: bool = False
    returned_something: bool = False
    ann_recall: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """`first_code` and `first_reason` are the commonest of the questions that have no result."""

    state: RunState
    metrics: dict[str, Any]
    counts: dict[str, Any]
    timings: dict[str, Any]
    cost: dict[str, float]
    first_code: str = ""
    first_reason: str = ""


def compute(*, plan: Plan, rows: Iterable[Row]) -> Numbers:
    """The numbers of one run."""
    return compute_all(plan=plan, rows_of_runs=[rows])[0]


def compute_all(*, plan: Plan, rows_of_runs: Iterable[Iterable[Row]]) -> list[Numbers]:
    """Those of several runs of a plan, to the last digit what each has alone: what they have in common is worked out
    once, lists that look alike and the draws behind the intervals."""
    measurer = Measurer([MetricKey.parse(key) for key in plan.keys])
    gathered = [_gather(plan=plan, rows=rows, measurer=measurer) for rows in rows_of_runs]
    summed = summaries.summarise_groups(
        [(one.columns, one.numbers.counts["n_eligible"]) for one in gathered], seed=SEED
    )
    return [
        replace(one.numbers, metrics={str(key): asdict(summary) for key, summary in by_key.items()})
        for one, by_key in zip(gathered, summed, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """All but the metrics, and what those are made of."""

    numbers: Numbers
    columns: Mapping[MetricKey, list[float | None]]


def _gather(*, plan: Plan, rows: Iterable[Row], measurer: Measurer) -> _Gathered:
    """One pass over the rows. A mean is over the scored questions; `n_total` counts those that could be scored.

    A `must_pass` question is found when its first relevant result is within the primary metric's k; one that was not
    scored is not found, and `n_must_pass_scored` tells the two apart.
    """
    keys = [MetricKey.parse(key) for key in plan.keys]
    primary = MetricKey.parse(plan.primary_metric)
    values: dict[str, list[float | None]] = defaultdict(list)
    endings: list[Ending] = []
    codes: Counter[tuple[str, str]] = Counter()
    latencies: list[float] = []
    steps: dict[str, list[float]] = defaultdict(list)
    units: Counter[str] = Counter()
    n_unanswerable_silent = 0
    spread = Spread(depth=plan.top_k)
    must_pass = _must_pass(plan)
    passed: Counter[str] = Counter()
    ann_recalls: list[float] = []
    for row in rows:
        judged, measured = (None, {}) if row.judged is None else measurer.of(row.judged)
        n_relevant = 0 if judged is None else judged.n_relevant
        if judged is None and not row.unanswerable:
            # Without a judged list nothing says whether the question has expectations: it counts as one that has.
            n_relevant = 1
        ending = Ending(outcome=row.outcome, n_relevant=n_relevant, unanswerable=row.unanswerable)
        endings.append(ending)
        if row.code:
            codes[row.code, row.reason] += 1
        if ending.is_scored and judged is not None:
            spread.add(judged)
            for key, value in measured.items():
                values[key].append(value)
        if row.ordinal in must_pass:
            passed["n_must_pass"] += 1
            if ending.is_scored and judged is not None:
                rank = judging.first_rank(judged)
                passed["n_must_pass_scored"] += 1
                passed["n_must_pass_found"] += rank is not None and rank <= primary.k
        if row.ann_recall is not None:
            ann_recalls.append(row.ann_recall)
        n_unanswerable_silent += row.unanswerable and row.outcome is Outcome.EMPTY
        if row.outcome in {Outcome.OK, Outcome.EMPTY} and row.timings:
            latencies.append(sum(row.timings.values()))
            spread.add_latency(latencies[-1])
            for step, taken in row.timings.items():
                steps[step].append(taken)
        units.update({name: amount for name, amount in row.units.items() if amount})
    counts = summaries.count(endings)
    by_code = Counter[str]()
    for (code, _), n in codes.items():
        by_code[code] += n
    first = codes.most_common(1)[0][0] if codes else ("", "")
    numbers = Numbers(
        state=RunState.SCORED if counts.n_scored else RunState.UNAVAILABLE,
        metrics={},
        counts={
            **asdict(counts),
            "errors": dict(sorted(by_code.items())),
            "by_rank": spread.by_rank(),
            "n_unanswerable_silent": n_unanswerable_silent,
            # How much of exact search the approximate one found, over a sample of the questions.
            **({"ann_recall": summaries.mean(ann_recalls), "n_ann": len(ann_recalls)} if ann_recalls else {}),
            **{name: passed[name] for name in ("n_must_pass", "n_must_pass_scored", "n_must_pass_found")},
            **_generated(plan),
        },
        timings={
            "latency_ms": _percentiles(latencies),
            "spread": spread.latencies(),
            "steps_ms": {step: _percentiles(taken) for step, taken in sorted(steps.items())},
        },
        # Rounded: a batch's calls and tokens came in shares of a question.
        cost={name: round(float(amount), 6) for name, amount in sorted(units.items())},
        first_code=first[0],
        first_reason=first[1],
    )
    columns = {key: values[str(key)] for key in keys} if counts.n_scored else {}
    return _Gathered(numbers=numbers, columns=columns)


def _must_pass(plan: Plan) -> frozenset[int]:
    marked = Question.objects.filter(version=plan.version_id, must_pass=True)
    return frozenset(marked.values_list("ordinal", flat=True)) if plan.version_id is not None else frozenset()


def _generated(plan: Plan) -> dict[str, int]:
    """How many of its questions no person wrote: said beside its numbers for ever. Nothing where there is none."""
    if plan.version_id is None:
        return {}
    n = Question.objects.filter(version=plan.version_id).exclude(generated="").count()
    return {"n_generated": n} if n else {}


def _percentiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    p50, p95 = np.percentile(values, [50, 95])
    return {"p50": round(float(p50), 3), "p95": round(float(p95), 3), "n": len(values)}
