"""CSV text to rows with the lines they begin on. Comma, semicolon and tab are told apart by the header."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from backend.core.question_sets.notes import Notes, Place

_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class Table:
    """A CSV text with a header. Column names are compared in lower case, white space cut off."""

    text: str

    @cached_property
    def delimiter(self) -> str:
        """The one that cuts the header into most columns."""
        counts = [(len(_cells(self.text, one)), -i) for i, one in enumerate(_DELIMITERS)]
        return _DELIMITERS[-max(counts)[1]]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(one.strip().lower() for one in _cells(self.text, self.delimiter))

    def has(self, *names: str) -> bool:
        return all(name in self.columns for name in names)

    def rows(self, notes: Notes) -> Iterator[tuple[dict[str, str], Place]]:
        """Each row's filled cells by column name. A text that stops being CSV is a fault and ends the rows."""
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, strict=True)
        begin = 1
        is_header = True
        try:
            for cells in reader:
                place, begin = Place(line=begin), reader.line_num + 1
                if not any(cell.strip() for cell in cells):
                    continue
                if is_header:
                    is_header = False
                    continue
                if len(cells) > len(self.columns) and any(cells[len(self.columns) :]):
                    n, columns = len(cells), len(self.columns)
                    notes.unreadable(
                        f"the row has {n} cells, the header {columns}; a cell that holds a separator must be in quotes",
                        place=place,
                    )
                    continue
                named = zip(self.columns, cells, strict=False)
                yield {name: cell for name, cell in named if cell.strip()}, place
        except csv.Error as error:
            notes.unreadable(f"not CSV: {error}", place=Place(line=begin))


def _cells(text: str, delimiter: str) -> list[str]:
    """The header's cells; none where the text does not begin as CSV."""
    try:
        for cells in csv.reader(io.StringIO(text[:20_000], newline=""), delimiter=delimiter):
            if any(cell.strip() for cell in cells):
                return cells
    except csv.Error:
        pass
    return []
