"""Reranking by a chat model: what is asked, and what a reply means whatever numbers it holds.

Listwise: the model sees the whole pool, in a seeded shuffle (models favour what stands first), and returns the
numbers best first. A number that it does not know of is left out, the second mention of one counts for nothing, and
what it leaves out follows in its former order. Pointwise: one passage a call, on a scale of 0 to 10.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.core.delimiting import block, mark_for, rule
from backend.core.replies import UnreadableReplyError, whole_of

MOST_SCORE = 10
PROMPT_VERSION = "rank/1"

LISTWISE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"ranking": {"type": "array", "items": {"type": "integer"}}},
    "required": ["ranking"],
    "additionalProperties": False,
}
POINTWISE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": list(range(MOST_SCORE + 1))}},
    "required": ["score"],
    "additionalProperties": False,
}
_LISTWISE = (
    "You order passages by how well each answers a question. Reply with one JSON object and nothing else: "
    '{{"ranking": [numbers of the passages, best first]}}. Name every passage once. {rule}'
)
_POINTWISE = (
    "You say how well a passage answers a question. Reply with one JSON object and nothing else: "
    '{{"score": a whole number from 0 (it has nothing to do with the question) to 10 (it answers it fully)}}. {rule}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`shown` are the passages' places (from 0) in the order in which the model sees them, as numbers 1, 2, 3…"""

    system: str
    user: str
    shown: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Places (from 0), best first: all of them, each once. The counts say what the reply got wrong."""

    places: tuple[int, ...]
    n_named: int
    n_missing: int
    n_doubled: int
    n_unknown: int


def listwise_prompt(query: str, texts: Sequence[str]) -> Prompt:
    """The shuffle's seed is the question, so that a pool is always shown in the same order, whatever its texts hold."""
    mark = mark_for([query, *texts])
    shown = list(range(len(texts)))
    random.Random(f"{len(texts)}:{query}").shuffle(shown)  # noqa: S311  an order, no secret
    passages = "\n".join(
        block("passage", texts[place], mark=mark, number=number) for number, place in enumerate(shown, start=1)
    )
    return Prompt(
        system=_LISTWISE.format(rule=rule(mark)),
        user=f"{block('question', query, mark=mark)}\n{passages}",
        shown=tuple(shown),
    )


def pointwise_prompt(query: str, text: str) -> Prompt:
    mark = mark_for([query, text])
    return Prompt(
        system=_POINTWISE.format(rule=rule(mark)),
        user=f"{block('question', query, mark=mark)}\n{block('passage', text, mark=mark, number=1)}",
        shown=(0,),
    )


def read_order(value: Mapping[str, Any], *, shown: Sequence[int]) -> Order:
    """What a reply to a listwise prompt means. Raises UnreadableReplyError where it names not one known passage."""
    given = value.get("ranking")
    if not isinstance(given, list):
        raise UnreadableReplyError("ranking is not a list.")
    named: list[int] = []
    seen: set[int] = set()
    n_doubled = n_unknown = 0
    for each in given:
        number = _number(each)
        if number is None or not 1 <= number <= len(shown):
            n_unknown += 1
        elif number in seen:
            n_doubled += 1
        else:
            seen.add(number)
            named.append(shown[number - 1])
    if not named and shown:
        raise UnreadableReplyError("ranking names none of the passages.")
    missing = sorted(set(shown) - set(named))
    return Order(
        places=(*named, *missing),
        n_named=len(named),
        n_missing=len(missing),
        n_doubled=n_doubled,
        n_unknown=n_unknown,
    )


def scores_of(order: Order) -> tuple[float, ...]:
    """By place, in 0..1: equal steps for what was named, and 0 for what was not, which then keeps its former order."""
    scores = [0.0] * len(order.places)
    for rank, place in enumerate(order.places[: order.n_named]):
        scores[place] = (order.n_named - rank) / order.n_named
    return tuple(scores)


def read_score(value: Mapping[str, Any]) -> float:
    """In 0..1. Raises UnreadableReplyError for what is not on the scale."""
    return whole_of(value, "score", low=0, high=MOST_SCORE) / MOST_SCORE


def _number(value: Any) -> int | None:
    """A number as models write it: 3, "3" or "[3]"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        bare = value.strip().strip("[]#").strip()
        return int(bare) if bare.isascii() and bare.isdigit() and len(bare) < 9 else None
    return None
