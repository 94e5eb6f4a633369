"""From a model's reply to a question, and from a passage to the snippet that stands for it in labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.core.folding import fold
from backend.core.generation.words import content_words, overlap, sentences
from backend.core.replies import UnreadableReplyError, read_object, text_of

MOST_QUESTION, MOST_ANSWER = 1000, 4000
# Long enough to occur once, short enough to lie within one passage however documents are cut later.
LEAST_SNIPPET, MOST_SNIPPET = 30, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeQuestion:
    """`how` the reply came: plain, fenced, embedded or doubled."""

    question: str
    answer: str
    quote: str
    how: str


def read_question(reply: str) -> MadeQuestion:
    """Raises UnreadableReplyError."""
    read = read_object(reply)
    asked = text_of(read.value, "question", longest=MOST_QUESTION)
    if not asked:
        raise UnreadableReplyError("The question is empty.")
    return MadeQuestion(
        question=asked,
        answer=text_of(read.value, "answer", longest=MOST_ANSWER) if "answer" in read.value else "",
        quote=text_of(read.value, "quote", longest=MOST_ANSWER) if "quote" in read.value else "",
        how=read.how,
    )


def read_answerable(reply: str) -> tuple[bool, str]:
    """Raises UnreadableReplyError."""
    value = read_object(reply).value
    if not isinstance(value.get("answerable"), bool):
        raise UnreadableReplyError("answerable is not true or false.")
    return value["answerable"], text_of(value, "answer", longest=MOST_ANSWER) if "answer" in value else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Words of the passage as they stand there. `is_quoted`: those that the model named; else the sentence that shares
    most words with question and answer."""

    text: str
    is_quoted: bool


def snippet_of(passage: str, *, quote: str, hints: Sequence[str]) -> Snippet:
    """The part of a passage that a label names. It lies in the passage, folded, in any case."""
    wanted = quote.strip().strip("\"'“”„«»")
    if len(fold(wanted)) >= LEAST_SNIPPET and fold(wanted) in fold(passage):
        return Snippet(text=_cut(wanted), is_quoted=True)
    bag = [word for hint in (quote, *hints) for word in content_words(hint)]
    found = [one for one in sentences(passage) if len(one) >= LEAST_SNIPPET] or [passage.strip()]
    best = max(found, key=lambda sentence: (overlap(content_words(sentence), bag), len(sentence)))
    return Snippet(text=_cut(best), is_quoted=False)


def _cut(text: str) -> str:
    """At most MOST_SNIPPET characters, ending with a word."""
    if len(text) <= MOST_SNIPPET:
        return text
    cut = text[: MOST_SNIPPET + 1]
    end = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:end] if end > LEAST_SNIPPET else text[:MOST_SNIPPET]).rstrip()
