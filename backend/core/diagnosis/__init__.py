"""Where a missed question was lost, and what the pool of a run could still give (docs/diagnosis.md)."""

from backend.core.diagnosis.ceiling import Lift, Move, ceiling, move
from backend.core.diagnosis.funnel import Funnel, Reached, funnel, reached
from backend.core.diagnosis.losses import (
    Asked,
    Cause,
    ExpectationLoss,
    Expected,
    QuestionLoss,
    RankedPassage,
    diagnose,
)
from backend.core.diagnosis.stages import FINAL, StagePassage, collapse_into, level_ranks
from backend.core.diagnosis.summary import Diagnosed, Losses, Summary, summarise

__all__ = [
    "FINAL",
    "Asked",
    "Cause",
    "Diagnosed",
    "ExpectationLoss",
    "Expected",
    "Funnel",
    "Lift",
    "Losses",
    "Move",
    "QuestionLoss",
    "RankedPassage",
    "Reached",
    "StagePassage",
    "Summary",
    "ceiling",
    "collapse_into",
    "diagnose",
    "funnel",
    "level_ranks",
    "move",
    "reached",
    "summarise",
]
