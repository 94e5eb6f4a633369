"""The kinds of questions, the states of a draft, and what a filter can say."""

from enum import StrEnum


class QuestionKind(StrEnum):
    """`fact` asks for what the passage says, `paraphrase` the same in other words than the passage's, `keyword` is what
    people type into a search box (codes, terms, a slip), `several` needs two passages, `unanswerable` none has."""

    FACT = "fact"
    PARAPHRASE = "paraphrase"
    KEYWORD = "keyword"
    SEVERAL = "several"
    UNANSWERABLE = "unanswerable"


class DraftState(StrEnum):
    """`open` is still to be asked for, `pending` waits for a person. `dropped` by a filter, `failed` where no question
    came: both stay, with the reason, and a person may still accept what was dropped."""

    OPEN = "open"
    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DROPPED = "dropped"
    FAILED = "failed"


class DraftFault(StrEnum):
    """Why no question came of an asking that was answered. A call that failed has its provider's code instead."""

    CUT = "cut"
    REFUSED = "refused"
    EMPTY = "empty"
    UNREADABLE = "unreadable"


class Action(StrEnum):
    PASS = "pass"  # noqa: S105  a verdict, no password
    FLAG = "flag"
    DROP = "drop"
    SKIP = "skip"


class LeakageBand(StrEnum):
    """How much of a question's wording is the passage's own: copied words flatter keyword search."""

    LOW = "low"
    MIDDLE = "middle"
    HIGH = "high"
