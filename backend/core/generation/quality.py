"""Whether a passage is worth asking about: contents lists, boilerplate and stubs make questions that nobody asks."""

import re

from backend.core.generation.words import words

LEAST_WORDS = 40
_LEADER = re.compile(r"(?:\.\s?){4,}\s*\d+|(?:…){2,}\s*\d+|\t\d+\s*$", re.M)
_NUMBER = re.compile(r"\d")
_MOST_LEADERS = 3
_LEAST_LETTERS = 0.5
_MOST_REPEATED = 0.5


def fault_of(text: str) -> str:
    """Why nothing should be asked about it, in words; the empty string where something can."""
    found = words(text)
    if len(found) < LEAST_WORDS:
        return f"{len(found)} words, where {LEAST_WORDS} are the least"
    if len(_LEADER.findall(text)) >= _MOST_LEADERS:
        return "a list of contents"
    letters = sum(character.isalpha() for character in text)
    visible = sum(not character.isspace() for character in text)
    if letters < _LEAST_LETTERS * visible:
        return "more figures and signs than letters"
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if len(lines) >= 6 and len(set(lines)) < _MOST_REPEATED * len(lines):
        return "the same lines over and over"
    return ""
