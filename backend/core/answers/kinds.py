"""How the answer to one question of one run ended."""

from enum import StrEnum


class AnswerOutcome(StrEnum):
    """`judged` has its scores. `failed`: answering or judging did not work, however often it was tried. `skipped`: the
    question brought no passages to answer from. None of the last four is in any mean."""

    JUDGED = "judged"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"


# What a retry leaves alone: a skipped one depends on the ranking only, and comes anew with it.
SETTLED = frozenset({AnswerOutcome.JUDGED, AnswerOutcome.SKIPPED})
