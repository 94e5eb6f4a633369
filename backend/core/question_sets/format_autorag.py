"""AutoRAG's question files (Parquet): `retrieval_gt` is a list of lists, all of which must be found, each by any of its
ids."""

from collections.abc import Iterator, Mapping
from typing import Any

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Content, Format
from backend.core.question_sets.notes import Notes


def _is_autorag(content: Content) -> bool:
    return bool(content.sample) and content.most_have("query", "retrieval_gt")


def _read_autorag(content: Content, notes: Notes) -> Iterator[RawCase]:
    if content.json is None:
        return
    for raw in content.json.items(notes):
        if not isinstance(raw.value, Mapping):
            yield raw
            continue
        answers = raw.value.get("generation_gt")
        value = {
            "id": raw.value.get("qid"),
            "question": raw.value.get("query"),
            "expect": _expectations(raw.value.get("retrieval_gt")),
            "reference_answer": answers[0] if isinstance(answers, list) and answers else answers,
        }
        yield RawCase(value=value, place=raw.place, opaque=True)


def _expectations(groups: Any) -> Any:
    """A plain list of ids is one id each; what is neither is left for the shape's own faults."""
    if not isinstance(groups, list):
        return groups
    return [
        {"any_of": [{"path": one, "source": None} for one in (group if isinstance(group, list) else [group])]}
        for group in groups
    ]


AUTORAG = Format(
    name="autorag",
    title="AutoRAG questions (Parquet)",
    recognise=_is_autorag,
    read=_read_autorag,
)
