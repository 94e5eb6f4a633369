"""Comparing runs, question by question: `compare` and what it gives back."""

from backend.core.comparison.comparing import Candidate, Comparison, compare
from backend.core.comparison.pairing import Paired, Pairing, QuestionDelta, pair, pair_all, question_deltas
from backend.core.comparison.sides import CorpusChange, Side
from backend.core.comparison.transitions import Transitions, transitions
from backend.core.comparison.verdicts import Decision, Verdict

__all__ = [
    "Candidate",
    "Comparison",
    "CorpusChange",
    "Decision",
    "Paired",
    "Pairing",
    "QuestionDelta",
    "Side",
    "Transitions",
    "Verdict",
    "compare",
    "pair",
    "pair_all",
    "question_deltas",
    "transitions",
]
