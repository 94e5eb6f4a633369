"""From what a chat model wrote to the JSON object that was asked for: bare, fenced, or with words around it.

Some models repeat their object, think aloud before it, or put it in a code fence although none was asked for. Each is
read, and how it came is told. What holds no object is unreadable: nothing is guessed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.S | re.I)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.S)
_MOST_TRIES = 50


class UnreadableReplyError(Exception):
    """The reply holds no JSON object, or not the one that was asked for; the sentence says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """`how` is plain, fenced, embedded (words around it) or doubled (the same object twice)."""

    value: Mapping[str, Any]
    how: str


def read_object(text: str) -> Read:
    """The first JSON object of a reply. Raises UnreadableReplyError, also where a second object says something else:
    which of the two was meant cannot be known."""
    bare = _THOUGHT.sub("", text).strip().removeprefix("\ufeff")
    if not bare:
        raise UnreadableReplyError("The reply is empty.")
    fenced = _FENCE.search(bare)
    inner = fenced[1].strip() if fenced else bare
    found, rest, before = _first(inner)
    if found is None:
        raise UnreadableReplyError(f"The reply holds no JSON object: {_short(bare)}")
    how = "fenced" if fenced else "embedded" if before or rest else "plain"
    second, _, _ = _first(rest)
    if second is not None:
        if second != found:
            raise UnreadableReplyError("The reply holds two different JSON objects.")
        how = "doubled"
    return Read(value=found, how=how)


def _first(text: str) -> tuple[dict[str, Any] | None, str, bool]:
    """The first object, what follows it, and whether something stands before it."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at = -1
    for _ in range(_MOST_TRIES):
        at = text.find("{", at + 1)
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value, text[end:].strip(), bool(text[:at].strip())
    return None, "", False


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 80 else flat[:80] + "…")


def text_of(value: Mapping[str, Any], name: str, *, longest: int) -> str:
    """A field that is a text. Raises UnreadableReplyError."""
    given = value.get(name)
    if not isinstance(given, str):
        raise UnreadableReplyError(f"{name} is not a text.")
    text = given.replace("\x00", "").strip()
    if len(text) > longest:
        raise UnreadableReplyError(f"{name} is longer than {longest:,} characters.")
    # Half a surrogate pair, which JSON can write and no database keeps.
    return text.encode("utf-8", "replace").decode()


def whole_of(value: Mapping[str, Any], name: str, *, low: int, high: int) -> int:
    """A field that is a whole number within bounds; one out of bounds is refused, never clamped."""
    given = value.get(name)
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if not isinstance(given, int) or isinstance(given, bool) or not low <= given <= high:
        raise UnreadableReplyError(f"{name} is not a whole number from {low} to {high}: {_short(str(given))}")
    return given
