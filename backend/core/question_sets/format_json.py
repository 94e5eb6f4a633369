"""Formats 1 to 4: our own JSON, one object a line or an array of cases. All share the fields of the full form."""

from collections.abc import Iterator

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Content, Format
from backend.core.question_sets.json_file import JsonDocument, JsonLines
from backend.core.question_sets.notes import Notes, Place, refuse


def _is_lines(content: Content) -> bool:
    return isinstance(content.json, JsonLines)


def _is_cases(content: Content) -> bool:
    return isinstance(content.json, JsonDocument)


def _read_lines(content: Content, notes: Notes) -> Iterator[RawCase]:
    return JsonLines(content.text).items(notes)


def _read_cases(content: Content, notes: Notes) -> Iterator[RawCase]:
    document = JsonDocument(content.text)
    fields = document.fields
    if document.is_array or "cases" in fields or "questions" in fields:
        for name in ("cases", "questions"):
            if name in fields and not isinstance(fields[name], list):
                raise refuse(f"`{name}` must be a list of cases.")
        yield from document.items(notes)
    elif "question" in fields or "query" in fields:  # one case, written over several lines
        yield RawCase(value=fields, place=Place(line=1))
        yield from document.items(notes)  # tells what is no JSON
    else:
        yield from document.items(notes)
        if not notes.n_faults:
            raise refuse('The JSON object has no list of `cases`. Write {"cases": [{"query": …, "expect": …}]}.')


JSONL = Format(name="jsonl", title="JSONL, one question a line", recognise=_is_lines, read=_read_lines)
CASES = Format(name="cases", title="JSON with `cases`", recognise=_is_cases, read=_read_cases)
