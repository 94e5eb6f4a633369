"""How long work will take, from how fast it went."""

from collections.abc import Iterable
from dataclasses import dataclass

# An estimate from fewer results than this says nothing.
LEAST = 3
# What was done in the last minute says more of the next one than the average: a run speeds up and slows down.
RECENT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """`n_left` results are to come. `n_done` came in `seconds` since the first, `n_recent` of them in the last
    RECENT_SECONDS."""

    n_left: int
    n_done: int
    n_recent: int
    seconds: float


def seconds_left(paces: Iterable[Pace]) -> float | None:
    """Of several that go on side by side the longest; None while one of them says nothing.

    The rate is the recent one where enough came lately, else that since the first result: 40 left at 2 a second are
    20 s. 0 when nothing is left.
    """
    longest = 0.0
    for one in paces:
        if one.n_left <= 0:
            continue
        recent = min(RECENT_SECONDS, one.seconds)
        n, seconds = (one.n_recent, recent) if one.n_recent >= LEAST else (one.n_done, one.seconds)
        if n < LEAST or seconds <= 0:
            return None
        longest = max(longest, one.n_left * seconds / n)
    return longest
