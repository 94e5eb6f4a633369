"""A page of a list, with the addresses of the first and the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from backend.queries import cursors

LIMIT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """For `partials/pager.html`. `is_later`: it is not the first."""

    rows: list[Any]
    next: str
    first_url: str
    is_later: bool


def cut(request: HttpRequest, rows: Any, *, order: Sequence[str] = ("-id",), limit: int = LIMIT) -> Page:
    """A page of a queryset, from the request's `cursor`. Raises ValidationError for one that is none of this list's."""
    cursor = request.GET.get("cursor") or None
    found = cursors.cut(rows, order=tuple(order), limit=limit, cursor=cursor)
    first = request.GET.copy()
    first.pop("cursor", None)
    following = first.copy()
    if found.cursor is not None:
        following["cursor"] = found.cursor
    return Page(
        rows=found.rows,
        next=f"{request.path}?{following.urlencode()}" if found.cursor is not None else "",
        first_url=f"{request.path}?{first.urlencode()}" if first else request.path,
        is_later=cursor is not None,
    )
