"""One row of a workspace by its id: a malformed id and another workspace's are the same "not found"."""

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from backend.core.errors import NotFoundError

_Row = TypeVar("_Row", bound=Model)


def get(rows: QuerySet[_Row], key: object, *, what: str) -> _Row:
    """Raises NotFoundError."""
    found = rows.filter(id=as_uuid(key, what=what)).first()
    if found is None:
        raise NotFoundError(what, key)
    return found


def as_uuid(key: object, *, what: str) -> UUID:
    """Raises NotFoundError for what is no id at all."""
    if isinstance(key, UUID):
        return key
    text = str(key)
    try:
        # UUID() takes braces, prefixes and missing dashes as well: an id has one spelling.
        parsed = UUID(text)
    except ValueError:
        raise NotFoundError(what, text[:60]) from None
    if str(parsed) != text.lower():
        raise NotFoundError(what, text[:60])
    return parsed
