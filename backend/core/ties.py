"""The one rule for equal scores, in Python as in SQL (there: the same columns, text with COLLATE "C")."""

from dataclasses import dataclass
from math import inf, isfinite

from backend.core.errors import ErrorCode, TouchstoneError

TieKey = tuple[float, float, str, str, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the rule looks at. `best_leg_rank` is the best rank any leg gave it, None where no leg ranked it."""

    id: str
    score: float
    path: str
    source: str = ""
    ordinal: int = 0
    best_leg_rank: int | None = None


def tie_key(candidate: Candidate) -> TieKey:
    """A sort key, ascending: score descending, best leg rank, path, source, ordinal, id.

    Text is compared by code point, which is the order of its UTF-8 bytes. Raises TouchstoneError
    (PROVIDER_BAD_ANSWER) for a score that is not a finite number: it has no place in an order.
    """
    if not isfinite(candidate.score):
        raise TouchstoneError(
            ErrorCode.PROVIDER_BAD_ANSWER, f"The score of passage {candidate.id} is {candidate.score}, not a number."
        )
    rank = inf if candidate.best_leg_rank is None else candidate.best_leg_rank
    return (-candidate.score, rank, candidate.path, candidate.source, candidate.ordinal, candidate.id)
