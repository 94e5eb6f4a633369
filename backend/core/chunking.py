"""Documents cut into chunks: exact character offsets, along headings, paragraphs, sentences and words.

Own code rather than a splitting library: sizes are kept in characters and in tokens at once, and tokens are counted
once per document instead of once per candidate.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backend.core.errors import ValidationError
from backend.core.types import ChunkSpan, ExtractedText, Mark

SMALLEST_SIZE = 50
LARGEST_SIZE = 100_000

# Where each token of a text starts (characters, rising); None where the model's tokeniser is not known.
TokenOffsets = Callable[[str], Sequence[int] | None]

# A section shorter than this part of the size is joined with the next: a heading with a line is no passage.
_LEAST_SECTION = 0.25
# A chunk is filled at least so far before it ends at a paragraph, a list item or row, a sentence, a line, a word.
_LEAST_FILL = (0.4, 0.5, 0.5, 0.5, 0.0)
_PARAGRAPH = re.compile(r"\n\s*\n")
_ROW_OR_ITEM = re.compile(r"\n(?=[^\S\n]*(?:[-*•–]|\d{1,3}[.)])\s|[^\n]{1,300}? \| )")
_SENTENCE = re.compile(r"[.!?…]['\")\]»”’]*\s+|[。！？]['」』”]*")
_LINE = re.compile(r"\n")
_WORD = re.compile(r"\s+")
_BREAKS = tuple(zip((_PARAGRAPH, _ROW_OR_ITEM, _SENTENCE, _LINE, _WORD), _LEAST_FILL, strict=True))
_NOT_SPACE = re.compile(r"\S")
_TOKENISED_AT_ONCE = 200_000


class ChunkMode(StrEnum):
    STRUCTURE = "structure"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSettings:
    """Part of an Index's settings. Raises ValidationError.

    `size` and `overlap` are characters. `max_tokens` is what the embedder's window has left for a text (without its
    prefix and special tokens); None where there is no embedder or no limit. `mode` `document` is one chunk a document.
    """

    size: int = 1200
    overlap: int = 150
    mode: ChunkMode = ChunkMode.STRUCTURE
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in tuple(ChunkMode):
            raise ValidationError("A chunking mode is `structure` or `document`.", field="mode")
        if not SMALLEST_SIZE <= self.size <= LARGEST_SIZE:
            raise ValidationError(f"A chunk has between {SMALLEST_SIZE} and {LARGEST_SIZE:,} characters.", field="size")
        if not 0 <= self.overlap <= self.size // 2:
            raise ValidationError("The overlap is at least 0 and at most half of the size.", field="overlap")
        if self.max_tokens is not None and self.max_tokens < 8:
            raise ValidationError("A model's window has at least 8 tokens.", field="max_tokens")


def chunk(
    extracted: ExtractedText, settings: ChunkSettings, token_offsets: TokenOffsets | None = None
) -> list[ChunkSpan]:
    """The document's chunks in order, trimmed of white space; none for a document without text.

    No chunk exceeds `size` characters or `max_tokens` tokens (as counted in the whole document: a chunk alone may
    differ by one or two), and every printed character is in at least one. A heading ends the chunk before it unless
    that is shorter than a quarter of the size. Chunks of one section overlap by at most `overlap` characters, from
    the start of a sentence or word on; chunks of different sections do not overlap. Heading and page are those of the
    chunk's first character. `truncated` is only ever set in mode `document`.
    """
    text = extracted.text
    counter = _Tokens.of(text, settings, token_offsets)
    if settings.mode == ChunkMode.DOCUMENT:
        spans: Iterator[tuple[int, int]] = iter([(0, len(text))])
    else:
        spans = _Cutter(text, extracted.marks, settings, counter).spans()
    starts = [mark.start for mark in extracted.marks]
    chunks: list[ChunkSpan] = []
    for rough_start, rough_end in spans:
        start, end = _trimmed(text, rough_start, rough_end)
        if start >= end:
            continue
        place = bisect_right(starts, start) - 1
        mark = extracted.marks[place] if place >= 0 else Mark(start=0)
        truncated = counter is not None and counter.end_of(start) < end
        chunks.append(ChunkSpan(start=start, end=end, heading=mark.heading, page=mark.page, truncated=truncated))
    return chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    offsets: Sequence[int]
    most: int
    length: int

    @classmethod
    def of(cls, text: str, settings: ChunkSettings, token_offsets: TokenOffsets | None) -> "_Tokens | None":
        if settings.max_tokens is None or token_offsets is None:
            return None
        offsets: list[int] = []
        for start, end in _pieces(text):
            found = token_offsets(text[start:end])
            if found is None:
                return None
            offsets.extend(start + offset for offset in found)
        return cls(offsets=offsets, most=settings.max_tokens, length=len(text))

    def end_of(self, start: int, *, part: float = 1.0) -> int:
        """Where a text from `start` on has used up the window (or that part of it)."""
        # A token begun before `start` counts: cut in two, its rest is at least one token.
        first = bisect_left(self.offsets, start)
        if first == len(self.offsets) or self.offsets[first] != start:
            first = max(0, first - 1)
        last = first + max(1, int(self.most * part))
        return self.offsets[last] if last < len(self.offsets) else self.length

    def start_of(self, end: int, *, part: float) -> int:
        """Where a text up to `end` begins that uses that part of the window."""
        first = bisect_left(self.offsets, end) - int(self.most * part)
        return self.offsets[max(0, first)] if self.offsets else 0


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """The text in parts that a tokeniser holds in memory easily, cut between lines (or words)."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _TOKENISED_AT_ONCE)
        if end < len(text):
            end = max(text.rfind("\n", start + 1, end), text.rfind(" ", start + 1, end), start) + 1
            if end <= start + 1:
                end = min(len(text), start + _TOKENISED_AT_ONCE)
        yield start, end
        start = end


