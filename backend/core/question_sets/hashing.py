"""The names of things by their content: a question without an id, and a whole set."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from backend.core.folding import fold
from backend.core.question_sets.full_form import to_full_form
from backend.core.types import ParsedSet, Question

_FORM = "question-set/1"


def text_key(text: str) -> str:
    """The key of a question that has no id: the same for texts that fold to the same."""
    return "q-" + hashlib.sha256(fold(text).encode()).hexdigest()[:16]


def content_hash(parsed: ParsedSet) -> str:
    """SHA-256 over what the set asks and expects, its threshold and its level.

    The same for the same questions in any format, on any lines, with fields, questions and alternatives in any
    order: none of these changes a number.
    """
    digest = hashlib.sha256()
    head = [_FORM, float(parsed.threshold), str(parsed.level)]
    digest.update(_canonical(head).encode())
    for line in sorted(_canonical(_content(question)) for question in parsed.questions):
        digest.update(b"\n" + line.encode())
    return digest.hexdigest()


def _content(question: Question) -> dict[str, Any]:
    form = to_full_form(question)
    form.pop("line", None)
    if "tags" in form:
        form["tags"] = sorted(form["tags"])
    if "expect" in form:
        form["expect"] = _in_order(
            {"any_of": _in_order(_sorted_contents(one) for one in entry["any_of"]), "grade": entry["grade"]}
            for entry in form["expect"]
        )
    return form


def _sorted_contents(alternative: dict[str, Any]) -> dict[str, Any]:
    if "content_contains" in alternative:
        return {**alternative, "content_contains": sorted(alternative["content_contains"])}
    return alternative


def _in_order(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=_canonical)


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
