"""What the answering model and the judge are asked. Passages, answers and references stand between marks: material,
whatever they say.

The rubric is small (two or three steps a scale), and faithfulness is by claims with quoted evidence: judges agree with
themselves and with people more on these than on a number from 0 to 10.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.core.delimiting import block, mark_for, rule

_VERSION = "answers/1"
MOST_CLAIMS = 30
_ANSWER = (
    "You answer a question from the passages given, and from nothing else. Be short. If they do not answer it, leave "
    'the answer empty. Reply with one JSON object and nothing else: {"answer": your answer, or an empty text}. '
)
_JUDGE = (
    "You judge an answer to a question. Reply with one JSON object and nothing else. Its fields: "
    '"claims": every statement of fact that the answer makes, at most 30, each as {"claim": the statement, "verdict": '
    '"supported" if the passages say so, "contradicted" if they say otherwise, "unsupported" if they say neither, '
    '"quote": the words of a passage that show it, copied letter by letter, or an empty text}; '
    '"abstained": true if the answer only says that it does not know; '
    '"relevance": 0 if the answer does not answer the question, 1 if it answers a part of it, 2 if it answers it{more}.'
    " Judge what is there, not how long or well written it is. "
)
_MORE = (
    '; "correctness": 0 if it disagrees with the reference answer, 1 if it agrees with a part of it, '
    "2 if it says the same"
)

ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
_CLAIM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "claim": {"type": "string"},
        "verdict": {"type": "string", "enum": ["supported", "contradicted", "unsupported"]},
        "quote": {"type": "string"},
    },
    "required": ["claim", "verdict", "quote"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    system: str
    user: str


def version() -> str:
    """Of the wording of both prompts: stored with each run, since other words give other scores."""
    whole = "\x1f".join([_VERSION, _ANSWER, _JUDGE, _MORE])
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def answer(question: str, passages: Sequence[str]) -> Prompt:
    mark = mark_for([question, *passages])
    return Prompt(system=_ANSWER + rule(mark), user=_material(mark, question=question, passages=passages))


def judge(question: str, passages: Sequence[str], *, answer: str, reference: str = "") -> Prompt:
    texts = [question, *passages, answer, reference]
    mark = mark_for(texts)
    parts = [_material(mark, question=question, passages=passages), block("answer", answer, mark=mark)]
    if reference:
        parts.append(block("reference", reference, mark=mark))
    # Not `format`: the wording holds braces.
    return Prompt(system=_JUDGE.replace("{more}", _MORE if reference else "") + rule(mark), user="\n".join(parts))


def judge_schema(*, with_reference: bool) -> dict[str, Any]:
    scale = {"type": "integer", "enum": [0, 1, 2]}
    properties: dict[str, Any] = {
        "claims": {"type": "array", "items": _CLAIM},
        "abstained": {"type": "boolean"},
        "relevance": scale,
    }
    if with_reference:
        properties["correctness"] = scale
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _material(mark: str, *, question: str, passages: Sequence[str]) -> str:
    numbered = [block("passage", text, mark=mark, number=number) for number, text in enumerate(passages, start=1)]
    return "\n".join([block("question", question, mark=mark), *numbered])
