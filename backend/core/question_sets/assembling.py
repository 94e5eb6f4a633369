"""Checked cases to a set: keys, threshold, level, and the faults that only show between questions."""

from collections.abc import Iterable, Sequence

from backend.core.errors import ErrorCode
from backend.core.question_sets.cases import Draft, RawCase, read_case
from backend.core.question_sets.expectations import Sources
from backend.core.question_sets.hashing import text_key
from backend.core.question_sets.notes import Notes, Place, refuse
from backend.core.types import Level, ParsedSet, Question


def assemble(
    cases: Iterable[RawCase], *, format_name: str, sources: Sources, notes: Notes, max_questions: int
) -> ParsedSet:
    """The set of all cases. Raises QuestionSetError with every fault (the first 100), in the order of lines."""
    drafts: list[Draft] = []
    places: dict[str, Place] = {}
    for n_cases, raw in enumerate(cases, start=1):
        if n_cases > max_questions:
            raise refuse(
                f"The set has more than {max_questions:,} questions, the limit of this workspace. Split it.",
                code=ErrorCode.EVAL_TOO_LARGE,
            )
        draft = read_case(raw, places=places, sources=sources, notes=notes)
        if draft is not None:
            drafts.append(draft)
    notes.raise_faults()
    if not drafts:
        raise refuse(
            "There is no question in this set: nothing is left after comments and blank lines.",
            code=ErrorCode.EVAL_SET_EMPTY,
        )
    questions = _with_keys(drafts, taken=set(places))
    if not _positive_grades(questions):
        notes.warn("nothing relevant", "no question expects anything, so no metric can be given", place=Place())
    threshold, level = threshold_and_level(questions)
    return ParsedSet(format=format_name, questions=questions, threshold=threshold, level=level, warnings=notes.warnings)


def threshold_and_level(questions: Sequence[Question]) -> tuple[float, Level]:
    """The grade from which an expectation is relevant (1, or the smallest positive grade where none reaches 1), and
    what a rank counts."""
    grades = _positive_grades(questions)
    level = Level.PASSAGE if any(_looks_at_content(question) for question in questions) else Level.DOCUMENT
    return min(grades) if grades and max(grades) < 1 else 1.0, level


def _positive_grades(questions: Sequence[Question]) -> list[float]:
    return [one.grade for question in questions for one in question.expectations if one.grade > 0]


def _with_keys(drafts: list[Draft], *, taken: set[str]) -> tuple[Question, ...]:
    """Questions with their keys: the id, else the hash of the folded text, numbered from the second on."""
    questions = []
    numbers: dict[str, int] = {}
    for draft in drafts:
        key = draft.id
        if key is None:
            base = text_key(draft.text)
            number = numbers.get(base, 0) + 1
            key = base if number == 1 else f"{base}-{number}"
            while key in taken:  # someone's id may look like a hash
                number += 1
                key = f"{base}-{number}"
            numbers[base] = number
            taken.add(key)
        questions.append(
            Question(
                key=key,
                text=draft.text,
                expectations=draft.expectations,
                tags=draft.tags,
                note=draft.note,
                must_pass=draft.must_pass,
                unanswerable=draft.unanswerable,
                reference_answer=draft.reference_answer,
                generated=draft.generated,
                source=draft.source,
                collection=draft.collection,
                line=draft.place.line,
            )
        )
    return tuple(questions)


def _looks_at_content(question: Question) -> bool:
    return any(alternative.looks_at_content for entry in question.expectations for alternative in entry.any_of)
