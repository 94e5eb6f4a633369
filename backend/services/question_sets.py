"""Question sets: immutable versions, made from files, from values in a request, from single edits, or from a file that
was found in a source."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from backend.core import question_sets as files
from backend.core.errors import (
    ConflictError,
    ErrorCode,
    Fault,
    NotFoundError,
    QuestionSetError,
    ValidationError,
)
from backend.core.question_sets.assembling import threshold_and_level
from backend.core.states import OPEN_EVALUATIONS
from backend.core.types import Outcome, ParsedSet
from backend.core.types import Question as CoreQuestion
from backend.models import (
    Baseline,
    Evaluation,
    KnowledgeBase,
    Question,
    QuestionSet,
    QuestionSetVersion,
    Schedule,
    Source,
    SourceSetFile,
    Workspace,
)
from backend.queries import questions as queries
from backend.services import deadlocks, in_use, results, set_files

MAX_NAME = 200
# A version of so many is told to the planner at once: until PostgreSQL looks by itself, a minute later, each slice
# would read all of them to find its own.
_MANY = 1000
_COPY = """
COPY backend_question (version_id, ordinal, key, text, expect, tags, note, must_pass, unanswerable, reference_answer,
                       generated, source, collection, line) FROM STDIN
"""


def create(
    workspace: Workspace,
    *,
    name: str,
    data: bytes | None = None,
    items: Sequence[Any] | None = None,
    format: str | None = None,  # noqa: A002  the name of the option in the API and on the command line
    filename: str = "",
) -> QuestionSetVersion:
    """A new set with its first version. Raises QuestionSetError with all faults of the file, ValidationError,
    ConflictError when the name is taken."""
    if not isinstance(name, str) or not name.strip() or len(name.strip()) > MAX_NAME or "\x00" in name:
        raise ValidationError(f"name is a text of 1 to {MAX_NAME} characters.", field="name")
    parsed = _parse(workspace, data=data, items=items, format=format, filename=filename)
    try:
        with transaction.atomic():
            made = QuestionSet.objects.create(workspace=workspace, name=name.strip())
            return _next(made, parsed, filename=filename)
    except IntegrityError as error:
        raise ConflictError(
            f"There is a question set named {name.strip()!r} already: add a version to it, or take another name."
        ) from error


def add_version(
    question_set: QuestionSet,
    *,
    data: bytes | None = None,
    items: Sequence[Any] | None = None,
    format: str | None = None,  # noqa: A002  the name of the option in the API and on the command line
    filename: str = "",
) -> QuestionSetVersion:
    """The next version; the latest one itself when nothing in it would change. Raises as `create`."""
    parsed = _parse(question_set.workspace, data=data, items=items, format=format, filename=filename)
    with _locked(question_set):
        return _next(question_set, parsed, filename=filename)


def add_questions(question_set: QuestionSet, items: Sequence[Any]) -> QuestionSetVersion:
    """A version with further questions. Raises QuestionSetError, also where an id is taken."""
    new = _parse(question_set.workspace, items=items)
    with _locked(question_set):
        latest = _latest(question_set)
        there = list(queries.as_core(latest))
        taken = {question.key for question in there}
        twice = [question.key for question in new.questions if question.key in taken]
        if twice:
            raise QuestionSetError(
                [
                    Fault(
                        code=ErrorCode.EVAL_CASE_INVALID, message=f"The set has a question {key!r} already.", field="id"
                    )
                    for key in twice[:100]
                ]
            )
        return _next(question_set, _of([*there, *new.questions], latest), filename=latest.filename)


def change_question(question_set: QuestionSet, key: str, item: Any) -> QuestionSetVersion:
    """A version in which this question is another, at the same place. Raises NotFoundError for a key that the set has
    not, QuestionSetError, also where the new id is another question's."""
    (new,) = _parse(question_set.workspace, items=[item]).questions
    with _locked(question_set):
        latest = _latest(question_set)
        there = list(queries.as_core(latest))
        if all(question.key != key for question in there):
            raise NotFoundError("question", key)
        if new.key != key and any(question.key == new.key for question in there):
            message = f"The set has a question {new.key!r} already."
            raise QuestionSetError([Fault(code=ErrorCode.EVAL_CASE_INVALID, message=message, field="id")])
        changed = [new if question.key == key else question for question in there]
        return _next(question_set, _of(changed, latest), filename=latest.filename)


