"""The full form: the one shape that every format maps to, and in which a question is stored."""

import re
from collections.abc import Mapping
from typing import Any

from backend.core.types import Alternative, Expectation, Question

_MAYBE_SOURCE = re.compile(":(?!//)")
_TEXTS = ("note", "reference_answer", "generated", "source", "collection")
_FLAGS = ("must_pass", "unanswerable")
_NAMES = ("path", "source", "document", "passage", "text")


def to_full_form(question: Question) -> dict[str, Any]:
    """The question as JSON values; what is empty or default is left out. `from_full_form` gives it back exactly."""
    form: dict[str, Any] = {"id": question.key, "question": question.text}
    if question.expectations:
        form["expect"] = [
            {"any_of": [_alternative(one) for one in expectation.any_of], "grade": expectation.grade}
            for expectation in question.expectations
        ]
    if question.tags:
        form["tags"] = list(question.tags)
    for name in (*_TEXTS, *_FLAGS):
        value = getattr(question, name)
        if value:
            form[name] = value
    if question.line is not None:
        form["line"] = question.line
    return form


def from_full_form(form: Mapping[str, Any]) -> Question:
    """The question that `to_full_form` wrote. For values of one's own making only: input goes through `parse_items`."""
    return Question(
        key=form["id"],
        text=form["question"],
        expectations=tuple(
            Expectation(
                any_of=tuple(
                    Alternative(
                        **{name: one[name] for name in _NAMES if name in one},
                        content_contains=tuple(one.get("content_contains", ())),
                    )
                    for one in entry["any_of"]
                ),
                grade=float(entry["grade"]),
            )
            for entry in form.get("expect", ())
        ),
        tags=tuple(form.get("tags", ())),
        **{name: form[name] for name in (*_TEXTS, *_FLAGS) if name in form},
        line=form.get("line"),
    )


def _alternative(alternative: Alternative) -> dict[str, Any]:
    form: dict[str, Any] = {name: value for name in _NAMES if (value := getattr(alternative, name)) is not None}
    if alternative.source is None and _MAYBE_SOURCE.search(alternative.path or ""):
        form["source"] = None  # says that the path is whole, whatever sources there are when it is read again
    if alternative.content_contains:
        form["content_contains"] = list(alternative.content_contains)
    return form
