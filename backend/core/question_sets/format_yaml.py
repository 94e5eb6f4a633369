"""Suites in YAML whose relevance is a list of phrases."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Content, Format
from backend.core.question_sets.notes import Notes, Place, refuse

_MAX_CHARACTERS = 1_000_000  # YAML is read slowly: about a second for this many
_CASES = re.compile(r"^cases:[ \t]*\r?$", re.MULTILINE)
_PHRASES = re.compile(r"^[ \t]+relevant_phrases:", re.MULTILINE)


def _recognise(content: Content) -> bool:
    if content.json is not None:
        return False
    return bool(_CASES.search(content.text) and _PHRASES.search(content.text))


def _read(content: Content, notes: Notes) -> Iterator[RawCase]:
    if len(content.text) > _MAX_CHARACTERS:
        raise refuse(f"The YAML file has more than {_MAX_CHARACTERS:,} characters. Write it as JSONL.")
    try:
        _refuse_aliases(content.text)
        root = yaml.compose(content.text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise refuse("The YAML file is nested too deeply.") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        raise refuse(f"not YAML: {problem}", line=mark.line + 1 if mark else None) from None
    for node in _cases(root):
        place = Place(line=node.start_mark.line + 1)
        value = _value(node)
        if not isinstance(value, dict):
            notes.invalid("a case must have `query` and `relevant_phrases`", place=place)
            continue
        phrases = value.get("relevant_phrases")
        yield RawCase(
            value={
                "id": value.get("id"),
                "question": value.get("query"),
                # A suite counts a result that holds any of the phrases, so they are one expectation.
                "expect": None if phrases is None else [{"content_contains": phrases}],
                "tags": value.get("tags"),
            },
            place=place,
        )


def _refuse_aliases(text: str) -> None:
    """An alias can stand for a huge value many times over; no suite needs one."""
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else None
            raise refuse("aliases (`*name`) are not read", line=line)


def _cases(root: Any) -> list[Any]:
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if key.value == "cases" and isinstance(value, yaml.SequenceNode):
                return list(value.value)
    raise refuse("The YAML file has no list of `cases`.")


def _value(node: Any) -> Any:
    """Plain values; every scalar stays the text that was written (an id may look like a number or a date)."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _value(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_value(one) for one in node.value]
    return None if node.tag == "tag:yaml.org,2002:null" else node.value


PHRASES = Format(name="phrases-yaml", title="suite with `relevant_phrases` (YAML)", recognise=_recognise, read=_read)
