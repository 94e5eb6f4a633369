"""One document: recognised, decoded and read. In the service this runs in the limited child (parent.py)."""

from backend.core.errors import DocumentError, ErrorCode
from backend.core.types import ExtractedText
from backend.readers import mail, markdown, markup, office, pdf, plain, tables
from backend.readers.building import DEFAULT_LIMITS, ReadLimits
from backend.readers.encoding import decode
from backend.readers.recognition import (
    Kind,
    extension,
    recognise_binary,
    recognise_text,
    unknown_binary,
)

# Raised with every change that can move an offset: it is part of an Index's settings.
READER_VERSION = "1"

_PROMISES = {".pdf": Kind.PDF, ".docx": Kind.DOCX, ".pptx": Kind.PPTX, ".xlsx": Kind.XLSX}


def read(data: bytes, *, path: str, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """Raises DocumentError, whatever the bytes are; its sentence says what the document's owner can do."""
    if not data.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise DocumentError(ErrorCode.DOCUMENT_NO_TEXT, "The file is empty.")
    try:
        extracted = _read(data, path, limits)
    except DocumentError:
        raise
    except MemoryError as error:
        raise DocumentError(ErrorCode.DOCUMENT_TOO_LARGE, too_much_memory()) from error
    except RecursionError as error:
        raise DocumentError(
            ErrorCode.DOCUMENT_UNREADABLE, "The file cannot be read: its parts nest too deeply."
        ) from error
    except Exception as error:  # a library reading foreign bytes may raise anything at all
        raise DocumentError(
            ErrorCode.DOCUMENT_UNREADABLE,
            f"The file is broken: reading it failed with {type(error).__name__}. Open it and save it anew.",
        ) from error
    promised = _PROMISES.get(extension(path))
    if promised is None or promised.value == extracted.reader:
        return extracted
    note = f"its name says {promised.value}, its content is {extracted.reader}: read as such"
    return ExtractedText(
        text=extracted.text,
        marks=extracted.marks,
        reader=extracted.reader,
        warnings=(note, *extracted.warnings),
    )


def too_much_memory() -> str:
    return "Reading the file needs more memory than is allowed. Split it into parts."


def _read(data: bytes, path: str, limits: ReadLimits) -> ExtractedText:
    match recognise_binary(data):
        case Kind.PDF:
            return pdf.read(data, limits=limits)
        case Kind.DOCX:
            return office.read_docx(data, limits=limits)
        case Kind.PPTX:
            return office.read_pptx(data, limits=limits)
        case Kind.XLSX:
            return office.read_xlsx(data, limits=limits)
    declared = markup.declared_charset(data) if b"<" in data[:4096] else None
    decoded = decode(data, declared=declared)
    if decoded is None:
        raise unknown_binary(path)
    text = decoded.text
    if len(text) > 2 * limits.n_characters:
        raise DocumentError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"The file has more than {limits.n_characters:,} characters of text. Split it into parts.",
        )
    match recognise_text(text, path=path):
        case Kind.HTML:
            extracted = markup.read(text, limits=limits)
        case Kind.MARKDOWN:
            extracted = markdown.read(text, limits=limits)
        case Kind.CSV:
            extracted = tables.read(text, limits=limits)
        case Kind.MAIL:
            extracted = mail.read(data, limits=limits)
        case _:
            extracted = plain.read(text, sections=extension(path) == ".rst", limits=limits)
    if not decoded.warnings:
        return extracted
    return ExtractedText(
        text=extracted.text,
        marks=extracted.marks,
        reader=extracted.reader,
        warnings=(*decoded.warnings, *extracted.warnings),
    )
