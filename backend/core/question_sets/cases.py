"""One case of a file (a decoded JSON object in the full form or a short one) to a question, or to its faults."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend.core.question_sets.expectations import Sources, read_expectation, read_expectations
from backend.core.question_sets.json_text import Doubled
from backend.core.question_sets.notes import Notes, Place
from backend.core.question_sets.values import read_flag, read_id, read_tags, read_text
from backend.core.types import Alternative, Expectation

MAX_ID = 500
MAX_GENERATED = 200
_SYNONYMS = {
    "question": ("question", "query"),
    "expected": ("expected", "expect"),
    "source": ("source_id", "source"),
}
FIELDS = (
    "id",
    "question",
    "query",
    "expected",
    "expect",
    "expected_chunk_id",
    "expected_chunk_ids",
    "tags",
    "note",
    "description",
    "must_pass",
    "unanswerable",
    "reference_answer",
    "generated",
    "source_id",
    "source",
    "collection",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCase:
    """What a format's reader hands over: an object of the full form, not checked yet, and where it stands.

    `expect_places` gives each entry of `expect` a place of its own (CSV: a question can span rows). `opaque` says
    that paths are ids of another system, in which no `source:` prefix is looked for.
    """

    value: Any
    place: Place
    expect_places: tuple[Place, ...] = ()
    opaque: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A checked case that has no key yet."""

    id: str | None
    text: str
    expectations: tuple[Expectation, ...]
    tags: tuple[str, ...]
    note: str
    must_pass: bool
    unanswerable: bool
    reference_answer: str
    generated: str
    source: str
    collection: str
    place: Place


def read_case(raw: RawCase, *, places: dict[str, Place], sources: Sources, notes: Notes) -> Draft | None:
    """The question of a case; None when it has faults, all of which are in `notes` then. `places` says where each id
    came first, and gets the case's own."""
    place, value = raw.place, raw.value
    if not isinstance(value, Mapping):
        notes.invalid('a case must be a JSON object such as {"question": …, "expected": […]}', place=place)
        return None
    failed = _FaultWatch(notes)
    for name in value.twice if isinstance(value, Doubled) else ():
        notes.invalid(f"the field `{name}` comes twice in one case", place=place / name)
    hint = _unknown_fields(value, place=place, notes=notes)

    name, given = _pick(value, "question", place=place, notes=notes)
    text = read_text(given, place=place / name, notes=notes, what="the question") if given is not None else ""
    if given is None:
        notes.invalid(f"the case has no question text (`question` or `query`){hint}", place=place / "question")

    unanswerable = read_flag(value, "unanswerable", place=place, notes=notes)
    flawed = _FaultWatch(notes)
    expectations = _expectations(raw, value, sources=sources, notes=notes)
    if not expectations and not unanswerable and not flawed.any:
        notes.invalid(
            "the case says nothing about what should be found: give `expected` (or `expect`, `expected_chunk_id`), "
            f"or mark it `unanswerable`{hint}",
            place=place / "expected",
        )
    if unanswerable and any(expectation.grade > 0 for expectation in expectations):
        notes.invalid("a case cannot be `unanswerable` and expect something", place=place / "unanswerable")

    draft = Draft(
        id=_own_id(value, places=places, place=place, notes=notes),
        text=text or "",
        expectations=expectations,
        tags=read_tags(value.get("tags"), place=place / "tags", notes=notes),
        note=_note(value, place=place, notes=notes),
        must_pass=read_flag(value, "must_pass", place=place, notes=notes),
        unanswerable=unanswerable,
        reference_answer=_optional(value, "reference_answer", place=place, notes=notes),
        generated=_optional(value, "generated", place=place, notes=notes)[:MAX_GENERATED],
        source=_source(value, place=place, sources=sources, notes=notes),
        collection=_optional(value, "collection", place=place, notes=notes),
        place=place,
    )
    return None if failed.any else draft


