"""Reads what a refused request still sends. A server that answers and closes while its client is still sending resets
the connection, and the client sees that instead of why it was refused."""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError

_PART = 256 * 1024
# Beyond these the client has earned its reset.
MOST_BYTES, MOST_SECONDS = 256 * 1024 * 1024, 10.0


class UnreadBodyMiddleware:
    """Around everything that may answer without reading the body."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.status_code >= 400 and request.META.get("CONTENT_LENGTH"):
            _read_rest(request)
        return response


def _read_rest(request: HttpRequest) -> None:
    n_bytes, until = 0, time.monotonic() + MOST_SECONDS
    try:
        while n_bytes < MOST_BYTES and time.monotonic() < until:
            part = request.read(_PART)
            if not part:
                return
            n_bytes += len(part)
    except (UnreadablePostError, ValueError):
        return  # the client has gone, or the stream was closed behind us
