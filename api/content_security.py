"""The headers on every answer: what pages may load (our own files, nothing inline, nothing from elsewhere), and who
may embed or keep an answer."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

DOCS_PATH = "/api/v1/docs"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{style}; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
STRICT = _POLICY.format(style="")
# The packaged documentation page writes its own style elements; its scripts are files all the same.
DOCS = _POLICY.format(style=" 'unsafe-inline'")

_ALWAYS = {
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ContentSecurityMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        for name, value in _ALWAYS.items():
            response.headers.setdefault(name, value)
        if request.path.startswith("/api/"):
            response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault(
            "Content-Security-Policy", DOCS if request.path.rstrip("/") == DOCS_PATH else STRICT
        )
        return response
