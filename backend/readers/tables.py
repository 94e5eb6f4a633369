"""CSV and TSV: one line a row, the cells parted by a bar."""

import csv
import io

from backend.core.types import ExtractedText
from backend.readers import plain
from backend.readers.building import DEFAULT_LIMITS, ReadLimits, TextBuilder, clean, one_line

_DELIMITERS = ",;\t|"
_LONGEST_CELL = 10_000_000


def read(text: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """The delimiter is the one that parts the first rows most evenly; a file that has none is plain text."""
    source = clean(text)
    delimiter = _delimiter(source)
    if delimiter is None:
        return plain.read(source, reader="csv", limits=limits)
    csv.field_size_limit(_LONGEST_CELL)
    builder = TextBuilder(limits=limits)
    for row in csv.reader(io.StringIO(source), delimiter=delimiter):
        builder.line(" | ".join(cell for cell in map(one_line, row) if cell))
    return builder.build(reader="csv")


def _delimiter(source: str) -> str | None:
    """The most cells a row among the delimiters that give every row as many; else the most frequent one."""
    head = source[:20_000].rsplit("\n", 1)[0] if len(source) > 20_000 else source
    best: tuple[bool, int] = (False, 0)
    chosen = None
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in csv.reader(io.StringIO(head), delimiter=delimiter) if row]
        if not widths or max(widths) < 2:
            continue
        score = (len(set(widths)) == 1, sum(widths))
        if score > best:
            best, chosen = score, delimiter
    return chosen
