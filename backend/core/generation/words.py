"""Words, sentences and likeness of texts, as the filters count them."""

import re
from collections.abc import Sequence

from backend.core.folding import fold
from backend.core.languages import common_words

_WORD = re.compile(r"[\w]+(?:[-'’./][\w]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?…。])[\"'”»)]*\s+(?=[^\s])|\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)")
_SHINGLE = 5


def words(text: str) -> list[str]:
    """Folded words; a code such as E-42 or 3.1 is one."""
    return _WORD.findall(fold(text))


def content_words(text: str) -> list[str]:
    """Those that carry meaning: neither among a language's commonest nor a single letter."""
    common = common_words()
    return [word for word in words(text) if word not in common and (len(word) > 2 or any(map(str.isdigit, word)))]


def sentences(text: str) -> list[str]:
    """As they stand in the text, without the white space around them."""
    return [stripped for part in _SENTENCE_END.split(text) if (stripped := part.strip())]


def longest_run(asked: Sequence[str], text: Sequence[str]) -> int:
    """The length of the longest run of words that both hold."""
    best = 0
    row = [0] * (len(text) + 1)
    for word in asked:
        previous = 0
        for place, other in enumerate(text, start=1):
            kept = row[place]
            row[place] = previous + 1 if word == other else 0
            previous = kept
            best = max(best, row[place])
    return best


def overlap(first: Sequence[str], second: Sequence[str]) -> float:
    """Jaccard: what both hold, of what either holds; 0 where both are empty."""
    one, other = set(first), set(second)
    return len(one & other) / len(one | other) if one | other else 0.0


def likeness(first: str, second: str) -> float:
    """Of two passages: the overlap of their runs of five words (of all their words where they are shorter)."""
    one, other = words(first), words(second)
    if min(len(one), len(other)) < _SHINGLE:
        return overlap(one, other)
    return overlap(_shingles(one), _shingles(other))


def _shingles(found: Sequence[str]) -> list[str]:
    return [" ".join(found[start : start + _SHINGLE]) for start in range(len(found) - _SHINGLE + 1)]
