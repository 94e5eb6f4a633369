"""From a judge's reply to scores.

A claim counts as supported only when the judge quotes words that really are in a passage: a verdict without evidence
is the judge's word alone. An answer that makes no claim has no faithfulness, rather than 0, 1 or NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backend.core.answers.prompts import MOST_CLAIMS
from backend.core.folding import fold
from backend.core.replies import UnreadableReplyError, read_object, text_of, whole_of

_MOST_TEXT = 4000
_STEPS = 2
_VERDICTS = frozenset({"supported", "contradicted", "unsupported"})
_LEAST_QUOTE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`is_quoted`: the words that the judge named are in a passage."""

    claim: str
    verdict: str
    quote: str
    is_quoted: bool

    @property
    def is_supported(self) -> bool:
        return self.verdict == "supported" and self.is_quoted

    def to_json(self) -> dict[str, Any]:
        return {"claim": self.claim, "verdict": self.verdict, "quote": self.quote, "is_quoted": self.is_quoted}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Scores in 0..1. `correctness` None: there is no reference answer; `faithfulness` None: no claim was made."""

    claims: tuple[Claim, ...]
    abstained: bool
    relevance: float
    correctness: float | None = None

    @property
    def faithfulness(self) -> float | None:
        """Supported claims / claims (Es et al. 2023, with evidence asked for)."""
        if not self.claims:
            return None
        return sum(claim.is_supported for claim in self.claims) / len(self.claims)


def read_answer(reply: str) -> str:
    """The answer; empty where the model has none. Raises UnreadableReplyError."""
    return text_of(read_object(reply).value, "answer", longest=20_000)


def read_judgement(reply: str, *, passages: Sequence[str], with_reference: bool) -> Judgement:
    """Raises UnreadableReplyError for anything that is not what was asked for: a score is never guessed or clamped."""
    value = read_object(reply).value
    given = value.get("claims")
    if not isinstance(given, list) or len(given) > 2 * MOST_CLAIMS:
        raise UnreadableReplyError("claims is not a list of statements.")
    folded = [fold(passage) for passage in passages]
    abstained = value.get("abstained", False)
    if not isinstance(abstained, bool):
        raise UnreadableReplyError("abstained is not true or false.")
    return Judgement(
        claims=tuple(_claim(one, folded) for one in given),
        abstained=abstained,
        relevance=whole_of(value, "relevance", low=0, high=_STEPS) / _STEPS,
        correctness=whole_of(value, "correctness", low=0, high=_STEPS) / _STEPS if with_reference else None,
    )


def _claim(value: Any, passages: Sequence[str]) -> Claim:
    if not isinstance(value, dict):
        raise UnreadableReplyError("A claim is not an object.")
    verdict = value.get("verdict")
    if verdict not in _VERDICTS:
        raise UnreadableReplyError(f"There is no verdict {verdict!r}.")
    quote = text_of(value, "quote", longest=_MOST_TEXT) if value.get("quote") is not None else ""
    wanted = fold(quote.strip("\"'“”„«»… ."))
    return Claim(
        claim=text_of(value, "claim", longest=_MOST_TEXT),
        verdict=str(verdict),
        quote=quote,
        is_quoted=len(wanted) >= _LEAST_QUOTE and any(wanted in passage for passage in passages),
    )


def mean(values: Sequence[float | None]) -> float | None:
    """Of those that there are; None where there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
