"""Cursor pages of the framework's kind (backend/queries/cursors.py says how they are cut)."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from backend.core.errors import ValidationError
from backend.queries import cursors

DEFAULT_LIMIT, MAX_LIMIT = 50, 500


class CursorPagination(BasePagination):
    """`order` names fields that are never null, the last one (or all together) unique; `-` for descending."""

    def __init__(self, *, order: Sequence[str] = ("-id",), default_limit: int = DEFAULT_LIMIT) -> None:
        self.order = tuple(order)
        self.default_limit = default_limit
        self.next_url: str | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:  # noqa: ARG002
        found = cursors.cut(
            queryset,
            order=self.order,
            limit=read_limit(request, default=self.default_limit),
            cursor=request.query_params.get("cursor"),
        )
        if found.cursor is not None:
            self.next_url = _next_url(request, found.cursor)
        return found.rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self.next_url})

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {"type": ["string", "null"], "format": "uri", "description": "The next page; null: none."},
            },
        }


def read_limit(request: Request, *, default: int = DEFAULT_LIMIT) -> int:
    text = request.query_params.get("limit")
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MAX_LIMIT:
        raise ValidationError(f"limit is a whole number from 1 to {MAX_LIMIT}, not {text!r}.", field="limit")
    return int(text)


def _next_url(request: Request, cursor: str) -> str:
    kept = [(name, value) for name, values in request.query_params.lists() if name != "cursor" for value in values]
    return f"{request.build_absolute_uri(request.path)}?{urlencode([*kept, ('cursor', cursor)])}"
