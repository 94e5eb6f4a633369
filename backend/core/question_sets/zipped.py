"""Zip archives, opened within limits: only the files of a question set, and never more than they may hold."""

import io
import zipfile
import zlib

from backend.core.errors import ErrorCode
from backend.core.question_sets.content import belongs
from backend.core.question_sets.notes import refuse

_MAX_FILES = 10_000


def is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def unzip(data: bytes, *, max_bytes: int) -> dict[str, bytes]:
    """The archive's files by name, corpora left packed. Raises QuestionSetError when it is broken or too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _contents(archive, max_bytes=max_bytes)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError):
        raise refuse("The ZIP archive is broken, encrypted or packed in an unknown way.") from None


def _contents(archive: zipfile.ZipFile, *, max_bytes: int) -> dict[str, bytes]:
    members = [one for one in archive.infolist() if not one.is_dir()]
    if len(members) > _MAX_FILES:
        raise refuse(f"The ZIP archive has more than {_MAX_FILES:,} files.", code=ErrorCode.EVAL_TOO_LARGE)
    if any(one.filename in {"[Content_Types].xml", "mimetype"} for one in members):
        raise refuse("The file is an Office document, not a question set. Save the sheet as CSV (UTF-8).")
    files: dict[str, bytes] = {}
    left = max_bytes
    for member in members:
        if not belongs(member.filename):
            continue
        with archive.open(member) as stream:
            body = stream.read(left + 1)  # the size an archive claims is not believed
        left -= len(body)
        if left < 0:
            raise refuse(
                f"The ZIP archive unpacks to more than {max_bytes:,} bytes, the limit of this workspace.",
                code=ErrorCode.EVAL_TOO_LARGE,
            )
        files[member.filename] = body
    return files
