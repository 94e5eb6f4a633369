"""A JSON text of any kind: one object a line, an array of cases, or an object that holds them."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.json_text import BadJson, LineCounter, read_value, read_whole, skip_white, walk
from backend.core.question_sets.notes import Notes, Place

CASE_ARRAYS = frozenset({"cases", "questions", "judgmentRatings", "querySetQueries"})
_WHOLE_FILE = CASE_ARRAYS | {"queries", "corpus", "relevant_docs"}  # no case has these; a whole set does
_SAMPLE = 20
_LINE_NAMES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class JsonLines:
    """One value a line; blank lines and lines that begin with `#` are skipped."""

    text: str

    def items(self, notes: Notes) -> Iterator[RawCase]:
        """Each line's value. A line that is no JSON is a fault of its own, and the next line is read."""
        if not self.text.strip():
            return
        for number, line in numbered_lines(self.text):
            stripped = line.strip(" \t\r")
            if not stripped or stripped.startswith("#"):
                continue
            try:
                value = read_whole(stripped)
            except BadJson as error:
                notes.unreadable(_not_json(error, stripped), place=Place(line=number))
                continue
            yield RawCase(value=value, place=Place(line=number))

    def sample(self) -> list[Any]:
        """The first values, for recognising; whatever is no JSON is left out."""
        found: list[Any] = []
        for _, line in itertools.islice(numbered_lines(self.text), 200):
            value = _value_or_none(line)
            if value is not None:
                found.append(value)
            if len(found) >= _SAMPLE:
                break
        return found


@dataclass(frozen=True)
class JsonDocument:
    """One value over the whole file: an array of cases, or an object with such an array or with other fields."""

    text: str
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_array(self) -> bool:
        return self.text.startswith("[", skip_white(self.text))

    def items(self, notes: Notes) -> Iterator[RawCase]:
        """The cases, with the line at which each begins. Behind an error nothing can be read."""
        lines = LineCounter(self.text)
        try:
            for part in walk(self.text, arrays=CASE_ARRAYS):
                if part.is_element:
                    yield RawCase(value=part.value, place=Place(line=lines.line_at(part.start)))
        except BadJson as error:
            notes.unreadable(f"not JSON: {error.message}", place=Place(line=lines.line_at(error.position)))

    def sample(self) -> list[Any]:
        parts = self._parts()
        return [part.value for part in itertools.islice((one for one in parts if one.is_element), _SAMPLE)]

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The top object's fields, arrays of cases as empty lists; as far as the text is JSON."""
        found: dict[str, Any] = {}
        if not self.is_array:
            for part in self._parts():
                if not part.is_element:
                    found.setdefault(part.field, part.value)
        return found

    def _parts(self) -> Iterator[Any]:
        try:
            yield from walk(self.text, arrays=CASE_ARRAYS)
        except BadJson:
            return


JsonFile = JsonLines | JsonDocument


def as_json(text: str, *, filename: str) -> JsonFile | None:
    """What kind of JSON a text is; None when it is none (a CSV, say). A broken file counts as what it tried to be."""
    start = skip_white(text)
    first = text[start : start + 1]
    named_lines = filename.lower().endswith(_LINE_NAMES)
    if first == "[":
        return JsonLines(text) if named_lines and _parses(text, start, one_line=True) else JsonDocument(text)
    if first == "{":
        return _object_kind(text, start, named_lines=named_lines)
    if named_lines or _looks_like_lines(text) or _only_comments(text):
        return JsonLines(text)
    return JsonDocument(text) if filename.lower().endswith(".json") and first else None


def _object_kind(text: str, start: int, *, named_lines: bool) -> JsonFile:
    try:
        value, end = read_value(text, start)
    except BadJson:
        several = _looks_like_lines(text) or named_lines
        return JsonLines(text) if several else JsonDocument(text)
    behind = skip_white(text, end)
    if behind < len(text):
        whole_line = "\n" in text[end:behind] and "\n" not in text[start:end]
        return JsonLines(text) if whole_line or named_lines or _looks_like_lines(text) else JsonDocument(text)
    is_line = "\n" not in text[start:end] and not _WHOLE_FILE & set(value)
    return JsonLines(text) if is_line else JsonDocument(text)


def _only_comments(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for _, line in numbered_lines(text))


def _parses(text: str, start: int, *, one_line: bool) -> bool:
    try:
        _, end = read_value(text, start)
    except BadJson:
        return False
    return not one_line or "\n" not in text[start:end]


def _looks_like_lines(text: str) -> bool:
    """Whether half of the lines begin and end as objects do. In a broken JSON text laid out over lines few do."""
    n_lines = n_objects = 0
    for _, line in itertools.islice(numbered_lines(text), 200):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            n_lines += 1
            n_objects += len(stripped) > 2 and stripped.startswith("{") and stripped.endswith("}")
    return n_objects > 0 and n_objects * 2 >= n_lines


def _value_or_none(line: str) -> Any:
    stripped = line.strip(" \t\r")
    if not stripped.startswith(("{", "[")):
        return None
    try:
        return read_whole(stripped)
    except BadJson:
        return None


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines as editors number them. Only LF ends one: U+2028 and its like may stand inside a JSON text."""
    start, number = 0, 1
    while start <= len(text):
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield number, text[start:end]
        start, number = end + 1, number + 1


def _not_json(error: BadJson, line: str) -> str:
    begin = line[:60] + ("…" if len(line) > 60 else "")
    shown = json.dumps(begin, ensure_ascii=False)
    if "\r" in line:
        return "not JSON: the lines end with CR alone; save the file with LF or CRLF line ends"
    return f"not JSON ({error.message} at character {error.position + 1}): {shown}"
