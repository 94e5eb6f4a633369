"""One question as a form, and back: what it expects is one entry a line, a document's path or the full form's JSON."""

import json
from collections.abc import Mapping
from typing import Any

from backend.core.errors import ErrorCode, Fault, QuestionSetError

_TEXTS = ("id", "question", "expect", "tags", "note", "reference_answer", "source", "collection")
_FLAGS = ("must_pass", "unanswerable")
_ALTERNATIVE = ("path", "source", "document", "content_contains", "passage", "text")


def empty(*, question: str = "", expected: list[str] | None = None, **more: str) -> dict[str, Any]:
    """A new question's, with what is known of it already."""
    blank: dict[str, Any] = dict.fromkeys(_TEXTS, "") | dict.fromkeys(_FLAGS, False)
    lines = "\n".join(_line({"any_of": [{"path": path}], "grade": 1.0}) for path in expected or [])
    return {**blank, "question": question, "expect": lines, **more}


def filled(form: Mapping[str, Any]) -> dict[str, Any]:
    """Of a question in the full form (queries/questions.py `full_form`)."""
    return {
        **{name: str(form.get(name, "")) for name in _TEXTS},
        **{name: bool(form.get(name)) for name in _FLAGS},
        "tags": ", ".join(form.get("tags", ())),
        "expect": "\n".join(_line(entry) for entry in form.get("expect", ())),
    }


def typed(post: Mapping[str, Any]) -> dict[str, Any]:
    """As it was sent, to be shown again."""
    return {
        **{name: str(post.get(name, "")) for name in _TEXTS},
        **{name: bool(post.get(name)) for name in _FLAGS},
    }


def read(form: Mapping[str, Any]) -> dict[str, Any]:
    """The item that the service takes. Raises QuestionSetError for a line that begins like JSON and is none."""
    item: dict[str, Any] = {"question": form["question"]}
    for name in ("note", "reference_answer", "collection"):
        if form[name].strip():
            item[name] = form[name].strip()
    if form["id"].strip():
        item["id"] = form["id"].strip()
    if form["source"].strip():
        item["source_id"] = form["source"].strip()
    tags = [tag.strip() for tag in form["tags"].split(",") if tag.strip()]
    if tags:
        item["tags"] = tags
    for name in _FLAGS:
        if form[name]:
            item[name] = True
    expected = [
        _entry(number, line) for number, line in enumerate(form["expect"].splitlines(), start=1) if line.strip()
    ]
    if expected:
        item["expect"] = expected
    return item


def said(entry: Mapping[str, Any]) -> str:
    """An expectation in words, for a table."""
    alternatives, grade = in_words(entry), entry.get("grade", 1.0)
    return alternatives if grade == 1 else f"{alternatives} (grade {grade:g})"


def in_words(entry: Mapping[str, Any]) -> str:
    """An expectation without its grade: all that each of its alternatives asks for."""
    return " or ".join(_alternative(one) for one in entry.get("any_of", ()))


def _alternative(one: Mapping[str, Any]) -> str:
    parts = []
    if one.get("path"):
        parts.append(f"{one['source']}:{one['path']}" if one.get("source") else str(one["path"]))
    if one.get("document"):
        parts.append(f"…{one['document']}…")
    if one.get("content_contains"):
        parts.append(" or ".join(f"“{text}”" for text in one["content_contains"]))
    if one.get("text"):
        parts.append(f"“{one['text']}”")
    elif one.get("passage"):
        parts.append(f"passage {one['passage']}")
    return ", ".join(parts)


def _line(entry: Mapping[str, Any]) -> str:
    """The shortest form that is read back as the same."""
    alternatives = [_plain(one) for one in entry.get("any_of", ())]
    grade = entry.get("grade", 1.0)
    if grade == 1 and len(alternatives) == 1:
        (one,) = alternatives
        if set(one) == {"path"} and one["path"].strip()[:1] not in {"{", ""}:
            return str(one["path"])
        return json.dumps(one, ensure_ascii=False)
    graded = {} if grade == 1 else {"grade": grade}
    return json.dumps({"any_of": alternatives, **graded}, ensure_ascii=False)


def _plain(one: Mapping[str, Any]) -> dict[str, Any]:
    """An alternative in the order people write it; a path with a colon says that it has no source before it."""
    ordered = {name: one[name] for name in _ALTERNATIVE if one.get(name) is not None}
    if ":" in ordered.get("path", "") and "source" not in ordered:
        ordered["source"] = None
    return ordered


def _entry(number: int, line: str) -> Any:
    text = line.strip()
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"Line {number} of what is expected begins like JSON and is none: {error}."
        raise QuestionSetError([Fault(code=ErrorCode.EVAL_CASE_INVALID, message=message, field="expect")]) from error
