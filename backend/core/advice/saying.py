"""What a rule says, and what the sentences share."""

from collections.abc import Callable
from dataclasses import dataclass

from backend.core.advice.figures import Figures, Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """`id` is what scripts match on; `settings` are those that the sentence speaks of. `strength` orders advice: 2 and
    more for faults that make the other figures doubtful, below 2 by how far the figure is from its threshold."""

    id: str
    sentence: str
    strength: float
    settings: tuple[str, ...] = ()


Rule = Callable[[Figures, Thresholds], Advice | None]


def by(delta: float | None, metric: str) -> str:
    return "" if delta is None else f" ({delta:+.3f}{f' in {metric}' if metric else ''})"


def share(n: int, of: int) -> float:
    return min(n / of, 1.0) if of else 0.0


def questions(n: int) -> str:
    return "question is" if n == 1 else "questions are"
