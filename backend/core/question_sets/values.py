"""Single values of a case, checked: texts, ids, flags, grades, tags."""

import math
import re
from collections.abc import Mapping
from typing import Any

from backend.core.folding import fold
from backend.core.question_sets.notes import Notes, Place

MAX_GRADE = 1000.0  # 2**grade, the exponential gain, stays a finite number
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")


def fault_of_text(value: str) -> str | None:
    """Why a text cannot be kept: PostgreSQL holds neither NUL nor half of a surrogate pair."""
    found = _UNUSABLE.search(value)
    if not found:
        return None
    if found.group() == "\x00":
        return "holds a NUL character"
    return f"holds half of a surrogate pair (\\u{ord(found.group()):04x})"


def read_text(
    value: Any, *, place: Place, notes: Notes, what: str = "the value", may_be_empty: bool = False
) -> str | None:
    """A text, white space cut off its ends; None after a fault."""
    if not isinstance(value, str):
        notes.invalid(f"{what} must be a text, not {kind_of(value)}", place=place)
        return None
    unusable = fault_of_text(value)
    if unusable:
        notes.invalid(f"{what} {unusable}", place=place)
        return None
    text = value.strip()
    if not may_be_empty and is_blank(text):
        notes.invalid(f"{what} is empty", place=place)
        return None
    return text


def read_label(value: Any, *, place: Place, notes: Notes) -> str | None:
    """A text that something is compared with, kept letter for letter; an empty one would match everything."""
    return value if read_text(value, place=place, notes=notes) is not None else None


def read_id(
    value: Any, *, place: Place, notes: Notes, required: bool = False, longest: int | None = None
) -> str | None:
    """An id: a text, or a whole number written without quotes. None when absent or after a fault."""
    if value is None and not required:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    text = read_text(value, place=place, notes=notes, what="the id")
    if text is not None and longest is not None and len(text) > longest:
        notes.invalid(f"the id is longer than {longest} characters", place=place)
        return None
    return text


def read_flag(value: Mapping[str, Any], name: str, *, place: Place, notes: Notes) -> bool:
    given = value.get(name)
    if given is None:
        return False
    if not isinstance(given, bool):
        notes.invalid(f"`{name}` must be true or false, not {kind_of(given)}", place=place / name)
        return False
    return given


def read_grade(value: Any, *, place: Place, notes: Notes) -> float | None:
    """A finite number of a sane size; None after a fault. True and false are no numbers here."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        notes.invalid(f"the grade must be a number, not {kind_of(value)}", place=place)
        return None
    if not (math.isfinite(value) if isinstance(value, float) else True) or abs(value) > MAX_GRADE:
        notes.invalid(f"the grade must be a finite number between -{MAX_GRADE:g} and {MAX_GRADE:g}", place=place)
        return None
    return float(value) + 0.0  # -0.0 becomes 0.0


def read_tags(value: Any, *, place: Place, notes: Notes) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        notes.invalid(f"`tags` must be a list of texts, not {kind_of(value)}", place=place)
        return ()
    read = [read_text(one, place=place / i, notes=notes, what="the tag") for i, one in enumerate(value)]
    return tuple(dict.fromkeys(tag for tag in read if tag))


def is_blank(text: str) -> bool:
    """Whether nothing is left of a text once it is folded as judging folds it (soft hyphens and the like go)."""
    if text[:1].isascii() and text[:1].isalnum():
        return False
    return not fold(text).strip()


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, list):
        return "a list"
    return "an object"
