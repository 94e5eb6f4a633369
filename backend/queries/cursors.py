"""Cursor pages: the next page begins after the last row's sort key, so rows that come or go shift nothing."""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import FieldError
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import DataError
from django.db.models import Q

from backend.core.errors import ValidationError

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One page. `cursor` begins the next; None: there is none."""

    rows: list[Any]
    cursor: str | None


def cut(rows: Any, *, order: Sequence[str], limit: int, cursor: str | None) -> Cut:
    """A page of a queryset. `order` names fields that are never null, the last one (or all together) unique; `-` for
    descending. Raises ValidationError for a cursor that is none of this list's."""
    ordered = rows.order_by(*order)
    try:
        if cursor:
            ordered = ordered.filter(_after(order, _decode(cursor, order)))
        found = list(ordered[: limit + 1])
    except _MALFORMED as error:
        if not cursor:
            raise
        raise ValidationError("This cursor is none of this list's: begin again without one.", field="cursor") from error
    if len(found) <= limit:
        return Cut(rows=found, cursor=None)
    found = found[:limit]
    return Cut(rows=found, cursor=_encode([_read(found[-1], field.lstrip("-")) for field in order], order))


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
