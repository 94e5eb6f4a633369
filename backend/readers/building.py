"""Text and marks put together block by block, cleaned of what a database cannot hold, within limits."""

import re
from dataclasses import dataclass

from backend.core.errors import DocumentError, ErrorCode
from backend.core.types import ExtractedText, Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What one document may ask for. `n_unpacked_bytes` is the declared size of all parts of a zip format."""

    n_pages: int = 5_000
    n_characters: int = 20_000_000
    n_unpacked_bytes: int = 300_000_000


DEFAULT_LIMITS = ReadLimits()

# NUL and lone surrogates cannot be stored in PostgreSQL; the other controls are debris of binary formats.
_UNSTORABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# The look behind lets a match begin at the start of a run only: else a long run of spaces takes quadratic time.
_TRAILING = re.compile(r"(?<![^\S\n])[^\S\n]+(?=\n|\Z)")
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"\s+")


def clean(text: str) -> str:
    """Storable text with line feeds as its only line ends. Changes offsets: call it before any is taken."""
    return _UNSTORABLE.sub("", _LINE_END.sub("\n", text))


def one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def tidy(text: str) -> str:
    """Cleaned text without trailing spaces, and with one blank line where there were several."""
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", clean(text))).strip("\n")


class TextBuilder:
    """Collects blocks into one text. Blocks are parted by a blank line, the lines of a block by a line feed."""

    def __init__(self, *, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._parts: list[str] = []
        self._length = 0
        self._marks: list[Mark] = []
        self._headings: list[tuple[int, str]] = []
        self._page: int | None = None
        self._unsettled = False
        self.warnings: list[str] = []

    @property
    def length(self) -> int:
        return self._length

    def heading(self, text: str, *, level: int) -> None:
        """A block that opens a section: what follows carries it, below the open headings of lower levels."""
        title = one_line(clean(text))
        if not title:
            return
        self.open_section(title, level=level)
        self.block(title)

    def open_section(self, title: str, *, level: int) -> None:
        """The same without text of its own: from the next block on."""
        self._headings = [held for held in self._headings if held[0] < level]
        self._headings.append((level, one_line(clean(title))[:300]))
        self._mark()

    def page(self, number: int) -> None:
        self._page = number
        self._mark()

    def block(self, text: str) -> None:
        self._add(tidy(text), separator="\n\n")

    def line(self, text: str) -> None:
        """Continues the block before it on a new line (rows, list items)."""
        self._add(tidy(text), separator="\n")

    def build(self, *, reader: str) -> ExtractedText:
        text = "".join(self._parts)
        if not text.strip():
            raise DocumentError(ErrorCode.DOCUMENT_NO_TEXT, "The file holds no text: there is nothing to search in it.")
        marks = tuple(mark for mark in self._marks if mark.start < len(text))
        return ExtractedText(text=text, marks=marks, reader=reader, warnings=tuple(self.warnings))

    def _add(self, text: str, *, separator: str) -> None:
        if not text.strip():
            return
        if self._parts:
            self._append(separator)
        self._settle_mark()
        self._append(text)

    def _append(self, text: str) -> None:
        self._length += len(text)
        if self._length > self._limits.n_characters:
            raise DocumentError(
                ErrorCode.DOCUMENT_TOO_LARGE,
                f"The document has more than {self._limits.n_characters:,} characters of text. Split it into parts.",
            )
        self._parts.append(text)

    def _mark(self) -> None:
        mark = Mark(start=self._length, heading=tuple(title for _, title in self._headings), page=self._page)
        if self._unsettled:
            self._marks[-1] = mark
        else:
            self._marks.append(mark)
        self._unsettled = True

    def _settle_mark(self) -> None:
        # A mark made between two blocks stands before the separator: it belongs to the block that comes next.
        if self._unsettled:
            last = self._marks[-1]
            self._marks[-1] = Mark(start=self._length, heading=last.heading, page=last.page)
            self._unsettled = False
