"""What a request says a question set is: a file of a form, or questions in the body."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from django.conf import settings
from rest_framework.request import Request

from api.base import file_hash, invalid, read_object
from backend.core.errors import ErrorCode, Fault, QuestionSetError


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBody:
    """Either `data` (a file) or `items`. `fingerprint` tells two bodies apart."""

    name: str
    fingerprint: list[Any]
    data: bytes | None = None
    items: list[Any] | None = None
    format: str | None = None
    filename: str = ""

    def arguments(self) -> dict[str, Any]:
        return {"data": self.data, "items": self.items, "format": self.format, "filename": self.filename}


def read(request: Request, *, named: bool) -> SetBody:
    """Raises ValidationError, EVAL_TOO_LARGE."""
    if request.content_type.startswith("multipart/"):
        return _form(request, named=named)
    known = ("name", "questions", "cases") if named else ("questions", "cases")
    body = read_object(request, known=known, deep=False)
    # `cases` is the other spelling of the same list: the body of a cases file can be sent as it is.
    items = body.get("questions", body.get("cases"))
    if not isinstance(items, list) or ("questions" in body and "cases" in body):
        raise invalid("questions is a list, a question each.", "questions")
    name = body.get("name", "")
    return SetBody(name=name if isinstance(name, str) else "", items=items, fingerprint=[body])


def _form(request: Request, *, named: bool) -> SetBody:
    known = ("file", "name", "format") if named else ("file", "format")
    data: Any = request.data
    for name in data:
        if name not in known:
            raise invalid(f"There is no field {name!r}. There are: {', '.join(known)}.", str(name))
    files = request.FILES.getlist("file")
    if len(files) != 1:
        raise invalid("Send the set as one file, in a part named `file`.", "file")
    file = files[0]
    if file.size is not None and file.size > settings.MAX_SET_BYTES:
        limit = settings.MAX_SET_BYTES / (1024 * 1024)
        message = f"The file has {file.size:,} bytes; the limit is {limit:,.6g} MiB."
        raise QuestionSetError([Fault(code=ErrorCode.EVAL_TOO_LARGE, message=message)])
    filename = str(file.name or "")
    texts = {name: data.get(name, "") for name in known if name != "file"}
    if any(not isinstance(text, str) for text in texts.values()):
        raise invalid("name and format are texts.", "name")
    return SetBody(
        name=texts.get("name") or PurePath(filename).stem,
        data=file.read(),
        format=texts["format"] or None,
        filename=filename,
        fingerprint=[texts, filename, file_hash(file)],
    )
