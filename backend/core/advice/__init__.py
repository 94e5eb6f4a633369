"""What a run's own figures say to try next (docs/advice.md)."""

from backend.core.advice.figures import Chunks, Figures, Interval, Label, Languages, NotIndexed, Thresholds
from backend.core.advice.rules import RULES, advise
from backend.core.advice.saying import Advice

__all__ = [
    "RULES",
    "Advice",
    "Chunks",
    "Figures",
    "Interval",
    "Label",
    "Languages",
    "NotIndexed",
    "Thresholds",
    "advise",
]
