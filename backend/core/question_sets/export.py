"""A set written again: JSONL (forms 1 and 4), CSV, BEIR, qrels.

Form 4 comes back the same. The others hold less: they are refused, naming the questions that they cannot hold, unless
`lossy`, which leaves out what does not fit (and questions of which nothing is left).
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from backend.core import formulas
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.question_sets.format_csv import BETWEEN
from backend.core.question_sets.full_form import to_full_form
from backend.core.question_sets.hashing import text_key
from backend.core.types import Alternative, Expectation, ParsedSet, Question

_MAX_FAULTS = 100
_LONGEST_CELL = 100_000  # readers of CSV (ours among them) stop at 131,072
_CSV_COLUMNS = (
    "id",
    "question",
    "path",
    "source",
    "document",
    "content_contains",
    "passage",
    "text",
    "grade",
    "tags",
    "note",
    "must_pass",
    "unanswerable",
    "reference_answer",
    "source_id",
    "collection",
)


def to_jsonl(parsed: ParsedSet, *, form: int = 4, lossy: bool = False) -> str:
    """Form 4 is the full form, one question a line; form 1 holds questions and the paths they expect."""
    if form == 4:
        return "".join(_line(_without_line(question)) for question in parsed.questions)
    if form != 1:
        raise ValidationError(f"There is no form {form} of JSONL; there are 1 and 4.", field="form")
    questions = _holdable(parsed, why_not=_not_in_form_1, form="JSONL of form 1", lossy=lossy)
    lines = []
    for question in questions:
        expected = [_written_path(one) for one in _single_paths(question)]
        if expected:
            lines.append(_line({**_own_id(question), "question": question.text, "expected": expected}))
    return "".join(lines)


def to_csv(parsed: ParsedSet, *, lossy: bool = False) -> str:
    """Format 5, one expectation a row, lines ended by LF. Cells that a spreadsheet would run are made harmless, and
    read back as they were (core/formulas.py)."""
    questions = _holdable(parsed, why_not=_not_in_csv, form="CSV", lossy=lossy)
    # Ids are always written: without them two questions of the same text would be read as one.
    rows = [
        {name: cell if name == "grade" else formulas.disarm(cell) for name, cell in row.items()}
        for row in _csv_rows(questions)
    ]
    columns = [name for name in _CSV_COLUMNS if any(row.get(name) for row in rows)]
    out = io.StringIO()
    # The writer puts no quotes around a lone carriage return, and readers would end the row there.
    has_return = any("\r" in cell for row in rows for cell in row.values())
    quoting: Literal[0, 1] = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n", quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def to_qrels(parsed: ParsedSet, *, lossy: bool = False) -> str:
    """TREC qrels: `key 0 document grade`. The questions' texts are in `to_topics`."""
    rows = []
    for question in _holdable(parsed, why_not=_not_in_qrels, form="qrels", lossy=lossy):
        for path, grade in _graded_paths(question):
            if not _has_space(question.key) and not _has_space(path) and grade == int(grade):
                rows.append(f"{question.key} 0 {path} {int(grade)}\n")
    return "".join(rows)


def to_topics(parsed: ParsedSet) -> str:
    """The questions that belong to qrels: `key`, tab, text (white space runs to one space)."""
    return "".join(f"{question.key}\t{' '.join(question.text.split())}\n" for question in parsed.questions)


def to_beir(parsed: ParsedSet, *, lossy: bool = False) -> dict[str, bytes]:
    """The files of a BEIR folder, by name, without a corpus."""
    questions = _holdable(parsed, why_not=_not_in_beir, form="BEIR", lossy=lossy)
    queries = [_line({"_id": question.key, "text": question.text}) for question in questions]
    rows = ["query-id\tcorpus-id\tscore\n"]
    for question in questions:
        for path, grade in _graded_paths(question):
            if not _has_tab(question.key) and not _has_tab(path):
                rows.append(f"{question.key}\t{path}\t{int(grade) if grade.is_integer() else grade}\n")
    return {"queries.jsonl": "".join(queries).encode(), "qrels/test.tsv": "".join(rows).encode()}


def _holdable(
    parsed: ParsedSet, *, why_not: Callable[[Question], str | None], form: str, lossy: bool
) -> tuple[Question, ...]:
    """All questions. Raises ValidationError naming those that the form cannot hold, unless `lossy`."""
    if lossy:
        return parsed.questions
    reasons = [(question.key, why) for question in parsed.questions if (why := why_not(question))]
    if reasons:
        shown = "; ".join(f"{key} ({why})" for key, why in reasons[:3])
        more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        faults = [
            Fault(code=ErrorCode.VALIDATION, message=f"{key}: {why}", field=key) for key, why in reasons[:_MAX_FAULTS]
        ]
        raise ValidationError(
            f"{form} cannot hold {len(reasons)} of {len(parsed.questions)} questions: {shown}{more}. "
            "Export in form 4, or ask for a lossy export.",
            field="format",
            faults=faults,
        )
    return parsed.questions


