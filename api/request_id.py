"""A name for each request: in its answer, in its errors, and in every log line it causes."""

import re
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

from backend.models.base import new_id

HEADER = "X-Request-Id"
_USABLE = re.compile(r"[A-Za-z0-9._:-]{1,100}")


class RequestIdMiddleware:
    """Takes the caller's X-Request-Id where it is harmless, else makes one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        name = given if _USABLE.fullmatch(given) else str(new_id())
        request.META["touchstone.request_id"] = name
        with structlog.contextvars.bound_contextvars(request_id=name):
            response = self._get_response(request)
        response[HEADER] = name
        return response


def of(request: HttpRequest | None) -> str:
    """Empty where the middleware did not run."""
    return "" if request is None else str(request.META.get("touchstone.request_id", ""))
