"""Seeded resampling over questions: the bootstrap interval of a mean, and the sign-flip test of a mean difference.

An outcome depends on the values and the seed alone: not on the questions' order (values are sorted first), not on what
else is asked for at the same time (draws are shared by what has the same number of questions), and not on processor or
process: values become whole numbers so small that every sum of them is exact, in whatever order it is made.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

N_RESAMPLES = 10_000
TIE = 1e-9
_MEAN_TOLERANCE = 1e-12
# Numbers held at a time: bounds memory (8 bytes each) whatever the number of questions.
_BATCH = 2_000_000
# Up to so many distinct values (or one for every so many questions), drawing how often each occurs beats drawing
# questions (measured).
_FEW = 32
_MANY = 500
# Whole numbers are exact in a float64 up to 2^53.
_EXACT_BITS = 52
_GROUP = 8

_Floats = npt.NDArray[np.float64]


def bootstrap_interval(
    values: Sequence[float], *, seed: int, confidence: float = 0.95, n_resamples: int = N_RESAMPLES
) -> tuple[float, float]:
    """The percentile interval of the mean over resamples of the questions (Efron and Tibshirani, 1993, ch. 13).

    One value gives (value, value). Raises ValueError for none.
    """
    return bootstrap_intervals([values], seed=seed, confidence=confidence, n_resamples=n_resamples)[0]


def bootstrap_intervals(
    columns: Sequence[Sequence[float]], *, seed: int, confidence: float = 0.95, n_resamples: int = N_RESAMPLES
) -> list[tuple[float, float]]:
    """`bootstrap_interval` of each column, to the last digit; those of the same length cost little more than one."""
    found: list[tuple[float, float]] = [(0.0, 0.0)] * len(columns)
    tail = (1 - confidence) / 2

    def note(at: int, means: _Floats, lowest: float, highest: float) -> None:
        low, high = np.quantile(means, (tail, 1 - tail))
        # The mean of equal values may be off by a last digit; an interval never leaves the range of its values.
        found[at] = max(float(low), lowest), min(float(high), highest)

    waiting: dict[int, list[tuple[int, _Floats]]] = defaultdict(list)
    for at, values in enumerate(columns):
        if not len(values):
            raise ValueError("the mean of no values has no interval")
        ordered = np.sort(np.asarray(values, dtype=np.float64))
        distinct, counts = np.unique(ordered, return_counts=True)
        n, lowest, highest = len(ordered), float(distinct[0]), float(distinct[-1])
        if len(distinct) == 1:
            found[at] = lowest, highest
        elif len(distinct) <= max(_FEW, n // _MANY):
            note(at, _means_of_few(distinct, counts, seed=seed, n_resamples=n_resamples), lowest, highest)
        else:
            waiting[n].append((at, ordered))
    for n, same in waiting.items():
        means = _means_of_many([ordered for _, ordered in same], n=n, seed=seed, n_resamples=n_resamples)
        for (at, ordered), column in zip(same, means.T, strict=True):
            note(at, column, float(ordered[0]), float(ordered[-1]))
    return found


def _means_of_few(distinct: _Floats, counts: npt.NDArray[np.int64], *, seed: int, n_resamples: int) -> _Floats:
    """By drawing how often each distinct value occurs: the same distribution as drawing questions one by one."""
    n = int(counts.sum())
    whole, scale = _whole(distinct, n)
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=n_resamples)
    means: _Floats = drawn @ whole / scale / n
    return means


def _means_of_many(columns: Sequence[_Floats], *, n: int, seed: int, n_resamples: int) -> _Floats:
    """A row a resample, a column each. How often each question was drawn is counted once, for all columns."""
    scaled = [_whole(column, n) for column in columns]
    wholes = np.stack([whole for whole, _ in scaled], axis=1)
    random = np.random.default_rng(seed)
    means: _Floats = np.empty((n_resamples, len(columns)))
    start = 0
    for size in _batches(n_resamples, n):
        means[start : start + size] = _draw_counts(random, n, size) @ wholes
        start += size
    means /= np.asarray([scale for _, scale in scaled]) * n
    return means


def _draw_counts(random: np.random.Generator, n: int, size: int) -> _Floats:
    """How often each of n questions is in a resample of n: a row a resample."""
    drawn = random.integers(0, n, size=(size, n), dtype=np.uint16 if n < 1 << 16 else np.uint32)
    if n < 1000:
        places = drawn + n * np.arange(size)[:, None]
        return np.bincount(places.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
    counts = np.empty((size, n))
    for row, one in zip(counts, drawn, strict=True):
        row[:] = np.bincount(one, minlength=n)
    return counts


def sign_flip_p(deltas: Sequence[float], *, seed: int, n_resamples: int = N_RESAMPLES) -> float:
    """The two-sided p of a mean difference under random signs (Fisher's randomisation test, paired).

    Exact, # / 2^m over all signs of the m deltas that differ from 0 (by more than 1e-9), when
    2^m <= `n_resamples`; else (1 + #) / (1 + `n_resamples`). # counts |mean*| >= |mean| - 1e-12. 1.0 if m is 0.
    """
    sizes = np.sort(np.asarray([delta for delta in deltas if abs(delta) > TIE], dtype=np.float64))
    m = len(sizes)
    if m == 0:
        return 1.0
    n = len(deltas)
    if 2**m <= n_resamples:
        signs = 1.0 - 2.0 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
        least = abs(sizes.sum() / n) - _MEAN_TOLERANCE
        return float(np.mean(np.abs(signs @ sizes / n) >= least))
    whole, scale = _whole(sizes, m)
    least = abs(float(whole.sum()) / scale / n) - _MEAN_TOLERANCE
    # Signs only matter for sizes; sorted by size, so that neither order nor direction of the deltas is seen.
    table = _signed_sums(np.sort(np.abs(whole)))
    random = np.random.default_rng(seed)
    firsts = np.arange(len(table)) * table.shape[1]
    n_reached = 0
    for batch in _batches(n_resamples, len(table)):
        drawn = random.integers(0, table.shape[1], size=(batch, len(table)), dtype=np.uint8)
        sums = table.ravel()[drawn + firsts].sum(axis=1)
        n_reached += int(np.count_nonzero(np.abs(sums / scale / n) >= least))
    return (1 + n_reached) / (1 + n_resamples)


def _signed_sums(sizes: _Floats) -> _Floats:
    """Eight deltas a row: their sum under each of the 256 ways to sign them, so that one byte drawn signs all eight."""
    padded = np.zeros(-(-len(sizes) // _GROUP) * _GROUP)
    padded[: len(sizes)] = sizes
    signs = 1.0 - 2.0 * ((np.arange(1 << _GROUP)[:, None] >> np.arange(_GROUP)) & 1)
    sums: _Floats = padded.reshape(-1, _GROUP) @ signs.T
    return sums


def _whole(values: _Floats, n: int) -> tuple[_Floats, float]:
    """The values times a power of two, rounded to whole numbers of which any n add up exactly; and that power."""
    highest = n * float(np.abs(values).max())
    if not highest:
        return values, 1.0
    scale = 2.0 ** min(_EXACT_BITS - int(np.ceil(np.log2(highest))), 1000)
    return np.rint(values * scale), scale


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
