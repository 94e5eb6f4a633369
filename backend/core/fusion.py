"""From several ranked lists to one. Pure: candidates in rank order go in, candidates in fused order come out.

Ties are the normal case with two lists (the first of one and the first of the other), so the one rule of ties.py
orders the result; the best rank that any list gave a candidate is what it looks at after the score.
"""

from collections.abc import Sequence
from math import fsum

from backend.core.configs import Fusion
from backend.core.ties import Candidate, tie_key


def rrf(
    lists: Sequence[Sequence[Candidate]],
    *,
    constant: float = 60.0,
    rank_base: int = 1,
    weights: Sequence[float] | None = None,
) -> list[Candidate]:
    """Reciprocal rank fusion: score(d) = sum over the lists of w / (constant + rank(d)), nothing where d is absent.

    Cormack, Clarke, Buettcher (SIGIR 2009): constant 60, ranks from 1. Some engines count from 0 (`rank_base`).
    With a, b, c and c, d, a: a = c = 1/61 + 1/63 = 0.0322664..., b = d = 1/62. A list of weight 0 takes no part: what
    only it holds is not returned. A candidate that comes twice in a list counts at its first place.
    """
    sums = _Sums()
    for ranking, weight in _weighted(lists, weights):
        for rank, candidate in enumerate(_distinct(ranking), start=1):
            sums.add(candidate, rank=rank, term=weight / (constant + rank - 1 + rank_base))
    return sums.ordered()


def convex(lists: Sequence[Sequence[Candidate]], *, weights: Sequence[float] | None = None) -> list[Candidate]:
    """Convex combination of min-max normalised scores: score(d) = sum of w / sum(w) * (s - min) / (max - min).

    Bruch, Gai, Ingber (TOIS 2023). Minimum and maximum are those of the list as it was read, so the depth counts.
    A list whose scores are all equal (or that holds one candidate) gives 1 to each; an absent candidate earns 0, as
    does the last of a list. A list of weight 0 takes no part, an empty one keeps its weight.
    """
    sums = _Sums()
    taking_part = _weighted(lists, weights)
    total = fsum(weight for _, weight in taking_part)
    for ranking, weight in taking_part:
        distinct = _distinct(ranking)
        low = min((candidate.score for candidate in distinct), default=0.0)
        span = max((candidate.score for candidate in distinct), default=0.0) - low
        for rank, candidate in enumerate(distinct, start=1):
            share = (candidate.score - low) / span if span > 0 else 1.0
            sums.add(candidate, rank=rank, term=weight / total * share)
    return sums.ordered()


def fuse(lists: Sequence[Sequence[Candidate]], *, fusion: Fusion) -> list[Candidate]:
    """The lists, in the order of `fusion.weights`, by the configured formula."""
    if fusion.formula == "convex":
        return convex(lists, weights=fusion.weights)
    return rrf(lists, constant=fusion.constant, rank_base=fusion.rank_base, weights=fusion.weights)


def _weighted(
    lists: Sequence[Sequence[Candidate]], weights: Sequence[float] | None
) -> list[tuple[Sequence[Candidate], float]]:
    if weights is None:
        weights = [1.0] * len(lists)
    if len(weights) != len(lists):
        raise ValueError(f"{len(lists)} lists need as many weights, not {len(weights)}")
    return [(ranking, weight) for ranking, weight in zip(lists, weights, strict=True) if weight > 0]


def _distinct(ranking: Sequence[Candidate]) -> list[Candidate]:
    first: dict[str, Candidate] = {}
    for candidate in ranking:
        first.setdefault(candidate.id, candidate)
    return list(first.values())


class _Sums:
    """What each candidate has earned, and the best rank any leg gave it."""

    def __init__(self) -> None:
        self._candidates: dict[str, Candidate] = {}
        self._terms: dict[str, list[float]] = {}
        self._best: dict[str, int] = {}

    def add(self, candidate: Candidate, *, rank: int, term: float) -> None:
        key = candidate.id
        # A list that was fused before brings the best rank of its legs, a leg its own.
        best = rank if candidate.best_leg_rank is None else candidate.best_leg_rank
        if key in self._candidates:
            self._terms[key].append(term)
            self._best[key] = min(best, self._best[key])
        else:
            self._candidates[key], self._terms[key], self._best[key] = candidate, [term], best

    def ordered(self) -> list[Candidate]:
        fused = [
            Candidate(
                id=key,
                # fsum: equal terms give equal scores in whatever order the lists came.
                score=fsum(self._terms[key]),
                path=candidate.path,
                source=candidate.source,
                ordinal=candidate.ordinal,
                best_leg_rank=self._best[key],
            )
            for key, candidate in self._candidates.items()
        ]
        return sorted(fused, key=tie_key)
