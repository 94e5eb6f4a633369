"""How often one token or user may ask: 429 with Retry-After above it."""

import math
from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from api.auth import Caller
from backend.services import rate_limits

if TYPE_CHECKING:
    # The framework imports this module while it makes that class.
    from rest_framework.views import APIView


class CallerThrottle(BaseThrottle):
    def __init__(self) -> None:
        self._wait = 0.0

    def allow_request(self, request: Request, view: "APIView") -> bool:  # noqa: ARG002  the framework's signature
        if not isinstance(request.auth, Caller):
            return True  # it answers without a name: health, the schema
        self._wait = rate_limits.wait(request.auth.id)
        return self._wait <= 0

    def wait(self) -> float | None:
        return float(math.ceil(self._wait)) if self._wait > 0 else None
