"""Bytes to text. Only UTF-8 is read; everything else is refused by its name."""

import codecs
import re

from backend.core.question_sets.notes import refuse

_MARKS = (  # UTF-32's marks begin with UTF-16's, so they come first
    (codecs.BOM_UTF32_LE, "UTF-32 (little-endian)"),
    (codecs.BOM_UTF32_BE, "UTF-32 (big-endian)"),
    (codecs.BOM_UTF16_LE, "UTF-16 (little-endian)"),
    (codecs.BOM_UTF16_BE, "UTF-16 (big-endian)"),
)
_BINARY = (
    (b"%PDF-", "a PDF document", "Documents go into a source; a question set is JSONL, JSON or CSV"),
    (b"\x1f\x8b", "a gzip archive", "Unpack it first"),
    (b"SQLite format 3\x00", "a SQLite database", "Export its rows as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Office file", "Save the sheet as CSV (UTF-8)"),
    (b"\x89PNG", "an image", "A question set is JSONL, JSON or CSV"),
    (b"\xff\xd8\xff", "an image", "A question set is JSONL, JSON or CSV"),
)
# The bytes where Windows-1254 (Turkish) differs from Windows-1252: Ğ İ Ş ğ ı ş.
_TURKISH = re.compile(rb"[\xd0\xdd\xde\xf0\xfd\xfe]")
_HIGH = re.compile(rb"[\x80-\xff]")
_WINDOWS = re.compile(rb"[\x80-\x9f]")


def decode(data: bytes) -> str:
    """The text of a file, without its byte order mark. Raises QuestionSetError (EVAL_FILE) naming the encoding."""
    for start, what, remedy in _BINARY:
        if data.startswith(start):
            raise refuse(f"The file is {what}, not a question set. {remedy}.")
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise refuse(f"The file is encoded in {name}. Save it as UTF-8 and send it again.")
    guess = _wide_guess(data)
    if guess:
        raise refuse(f"The file looks like {guess}. Save it as UTF-8 and send it again.")
    body = data.removeprefix(codecs.BOM_UTF8)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise refuse(
            f"byte 0x{body[error.start]:02X} is not UTF-8; the file looks like {_narrow_guess(body)}. "
            "Save it as UTF-8 and send it again.",
            line=line,
        ) from None


def _wide_guess(data: bytes) -> str | None:
    """UTF-16 without a mark, told by the NULs that ASCII characters leave in every second byte."""
    head = data[:400]
    if len(head) < 4:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > len(head) // 5 and even <= odd // 8:
        return "UTF-16 (little-endian) without a byte order mark"
    if even > len(head) // 5 and odd <= even // 8:
        return "UTF-16 (big-endian) without a byte order mark"
    return None


def _narrow_guess(data: bytes) -> str:
    high = _HIGH.findall(data[:1_000_000])
    if high and len(_TURKISH.findall(data[:1_000_000])) * 3 >= len(high):
        return "Windows-1254 (Turkish) or ISO-8859-9"
    if _WINDOWS.search(data):
        return "Windows-1252"
    return "Latin-1 (ISO-8859-1) or Windows-1252"
