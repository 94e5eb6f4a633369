"""PDF to text, page by page, with the outline's titles as headings. Nothing in a page is executed."""

import ctypes
import statistics
from collections import defaultdict
from itertools import pairwise
from typing import Any

from backend.core.errors import DocumentError, ErrorCode
from backend.core.types import ExtractedText
from backend.readers.building import DEFAULT_LIMITS, ReadLimits, TextBuilder, clean, one_line

_WRONG_PASSWORD = 4
_MOST_OUTLINE_ENTRIES = 5_000
_PARAGRAPH_GAP = 1.35  # of the page's usual distance between lines


def read(data: bytes, *, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """An owner password, or an empty user password, does not stop reading. Attachments are not read."""
    # Heavy to import, and not needed by every document.
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _WRONG_PASSWORD:
            raise DocumentError(
                ErrorCode.DOCUMENT_ENCRYPTED, "The PDF needs a password to be opened. Save it without one."
            ) from error
        raise DocumentError(ErrorCode.DOCUMENT_UNREADABLE, "The PDF is broken: it cannot be opened.") from error
    try:
        return _document(document, limits)
    finally:
        document.close()


def _document(document: Any, limits: ReadLimits) -> ExtractedText:
    n_pages = len(document)
    if n_pages > limits.n_pages:
        raise DocumentError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"The PDF has {n_pages:,} pages; at most {limits.n_pages:,} are read. Split it into parts.",
        )
    builder = TextBuilder(limits=limits)
    outline = _outline(document)
    n_empty = n_broken = 0
    for index in range(n_pages):
        builder.page(index + 1)
        text = _page(document, index)
        if text is None:
            n_broken += 1
        elif not any(map(str.isalnum, text)):
            n_empty += 1
        _write(builder, text or "", outline.get(index, ()))
    if n_empty + n_broken == n_pages:
        if n_broken:
            raise DocumentError(ErrorCode.DOCUMENT_UNREADABLE, "The PDF is broken: none of its pages can be read.")
        raise DocumentError(
            ErrorCode.DOCUMENT_NO_TEXT,
            f"The PDF has no text on its {n_pages} page{'s' if n_pages != 1 else ''}: it is a scan or a drawing. "
            "Recognise its text first (OCR), then upload it again.",
        )
    if n_empty:
        builder.warnings.append(f"{n_empty} of {n_pages} pages have no text (scans or drawings)")
    if n_broken:
        builder.warnings.append(f"{n_broken} of {n_pages} pages could not be read")
    return builder.build(reader="pdf")


def _page(document: Any, index: int) -> str | None:
    """The page's text, or None where the page is broken."""
    import pypdfium2

    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return None
    try:
        textpage = page.get_textpage()
        try:
            return _paragraphs(textpage)
        finally:
            textpage.close()
    except pypdfium2.PdfiumError:
        return None
    finally:
        page.close()


def _paragraphs(textpage: Any) -> str:
    """Lines as the page has them; a blank line where the distance between two is wider than usual."""
    lines = textpage.get_text_range().split("\r\n")
    tops = _tops(textpage, lines)
    drops = [above - below for above, below in pairwise(tops) if above is not None and below is not None]
    falling = [drop for drop in drops if drop > 0.5]
    usual = statistics.median_low(falling) if falling else 0.0
    parts: list[str] = []
    for place, line in enumerate(lines):
        # U+FFFE stands where PDFium joined a word hyphenated at a line's end: the page's own look is kept.
        parts.append(line.replace("\ufffe", "-\n"))
        if place + 1 < len(lines):
            above, below = tops[place], tops[place + 1]
            wide = above is not None and below is not None and above - below > _PARAGRAPH_GAP * usual
            parts.append("\n\n" if wide and usual else "\n")
    return clean("".join(parts))


def _tops(textpage: Any, lines: list[str]) -> list[float | None]:
    """The baseline-side edge of each line's first printed character."""
    import pypdfium2.raw as pdfium

    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    tops: list[float | None] = []
    position = 0
    for line in lines:
        offset = len(line) - len(line.lstrip())
        # Text indices count UTF-16 units, so does the conversion.
        index = pdfium.FPDFText_GetCharIndexFromTextIndex(textpage.raw, position + offset)
        found = (
            line.strip() and index >= 0 and pdfium.FPDFText_GetCharBox(textpage.raw, index, left, right, bottom, top)
        )
        tops.append(bottom.value if found else None)
        position += len(line.encode("utf-16-le", "surrogatepass")) // 2 + 2
    return tops


def _outline(document: Any) -> dict[int, list[tuple[int, str]]]:
    """(level, title) of the outline's entries by page index. Entries that point nowhere are left out."""
    import pypdfium2

    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    try:
        for number, entry in enumerate(document.get_toc(max_depth=6)):
            if number >= _MOST_OUTLINE_ENTRIES:
                break
            target = entry.get_dest()
            index = target.get_index() if target is not None else None
            title = one_line(clean(entry.get_title() or ""))
            if title and index is not None and index >= 0:
                found[index].append((entry.level + 1, title))
    except pypdfium2.PdfiumError:
        return {}
    return found


def _write(builder: TextBuilder, text: str, titles: "list[tuple[int, str]] | tuple[()]") -> None:
    """The page's text, each outline title opening its section where the page prints it, else at the top."""
    position = 0
    for level, title in titles:
        place = _printed(text, title, position)
        if place is not None and place > position:
            builder.block(text[position:place])
            position = place
        builder.open_section(title, level=level)
    builder.block(text[position:])


def _printed(text: str, title: str, start: int) -> int | None:
    """Where a line of the page begins with the title."""
    place = text.find(title, start)
    while place > 0 and text[place - 1] != "\n":
        place = text.find(title, place + 1)
    return place if place >= 0 else None
