"""Where texts are found in a text, compared as everywhere: folded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backend.core.folding import fold

_LEAST_WORD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of the text; `kind` is `label` (an expected text), `word` (a word of the question) or empty."""

    text: str
    kind: str = ""


def pieces(text: str, *, labels: Iterable[str] = (), question: str = "") -> list[Piece]:
    """The text in order, cut where something was found; together the pieces are the text. A label wins over a word.

    Each character is folded by itself, so a label that meets its text only over a hyphenated line end is not marked.
    """
    kinds = [""] * len(text)
    folded, places = _folded(text)
    words = {word for word in fold(question).split() if len(word.strip(".,;:!?")) >= _LEAST_WORD}
    for word in {one.strip(".,;:!?()[]\"'“”‘’") for one in words}:
        _mark(kinds, folded, places, word, kind="word", whole=True)
    for label in labels:
        _mark(kinds, folded, places, fold(label), kind="label")
    return _cut(text, kinds)


def _folded(text: str) -> tuple[str, list[int]]:
    """The folded text, and for each of its characters the place it came from."""
    out: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            if out and out[-1] != " ":
                out.append(" ")
                places.append(place)
            continue
        for one in fold(character):
            out.append(one)
            places.append(place)
    return "".join(out), places


def _mark(kinds: list[str], folded: str, places: Sequence[int], wanted: str, *, kind: str, whole: bool = False) -> None:
    if not wanted:
        return
    at = folded.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        inside = (at > 0 and folded[at - 1].isalnum()) or (end < len(folded) and folded[end].isalnum())
        if not (whole and inside):
            for place in range(places[at], places[end - 1] + 1):
                kinds[place] = kind
        at = folded.find(wanted, at + 1)


def _cut(text: str, kinds: Sequence[str]) -> list[Piece]:
    found: list[Piece] = []
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or kinds[place] != kinds[start]:
            found.append(Piece(text=text[start:place], kind=kinds[start]))
            start = place
    return found
