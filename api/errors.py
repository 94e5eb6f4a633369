"""The one place that knows which HTTP answer an error is. Every error is application/problem+json (RFC 9457)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import (
    ObjectDoesNotExist,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import IntegrityError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from api import request_id
from backend import logs
from backend.core.errors import ErrorCode, Fault, TouchstoneError
from backend.providers.base import ProviderError

CONTENT_TYPE = "application/problem+json"
MOST_ERRORS = 100
_log = logs.get("api")

_NOW_UNUSABLE, _PASSING = 422, 503
STATUS: dict[ErrorCode, int] = {
    ErrorCode.EVAL_FILE: 422,
    ErrorCode.EVAL_CASE_INVALID: 422,
    ErrorCode.EVAL_SET_EMPTY: 422,
    ErrorCode.EVAL_TOO_LARGE: 413,
    ErrorCode.KB_NOT_READY: 409,
    ErrorCode.KB_EMPTY: 409,
    ErrorCode.PROVIDER_AUTH: _NOW_UNUSABLE,
    ErrorCode.PROVIDER_BILLING: _NOW_UNUSABLE,
    ErrorCode.PROVIDER_NOT_CONFIGURED: _NOW_UNUSABLE,
    ErrorCode.PROVIDER_QUOTA: _NOW_UNUSABLE,
    ErrorCode.PROVIDER_MODEL: _NOW_UNUSABLE,
    ErrorCode.PROVIDER_BAD_REQUEST: _NOW_UNUSABLE,
    ErrorCode.PROVIDER_RATE: _PASSING,
    ErrorCode.PROVIDER_TIMEOUT: _PASSING,
    ErrorCode.PROVIDER_UNAVAILABLE: _PASSING,
    ErrorCode.PROVIDER_BAD_ANSWER: _PASSING,
    ErrorCode.WORKER_LOST: _PASSING,
    ErrorCode.DEADLINE: _PASSING,
    ErrorCode.SPEND_LIMIT: 409,
    ErrorCode.INTERNAL: 500,
    ErrorCode.DOCUMENT_TYPE: 415,
    ErrorCode.DOCUMENT_TOO_LARGE: 413,
    ErrorCode.DOCUMENT_ENCRYPTED: 422,
    ErrorCode.DOCUMENT_NO_TEXT: 422,
    ErrorCode.DOCUMENT_UNREADABLE: 422,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.VALIDATION: 422,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.RATE_LIMITED: 429,
}
TITLES: dict[int, str] = {
    400: "The request cannot be read",
    401: "Not logged in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "The request cannot be used",
    429: "Too many requests",
    500: "Touchstone failed",
    503: "Not available now",
}


class BodyTooLargeError(TouchstoneError):
    """A request's body is above the limit of its address. Told with 413, whatever its code's own status is."""

    def __init__(self, code: ErrorCode, *, limit: int) -> None:
        mib = limit / (1024 * 1024)
        super().__init__(code, f"The request has more than {mib:,.6g} MiB: send less, or in parts.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as it is answered."""

    status: int
    code: ErrorCode
    detail: str
    line: int | None = None
    field: str | None = None
    faults: Sequence[Fault] = ()

    def body(self, request: HttpRequest | None) -> dict[str, Any]:
        out: dict[str, Any] = {
            "type": f"urn:touchstone:error:{self.code.value}",
            "title": TITLES.get(self.status, "The request failed"),
            "status": self.status,
            "detail": self.detail,
            "code": self.code.value,
            "request_id": request_id.of(request),
        }
        if self.line is not None:
            out["line"] = self.line
        if self.field is not None:
            out["field"] = self.field
        if self.faults:
            out["errors"] = [_fault(fault) for fault in self.faults[:MOST_ERRORS]]
            out["n_errors"] = len(self.faults)
        return out


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """Django REST framework's exception handler: whatever was raised becomes a problem, an unknown one a logged 500."""
    set_rollback()
    problem = of(error)
    request = context.get("request")
    headers = {}
    if problem is None:
        _log.error("request_failed", error=type(error).__name__, exc_info=error)
        problem = INTERNAL
    elif isinstance(error, OperationalError):
        _log.warning("database_failed", error=type(error).__name__)
    elif isinstance(error, IntegrityError | ObjectDoesNotExist):
        _log.warning("changed_meanwhile", error=type(error).__name__, exc_info=error)
    if problem.status == _PASSING:
        headers["Retry-After"] = "5"
    if isinstance(error, drf.APIException):
        if getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
        if getattr(error, "wait", None):
            headers["Retry-After"] = str(int(error.wait) + 1)  # type: ignore[attr-defined]
    plain = getattr(request, "_request", request)
    return Response(problem.body(plain), status=problem.status, headers=headers, content_type=CONTENT_TYPE)


