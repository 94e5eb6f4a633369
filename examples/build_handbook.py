"""Write the handbook's PDF and DOCX files from the texts in `handbook-sources/`.

    python examples/build_handbook.py [FOLDER]

FOLDER is the handbook to write into, `examples/handbook` by default. The same sources give the same bytes every time,
so that a rebuild shows in version control only where the text has changed: dates and identifiers are fixed, and
nothing is compressed (compressed bytes differ between versions of zlib).

A source is a small part of Markdown: `#` and `##` headings, paragraphs of one line, `|` tables.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path

import docx
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table, TableStyle

HERE = Path(__file__).parent
SOURCES = HERE / "handbook-sources"
AUTHOR = "Kestrelmoor Instruments"
DATED = datetime(2026, 1, 5, 9, 0)  # noqa: DTZ001 - python-docx writes it as UTC and refuses a zone
TABLE_STYLE = "Light Grid Accent 1"
ZIP_DATED = (2026, 1, 5, 9, 0, 0)

AS_PDF = (
    "policies/leave",
    "finance/travel-expenses",
    "product/corvex-20-service-manual",
    "support/dangerous-goods",
)
AS_DOCX = (
    "policies/code-of-conduct",
    "people/performance-review",
    "product/spare-parts",
    "support/returns-and-warranty",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`kind` is `title`, `heading`, `text` or `table`; only a table has `rows`, the first being its header."""

    kind: str
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def blocks(source: str) -> Iterator[Block]:
    rows: list[tuple[str, ...]] = []
    for raw in [*source.splitlines(), ""]:
        line = raw.strip()
        if line.startswith("|"):
            cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
            if not all(set(cell) <= set("-") for cell in cells):
                rows.append(cells)
            continue
        if rows:
            yield Block(kind="table", rows=tuple(rows))
            rows = []
        if line.startswith("## "):
            yield Block(kind="heading", text=line[3:])
        elif line.startswith("# "):
            yield Block(kind="title", text=line[2:])
        elif line:
            yield Block(kind="text", text=line)


def pdf(parts: list[Block]) -> bytes:
    styles = getSampleStyleSheet()
    body = styles["BodyText"]
    body.fontSize, body.leading = 11, 16
    title = next(part.text for part in parts if part.kind == "title")
    names = {"title": "Title", "heading": "Heading2", "text": "BodyText"}
    story: list[Flowable] = []
    for part in parts:
        if part.kind == "table":
            cells = [[Paragraph(cell, body) for cell in row] for row in part.rows]
            story.append(Table(cells, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, "grey")])))
        else:
            text = part.text.replace("&", "&amp;").replace("<", "&lt;")
            story.append(Paragraph(text, styles[names[part.kind]]))

    def footer(canvas: Canvas, document: SimpleDocTemplate) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(25 * mm, 12 * mm, f"{AUTHOR} - {title}")
        canvas.drawRightString(185 * mm, 12 * mm, f"page {document.page}")

    out = BytesIO()
    SimpleDocTemplate(
        out,
        pagesize=A4,
        leftMargin=25 * mm,
        rightMargin=25 * mm,
        topMargin=22 * mm,
        bottomMargin=22 * mm,
        title=title,
        author=AUTHOR,
        invariant=1,
        pageCompression=0,
    ).build(story, onFirstPage=footer, onLaterPages=footer)
    return out.getvalue()


def word(parts: list[Block]) -> bytes:
    document = docx.Document()
    slim(document)
    about = document.core_properties
    about.author = about.last_modified_by = AUTHOR
    about.title = next(part.text for part in parts if part.kind == "title")
    about.comments = ""
    about.created = about.modified = DATED
    for part in parts:
        if part.kind == "title":
            document.add_heading(part.text, level=1)
        elif part.kind == "heading":
            document.add_heading(part.text, level=2)
        elif part.kind == "text":
            document.add_paragraph(part.text)
        else:
            add_table(document, part.rows)
    out = BytesIO()
    document.save(out)
    return stored(out.getvalue())


def slim(document: Document) -> None:
    """Drop what the template brings and nobody sees: 800 KB of table styles, and a thumbnail of an empty page."""
    kept = {"Normal Table", TABLE_STYLE}
    for style in [*document.styles]:
        if style.type == WD_STYLE_TYPE.TABLE and style.name not in kept:
            style.delete()
    for rels in (document.part.rels, document.part.package.rels):
        for key, rel in [*rels.items()]:
            if rel.reltype.endswith(("/stylesWithEffects", "/thumbnail")):
                del rels[key]


def add_table(document: Document, rows: tuple[tuple[str, ...], ...]) -> None:
    table = document.add_table(rows=0, cols=len(rows[0]), style=TABLE_STYLE)
    for row in rows:
        cells = table.add_row().cells
        for cell, text in zip(cells, row, strict=True):
            cell.text = text


def stored(archive: bytes) -> bytes:
    """The same archive without clock times and compression."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(archive)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            info = zipfile.ZipInfo(name, ZIP_DATED)
            info.create_system = 3  # else it says which system built it
            new.writestr(info, old.read(name))
    return out.getvalue()


def build(folder: Path) -> list[Path]:
    """Write every generated file below `folder` and return them."""
    written: list[Path] = []
    for names, suffix, render in ((AS_PDF, ".pdf", pdf), (AS_DOCX, ".docx", word)):
        for name in names:
            parts = list(blocks((SOURCES / f"{name}.md").read_text(encoding="utf-8")))
            target = folder / f"{name}{suffix}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(render(parts))
            written.append(target)
    return written


if __name__ == "__main__":
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "handbook"
    sys.stdout.write("".join(f"{path}\n" for path in build(into)))
