"""Word, PowerPoint and Excel files of the current (zip) formats."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from backend.core.errors import DocumentError, ErrorCode
from backend.core.types import ExtractedText
from backend.readers import archive, markup
from backend.readers.building import DEFAULT_LIMITS, ReadLimits, TextBuilder, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Heading 7'] => h6:fresh
p[style-name='Heading 8'] => h6:fresh
p[style-name='Heading 9'] => h6:fresh
"""


def read_docx(data: bytes, *, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """The body with headings, lists, tables and notes; not headers, footers, comments or pictures."""
    # Heavy to import, and not needed by every document.
    import mammoth

    archive.check(data, limits=limits)
    page = mammoth.convert_to_html(
        io.BytesIO(data), style_map=_STYLES, convert_image=lambda _: [], external_file_access=False
    )
    return markup.read(page.value, reader="docx", limits=limits)


def read_pptx(data: bytes, *, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """Slide by slide: the title as heading, shapes in their order, tables row by row, then the notes."""
    # Heavy to import, and not needed by every document.
    import pptx

    archive.check(data, limits=limits)
    builder = TextBuilder(limits=limits)
    for number, slide in enumerate(pptx.Presentation(io.BytesIO(data)).slides, start=1):
        if number > limits.n_pages:
            raise DocumentError(
                ErrorCode.DOCUMENT_TOO_LARGE, f"The presentation has more than {limits.n_pages:,} slides."
            )
        title = slide.shapes.title
        builder.open_section(
            one_line(title.text_frame.text) if title is not None and title.has_text_frame else "", level=1
        )
        builder.page(number)
        if title is not None and title.has_text_frame:
            builder.block(one_line(title.text_frame.text))
        for shape in _shapes(slide.shapes):
            if title is not None and shape.shape_id == title.shape_id:
                continue
            if shape.has_text_frame:
                builder.block(shape.text_frame.text)
            elif getattr(shape, "has_table", False):
                _rows(builder, ([cell.text for cell in row.cells] for row in shape.table.rows))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            builder.block(slide.notes_slide.notes_text_frame.text)
    return builder.build(reader="pptx")


def read_xlsx(data: bytes, *, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """Sheet by sheet and row by row, the values as last calculated; the sheet's name is the heading."""
    # Heavy to import, and not needed by every document.
    import openpyxl

    archive.check(data, limits=limits)
    builder = TextBuilder(limits=limits)
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    try:
        for number, sheet in enumerate(book.worksheets, start=1):
            builder.open_section(sheet.title, level=1)
            builder.page(number)
            # The size a sheet declares may be wrong, or a million empty rows.
            sheet.reset_dimensions()
            _rows(builder, (map(_cell, row) for row in sheet.iter_rows(values_only=True)))
    finally:
        book.close()
    return builder.build(reader="xlsx")


def _shapes(shapes: Any) -> Iterator[Any]:
    pending = list(shapes)[::-1]
    while pending:
        shape = pending.pop()
        if hasattr(shape, "shapes"):
            pending.extend(list(shape.shapes)[::-1])
        else:
            yield shape


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _rows(builder: TextBuilder, rows: "Iterable[Iterable[str]]") -> None:
    first = True
    for row in rows:
        line = " | ".join(text for text in map(one_line, row) if text)
        if not line:
            first = True  # an empty row parts two tables
        elif first:
            builder.block(line)
            first = False
        else:
            builder.line(line)
