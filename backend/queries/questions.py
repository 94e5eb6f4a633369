"""Question sets as API, console and commands show them."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Func, Max, OuterRef, QuerySet, Subquery

from backend.core.errors import NotFoundError
from backend.core.question_sets import from_full_form
from backend.core.types import Question as CoreQuestion
from backend.models import KnowledgeBase, Question, QuestionSet, QuestionSetVersion, SourceSetFile, Workspace
from backend.queries.lookups import get

_BATCH = 2000


def sets_of(workspace: Workspace) -> QuerySet[QuestionSet, QuestionSet]:
    """A workspace's sets, newest first; each with `latest_number` and `n_questions` of its latest version."""
    latest = QuestionSetVersion.objects.filter(question_set=OuterRef("id")).order_by("-number")
    return (
        QuestionSet.objects.filter(workspace=workspace)
        .annotate(latest_number=Max("versions__number"), n_questions=Subquery(latest.values("n_questions")[:1]))
        .order_by("-id")
    )


def get_set(workspace: Workspace, key: object) -> QuestionSet:
    """Raises NotFoundError."""
    return get(sets_of(workspace), key, what="question set")


def versions_of(question_set: QuestionSet) -> QuerySet[QuestionSetVersion]:
    """Newest first."""
    return question_set.versions.order_by("-number")


def get_version(question_set: QuestionSet, number: object = None) -> QuestionSetVersion:
    """The version of that number, or the latest. Raises NotFoundError."""
    versions = versions_of(question_set)
    if number is not None:
        text = str(number)
        is_number = text.isascii() and text.isdigit() and len(text) < 9
        versions = versions.filter(number=int(text)) if is_number else versions.none()
    found = versions.first()
    if found is None:
        raise NotFoundError("question set version", f"{question_set.id}@{number or 'latest'}")
    return found


def questions_of(
    version: QuestionSetVersion, *, tag: str = "", source: str = "", collection: str = ""
) -> QuerySet[Question]:
    """In file order."""
    questions = Question.objects.filter(version=version).order_by("ordinal")
    if tag:
        questions = questions.filter(tags__contains=[tag])
    if source:
        questions = questions.filter(source=source)
    if collection:
        questions = questions.filter(collection=collection)
    return questions


def tags_of(version: QuestionSetVersion, *, most: int = 30) -> list[tuple[str, int]]:
    """The version's tags with their numbers of questions, the commonest first."""
    counted = (
        Question.objects.filter(version=version)
        .annotate(tag=Func("tags", function="unnest"))
        .order_by()
        .values_list("tag")
        .annotate(n=Count("id"))
        .order_by("-n", "tag")
    )
    return [(tag, n) for tag, n in counted[:most]]


def get_question(version: QuestionSetVersion, key: str) -> Question:
    """A question by its key. Raises NotFoundError."""
    found = Question.objects.filter(version=version, key=key).first() if "\x00" not in key else None
    if found is None:
        raise NotFoundError("question", key)
    return found


def as_core(version: QuestionSetVersion) -> Iterator[CoreQuestion]:
    """The version's questions as the core knows them, in file order, read in batches."""
    for question in questions_of(version).iterator(chunk_size=_BATCH):
        yield core_question(question)


def core_question(question: Question) -> CoreQuestion:
    return from_full_form(full_form(question))


def full_form(question: Question) -> dict[str, Any]:
    """The question in the full form (docs/question-sets.md), what is empty left out."""
    form: dict[str, Any] = {"id": question.key, "question": question.text, "expect": question.expect}
    for name in ("tags", "note", "must_pass", "unanswerable", "reference_answer", "generated", "source", "collection"):
        value = getattr(question, name)
        if value:
            form[name] = value
    if question.line is not None:
        form["line"] = question.line
    return form


def set_files_in(workspace: Workspace) -> QuerySet[SourceSetFile]:
    """The question-set files found in all sources of a workspace, as `set_files_of`."""
    return (
        SourceSetFile.objects.filter(source__knowledge_base__workspace=workspace)
        .select_related("source__knowledge_base")
        .defer("data")
        .order_by("source__name", "path", "id")
    )


def set_files_of(base: KnowledgeBase) -> QuerySet[SourceSetFile]:
    """The question-set files found in a base's sources, by source and path; without their bytes."""
    return (
        SourceSetFile.objects.filter(source__knowledge_base=base)
        .select_related("source")
        .defer("data")
        .order_by("source__name", "path")
    )