def delete_questions(question_set: QuestionSet, keys: Iterable[str]) -> QuestionSetVersion:
    """A version without these questions. Raises NotFoundError for a key that it has not, QuestionSetError when none
    would be left."""
    unwanted = set(keys)
    with _locked(question_set):
        latest = _latest(question_set)
        there = list(queries.as_core(latest))
        for missing in sorted(unwanted - {question.key for question in there}):
            raise NotFoundError("question", missing)
        left = [question for question in there if question.key not in unwanted]
        if not left:
            raise QuestionSetError(
                [Fault(code=ErrorCode.EVAL_SET_EMPTY, message="No question would be left: delete the set instead.")]
            )
        return _next(question_set, _of(left, latest), filename=latest.filename)


def delete(question_set: QuestionSet, *, force: bool = False) -> None:
    """Delete a set with its versions; runs outlive it. Raises ConflictError while an open evaluation uses it; `force`
    cancels those."""
    deadlocks.again(lambda: _delete(question_set, force=force))


def _delete(question_set: QuestionSet, *, force: bool) -> None:
    with transaction.atomic():
        in_use.check_kept(
            question_set.name,
            schedules=Schedule.objects.filter(question_set=question_set),
            baselines=Baseline.objects.filter(question_set=question_set),
            force=force,
        )
        users = Evaluation.objects.filter(question_set_version__question_set=question_set, state__in=OPEN_EVALUATIONS)
        using = list(users.values_list("id", flat=True))
        in_use.free(question_set.name, users, force=force)
        for evaluation_id in using:
            # While the questions are there: afterwards nobody could say which of them owe a row.
            results.fill_missing(
                evaluation_id, outcome=Outcome.CANCELLED, reason="The question set was deleted, which cancelled it."
            )
        Question.objects.filter(version__question_set=question_set).delete()
        question_set.delete()


def resolve(
    workspace: Workspace,
    question_set: str | None = None,
    *,
    file: str | None = None,
    knowledge_base: KnowledgeBase | None = None,
) -> QuestionSetVersion:
    """The version that a request names: `id`, `id@version`, or a file found in a source, `<source>:<path>`.

    A file becomes a set of that name, with a version for each content. Raises NotFoundError, ValidationError,
    EVAL_FILE for an unknown source (naming those there are) or file, and the file's own QuestionSetError.
    """
    if (question_set is None) == (file is None):
        raise ValidationError("Name a question set or a file, not both.", field="question_set")
    if question_set is not None:
        key, _, number = str(question_set).partition("@")
        return queries.get_version(queries.get_set(workspace, key), number or None)
    return _of_file(workspace, str(file), knowledge_base)


def _of_file(workspace: Workspace, file: str, base: KnowledgeBase | None) -> QuestionSetVersion:
    found = _find(workspace, file, base)
    owner = found.source.knowledge_base
    if found.code == ErrorCode.EVAL_TOO_LARGE:
        raise QuestionSetError([Fault(code=ErrorCode.EVAL_TOO_LARGE, message=found.reason)])
    name = _set_name(f"{found.source.name}:{found.path}")
    parsed = set_files.parse(owner, bytes(found.data), filename=found.path)
    made, _ = QuestionSet.objects.get_or_create(workspace=workspace, name=name)
    with _locked(made):
        digest = files.content_hash(parsed)
        # Any version, not only the latest: two bases may have a source of that name.
        same = made.versions.filter(content_hash=digest).order_by("-number").first()
        return same or _next(made, parsed, filename=found.path)


def _find(workspace: Workspace, file: str, base: KnowledgeBase | None) -> SourceSetFile:
    sources = Source.objects.filter(knowledge_base__workspace=workspace)
    where = "this workspace"
    if base is not None:
        sources, where = sources.filter(knowledge_base=base), "this knowledge base"
    names = sorted(set(sources.values_list("name", flat=True)))
    # The longest name that fits: a source's name may itself hold a colon.
    name = max((one for one in names if file.startswith(f"{one}:")), key=len, default=None)
    if name is None:
        said = file.partition(":")[0] or file
        there = f"It has: {', '.join(names)}." if names else "It has none."
        raise _refuse(f"{said!r} is not one of {where}'s sources. {there}")
    path = file[len(name) + 1 :]
    candidates = SourceSetFile.objects.filter(source__in=sources, source__name=name).select_related(
        "source__knowledge_base"
    )
    found = list(candidates.filter(path=path)) or [one for one in candidates if one.path.rpartition("/")[2] == path]
    if not found:
        listed = ", ".join(f"{name}:{one}" for one in candidates.order_by("path").values_list("path", flat=True))
        raise _refuse(f"There is no question-set file {path!r} in {name!r}. There are: {listed or 'none; sync it'}.")
    if len(found) > 1:
        raise _refuse(f"{file!r} is in more than one knowledge base: name the base in the scope.")
    return found[0]


