"""Seeded resampling over questions: the bootstrap interval of a mean, and the sign-flip test of a mean difference.

Both work on the distinct values and how often each occurs, which has the same distribution as drawing questions
one by one, is much faster where values repeat (ranks do), and makes the outcome independent of the questions' order.
"""

from collections.abc import Iterator, Sequence

import numpy as np

N_RESAMPLES = 10_000
TIE = 1e-9
_MEAN_TOLERANCE = 1e-12
# Numbers drawn at a time: bounds memory (8 bytes each) whatever the number of questions.
_BATCH = 4_000_000
# From this many questions per distinct value on, drawing counts beats drawing questions (measured).
_REPEATS = 10


def bootstrap_interval(
    values: Sequence[float], *, seed: int, confidence: float = 0.95, n_resamples: int = N_RESAMPLES
) -> tuple[float, float]:
    """The percentile interval of the mean over resamples of the questions (Efron and Tibshirani, 1993, ch. 13).

    One value gives (value, value). Raises ValueError for none.
    """
    if not values:
        raise ValueError("the mean of no values has no interval")
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    n = len(values)
    if len(distinct) == 1:
        return float(distinct[0]), float(distinct[0])
    random = np.random.default_rng(seed)
    if n >= _REPEATS * len(distinct):
        shares = counts / n
        means = np.concatenate(
            [random.multinomial(n, shares, size=size) @ distinct / n for size in _batches(n_resamples, len(distinct))]
        )
    else:
        ordered = np.repeat(distinct, counts)
        means = np.concatenate(
            [ordered[random.integers(0, n, size=(size, n))].mean(axis=1) for size in _batches(n_resamples, n)]
        )
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    # The mean of equal values may be off by a last digit; an interval never leaves the range of its values.
    return max(float(low), float(distinct[0])), min(float(high), float(distinct[-1]))


def sign_flip_p(deltas: Sequence[float], *, seed: int, n_resamples: int = N_RESAMPLES) -> float:
    """The two-sided p of a mean difference under random signs (Fisher's randomisation test, paired).

    Exact, # / 2^m over all signs of the m deltas that differ from 0 (by more than 1e-9), when
    2^m <= `n_resamples`; else (1 + #) / (1 + `n_resamples`). # counts |mean*| >= |mean| - 1e-12. 1.0 if m is 0.
    """
    differing = np.asarray([delta for delta in deltas if abs(delta) > TIE], dtype=np.float64)
    m = len(differing)
    if m == 0:
        return 1.0
    n = len(deltas)
    least = abs(differing.sum() / n) - _MEAN_TOLERANCE
    if 2**m <= n_resamples:
        signs = 1.0 - 2.0 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
        return float(np.mean(np.abs(signs @ differing / n) >= least))
    sizes, counts = np.unique(np.abs(differing), return_counts=True)
    if m < _REPEATS * len(sizes):
        sizes, counts = np.repeat(sizes, counts), np.ones(m, dtype=np.int64)
    random = np.random.default_rng(seed)
    n_reached = 0
    for batch in _batches(n_resamples, len(sizes)):
        shape = (batch, len(sizes))
        # c equal deltas under random signs add up to (2 Binomial(c, 1/2) - c) times their size.
        ups = (
            random.binomial(counts, 0.5, size=shape)
            if len(sizes) < m
            else random.integers(2, size=shape, dtype=np.int8)
        )
        sums = (2.0 * ups - counts) @ sizes
        n_reached += int(np.count_nonzero(np.abs(sums / n) >= least))
    return (1 + n_reached) / (1 + n_resamples)


def mcnemar_p(*, n_wins: int, n_losses: int) -> float:
    """The two-sided exact p of paired 0/1 values (McNemar, 1947): 12 v 5 gives 0.1435, no difference 1.0."""
    m = n_wins + n_losses
    term = tail = 1
    for i in range(min(n_wins, n_losses)):
        term = term * (m - i) // (i + 1)  # from C(m, i) to C(m, i + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << m))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (1979), in the order given: 0.01, 0.04, 0.03, 0.005 give 0.03, 0.06, 0.06, 0.02."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for position, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _batches(n_resamples: int, width: int) -> Iterator[int]:
    size = max(1, _BATCH // width)
    for start in range(0, n_resamples, size):
        yield min(size, n_resamples - start)
