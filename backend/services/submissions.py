"""The body of `POST evaluations`, read into a request: every fault of its shape is told, all together.

What needs the database (is there such a set, does the scope hold anything) is found by `evaluations.start`.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from backend.core import configs, metric_keys
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.metric_keys import MetricKey
from backend.core.types import Level
from backend.services import answer_requests, evaluation_requests
from backend.services.evaluation_requests import Request

FIELDS = tuple(field.name for field in fields(Request))
MAX_LABEL, MAX_NAME, MAX_METADATA, MAX_CONFIGURATIONS = 200, 200, 20_000, 64
# Only to check that configurations parse: the real one is resolved at submit.
_SOME_RERANKER = "local"


def parse(body: Mapping[str, Any]) -> Request:
    """Raises ValidationError with every fault; an unknown field names the ones it resembles."""
    faults: list[Fault] = []

    def tell(message: str, field: str) -> None:
        faults.append(Fault(code=ErrorCode.VALIDATION, message=message, field=field))

    for name in sorted(set(body) - set(FIELDS)):
        tell(unknown_field(name, FIELDS), name)
    values = {name: value for name, value in body.items() if value is not None}
    _check_texts(values, tell)
    for name in ("evaluate_answers", "cache", "wait_for_index"):
        if not isinstance(values.get(name, False), bool):
            tell(f"{name} is true or false, not {values[name]!r}.", name)
    if bool(values.get("question_set")) == bool(values.get("file")):
        tell("Name either a question_set (its id, or id@version) or a file (<source>:<path>).", "question_set")
    if not isinstance(values.get("scope"), Mapping) or not values["scope"]:
        tell(
            "scope is an object that says where to search: {'workspace': id}, {'knowledge_base': id} or "
            "{'documents': [id, …]}, narrowed by source and collection.",
            "scope",
        )
    for name, most in (
        ("answer_passages", answer_requests.MOST_PASSAGES),
        ("judge_repeats", answer_requests.MOST_REPEATS),
    ):
        value = values.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            tell(f"{name} is a whole number from 1 to {most}, not {value!r}.", name)
    metadata = values.get("metadata", {})
    if not isinstance(metadata, Mapping) or len(json.dumps(metadata)) > MAX_METADATA:
        tell(f"metadata is an object of at most {MAX_METADATA:,} characters of JSON.", "metadata")
    _check_configurations(values, tell, faults)
    _check_measures(values, tell)
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return Request(**{name: values[name] for name in FIELDS if name in values})


def unknown_field(name: str, known: Sequence[str]) -> str:
    """The sentence for a field that does not exist."""
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=2, cutoff=0.6)
    if near:
        return f"There is no field {name!r}. Did you mean {' or '.join(near)}?"
    return f"There is no field {name!r}. There are: {', '.join(known)}."


def _check_texts(values: Mapping[str, Any], tell: Any) -> None:
    for name in ("question_set", "file", "reranker", "level", "primary_metric", "llm", "judge", "label"):
        if not isinstance(values.get(name, ""), str):
            tell(f"{name} is a text, not {values[name]!r}.", name)
    if isinstance(values.get("label"), str) and len(values["label"]) > MAX_LABEL:
        tell(f"label is a text of at most {MAX_LABEL} characters.", "label")
    level = values.get("level", "")
    if isinstance(level, str) and level and level not in set(Level):
        tell(f"level is one of {', '.join(Level)}, not {level!r}.", "level")


def _check_configurations(values: Mapping[str, Any], tell: Any, faults: list[Fault]) -> None:
    given: dict[str, Sequence[Any] | None] = {}
    for name in ("modes", "configurations"):
        value = values.get(name)
        if value is not None and not isinstance(value, list):
            tell(f"{name} is a list, not {value!r}.", name)
            value = None
        given[name] = value
    if sum(len(value or ()) for value in given.values()) > MAX_CONFIGURATIONS:
        tell(f"An evaluation has at most {MAX_CONFIGURATIONS} configurations.", "configurations")
        return
    try:
        parsed = configs.parse_all(
            modes=given["modes"], configurations=given["configurations"], reranker=_SOME_RERANKER
        )
    except ValidationError as error:
        faults.extend(error.faults)
        return
    for config in parsed:
        if len(config.name) > MAX_NAME:
            tell(f"A configuration's name has at most {MAX_NAME} characters.", "configurations")


def _check_measures(values: Mapping[str, Any], tell: Any) -> None:
    top_k: int | None = None
    try:
        cutoffs = metric_keys.resolve_cutoffs(k=values.get("k"), top_k=values.get("top_k"))
        if cutoffs.top_k > evaluation_requests.MAX_TOP_K:
            tell(f"top_k is at most {evaluation_requests.MAX_TOP_K}, not {cutoffs.top_k}.", "top_k")
        else:
            top_k = cutoffs.top_k
    except ValidationError as error:
        tell(error.message, error.field or "k")
    primary = values.get("primary_metric")
    if isinstance(primary, str) and primary:
        try:
            MetricKey.parse(primary, top_k=top_k)
        except ValidationError as error:
            tell(error.message, "primary_metric")
