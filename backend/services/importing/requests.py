"""What an import is asked for, and the run that comes of it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from backend.core import imported_rankings
from backend.core.configs import fingerprint
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.imported_rankings import ParsedRankings
from backend.core.states import RunKind
from backend.core.types import Level, Outcome
from backend.models import KnowledgeBase, Run, Source, Workspace
from backend.queries import knowledge, questions
from backend.search.types import SearchScope
from backend.services import diagnoses, evaluation_requests, finished_runs, question_sets
from backend.services.finished_runs import Record
from backend.services.importing import matching, telling
from backend.services.importing.matching import Matched
from backend.services.importing.rows import Rows

_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`missing`: what a question of the set without a ranking counts as, `not_run` or (its engine found nothing)
    `empty`. `knowledge_base` files the run with a base."""

    question_set: str
    name: str = ""
    label: str = ""
    level: str = ""
    top_k: int | None = None
    k: int | Sequence[int] | None = None
    primary_metric: str = ""
    knowledge_base: str = ""
    missing: str = "not_run"
    format: str = ""
    filename: str = ""


def import_run(
    workspace: Workspace,
    request: Request,
    *,
    data: bytes | None = None,
    items: Sequence[Any] | None = None,
    now: datetime,
) -> Run:
    """A finished run; its `origin` tells what reading the rankings told. Raises QuestionSetError with all faults of the
    file, ValidationError where no ranking is for a question of the set, NotFoundError."""
    version = question_sets.resolve(workspace, request.question_set)
    base = knowledge.get_base(workspace, request.knowledge_base) if request.knowledge_base else None
    if request.missing not in {"not_run", "empty"}:
        raise _invalid("missing is not_run or empty.", "missing")
    parsed = (
        imported_rankings.parse_items(items)
        if items is not None
        else imported_rankings.parse(data or b"", format=request.format or None, max_bytes=settings.MAX_SET_BYTES)
    )
    measured = evaluation_requests.measured_by(
        evaluation_requests.Request(
            top_k=request.top_k, k=request.k, level=request.level, primary_metric=request.primary_metric
        ),
        version,
    )
    asked = list(questions.as_core(version))
    matched = matching.match(parsed.rankings, asked)
    made = Rows(
        workspace=workspace,
        level=measured.level,
        threshold=version.threshold,
        top_k=measured.top_k,
        sources=frozenset(Source.objects.filter(knowledge_base__workspace=workspace).values_list("name", flat=True)),
        labels=matching.labels(asked),
        missing=Outcome(request.missing),
    )
    name = request.name or parsed.name or "imported"
    return finished_runs.write(
        workspace,
        _record(
            request,
            parsed,
            matched,
            name=name[:_MAX_NAME],
            base=base,
            made=made,
            told=telling.warnings(parsed, matched, asked=asked, base=base, rows=made),
            n_asked=len(asked),
        ),
        version=version,
        measured=measured,
        threshold=version.threshold,
        rows=made.rows(asked, matched.by_key),
        now=now,
    )


def _record(
    request: Request,
    parsed: ParsedRankings,
    matched: Matched,
    *,
    name: str,
    base: KnowledgeBase | None,
    made: Rows,
    told: Sequence[str],
    n_asked: int,
) -> Record:
    depth = max((len(ranking.hits) for ranking in parsed.rankings), default=0)
    digest = hashlib.sha256(repr([(one.question, one.hits) for one in parsed.rankings]).encode()).hexdigest()
    return Record(
        name=name,
        mode=diagnoses.IMPORTED,
        kind=RunKind.IMPORTED,
        config={"name": name, "mode": diagnoses.IMPORTED, "depth": depth},
        config_fingerprint=fingerprint([diagnoses.IMPORTED, digest]),
        scope={},
        searched=SearchScope(indexes=()).to_json(),
        origin={
            "format": parsed.format.value,
            "filename": request.filename[-200:],
            "sha256": digest,
            "n_rankings": len(parsed.rankings),
            "n_results": parsed.n_results,
            "n_tied": parsed.n_tied,
            "n_repeated": parsed.n_repeated,
            "n_unknown_questions": len(matched.unknown),
            "n_missing_questions": n_asked - len(matched.by_key),
            "warnings": list(told),
            # Entries of an imported list are told apart by their ids, so it is kept by passage at either level.
            "kept": {"level": Level.PASSAGE.value, "top_k": made.kept},
        },
        knowledge_base=base,
        knowledge_base_name=base.name if base else "",
        label=request.label,
    )


def _invalid(message: str, where: str) -> ValidationError:
    return ValidationError(
        message, field=where, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=where)]
    )
