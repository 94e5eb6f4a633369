"""Where the questions moved: the rank of the first relevant result in one run against the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

MISSED = "missed"
_STARTS = (1, 2, 4, 6, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """`counts[i][j]`: questions in band `labels[i]` in the baseline and `labels[j]` in the candidate.

    Bands are 1, 2-3, 4-5, 6-10 and the rest up to `top_k` as far as it reaches, then `missed`. `n_up`, `n_down`
    and `n_same` go by the exact rank, missed being below every rank.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    n_up: int
    n_down: int
    n_same: int


def transitions(baseline: Mapping[str, int | None], candidate: Mapping[str, int | None], *, top_k: int) -> Transitions:
    """The matrix over the questions both runs scored. Ranks beyond `top_k` (the lower one's) are missed."""
    bands = _bands(top_k)
    counts = [[0] * (len(bands) + 1) for _ in range(len(bands) + 1)]
    n_up = n_down = n_same = 0
    for key, before in baseline.items():
        if key not in candidate:
            continue
        old, new = _depth(before, top_k=top_k), _depth(candidate[key], top_k=top_k)
        n_up += new < old
        n_down += new > old
        n_same += new == old
        counts[_band(old, bands)][_band(new, bands)] += 1
    return Transitions(
        labels=(*(str(first) if first == last else f"{first}-{last}" for first, last in bands), MISSED),
        counts=tuple(map(tuple, counts)),
        n_up=n_up,
        n_down=n_down,
        n_same=n_same,
    )


def _bands(top_k: int) -> list[tuple[int, int]]:
    starts = [start for start in _STARTS if start <= top_k]
    return [(first, after - 1) for first, after in pairwise([*starts, top_k + 1])]


def _depth(rank: int | None, *, top_k: int) -> int:
    return rank if rank is not None and rank <= top_k else top_k + 1


def _band(depth: int, bands: list[tuple[int, int]]) -> int:
    return next((index for index, (_, last) in enumerate(bands) if depth <= last), len(bands))
