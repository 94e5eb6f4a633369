"""Format 5: our own CSV. One row is one expectation; rows of the same question belong together."""

from collections.abc import Iterator
from typing import Any

from backend.core import formulas
from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Content, Format
from backend.core.question_sets.grouping import Groups, number_or_text
from backend.core.question_sets.notes import Notes, refuse
from backend.core.question_sets.table import Table

_QUESTION = ("question", "query")
_PATH = ("path", "expected", "expect")
TARGET_COLUMNS = (*_PATH, "document", "content_contains", "passage", "expected_chunk_id", "text", "unanswerable")
_TEXTS = ("id", "note", "description", "reference_answer", "source_id", "collection")
_KNOWN = {*_QUESTION, *TARGET_COLUMNS, *_TEXTS, "must_pass", "tags", "grade", "source"}
_TRUE, _FALSE = {"true", "yes", "1", "x"}, {"false", "no", "0"}
BETWEEN = "|"


def _recognise(content: Content) -> bool:
    if content.json is not None:
        return False
    return any(name in Table(content.text).columns for name in _QUESTION)


def _read(content: Content, notes: Notes) -> Iterator[RawCase]:
    table = Table(content.text)
    if not any(name in table.columns for name in TARGET_COLUMNS):
        raise refuse(
            "The table has no column that says what should be found: add `document`, `content_contains` or `path`."
        )
    groups = Groups(opaque=False)
    for cells, place in table.rows(notes):
        # A grade of -1 is a number and stands as it is.
        row = {name: cell if name == "grade" else formulas.arm(cell) for name, cell in cells.items()}
        for name in row:
            if name not in _KNOWN:
                notes.warn(f"column {name}", f"the column `{name[:40]}` is not known and is not read", place=place)
        fields: dict[str, Any] = {name: row[name] for name in _TEXTS if name in row}
        fields["question"] = next((row[name].strip() for name in _QUESTION if name in row), None)
        fields["tags"] = [tag for tag in row.get("tags", "").split(BETWEEN) if tag.strip()] or None
        for name in ("must_pass", "unanswerable"):
            if name in row:
                fields[name] = _flag(row[name])
        key = ("id", row["id"].strip()) if "id" in row else ("text", fields["question"])
        # A row without a question is a fault of its own; it must not be taken for more of another one.
        group = groups.get(key if fields["question"] or "id" in row else place, place=place, fields=fields)
        if fields["question"] and group.fields["question"] is None:
            group.fields["question"] = fields["question"]
        elif fields["question"] and group.fields["question"] != fields["question"]:
            notes.invalid(f"the id `{row['id'][:80]}` has another question at {group.place}", place=place / "question")
        expectation = _expectation(row)
        if expectation:
            group.add(expectation, place=place)
    yield from groups.cases()


def _expectation(row: dict[str, str]) -> dict[str, Any]:
    """The full form's object of a row; empty where the row expects nothing."""
    value: dict[str, Any] = {name: row[name].strip() for name in ("document", "text", "source") if name in row}
    for name in _PATH:
        if name in row:
            value["path"] = row[name].strip()
    for name in ("passage", "expected_chunk_id"):
        if name in row:
            value["passage"] = row[name].strip()
    if "content_contains" in row:
        value["content_contains"] = row["content_contains"].split(BETWEEN)
    if set(value) <= {"source"}:
        return {}
    if "grade" in row:
        value["grade"] = number_or_text(row["grade"])
    return value


def _flag(cell: str) -> bool | str:
    lower = cell.strip().lower()
    return True if lower in _TRUE else False if lower in _FALSE else cell


CSV = Format(name="csv", title="CSV with `question` and `document`", recognise=_recognise, read=_read)
