"""What a case expects: strings, objects and lists of them, to expectations with alternatives."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from backend.core.question_sets.json_text import Doubled
from backend.core.question_sets.notes import Notes, Place
from backend.core.question_sets.values import kind_of, read_grade, read_id, read_label
from backend.core.types import Alternative, Expectation

_ALTERNATIVE_FIELDS = ("path", "source", "document", "content_contains", "passage", "text")
_ENTRY_FIELDS = (*_ALTERNATIVE_FIELDS, "any_of", "grade")
_PREFIX = re.compile(r"([A-Za-z][\w.-]{0,60}):(?!//)")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Sources:
    """The names of the sources there are, for `source:path`. Where none are known, nothing is split or missed."""

    known: frozenset[str] = field(default=frozenset())

    def opaque(self) -> "Sources":
        return replace(self, known=frozenset())

    def split(self, text: str) -> tuple[str | None, str]:
        """(source, path). A prefix that names no known source stays part of the path, so URLs stay whole."""
        at = text.find(":")
        best: tuple[str | None, str] = (None, text)
        while at >= 0:
            prefix, rest = text[:at], text[at + 1 :]
            if prefix in self.known and not rest.startswith("//"):
                best = (prefix, rest)  # the longest known prefix wins
            if at > 200:
                break
            at = text.find(":", at + 1)
        return best

    def note_unknown(self, name: str, *, place: Place, notes: Notes) -> None:
        if self.known and name and name not in self.known:
            shown = ", ".join(f"`{one}`" for one in sorted(self.known)[:_SHOWN])
            more = f" and {len(self.known) - _SHOWN} more" if len(self.known) > _SHOWN else ""
            notes.warn(f"source {name}", f"`{name}` is not one of the sources there are: {shown}{more}", place=place)

    def note_prefix(self, path: str, *, place: Place, notes: Notes) -> None:
        match = _PREFIX.match(path) if self.known else None
        if match:
            self.note_unknown(match.group(1), place=place, notes=notes)


def read_expectations(value: Any, *, place: Place, sources: Sources, notes: Notes) -> list[Expectation]:
    """The value of `expected`: one string or object, or a list of them, each an expectation of its own."""
    if not isinstance(value, list):
        one = read_expectation(value, place=place, sources=sources, notes=notes)
        return [one] if one else []
    if not value:
        notes.invalid("the list is empty: name what should be found, or mark the case `unanswerable`", place=place)
    read = [read_expectation(item, place=place / i, sources=sources, notes=notes) for i, item in enumerate(value)]
    return [one for one in read if one]


def read_expectation(value: Any, *, place: Place, sources: Sources, notes: Notes) -> Expectation | None:
    """One expectation; None after a fault. An object without `any_of` is its own only alternative."""
    if not isinstance(value, Mapping):
        alternative = read_alternative(value, place=place, sources=sources, notes=notes)
        return Expectation(any_of=(alternative,)) if alternative else None
    grade: float | None = 1.0
    if value.get("grade") is not None:
        grade = read_grade(value["grade"], place=place / "grade", notes=notes)
    if "any_of" not in value:
        rest = {name: one for name, one in value.items() if name != "grade"}
        alternative = read_alternative(_carry_twice(value, rest), place=place, sources=sources, notes=notes)
        found = [alternative] if alternative else None
    else:
        found = _any_of(value, place=place, sources=sources, notes=notes)
    if grade is None or found is None:
        return None
    return Expectation(any_of=tuple(found), grade=grade)


def _carry_twice(value: Mapping[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(value, Doubled):
        return rest
    doubled = Doubled(rest)
    doubled.twice = value.twice
    return doubled


def _any_of(value: Mapping[str, Any], *, place: Place, sources: Sources, notes: Notes) -> list[Alternative] | None:
    before = notes.n_faults
    _tell_twice(value, place=place, notes=notes)
    for name in value:
        if name in _ALTERNATIVE_FIELDS:
            notes.invalid(f"`{name}` stands beside `any_of`; put it into one of the alternatives", place=place)
        elif name not in _ENTRY_FIELDS:
            _unknown(name, place=place, notes=notes)
    items = value["any_of"] if isinstance(value["any_of"], list) else [value["any_of"]]
    if not items:
        notes.invalid("`any_of` is empty", place=place / "any_of")
        return None
    inside = place / "any_of"
    read = [read_alternative(item, place=inside / i, sources=sources, notes=notes) for i, item in enumerate(items)]
    return None if notes.n_faults > before else [one for one in read if one]


def _tell_twice(value: Mapping[str, Any], *, place: Place, notes: Notes) -> None:
    for name in value.twice if isinstance(value, Doubled) else ():
        notes.invalid(f"the field `{name}` comes twice", place=place)


def read_alternative(value: Any, *, place: Place, sources: Sources, notes: Notes) -> Alternative | None:
    """One alternative: a string is a path (`source:path` where the source is known)."""
    if isinstance(value, str):
        return _by_path(value, place=place, sources=sources, notes=notes)
    if not isinstance(value, Mapping):
        notes.invalid(f"an expectation must be a text or an object, not {kind_of(value)}", place=place)
        return None
    before = notes.n_faults
    _tell_twice(value, place=place, notes=notes)
    hint = ""
    for name in value:
        if name == "grade":
            notes.invalid("the grade belongs beside `any_of`, not inside an alternative", place=place / name)
        elif name not in _ALTERNATIVE_FIELDS:
            hint = _unknown(name, place=place, notes=notes) or hint
    texts = {
        name: read_label(value[name], place=place / name, notes=notes)
        for name in ("source", "document", "text")
        if value.get(name) is not None
    }
    path: str | None = None
    source = texts.get("source")
    if value.get("path") is not None:
        path = read_label(value["path"], place=place / "path", notes=notes)
        if path and "source" not in value:  # `"source": null` says that the path is whole
            whole = _by_path(path, place=place / "path", sources=sources, notes=notes)
            source, path = (whole.source, whole.path) if whole else (None, None)
    if texts.get("source"):
        sources.note_unknown(source or "", place=place / "source", notes=notes)
    passage = None
    if value.get("passage") is not None:
        passage = read_id(value["passage"], place=place / "passage", notes=notes)
    contents: tuple[str, ...] = ()
    if value.get("content_contains") is not None:
        contents = _contents(value["content_contains"], place=place / "content_contains", notes=notes)
    if all(value.get(name) is None for name in _ALTERNATIVE_FIELDS if name != "source"):
        notes.invalid(
            "an alternative must name something to find: `path`, `document`, `content_contains`, `passage` or `text`"
            + hint,
            place=place,
        )
    if notes.n_faults > before:
        return None
    return Alternative(
        path=path,
        source=source,
        document=texts.get("document"),
        content_contains=contents,
        passage=passage,
        text=texts.get("text"),
    )


def _by_path(value: str, *, place: Place, sources: Sources, notes: Notes) -> Alternative | None:
    path = read_label(value, place=place, notes=notes)
    if path is None:
        return None
    source, rest = sources.split(path)
    if source is None:
        sources.note_prefix(path, place=place, notes=notes)
    elif not rest.strip():
        notes.invalid(f"there is no path behind the source `{source}:`", place=place)
        return None
    return Alternative(path=rest, source=source)


def _contents(value: Any, *, place: Place, notes: Notes) -> tuple[str, ...]:
    """The substrings of which any one suffices; a bare string is a list of one."""
    if isinstance(value, str):
        text = read_label(value, place=place, notes=notes)
        return (text,) if text else ()
    if not isinstance(value, list):
        notes.invalid(f"`content_contains` must be a text or a list of texts, not {kind_of(value)}", place=place)
        return ()
    if not value:
        notes.invalid("`content_contains` is an empty list", place=place)
    read = [read_label(one, place=place / i, notes=notes) for i, one in enumerate(value)]
    return tuple(one for one in read if one)


def _unknown(name: str, *, place: Place, notes: Notes) -> str:
    shown = name if len(name) <= 40 else name[:40] + "…"
    near = difflib.get_close_matches(name.lower(), _ENTRY_FIELDS, n=1, cutoff=0.75) if len(name) <= 40 else []
    hint = f": did you mean `{near[0]}`?" if near else ""
    notes.warn(f"expectation field {name}", f"the field `{shown}` of an expectation is not read{hint}", place=place)
    return f" (`{shown}` is not a field{hint})" if near else ""
