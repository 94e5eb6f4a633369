"""How a run's questions spread: over the ranks where they were first answered, over the time their search took."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.core.judging import JudgedList

# A page plots no further, however deep a run was scored.
DEEPEST = 100
# Upper ends in milliseconds, near 1-2-5; the last bin is open.
LATENCY_ENDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0)
# As people speak of ranks: first and last of a band.
BANDS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10))
MISS = "miss"


@dataclass(slots=True, kw_only=True)
class Spread:
    """Counts question by question; `by_rank` and `latencies` are what a run's record keeps."""

    depth: int
    n: int = 0
    _first: list[int] = field(init=False)
    _recall: list[float] = field(init=False)
    _latency: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.depth = min(self.depth, DEEPEST)
        self._first = [0] * self.depth
        self._recall = [0.0] * self.depth
        self._latency = [0] * (len(LATENCY_ENDS) + 1)

    def add(self, judged: JudgedList) -> None:
        """A scored question, with at least one relevant expectation."""
        self.n += 1
        is_first = True
        for place, rank in enumerate(judged.ranks[: self.depth]):
            if rank.relevant and is_first:
                self._first[place] += 1
                is_first = False
            if rank.new:
                n_new = sum(1 for index in rank.new if judged.is_relevant(index))
                self._recall[place] += n_new / judged.n_relevant

    def add_latency(self, milliseconds: float) -> None:
        self._latency[bisect_left(LATENCY_ENDS, milliseconds)] += 1

    def by_rank(self) -> dict[str, Any]:
        """`first`: questions first answered at rank 1, 2, … of the `n` scored; `recall`: the mean recall@1, @2, …"""
        recall, reached = [], 0.0
        for added in self._recall:
            reached += added
            recall.append(reached / self.n if self.n else 0.0)
        return {"n": self.n, "first": list(self._first), "recall": recall}

    def latencies(self) -> list[int]:
        """How many searches took up to each of LATENCY_ENDS, and longer than the last."""
        return list(self._latency)


def bands(by_rank: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Questions by the band of their first rank: 1, 2, 3, 4-5, 6-10 and deeper as far as it reaches, then `miss`."""
    first = by_rank["first"]
    depth = len(first)
    found = [
        (str(low) if low == min(high, depth) else f"{low}-{min(high, depth)}", sum(first[low - 1 : high]))
        for low, high in (*BANDS, (BANDS[-1][1] + 1, depth))
        if low <= depth
    ]
    return [*found, (MISS, by_rank["n"] - sum(first))]


def hits(by_rank: Mapping[str, Any]) -> list[float]:
    """hit@1, hit@2, … from the first ranks."""
    reached, found = 0, []
    for n in by_rank["first"]:
        reached += n
        found.append(reached / by_rank["n"] if by_rank["n"] else 0.0)
    return found