def _refuse(message: str) -> QuestionSetError:
    return QuestionSetError([Fault(code=ErrorCode.EVAL_FILE, message=message, field="file")])


def _set_name(name: str) -> str:
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 13]}…{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _parse(
    workspace: Workspace,
    *,
    data: bytes | None = None,
    items: Sequence[Any] | None = None,
    format: str | None = None,  # noqa: A002  see create
    filename: str = "",
) -> ParsedSet:
    known = frozenset(Source.objects.filter(knowledge_base__workspace=workspace).values_list("name", flat=True))
    if (data is None) == (items is None):
        raise ValidationError("Send a file or a list of questions, not both.", field="questions")
    if items is not None:
        return files.parse_items(items, known_sources=known, max_questions=settings.MAX_QUESTIONS)
    return files.parse(
        data or b"",
        filename=filename,
        format=format,
        known_sources=known,
        max_questions=settings.MAX_QUESTIONS,
        max_bytes=settings.MAX_SET_BYTES,
    )


@contextmanager
def _locked(question_set: QuestionSet) -> Iterator[None]:
    """One new version at a time: their numbers follow each other."""
    with transaction.atomic():
        if not QuestionSet.objects.select_for_update(no_key=True).filter(id=question_set.id).exists():
            raise NotFoundError("question set", question_set.id)
        yield


def _latest(question_set: QuestionSet) -> QuestionSetVersion:
    latest = question_set.versions.order_by("-number").first()
    if latest is None:
        raise NotFoundError("version of the question set", question_set.name)
    return latest


def _of(questions: Sequence[CoreQuestion], latest: QuestionSetVersion) -> ParsedSet:
    threshold, level = threshold_and_level(questions)
    return ParsedSet(format=latest.format, questions=tuple(questions), threshold=threshold, level=level)


def _next(question_set: QuestionSet, parsed: ParsedSet, *, filename: str) -> QuestionSetVersion:
    """The version after the latest; the latest itself when its content is the same. A question that was generated is
    marked so in every later version, whoever writes it."""
    parsed = _with_marks(question_set, parsed)
    digest = files.content_hash(parsed)
    latest = question_set.versions.order_by("-number").first()
    if latest is not None and latest.content_hash == digest:
        return latest
    version = QuestionSetVersion.objects.create(
        question_set=question_set,
        number=latest.number + 1 if latest else 1,
        content_hash=digest,
        format=parsed.format,
        threshold=parsed.threshold,
        level=parsed.level,
        is_graded=parsed.is_graded,
        n_questions=len(parsed.questions),
        warnings=list(parsed.warnings),
        filename=filename[-1000:],
    )
    # COPY: 100,000 questions are seconds, not minutes.
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for ordinal, question in enumerate(parsed.questions):
            copy.write_row(_row(version.id, ordinal, question))
    if len(parsed.questions) >= _MANY:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE backend_question")
    return version


def _with_marks(question_set: QuestionSet, parsed: ParsedSet) -> ParsedSet:
    marked = Question.objects.filter(version__question_set=question_set).exclude(generated="")
    marks = dict(marked.values_list("key", "generated"))
    if not marks:
        return parsed
    return replace(
        parsed,
        questions=tuple(
            replace(one, generated=marks[one.key]) if one.key in marks and not one.generated else one
            for one in parsed.questions
        ),
    )


def _row(version_id: UUID, ordinal: int, question: CoreQuestion) -> tuple[Any, ...]:
    form: Mapping[str, Any] = files.to_full_form(question)
    return (
        version_id,
        ordinal,
        question.key,
        question.text,
        json.dumps(form.get("expect", []), ensure_ascii=False),
        list(question.tags),
        question.note,
        question.must_pass,
        question.unanswerable,
        question.reference_answer,
        question.generated,
        question.source,
        question.collection,
        question.line,
    )