class _Cutter:
    def __init__(self, text: str, marks: Sequence[Mark], settings: ChunkSettings, counter: _Tokens | None) -> None:
        self._text = text
        self._settings = settings
        self._counter = counter
        self._sections = _section_starts(marks)

    def spans(self) -> Iterator[tuple[int, int]]:
        start = reached = 0
        while reached < len(self._text):
            start = self._next_printed(start)
            if start >= len(self._text):
                return
            reached = max(reached, start)
            end, closes_section = self._end(start, reached)
            if end <= reached < len(self._text):
                # The overlap leaves no room for anything new: go on without it.
                start = self._next_printed(reached)
                if start >= len(self._text):
                    return
                end, closes_section = self._end(start, start)
            yield start, end
            reached = end
            start = end if closes_section else self._overlapped(start, end)

    def _next_printed(self, start: int) -> int:
        found = _NOT_SPACE.search(self._text, start)
        return found.start() if found is not None else len(self._text)

    def _end(self, start: int, reached: int) -> tuple[int, bool]:
        """Where a chunk from `start` ends, and whether a section ends there too."""
        furthest = min(len(self._text), start + self._settings.size)
        if self._counter is not None:
            furthest = min(furthest, max(self._counter.end_of(start), start + 1))
        room = furthest - start
        place = bisect_left(self._sections, max(start + room * _LEAST_SECTION, reached + 1))
        if place < len(self._sections) and self._sections[place] <= furthest:
            return self._sections[place], True
        if furthest == len(self._text):
            return furthest, True
        for pattern, fill in _BREAKS:
            found = self._last(pattern, max(int(start + room * fill), reached) + 1, furthest)
            if found is not None:
                return found, False
        return self._between_characters(start, furthest), False

    def _last(self, pattern: re.Pattern[str], low: int, high: int) -> int | None:
        """The end of the last break whose text before fits; white space after it may hang over."""
        last = None
        # One more character: a break may begin right where the room ends.
        for found in pattern.finditer(self._text, max(0, low - 1), min(len(self._text), high + 1)):
            printed = found.start() + len(found[0].rstrip())
            if low <= found.end() and printed <= high:
                last = max(printed, min(found.end(), high))
        return last

    def _between_characters(self, start: int, end: int) -> int:
        """Not between a letter and its accent or the parts of an emoji, where that is a matter of a few steps."""
        place = end
        while place > max(start + 1, end - 16) and _continues(self._text, place):
            place -= 1
        return end if place <= start + 1 or _continues(self._text, place) else place

    def _overlapped(self, start: int, end: int) -> int:
        """Where the next chunk starts: a sentence, else a word, within the overlap before `end`."""
        low = max(start + 1, end - self._settings.overlap)
        if self._counter is not None:
            # Repeating more than a third of a small window would make many chunks of the same words.
            low = max(low, self._counter.start_of(end, part=1 / 3))
        if low >= end:
            return end
        for pattern in (_SENTENCE, _WORD):
            for found in pattern.finditer(self._text, low - 1, end):
                if low <= found.end() < end:
                    return found.end()
        return end


def _section_starts(marks: Sequence[Mark]) -> list[int]:
    """A new page under the same heading begins no section; a heading repeated on the same page does."""
    starts: list[int] = []
    before = Mark(start=0)
    for mark in marks:
        if mark.start and mark.heading and (mark.heading != before.heading or mark.page == before.page):
            starts.append(mark.start)
        before = mark
    return starts


def _continues(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    following = text[place]
    return (
        unicodedata.combining(following) != 0
        or following in "\u200d\ufe0f\ufe0e"
        or text[place - 1] == "\u200d"
        or "\U0001f3fb" <= following <= "\U0001f3ff"
    )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    found = _NOT_SPACE.search(text, start, end)
    if found is None:
        return end, end
    return found.start(), start + len(text[start:end].rstrip())
