"""A base's settings as a form: fields are named as faults name them (`settings.chunking.size`)."""

import re
from collections.abc import Mapping
from typing import Any

PREFIX = "settings."
_WHOLE = ("chunking.size", "chunking.overlap", "fusion.rank_base")
_DECIMAL = ("fusion.constant",)
_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,12})?")
_GROUPS: dict[str, tuple[str, ...]] = {
    "chunking": ("mode", "size", "overlap"),
    "embedding": ("embedder", "query_prefix", "document_prefix"),
    "keyword": ("language",),
    "fusion": ("formula", "constant", "rank_base", "weights"),
}


def filled(settings: Mapping[str, Any]) -> dict[str, str]:
    """The form of these settings, by names a template can say: `chunking_size`."""
    form = {"reranker": str(settings.get("reranker") or "")}
    for group, names in _GROUPS.items():
        there = settings.get(group) or {}
        for name in names:
            value = there.get(name, "")
            form[f"{group}_{name}"] = ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)
    return form


def typed(post: Mapping[str, Any]) -> dict[str, str]:
    """The form as it was sent, to be shown again."""
    form = {"reranker": str(post.get(f"{PREFIX}reranker", ""))}
    for group, names in _GROUPS.items():
        form |= {f"{group}_{name}": str(post.get(f"{PREFIX}{group}.{name}", "")) for name in names}
    return form


def read(post: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the form asks for. What is no number stays a text, for the service to refuse by name; a
    prefix that is empty is the model's own, and a fusion without a formula is the default one."""
    given: dict[str, Any] = {}
    for group, names in _GROUPS.items():
        if not any(f"{PREFIX}{group}.{name}" in post for name in names):
            continue
        values = {name: _value(f"{group}.{name}", str(post.get(f"{PREFIX}{group}.{name}", ""))) for name in names}
        if group == "fusion":
            given[group] = {name: value for name, value in values.items() if value is not None}
            if not values["formula"]:
                given[group] = None
        else:
            given[group] = values
    if f"{PREFIX}reranker" in post:
        given["reranker"] = str(post[f"{PREFIX}reranker"]).strip() or None
    return given


def _value(path: str, text: str) -> Any:
    # A prefix may begin or end with a space that counts.
    text = text if path.endswith("_prefix") else text.strip()
    if not text:
        return None
    if path == "fusion.weights":
        parts = [one for one in re.split(r"[,\s]+", text) if one]
        return [float(one) if _NUMBER.fullmatch(one) else one for one in parts]
    if path in _WHOLE and _NUMBER.fullmatch(text) and "." not in text:
        return int(text)
    return float(text) if path in _DECIMAL and _NUMBER.fullmatch(text) else text
