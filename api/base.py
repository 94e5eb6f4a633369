"""What all views share: scopes, limits, bodies, and answers that are given once."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.utils import timezone
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from api import auth, request_id
from api.errors import BodyTooLargeError
from api.paging import CursorPagination
from backend.core.errors import ErrorCode, Fault, TouchstoneError, ValidationError
from backend.models import Scope, Workspace
from backend.services import audit, idempotency
from backend.services.idempotency import Answer
from backend.services.submissions import unknown_field

MIB = 1024 * 1024
# PostgreSQL keeps neither, and no text of a person's holds them.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
# Far more than any body of ours, and far less than what makes Python's own recursion fail.
MAX_DEPTH = 50


class Endpoint(APIView):
    """A view of ours. `required_scopes` names the scope of each method that is not GET."""

    # No OPTIONS: the schema describes everything.
    http_method_names = ("get", "head", "post", "patch", "delete")
    required_scopes: ClassVar[Mapping[str, Scope]] = {}
    max_body_bytes: ClassVar[int] = MIB
    # What a body that is too large is told to be.
    too_large_code: ClassVar[ErrorCode] = ErrorCode.VALIDATION
    # Whether what goes through is written into the audit log; None: all that needs more than to read.
    is_audited: ClassVar[bool | None] = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        for name, values in request.query_params.lists():
            if any(_UNUSABLE.search(value) for value in values):
                raise invalid(f"{name} holds characters that no text can have.", name)
        if any(isinstance(value, str) and _UNUSABLE.search(value) for value in kwargs.values()):
            raise TouchstoneError(ErrorCode.NOT_FOUND, "There is nothing at this address.")
        length = str(request.META.get("CONTENT_LENGTH") or 0)
        if length.isdigit() and int(length) > self.max_body_bytes:
            raise BodyTooLargeError(self.too_large_code, limit=self.max_body_bytes)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        if response.status_code < 400 and self._changes(request) and "Idempotency-Replayed" not in response.headers:
            who = self.caller
            audit.record(
                who.workspace,
                audit.Actor(id=who.id, name=who.name, user=who.user),
                f"{request.method} {_route(request)}",
                now=timezone.now(),
                target=urlsplit(response.headers.get("Location", "")).path or request.path,
                fields=_fields(request),
                request_id=request_id.of(request._request),  # noqa: SLF001  the framework's own way to it
            )
        return response

    def _changes(self, request: Request) -> bool:
        method = request.method or ""
        if method in {"GET", "HEAD"} or not isinstance(request.auth, auth.Caller):
            return False
        if self.is_audited is not None:
            return self.is_audited
        return method in self.required_scopes and self.required_scopes[method] is not Scope.READ

    @property
    def caller(self) -> auth.Caller:
        return auth.caller(self.request)

    @property
    def workspace(self) -> Workspace:
        return self.caller.workspace

    def page(
        self,
        rows: Any,
        shown: Callable[[list[Any]], Any],
        *,
        order: tuple[str, ...] = ("-id",),
        default_limit: int = 50,
    ) -> Response:
        """One page of a queryset, its rows as `shown` serializes them."""
        pages: BasePagination = CursorPagination(order=order, default_limit=default_limit)
        found: list[Any] | None = pages.paginate_queryset(rows, self.request, view=self)
        return pages.get_paginated_response(shown(list(found or [])))

    def once(self, answer: Callable[[], Answer], *, body: Any) -> Response:
        """Do what a creating POST asks for; with an Idempotency-Key, once."""
        key = self.request.headers.get("Idempotency-Key")
        if key is None:
            return respond(answer())
        request = idempotency.Request(
            workspace=self.workspace,
            caller=self.caller.id,
            route=f"{self.request.method} {self.request.path}"[:300],
            key=key,
            body_hash=idempotency.body_hash(body, self.request.META.get("QUERY_STRING", "")),
        )
        return respond(idempotency.once(request, answer, now=timezone.now()))


def _route(request: Request) -> str:
    match = request.resolver_match
    return "" if match is None else str(match.route).removeprefix("api/v1/")


def _fields(request: Request) -> list[str]:
    """The names of what was sent: never a value, which may be a question or a secret."""
    data = request.data
    return [str(name) for name in data] if isinstance(data, Mapping) else []


def respond(answer: Answer) -> Response:
    headers = {"Location": answer.location} if answer.location else {}
    if answer.repeated:
        headers["Idempotency-Replayed"] = "true"
    return Response(answer.body, status=answer.status, headers=headers)


def read_object(request: Request, *, known: tuple[str, ...] | None = None, deep: bool = True) -> dict[str, Any]:
    """The body as an object. Raises ValidationError for another value, for unknown fields where `known` is given, and
    (unless not `deep`) for texts that cannot be kept."""
    try:
        data = request.data
    except RecursionError:
        raise _too_deep() from None
    if _is_deeper(data, MAX_DEPTH):
        raise _too_deep()
    if not isinstance(data, Mapping):
        raise invalid("The body is a JSON object.")
    found: dict[str, Any] = {name: data[name] for name in data}
    faults = [
        Fault(code=ErrorCode.VALIDATION, message=unknown_field(name, known), field=name)
        for name in found
        if known is not None and name not in known
    ]
    if deep:
        faults += [
            Fault(code=ErrorCode.VALIDATION, message="This text holds characters that no text can have.", field=where)
            for where in _unusable(found)
        ]
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return found


def read_flag(request: Request, name: str) -> bool:
    """A flag of the query: `force=true`."""
    text = request.query_params.get(name, "false").lower()
    if text not in {"true", "false", "1", "0", ""}:
        raise invalid(f"{name} is true or false, not {text!r}.", name)
    return text in {"true", "1"}


def read_whole(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise invalid(f"{name} is a whole number, not {text!r}.", name)
    return int(text)


def file_hash(file: Any) -> str:
    """Of an uploaded file, which is left at its beginning."""
    digest = hashlib.sha256()
    file.seek(0)
    for part in file.chunks():
        digest.update(part)
    file.seek(0)
    return digest.hexdigest()


def as_json(data: Any) -> Any:
    """Serialized data as plain JSON values, to be kept as an answer: what the renderer would have written."""
    return json.loads(json.dumps(data, cls=JSONEncoder))


def invalid(message: str, field: str | None = None) -> ValidationError:
    """One fault."""
    return ValidationError(
        message, field=field, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=field)]
    )


def _too_deep() -> ValidationError:
    return invalid(f"The body is nested more than {MAX_DEPTH} levels deep.")


def _is_deeper(value: Any, limit: int) -> bool:
    """Whether lists and objects lie within each other more than `limit` times. Level by level: what is asked here is
    whether recursion is safe."""
    level = [value]
    for _ in range(limit + 1):
        inner = []
        for one in level:
            if isinstance(one, Mapping):
                inner += [each for each in one.values() if isinstance(each, Mapping | list)]
            elif isinstance(one, list):
                inner += [each for each in one if isinstance(each, Mapping | list)]
        if not inner:
            return False
        level = inner
    return True


def _unusable(value: Any, where: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if _UNUSABLE.search(value):
            yield where
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if _UNUSABLE.search(str(name)):
                yield where
            yield from _unusable(inner, f"{where}.{name}" if where else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unusable(inner, f"{where}[{index}]")
