"""What all models share."""

from enum import StrEnum
from uuid import UUID

from django.db import models
from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """A UUIDv7: opaque to callers, and in time order, which keeps the primary-key indexes compact."""
    return uuid7()


def choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    return [(member.value, member.value) for member in enum]


def one_of(field: str, enum: type[StrEnum], *, name: str) -> models.CheckConstraint:
    """The database refuses a value that is no member."""
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": [member.value for member in enum]}), name=name)