def respond(request: HttpRequest, problem: Problem) -> JsonResponse:
    """The same answer from outside the framework."""
    return JsonResponse(problem.body(request), status=problem.status, content_type=CONTENT_TYPE)


def of(error: Exception) -> Problem | None:
    """The problem an exception is; None for one that nobody expected."""
    if isinstance(error, TouchstoneError):
        return Problem(
            status=413 if isinstance(error, BodyTooLargeError) else STATUS[error.code],
            code=error.code,
            detail=error.message,
            line=error.line,
            field=error.field,
            faults=error.faults,
        )
    if isinstance(error, ProviderError):
        return Problem(status=STATUS[error.code], code=error.code, detail=error.message)
    if isinstance(error, RequestDataTooBig | TooManyFilesSent | TooManyFieldsSent):
        return Problem(status=413, code=ErrorCode.VALIDATION, detail="The request is too large: send it in parts.")
    if isinstance(error, MultiPartParserError | SuspiciousOperation):
        return Problem(status=400, code=ErrorCode.VALIDATION, detail="The request cannot be read.")
    if isinstance(error, OperationalError):
        return Problem(
            status=503, code=ErrorCode.INTERNAL, detail="The database does not answer now. Try again in a moment."
        )
    if isinstance(error, IntegrityError | ObjectDoesNotExist):
        # Each is looked at before it is used; what goes or comes in between is told by the database.
        return Problem(
            status=409,
            code=ErrorCode.CONFLICT,
            detail="Something that this request uses was changed or deleted meanwhile. Look again, then send it again.",
        )
    if isinstance(error, Http404):
        return NOT_FOUND
    if isinstance(error, DjangoPermissionDenied):
        return Problem(status=403, code=ErrorCode.FORBIDDEN, detail="This is not allowed.")
    if isinstance(error, drf.APIException):
        return _of_framework(error)
    return None


def _of_framework(error: drf.APIException) -> Problem:
    if isinstance(error, drf.ValidationError):
        faults = list(_faults(error.detail))
        return Problem(
            status=422, code=ErrorCode.VALIDATION, detail=faults[0].message, field=faults[0].field, faults=faults
        )
    codes = {
        401: ErrorCode.UNAUTHENTICATED,
        403: ErrorCode.FORBIDDEN,
        404: ErrorCode.NOT_FOUND,
        429: ErrorCode.RATE_LIMITED,
    }
    detail = str(error.detail)
    if not detail.endswith((".", "?")):
        detail += "."
    if isinstance(error, drf.UnsupportedMediaType):
        detail = f"{detail} This address takes application/json, and multipart/form-data where files are sent."
    return Problem(status=error.status_code, code=codes.get(error.status_code, ErrorCode.VALIDATION), detail=detail)


def _faults(detail: Any, field: str = "") -> Iterator[Fault]:
    """The framework's nested messages, flat."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _faults(inner, f"{field}.{name}" if field else str(name))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            yield from _faults(inner, f"{field}[{index}]" if isinstance(inner, Mapping) else field)
    else:
        where = field.removesuffix(".non_field_errors") or None
        yield Fault(code=ErrorCode.VALIDATION, message=str(detail), field=where)


def _fault(fault: Fault) -> dict[str, Any]:
    out: dict[str, Any] = {"code": fault.code.value, "detail": fault.message}
    if fault.line is not None:
        out["line"] = fault.line
    if fault.field is not None:
        out["field"] = fault.field
    return out


NOT_FOUND = Problem(status=404, code=ErrorCode.NOT_FOUND, detail="There is nothing at this address.")
INTERNAL = Problem(
    status=500,
    code=ErrorCode.INTERNAL,
    detail="Touchstone failed here. The server's log has the details under this request's request_id.",
)
BAD_REQUEST = Problem(status=400, code=ErrorCode.VALIDATION, detail="The request cannot be read.")
FORBIDDEN = Problem(status=403, code=ErrorCode.FORBIDDEN, detail="This is not allowed.")
