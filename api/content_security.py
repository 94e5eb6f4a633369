"""What pages may load: our own files, nothing inline, nothing from elsewhere."""

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


class ContentSecurityMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response.headers.setdefault(
            "Content-Security-Policy", DOCS if request.path.rstrip("/") == DOCS_PATH else STRICT
        )
        return response
