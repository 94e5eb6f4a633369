"""From where somebody comes, as far as it can be known."""

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The peer's; behind TOUCHSTONE_PROXIES proxies the one that the outermost of them saw. What stands further left
    in X-Forwarded-For is the client's own word."""
    peer = str(request.META.get("REMOTE_ADDR", ""))
    if not settings.PROXIES:
        return peer
    told = [one.strip() for one in request.headers.get("X-Forwarded-For", "").split(",") if one.strip()]
    return told[-settings.PROXIES] if len(told) >= settings.PROXIES else peer
