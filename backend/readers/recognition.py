"""Which reader a file needs: its content decides, its extension only tells text formats apart."""

import io
import re
import zipfile
from enum import StrEnum
from pathlib import PurePosixPath

from backend.core.errors import DocumentError, ErrorCode


class Kind(StrEnum):
    """What is read. The value names the reader on the document."""

    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    MAIL = "eml"
    TEXT = "text"


READABLE = "PDF, Word (.docx), PowerPoint (.pptx), Excel (.xlsx), HTML, Markdown, mail (.eml), CSV and any plain text"
_EXTENSIONS = {
    ".md": Kind.MARKDOWN, ".markdown": Kind.MARKDOWN, ".mdown": Kind.MARKDOWN, ".mdx": Kind.MARKDOWN,
    ".html": Kind.HTML, ".htm": Kind.HTML, ".xhtml": Kind.HTML,
    ".csv": Kind.CSV, ".tsv": Kind.CSV, ".eml": Kind.MAIL,
}  # fmt: skip
# Extensions that promise another format: text under such a name is told apart by its content.
_NOT_TEXT = frozenset({"", ".txt", ".pdf", ".docx", ".pptx", ".xlsx", ".doc", ".xls", ".ppt", ".bin", ".tmp"})
# Formats whose first bytes always show them.
_SIGNED = frozenset({".pdf", ".docx", ".pptx", ".xlsx"})
_MAGIC = (
    (b"\x89PNG", "a picture (PNG)"), (b"\xff\xd8\xff", "a picture (JPEG)"), (b"GIF8", "a picture (GIF)"),
    (b"II*\x00", "a picture (TIFF)"), (b"MM\x00*", "a picture (TIFF)"), (b"\x1f\x8b", "an archive (gzip)"),
    (b"7z\xbc\xaf", "an archive (7z)"), (b"Rar!", "an archive (RAR)"), (b"BZh", "an archive (bzip2)"),
    (b"\xfd7zXZ", "an archive (xz)"), (b"{\\rtf", "a rich text file (.rtf)"), (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"), (b"SQLite format 3", "a database (SQLite)"), (b"PAR1", "a Parquet file"),
    (b"OggS", "a sound or film"), (b"ID3", "a sound"), (b"%!PS", "a PostScript file"),
)  # fmt: skip
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_KINDS = (
    ("WordDocument", "an old Word file (.doc)", ".docx"),
    ("PowerPoint Document", "an old PowerPoint file (.ppt)", ".pptx"),
    ("Workbook", "an old Excel file (.xls)", ".xlsx"),
)
_ZIP_MAINS = (
    ("word/document.xml", Kind.DOCX),
    ("ppt/presentation.xml", Kind.PPTX),
    ("xl/workbook.xml", Kind.XLSX),
    ("word/", Kind.DOCX),
    ("ppt/", Kind.PPTX),
)
_HTML_START = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html\b)", re.I | re.S)
_TAG = re.compile(r"<[a-zA-Z!/]")
_MAIL_START = re.compile(
    r"(?:From [^\n]+\n)?(?=(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*)*?MIME-Version:)(?:[!-9;-~]+:)", re.I
)


def refused(what: str, *, remedy: str = "") -> DocumentError:
    return DocumentError(
        ErrorCode.DOCUMENT_TYPE, f"The file is {what}, which is not read. {remedy}What is read: {READABLE}."
    )


def unknown_binary(path: str) -> DocumentError:
    """For bytes that are neither text nor of any known format."""
    suffix = extension(path)
    if suffix in _SIGNED:
        return DocumentError(
            ErrorCode.DOCUMENT_TYPE,
            f"The file is named {suffix}, but its content is something else: it is damaged or has a wrong name.",
        )
    return DocumentError(ErrorCode.DOCUMENT_TYPE, f"The file is of a kind that is not read. What is read: {READABLE}.")


def extension(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).suffix.lower()


def recognise_binary(data: bytes) -> Kind | None:
    """The kind of a format with a signature; None where the bytes have to be looked at as text.

    Raises DocumentError (DOCUMENT_TYPE, DOCUMENT_ENCRYPTED, DOCUMENT_UNREADABLE) for what is known and not read.
    """
    if b"%PDF-" in data[:1024]:
        return Kind.PDF
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data)
    if data.startswith(_OLE):
        raise _ole(data)
    for magic, name in _MAGIC:
        if data.startswith(magic):
            raise refused(name)
    return None


def recognise_text(text: str, *, path: str) -> Kind:
    """The kind of a file that decodes as text."""
    suffix = extension(path)
    head = text[:20_000]
    kind = _EXTENSIONS.get(suffix)
    if kind is Kind.HTML and not _TAG.search(text):
        return Kind.TEXT
    if kind is not None:
        return kind
    if suffix in _NOT_TEXT:
        if _HTML_START.match(head):
            return Kind.HTML
        if _MAIL_START.match(head[:4_000]):
            return Kind.MAIL
    return Kind.TEXT


def _zip_kind(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            mimetype = archive.read("mimetype")[:100].decode("ascii", "replace") if "mimetype" in names else ""
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise DocumentError(
            ErrorCode.DOCUMENT_UNREADABLE, "The file is broken: its zip container cannot be opened."
        ) from error
    if "epub" in mimetype:
        raise refused("an e-book (EPUB)")
    if "opendocument" in mimetype:
        raise refused("an OpenDocument file", remedy="Save it as an Office or PDF file first. ")
    for main, kind in _ZIP_MAINS:
        if any(name == main or (main.endswith("/") and name.startswith(main)) for name in names):
            return kind
    if any(name.startswith("xl/") for name in names):
        if "xl/workbook.bin" in names:
            raise refused("a binary Excel file (.xlsb)", remedy="Save it as .xlsx first. ")
        return Kind.XLSX
    raise refused("an archive (zip)", remedy="Unpack it first. ")


def _ole(data: bytes) -> DocumentError:
    def has(stream: str) -> bool:
        return stream.encode("utf-16-le") in data

    if has("EncryptedPackage"):
        return DocumentError(ErrorCode.DOCUMENT_ENCRYPTED, "The file is protected by a password. Save it without one.")
    for stream, name, modern in _OLE_KINDS:
        if has(stream):
            return refused(name, remedy=f"Save it as {modern} first. ")
    return refused("an old Office or Outlook file")
