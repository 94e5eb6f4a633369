"""Where a missed question was lost, and what the pool of a run could still give (docs/diagnosis.md)."""

from backend.core.diagnosis.ceiling import Lift, Move, ceiling, move
from backend.core.diagnosis.losses import (
    Asked,
    Cause,
    ExpectationLoss,
    Expected,
    QuestionLoss,
    RankedPassage,
    diagnose,
)
from backend.core.diagnosis.stages import FINAL, StagePassage, level_ranks
from backend.core.diagnosis.summary import Diagnosed, Losses, Summary, summarise

__all__ = [
    "FINAL",
    "Asked",
    "Cause",
    "Diagnosed",
    "ExpectationLoss",
    "Expected",
    "Lift",
    "Losses",
    "Move",
    "QuestionLoss",
    "RankedPassage",
    "StagePassage",
    "Summary",
    "ceiling",
    "diagnose",
    "level_ranks",
    "move",
    "summarise",
]
