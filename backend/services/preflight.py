"""Before a run: what a question set's labels find in a scope, what they do not, and what is odd about the set."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from backend.core.resolving import FindingKind, LabelState, Noted, check_questions
from backend.core.types import Question
from backend.models import Document, Index, QuestionSetVersion, ResolvedLabel, Run, Workspace
from backend.models import Question as QuestionRow
from backend.queries import questions as question_queries
from backend.services import diagnoses, labels, scopes

MOST_FINDINGS = 1000
_MOST_NAMED = 3


class Severity(StrEnum):
    """`error`: nothing that comes back can satisfy it. `warning`: the numbers may not mean what they say."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`nearest` are names the label may have meant; `documents` the paths that the finding is about."""

    ordinal: int
    key: str
    question: str
    line: int | None
    kind: FindingKind
    severity: Severity
    message: str
    label: str = ""
    nearest: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`n_resolved` of `n_expectations` (those with grade > 0) can be found. `counts` are findings by kind, all of
    them; `findings` the first MOST_FINDINGS, errors before warnings, each in the order of the questions."""

    version: int
    n_questions: int
    n_expectations: int
    n_resolved: int
    n_findings: int
    n_errors: int
    counts: Mapping[FindingKind, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def n_unresolved(self) -> int:
        return self.n_expectations - self.n_resolved


def run(
    workspace: Workspace, version: QuestionSetVersion, scope: Mapping[str, Any], *, most: int = MOST_FINDINGS
) -> Report:
    """Raises ValidationError, NotFoundError, ConflictError for a scope that cannot be searched.

    The labels are resolved once per corpus: a second call for the same costs a few queries.
    """
    scoped = scopes.resolve(workspace, scope)
    resolution = labels.resolve(version, scoped.scope)
    unresolved = [
        row
        for rows in labels.of(resolution).values()
        for row in rows
        if LabelState(row.state) is not LabelState.RESOLVED
    ]
    questions = list(question_queries.as_core(version))
    noted = list(check_questions(questions))
    counts = Counter(FindingKind(row.state) for row in unresolved) + Counter(one.kind for one in noted)
    documents = _documents_named(unresolved[:most])
    findings = [
        *(_unresolved(row, questions[row.ordinal], documents=documents) for row in unresolved[:most]),
        *(_noted(one, questions[one.ordinal]) for one in noted[: max(0, most - len(unresolved))]),
    ]
    return Report(
        version=version.number,
        n_questions=len(questions),
        n_expectations=resolution.n_expectations,
        n_resolved=resolution.n_expectations - len(unresolved),
        n_findings=len(unresolved) + len(noted),
        n_errors=len(unresolved),
        counts={kind: counts[kind] for kind in FindingKind if counts[kind]},
        findings=tuple(findings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of some questions without looking a label up, by ordinal: their labels as they were found last (in
    `bases`, at `looked_up_at`; None: never), and what is odd about each by itself or beside the others."""

    findings: Mapping[int, Sequence[Finding]]
    n_expectations: int = 0
    n_unresolved: int = 0
    bases: Sequence[str] = ()
    looked_up_at: datetime | None = None


def known(version: QuestionSetVersion, rows: Sequence[QuestionRow]) -> Known:
    """For a page of the version's questions: a fixed number of queries, and none of them looks at a passage."""
    asked = {row.ordinal: question_queries.core_question(row) for row in rows}
    places = list(asked)
    found: dict[int, list[Finding]] = {}
    for noted in check_questions(list(asked.values())):
        place = places[noted.ordinal]
        found.setdefault(place, []).append(_noted(replace(noted, ordinal=place), asked[place]))
    last = version.label_resolutions.order_by("-created_at", "-id").first()
    if last is None:
        return Known(findings=found)
    lost = last.labels.exclude(state=LabelState.RESOLVED)
    here = list(lost.filter(ordinal__in=places).order_by("ordinal", "expectation"))
    documents = _documents_named(here)
    for row in here:
        told = _unresolved(row, asked[row.ordinal], documents=documents)
        found.setdefault(row.ordinal, []).insert(0, told)
    names = Index.objects.filter(id__in=list(last.generations)).values_list("knowledge_base__name", flat=True)
    return Known(
        findings=found,
        n_expectations=last.n_expectations,
        n_unresolved=lost.count(),
        bases=sorted(set(names)),
        looked_up_at=last.created_at,
    )


def of_question(run: Run, ordinal: int) -> dict[int, str]:
    """What is wrong with the labels of a run's question where it searched, in the words of `run`'s findings; by
    expectation, as its judged list counts them. Empty where nothing is, or where nobody knows any more."""
    known = diagnoses.unresolved(run, ordinals=[ordinal])
    if known is None:
        return {}
    _, rows = known
    documents = _documents_named(rows)
    return {row.expectation: _message(row, _named(row, documents)) for row in rows}


def _documents_named(rows: Sequence[ResolvedLabel]) -> dict[UUID, Document]:
    ids = {one for row in rows for one in row.documents[:_MOST_NAMED]}
    return Document.objects.only("id", "path", "code", "reason", "state").in_bulk(ids)


def _unresolved(row: ResolvedLabel, question: Question, *, documents: Mapping[UUID, Document]) -> Finding:
    named = _named(row, documents)
    return Finding(
        ordinal=row.ordinal,
        key=question.key,
        question=question.text,
        line=question.line,
        kind=FindingKind(row.state),
        severity=Severity.ERROR,
        message=_message(row, named),
        label=row.label,
        nearest=tuple(row.nearest),
        documents=tuple(one.path for one in named),
    )


def _named(row: ResolvedLabel, documents: Mapping[UUID, Document]) -> list[Document]:
    return [documents[one] for one in row.documents[:_MOST_NAMED] if one in documents]


def _message(row: ResolvedLabel, named: Sequence[Document]) -> str:
    return " ".join(_sentences(row, named))


def _sentences(row: ResolvedLabel, named: Sequence[Document]) -> Iterator[str]:
    paths = ", ".join(one.path for one in named) + (", …" if len(row.documents) > len(named) else "")
    state = LabelState(row.state)
    if state is LabelState.NO_DOCUMENT:
        yield f"No document is named so: {row.label}."
        if row.nearest:
            yield f"Did you mean {' or '.join(row.nearest)}?"
    elif state is LabelState.NO_PASSAGE:
        yield f"There is no such passage: {row.label}. Ids die when a document is indexed again."
    elif state is LabelState.NO_TEXT:
        yield f"No document that it may be in holds this: {row.label}."
        if row.elsewhere:
            yield f"{row.elsewhere} holds the text, but the label names another document."
    elif state is LabelState.NOT_INDEXED:
        reason = next((one.reason or one.code for one in named if one.reason or one.code), "")
        why = f": {reason.rstrip('.')}" if reason else ", it waits or holds no text"
        yield f"{paths} is not indexed{why}."
    elif state is LabelState.CROSSES_BORDER:
        yield f"{paths} holds this, but no passage does, a chunk border cuts it: {row.label}."
        yield "Expect a shorter text, or let chunks be larger or overlap more."
    elif state is LabelState.OUTSIDE_SCOPE:
        yield f"{paths} holds it, but is outside this scope."


def _noted(noted: Noted, question: Question) -> Finding:
    return Finding(
        ordinal=noted.ordinal,
        key=question.key,
        question=question.text,
        line=question.line,
        kind=noted.kind,
        severity=Severity.WARNING,
        message=noted.message,
        label=noted.label,
    )