class _FaultWatch:
    """Whether faults were added since it was made."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._before = notes.n_faults

    @property
    def any(self) -> bool:
        return self._notes.n_faults > self._before


def _pick(value: Mapping[str, Any], noun: str, *, place: Place, notes: Notes) -> tuple[str, Any]:
    """The value under a field's name or its synonym; both, when they differ, are a fault."""
    given = [(name, one) for name in _SYNONYMS[noun] if (one := value.get(name)) is not None]
    if not given:
        return noun, None
    if len(given) > 1 and given[0][1] != given[1][1]:
        names = " and ".join(f"`{name}`" for name, _ in given)
        notes.invalid(f"{names} mean the same and differ here; give one of them", place=place / given[1][0])
    return given[0]


def _own_id(value: Mapping[str, Any], *, places: dict[str, Place], place: Place, notes: Notes) -> str | None:
    key = read_id(value.get("id"), place=place / "id", notes=notes, longest=MAX_ID)
    if key is None:
        return None
    if key in places:
        shown = key if len(key) <= 80 else key[:80] + "…"
        notes.invalid(f"the id `{shown}` comes twice, first at {places[key]}", place=place / "id")
    places.setdefault(key, place)
    return key


def _expectations(raw: RawCase, value: Mapping[str, Any], *, sources: Sources, notes: Notes) -> tuple[Expectation, ...]:
    """The expectations of a case that have no fault, in the order of the file."""
    place = raw.place
    found: list[Expectation] = []
    name, given = _pick(value, "expected", place=place, notes=notes)
    splits = sources.opaque() if raw.opaque else sources
    if raw.expect_places:
        for item, where in zip(given, raw.expect_places, strict=True):
            one = read_expectation(item, place=where, sources=splits, notes=notes)
            if one:
                found.append(one)
    elif given is not None:
        found += read_expectations(given, place=place / name, sources=splits, notes=notes)
    for name in ("expected_chunk_id", "expected_chunk_ids"):
        if value.get(name) is not None:
            found += _passages(value[name], place=place / name, notes=notes)
    return tuple(found)


def _passages(value: Any, *, place: Place, notes: Notes) -> list[Expectation]:
    if isinstance(value, list) and not value:
        notes.invalid("the list is empty: leave the field out, or name a passage", place=place)
    ids = value if isinstance(value, list) else [value]
    places = [place / i for i in range(len(ids))] if isinstance(value, list) else [place]
    read = [read_id(one, place=where, notes=notes, required=True) for one, where in zip(ids, places, strict=True)]
    return [Expectation(any_of=(Alternative(passage=one),)) for one in read if one]


def _optional(value: Mapping[str, Any], name: str, *, place: Place, notes: Notes) -> str:
    if value.get(name) is None:
        return ""
    return read_text(value[name], place=place / name, notes=notes, may_be_empty=True) or ""


def _note(value: Mapping[str, Any], *, place: Place, notes: Notes) -> str:
    """`note`, and the short form's `description` before it."""
    parts = [_optional(value, name, place=place, notes=notes) for name in ("description", "note")]
    return "\n".join(part for part in parts if part)


def _source(value: Mapping[str, Any], *, place: Place, sources: Sources, notes: Notes) -> str:
    name, given = _pick(value, "source", place=place, notes=notes)
    if given is None:
        return ""
    text = read_id(given, place=place / name, notes=notes) or ""
    sources.note_unknown(text, place=place / name, notes=notes)
    return text


def _unknown_fields(value: Mapping[str, Any], *, place: Place, notes: Notes) -> str:
    """Warn of fields that are not read; returns the hint that a fault about a missing field can add."""
    hints = []
    for name in value:
        if name in FIELDS:
            continue
        shown = name if len(name) <= 40 else name[:40] + "…"
        near = difflib.get_close_matches(name.lower(), FIELDS, n=1, cutoff=0.75) if len(name) <= 40 else []
        if near:
            hints.append(f"`{shown}` is not a field: did you mean `{near[0]}`?")
            notes.warn(f"field {name}", f"the field `{shown}` is not read: did you mean `{near[0]}`?", place=place)
        else:
            notes.warn(f"field {name}", f"the field `{shown}` is not known and is not read", place=place)
    return f" ({' '.join(hints)})" if hints else ""
