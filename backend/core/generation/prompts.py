"""What a model is asked when it makes a question: the wording, its version, and the form of the reply.

A person's own template takes the place of the instructions. What follows them (the form of the reply, the rule about
material, the passages between their marks) is always ours.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.core.delimiting import block, mark_for, rule
from backend.core.generation.kinds import QuestionKind

MOST_TEMPLATE = 4000
_VERSION = "questions/1"
_TASK = "You write test questions for a search engine."
_DEFAULT = (
    "Write one question that a person would ask who needs what the passage says and has never seen it. Ask in the "
    "words of such a person, in {language}. Never mention a text, passage, document, table or file, and leave no “it” "
    "or “this” without saying what it is."
)
_OF_KIND: Mapping[QuestionKind, str] = {
    QuestionKind.FACT: "The passage alone must answer it, with one fact.",
    QuestionKind.PARAPHRASE: (
        "The passage alone must answer it. Use none of the passage's own terms where another word will do: synonyms, "
        "everyday words, another turn of phrase."
    ),
    QuestionKind.KEYWORD: (
        "Write it as people type into a search box: two to eight words, no sentence, with the codes, names or terms "
        "that matter, and one slip of the keys if that is natural."
    ),
    QuestionKind.SEVERAL: "It must need both passages: neither of them alone may answer it.",
    QuestionKind.UNANSWERABLE: (
        "It must be about the passage's subject, sound as if it had an answer there, and have none: ask for something "
        "that the passage leaves out."
    ),
}
_FORM = (
    'Reply with one JSON object and nothing else: {"question": the question, "answer": a short answer from the '
    'passage, "quote": the sentence of the passage that answers it, copied letter by letter}.'
)
_FORM_WITHOUT = 'Reply with one JSON object and nothing else: {"question": the question, "answer": "", "quote": ""}.'
QUESTION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "answer": {"type": "string"}, "quote": {"type": "string"}},
    "required": ["question", "answer", "quote"],
    "additionalProperties": False,
}

_ANSWERABILITY = (
    "You say whether a question is answered by the material given, and by it alone. Reply with one JSON object and "
    'nothing else: {"answerable": true or false, "answer": the answer, or an empty text}. '
)
ANSWERABILITY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answerable": {"type": "boolean"}, "answer": {"type": "string"}},
    "required": ["answerable", "answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    system: str
    user: str


def version_of(template: str) -> str:
    """What acceptance rates are counted by: another wording is another version."""
    whole = "\x1f".join([_VERSION, _TASK, template or _DEFAULT, *_OF_KIND.values(), _FORM, _FORM_WITHOUT])
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def question(kind: QuestionKind, passages: Sequence[str], *, language: str, template: str = "") -> Prompt:
    """`language` is a name such as english; empty means the passage's own."""
    mark = mark_for(passages)
    # Not `format`: a person's template may hold any braces.
    wanted = (template or _DEFAULT).replace("{language}", language.capitalize() or "the passage's language")
    wanted = wanted.replace("{kind}", kind.value)
    form = _FORM_WITHOUT if kind is QuestionKind.UNANSWERABLE else _FORM
    numbered = [block("passage", text, mark=mark, number=number) for number, text in enumerate(passages, start=1)]
    return Prompt(
        system=f"{_TASK} {wanted} {_OF_KIND[kind]} {form} {rule(mark)}",
        user="\n".join(numbered),
    )


def answerability(asked: str, passages: Sequence[str]) -> Prompt:
    mark = mark_for([asked, *passages])
    numbered = [block("passage", text, mark=mark, number=number) for number, text in enumerate(passages, start=1)]
    return Prompt(
        system=f"{_ANSWERABILITY}{rule(mark)}",
        user="\n".join([block("question", asked, mark=mark), *numbered]),
    )
