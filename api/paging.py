"""Cursor pages: the next page begins after the last row's sort key, so rows that come or go shift nothing."""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import FieldError
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import DataError
from django.db.models import Q
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from backend.core.errors import ValidationError

DEFAULT_LIMIT, MAX_LIMIT = 50, 500
# What a cursor that somebody made up can set off, from its decoding to the query.
_MALFORMED = (
    ValueError,
    TypeError,
    FieldError,
    DjangoValidationError,
    binascii.Error,
    OverflowError,
    RecursionError,
    DataError,
)


class CursorPagination(BasePagination):
    """`order` names fields that are never null, the last one (or all together) unique; `-` for descending."""

    def __init__(self, *, order: Sequence[str] = ("-id",), default_limit: int = DEFAULT_LIMIT) -> None:
        self.order = tuple(order)
        self.default_limit = default_limit
        self.next_url: str | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:  # noqa: ARG002
        limit = read_limit(request, default=self.default_limit)
        ordered = queryset.order_by(*self.order)
        cursor = request.query_params.get("cursor")
        try:
            if cursor:
                ordered = ordered.filter(_after(self.order, _decode(cursor, self.order)))
            rows = list(ordered[: limit + 1])
        except _MALFORMED as error:
            if not cursor:
                raise
            raise ValidationError(
                "This cursor is none of this list's: begin again without one.", field="cursor"
            ) from error
        if len(rows) > limit:
            rows = rows[:limit]
            values = [_read(rows[-1], field.lstrip("-")) for field in self.order]
            self.next_url = _next_url(request, _encode(values, self.order))
        return rows

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


def _after(order: Sequence[str], values: Sequence[Any]) -> Q:
    """Rows behind these values: (a, b) > (x, y), each field in its own direction."""
    condition = Q()
    equal = Q()
    for field, value in zip(order, values, strict=True):
        name = field.lstrip("-")
        beyond = Q(**{f"{name}__{'lt' if field.startswith('-') else 'gt'}": value})
        condition |= equal & beyond
        equal &= Q(**{name: value})
    return condition


def _encode(values: Iterable[Any], order: Sequence[str]) -> str:
    plain = [str(value) if isinstance(value, UUID | datetime) else value for value in values]
    data = json.dumps([list(order), plain], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(cursor: str, order: Sequence[str]) -> list[Any]:
    data = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    if not isinstance(data, list) or len(data) != 2 or data[0] != list(order) or len(data[1]) != len(order):
        raise ValueError(cursor)
    if any(not isinstance(value, str | int | float) or "\x00" in str(value) for value in data[1]):
        raise ValueError(cursor)
    return list(data[1])


def _read(row: Any, path: str) -> Any:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


def _next_url(request: Request, cursor: str) -> str:
    kept = [(name, value) for name, values in request.query_params.lists() if name != "cursor" for value in values]
    return f"{request.build_absolute_uri(request.path)}?{urlencode([*kept, ('cursor', cursor)])}"
