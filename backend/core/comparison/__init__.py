"""Comparing runs, question by question: `compare` and what it gives back."""

from backend.core.comparison.comparing import Candidate, Comparison, compare
from backend.core.comparison.pairing import Paired, QuestionDelta, pair, question_deltas
from backend.core.comparison.sides import CorpusChange, Side
from backend.core.comparison.transitions import Transitions, transitions
from backend.core.comparison.verdicts import Decision, Verdict

__all__ = [
    "Candidate",
    "Comparison",
    "CorpusChange",
    "Decision",
    "Paired",
    "QuestionDelta",
    "Side",
    "Transitions",
    "Verdict",
    "compare",
    "pair",
    "question_deltas",
    "transitions",
]
