"""Why a result is where it is: a sentence about its stages, and a snippet with the words that matched."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from backend.core.types import Passage
from backend.search import lexemes
from backend.search.types import MEANING, RERANKER, WORDS, Entry

SNIPPET_LENGTH = 280
_LOOKED_AT = 50_000

_WORD = re.compile(r"\S+")
# What may stand around a word and is no part of it.
_EDGES = " \t\n.,;:!?()[]{}<>\"'`*_|“”‘’„«»…-–—/\\"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A part of the passage. `marks` are (start, end) in `text`; `start` is where it begins in the passage."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    start: int = 0


def reason(entry: Entry, *, legs: Collection[str]) -> str:
    """Sentences for people. `legs` are those that the configuration reads (`semantic`, `keyword`): what was not asked
    is not said."""
    meaning, words = entry.stages.get(MEANING), entry.stages.get(WORDS)
    if meaning is not None and words is not None:
        said = (
            f"Close in meaning (rank {meaning.rank}) and shares words with the question (rank {words.rank}): "
            "both retrievers agree."
        )
    elif words is not None and "semantic" in legs:
        said = (
            f"Shares words with the question (rank {words.rank}) but is not among the closest in meaning: "
            "it names a term exactly, and says little else like the question."
        )
    elif meaning is not None and "keyword" in legs:
        said = (
            f"Close in meaning (rank {meaning.rank}) while its words do not match: the same thing in other words, or "
            "only the nearest there is."
        )
    elif words is not None:
        said = f"Shares words with the question (rank {words.rank})."
    elif meaning is not None:
        said = f"Close in meaning to the question (rank {meaning.rank})."
    else:
        raise ValueError("an entry was ranked by at least one leg")
    reranked = entry.stages.get(RERANKER)
    if reranked is not None:
        said += f" The reranker scored it {reranked.score:.4g} and put it at {reranked.rank}."
    return said


def snippets(
    passages: Sequence[Passage], question: str, *, languages: Collection[str], length: int = SNIPPET_LENGTH
) -> list[Snippet]:
    """One per passage, around the words that have a lexeme of the question in any of the Indexes' languages.

    Costs two queries per language, whatever the number of passages. Only the first 50,000 characters are looked at.
    """
    split = [list(_words(passage.text[:_LOOKED_AT])) for passage in passages]
    distinct = list(dict.fromkeys(word for words in split for _, word in words))
    matched: dict[str, frozenset[str]] = {}
    for language in languages:
        wanted = frozenset(lexemes.of_texts([question], language=language)[0])
        if wanted:
            for word, found in lexemes.of_words(distinct, language=language).items():
                matched[word] = matched.get(word, frozenset()) | (found & wanted)
    return [
        _cut(
            passage.text,
            [(start, start + len(word), matched[word]) for start, word in words if matched.get(word)],
            length=length,
        )
        for passage, words in zip(passages, split, strict=True)
    ]


def _words(text: str) -> Iterable[tuple[int, str]]:
    for match in _WORD.finditer(text):
        raw = match.group()
        word = raw.strip(_EDGES)
        if word:
            yield match.start() + raw.index(word), word


def _ends_by(limit: int) -> Callable[[tuple[int, int, frozenset[str]]], bool]:
    return lambda match: match[1] <= limit


def _cut(text: str, matches: Sequence[tuple[int, int, frozenset[str]]], *, length: int) -> Snippet:
    """The window with the most distinct lexemes, then the most matches, then the first; it begins at a word."""
    start = 0
    if len(text) > length and matches:
        best = (0, 0)
        for place, (first, _, _) in enumerate(matches):
            inside = list(takewhile(_ends_by(first + length), islice(matches, place, None)))
            value = (len(frozenset().union(*(match[2] for match in inside))), len(inside))
            if value > best:
                best, start = value, first
        # Some words before the first match; none when that would cost the last.
        last = max((end for first, end, _ in matches if first >= start and end <= start + length), default=start)
        start = max(0, start - min(length // 4, start + length - last))
    end = min(len(text), start + length)
    # Never begin or end inside a word, unless there is no other place.
    if start > 0 and not text[start - 1].isspace():
        start = next((at + 1 for at in range(start, end) if text[at].isspace()), start)
    if end < len(text) and not text[end].isspace():
        end = next((at for at in range(end, start, -1) if text[at].isspace()), end)
    marks = tuple((first - start, last - start) for first, last, _ in matches if first >= start and last <= end)
    return Snippet(text=text[start:end], marks=marks, start=start)
