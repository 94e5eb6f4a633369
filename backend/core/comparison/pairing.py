"""Two runs, paired by question, for one metric."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import stdev

from backend.core.comparison.sides import Values
from backend.core.metric_keys import MetricKey
from backend.core.resampling import TIE, bootstrap_interval, mcnemar_p, sign_flip_p
from backend.core.summaries import mean


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionDelta:
    """One question scored in both runs; `delta` is candidate - baseline."""

    key: str
    baseline: float
    candidate: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """One metric over the `n` questions scored in both runs; `n_dropped` others should have been, and were not.

    `low` and `high` bound the mean delta (95 %, bootstrap over questions). `relative` is the delta as a share of
    the baseline's mean, None where that is 0. `sd` is the deltas' standard deviation (n - 1), None below two.
    A delta of at most 1e-9 is a tie. Everything that needs a question is None when n is 0.
    """

    metric: str
    n: int
    n_dropped: int
    baseline_mean: float | None = None
    candidate_mean: float | None = None
    mean_delta: float | None = None
    relative: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    n_wins: int = 0
    n_ties: int = 0
    n_losses: int = 0

    @property
    def n_differing(self) -> int:
        return self.n_wins + self.n_losses


def question_deltas(baseline: Values, candidate: Values, *, eligible: Collection[str]) -> tuple[QuestionDelta, ...]:
    """The questions scored in both runs, in the order of `eligible`."""
    deltas = []
    for key in eligible:
        before, after = baseline.get(key), candidate.get(key)
        if before is not None and after is not None:
            deltas.append(QuestionDelta(key=key, baseline=before, candidate=after, delta=after - before))
    return tuple(deltas)


def pair(deltas: Sequence[QuestionDelta], *, metric: MetricKey, n_eligible: int, seed: int) -> Paired:
    """Means, delta, interval, wins, ties and losses of one metric."""
    n = len(deltas)
    if n == 0:
        return Paired(metric=str(metric), n=0, n_dropped=n_eligible)
    values = [one.delta for one in deltas]
    baseline_mean = mean([one.baseline for one in deltas])
    mean_delta = mean(values)
    low, high = bootstrap_interval(values, seed=seed)
    n_wins = sum(1 for value in values if value > TIE)
    n_losses = sum(1 for value in values if value < -TIE)
    return Paired(
        metric=str(metric),
        n=n,
        n_dropped=n_eligible - n,
        baseline_mean=baseline_mean,
        candidate_mean=mean([one.candidate for one in deltas]),
        mean_delta=mean_delta,
        relative=mean_delta / baseline_mean if baseline_mean else None,
        low=low,
        high=high,
        sd=stdev(values) if n > 1 else None,
        n_wins=n_wins,
        n_ties=n - n_wins - n_losses,
        n_losses=n_losses,
    )


def p_value(paired: Paired, deltas: Sequence[QuestionDelta], *, metric: MetricKey, seed: int) -> float:
    """Two-sided: exact McNemar for 0/1 metrics, else sign flips of the deltas. 1.0 where no question differs."""
    if metric.is_binary:
        return mcnemar_p(n_wins=paired.n_wins, n_losses=paired.n_losses)
    return sign_flip_p([one.delta for one in deltas], seed=seed)
