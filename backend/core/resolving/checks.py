"""What is wrong with a question set whatever the corpus: repeats, leaks, contradictions, labels that will not last."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backend.core.folding import fold
from backend.core.matching import merge
from backend.core.types import Alternative, Question


class FindingKind(StrEnum):
    """What preflight can find. The first group are labels that nothing satisfies; the others are worth a look."""

    NO_DOCUMENT = "no_document"
    NO_PASSAGE = "no_passage"
    NO_TEXT = "no_text"
    NOT_INDEXED = "not_indexed"
    CROSSES_BORDER = "crosses_border"
    OUTSIDE_SCOPE = "outside_scope"
    QUESTION_TWICE = "question_twice"
    EXPECTATION_TWICE = "expectation_twice"
    PASSAGE_ID = "passage_id"
    LEAK = "leak"
    UNANSWERABLE_WITH_EXPECTATIONS = "unanswerable_with_expectations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A finding about the question at this place of the set."""

    ordinal: int
    kind: FindingKind
    message: str
    label: str = ""


# A leak is told from this many words on: shorter names and texts are often just the thing that is asked about.
_LEAK_WORDS = 3
_NOT_WORD = re.compile(r"[\W_]+")


def check_questions(questions: Sequence[Question]) -> Iterator[Noted]:
    """In the order of the questions. Looks at the set alone."""
    first: dict[str, int] = {}
    for ordinal, question in enumerate(questions):
        folded = fold(question.text)
        earlier = first.setdefault(folded, ordinal)
        if earlier != ordinal:
            yield _repeat(questions[earlier], question, ordinal=ordinal)
        yield from _expectations(question, ordinal=ordinal)
        yield from _leaks(question, folded=folded, ordinal=ordinal)


def _repeat(earlier: Question, question: Question, *, ordinal: int) -> Noted:
    same = _expected(earlier) == _expected(question)
    told = "with the same expectations" if same else "with other expectations"
    return Noted(
        ordinal=ordinal,
        kind=FindingKind.QUESTION_TWICE,
        message=f"The same question as {earlier.key}, {told}: it counts twice in every mean.",
    )


def _expected(question: Question) -> frozenset[object]:
    return frozenset((frozenset(one.any_of), one.grade) for one in merge(question.expectations))


def _expectations(question: Question, *, ordinal: int) -> Iterator[Noted]:
    n_merged = len(question.expectations) - len(merge(question.expectations))
    if n_merged:
        yield Noted(
            ordinal=ordinal,
            kind=FindingKind.EXPECTATION_TWICE,
            message=f"{n_merged} of its expectations equal another one; each counts once, with the highest grade.",
        )
    if question.unanswerable and any(one.grade > 0 for one in question.expectations):
        yield Noted(
            ordinal=ordinal,
            kind=FindingKind.UNANSWERABLE_WITH_EXPECTATIONS,
            message="It is marked unanswerable and names what should be found; its expectations are not scored.",
        )
    for alternative in _alternatives(question):
        if alternative.passage is not None:
            lasts = "the snippet beside it is looked for instead then" if alternative.text else "it has no snippet"
            yield Noted(
                ordinal=ordinal,
                kind=FindingKind.PASSAGE_ID,
                label=alternative.passage,
                message=f"A passage id dies when its document is indexed again; {lasts}.",
            )


def _leaks(question: Question, *, folded: str, ordinal: int) -> Iterator[Noted]:
    """The words of the answer's name or text stand in the question: it is found by them, not by its meaning."""
    asked = f" {_words(folded)} "
    for alternative in _alternatives(question):
        name = alternative.path or alternative.document
        if name is not None and _is_in(_words(_stem(fold(name))), asked):
            yield _leak(ordinal, name, "names the document that is expected")
            return
        for content in alternative.content_contains:
            words = _words(fold(content))
            if _is_in(words, asked):
                yield _leak(ordinal, content, "holds the text that is expected")
                return
            if _is_in(asked.strip(), f" {words} "):
                yield _leak(ordinal, content, "is a part of the text that is expected")
                return


def _leak(ordinal: int, label: str, told: str) -> Noted:
    return Noted(
        ordinal=ordinal,
        kind=FindingKind.LEAK,
        label=label,
        message=f"The question {told}, word for word: words alone find it, which flatters every mode.",
    )


def _alternatives(question: Question) -> Iterable[Alternative]:
    for expectation in question.expectations:
        if expectation.grade > 0:
            yield from expectation.any_of


def _is_in(words: str, text: str) -> bool:
    return words.count(" ") + 1 >= _LEAK_WORDS and f" {words} " in text


def _words(folded: str) -> str:
    return _NOT_WORD.sub(" ", folded).strip()


def _stem(path: str) -> str:
    return re.sub(r"\.\w{1,5}$", "", path.rsplit("/", 1)[-1])
