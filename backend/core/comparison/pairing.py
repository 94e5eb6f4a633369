"""Two runs, paired by question, for one metric."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from backend.core.comparison.sides import Values
from backend.core.metric_keys import MetricKey
from backend.core.resampling import TIE, bootstrap_intervals, mcnemar_p, sign_flip_p
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What `pair_all` works on: a metric's values in both runs, question by question."""

    metric: MetricKey
    baseline: Sequence[float]
    candidate: Sequence[float]
    n_eligible: int


def pairing_of(baseline: Values, candidate: Values, *, metric: MetricKey, eligible: Collection[str]) -> Pairing:
    """Of the questions scored in both runs."""
    both = [(baseline.get(key), candidate.get(key)) for key in eligible]
    scored = [(before, after) for before, after in both if before is not None and after is not None]
    return Pairing(
        metric=metric,
        baseline=[before for before, _ in scored],
        candidate=[after for _, after in scored],
        n_eligible=len(eligible),
    )


def pair(deltas: Sequence[QuestionDelta], *, metric: MetricKey, n_eligible: int, seed: int) -> Paired:
    """Means, delta, interval, wins, ties and losses of one metric."""
    pairing = Pairing(
        metric=metric,
        baseline=[one.baseline for one in deltas],
        candidate=[one.candidate for one in deltas],
        n_eligible=n_eligible,
    )
    return pair_all([pairing], seed=seed)[0]


def pair_all(pairings: Sequence[Pairing], *, seed: int) -> list[Paired]:
    """`pair` of each, to the last digit; those over equally many questions cost little more than one."""
    deltas = [[after - before for before, after in zip(one.baseline, one.candidate, strict=True)] for one in pairings]
    drawn = [at for at, values in enumerate(deltas) if values]
    intervals = dict(zip(drawn, bootstrap_intervals([deltas[at] for at in drawn], seed=seed), strict=True))
    return [
        _paired(one, values, interval=intervals[at])
        if values
        else Paired(metric=str(one.metric), n=0, n_dropped=one.n_eligible)
        for at, (one, values) in enumerate(zip(pairings, deltas, strict=True))
    ]


def _paired(pairing: Pairing, values: Sequence[float], *, interval: tuple[float, float]) -> Paired:
    n = len(values)
    baseline_mean = mean(pairing.baseline)
    mean_delta = mean(values)
    n_wins = sum(1 for value in values if value > TIE)
    n_losses = sum(1 for value in values if value < -TIE)
    return Paired(
        metric=str(pairing.metric),
        n=n,
        n_dropped=pairing.n_eligible - n,
        baseline_mean=baseline_mean,
        candidate_mean=mean(pairing.candidate),
        mean_delta=mean_delta,
        relative=mean_delta / baseline_mean if baseline_mean else None,
        low=interval[0],
        high=interval[1],
        sd=sqrt(fsum([(value - mean_delta) ** 2 for value in values]) / (n - 1)) if n > 1 else None,
        n_wins=n_wins,
        n_ties=n - n_wins - n_losses,
        n_losses=n_losses,
    )


def p_value(paired: Paired, deltas: Sequence[QuestionDelta], *, metric: MetricKey, seed: int) -> float:
    """Two-sided: exact McNemar for 0/1 metrics, else sign flips of the deltas. 1.0 where no question differs."""
    if metric.is_binary:
        return mcnemar_p(n_wins=paired.n_wins, n_losses=paired.n_losses)
    return sign_flip_p([one.delta for one in deltas], seed=seed)
