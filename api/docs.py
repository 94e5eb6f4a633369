"""The API's own description, and the page that shows it; both from files of this server."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView


class SchemaView(SpectacularAPIView):
    authentication_classes = ()
    permission_classes = ()


class DocsView(SpectacularSwaggerSplitView):
    """The script comes as a file of its own: nothing inline, as the content policy asks."""

    authentication_classes = ()
    permission_classes = ()


class _TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "api.auth.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:  # noqa: ARG002  as above
        return {"type": "http", "scheme": "bearer", "bearerFormat": "ts_…"}


class _SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "api.auth.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:  # noqa: ARG002  as above
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