def _extras(question: Question) -> Iterator[str]:
    """The fields that only the wider forms hold."""
    for name in ("tags", "note", "must_pass", "unanswerable", "reference_answer", "generated", "source", "collection"):
        if getattr(question, name):
            yield name


def _not_in_form_1(question: Question) -> str | None:
    extra = next(_extras(question), None)
    if extra:
        return f"has `{extra}`"
    if any(entry.grade != 1 for entry in question.expectations):
        return "has grades"
    if len(_single_paths(question)) != len(question.expectations) or not question.expectations:
        return "expects more than single document paths"
    return None


def _not_in_csv(question: Question) -> str | None:
    if question.generated:
        return "has `generated`"
    if any(BETWEEN in tag for tag in question.tags):
        return f"has a tag with `{BETWEEN}`"
    longest = max((len(text) for row in _csv_rows([question]) for text in row.values()), default=0)
    if longest > _LONGEST_CELL:
        return f"has a value of more than {_LONGEST_CELL:,} characters"
    for entry in question.expectations:
        if len(entry.any_of) != 1:
            return "has alternatives"
        one = entry.any_of[0]
        if any(BETWEEN in text for text in one.content_contains):
            return f"has content with `{BETWEEN}`"
        if any(text != text.strip() for text in _single_texts(one)):
            return "has white space at the end of a value"
    return None


def _not_in_qrels(question: Question) -> str | None:
    why = _not_in_beir(question)
    if why:
        return why
    if _has_space(question.key) or any(_has_space(path) for path, _ in _graded_paths(question)):
        return "has white space in an id"
    return None


def _not_in_beir(question: Question) -> str | None:
    extra = next(_extras(question), None)
    if extra:
        return f"has `{extra}`"
    if not question.expectations or len(_single_paths(question)) != len(question.expectations):
        return "expects more than single document paths"
    if any(one.source is not None for one in _single_paths(question)):
        return "names the source of a document"
    if any(entry.grade != int(entry.grade) for entry in question.expectations):
        return "has a grade that is no whole number"
    if _has_tab(question.key) or any(_has_tab(path) for path, _ in _graded_paths(question)):
        return "has a tab or line end in an id"
    return None


def _single_paths(question: Question) -> list[Alternative]:
    return [entry.any_of[0] for entry in question.expectations if _is_single_path(entry)]


def _is_single_path(entry: Expectation) -> bool:
    if len(entry.any_of) != 1:
        return False
    one = entry.any_of[0]
    return one.path is not None and one == Alternative(path=one.path, source=one.source)


def _graded_paths(question: Question) -> Iterator[tuple[str, float]]:
    for entry in question.expectations:
        if _is_single_path(entry):
            yield entry.any_of[0].path or "", entry.grade


def _written_path(alternative: Alternative) -> str:
    return f"{alternative.source}:{alternative.path}" if alternative.source else alternative.path or ""


def _own_id(question: Question) -> dict[str, str]:
    """The id where it is someone's own; keys made from the text come back by themselves."""
    return {} if question.key == text_key(question.text) else {"id": question.key}


def _csv_rows(questions: Iterable[Question]) -> Iterator[dict[str, str]]:
    for question in questions:
        common = {
            "id": question.key,
            "question": question.text,
            "tags": BETWEEN.join(tag for tag in question.tags if BETWEEN not in tag),
            "note": question.note,
            "must_pass": "true" if question.must_pass else "",
            "unanswerable": "true" if question.unanswerable else "",
            "reference_answer": question.reference_answer,
            "source_id": question.source,
            "collection": question.collection,
        }
        rows = [row for entry in question.expectations if (row := _csv_expectation(entry))]
        if rows or question.unanswerable:
            yield {**common, **(rows[0] if rows else {})}
            yield from ({"id": question.key, "question": question.text, **row} for row in rows[1:])


def _csv_expectation(entry: Expectation) -> dict[str, str]:
    """The row's cells of an expectation: of its first alternative, where there are several."""
    one = entry.any_of[0]
    contents = [text for text in one.content_contains if BETWEEN not in text]
    cells = {name: value for name in ("path", "source", "document", "passage", "text") if (value := getattr(one, name))}
    if contents:
        cells["content_contains"] = BETWEEN.join(contents)
    if not cells.keys() - {"source"}:
        return {}
    return {**cells, "grade": "" if entry.grade == 1 else repr(entry.grade)}


def _single_texts(one: Alternative) -> list[str]:
    return [text for text in (one.path, one.source, one.document, one.passage, one.text) if text is not None]


def _has_space(text: str) -> bool:
    return text != "".join(text.split()) or text.startswith("#")


def _has_tab(text: str) -> bool:
    return any(sign in text for sign in "\t\r\n") or text != text.strip() or text.startswith("#")


def _without_line(question: Question) -> dict[str, object]:
    form = to_full_form(question)
    form.pop("line", None)
    return form


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
