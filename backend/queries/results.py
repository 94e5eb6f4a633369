"""What became of each question in a run: found or missed, at which rank, and what came back instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db import connection
from django.db.models import BooleanField, FloatField, IntegerField, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.types import GOOD_OUTCOMES
from backend.models import Question, Result, Run

_NEVER = 2_000_000_000
N_INSTEAD = 3


class Shown(StrEnum):
    """What `outcome` can ask for: stored outcomes, and those derived at a k."""

    OK = "ok"
    EMPTY = "empty"
    FOUND = "found"
    MISSED = "missed"
    ERROR = "error"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"


# A unique tail makes each a total order; none of the fields is ever null.
ORDERS: dict[str, tuple[str, ...]] = {
    "question": ("ordinal",),
    "-question": ("-ordinal",),
    "rank": ("rank_or_never", "ordinal"),
    "-rank": ("-rank_or_never", "ordinal"),
    "latency": ("latency_ms", "ordinal"),
    "-latency": ("-latency_ms", "ordinal"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A passage of the ranking with its rank, and its rank and score in each stage that ranked it."""

    rank: int
    document: str
    passage: str
    path: str
    source: str
    heading: str
    page: int | None
    snippet: str
    stages: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One question of one run. `found` is derived at `k`, None where the question has no figure (an error, or nothing
    to find). `question` None: the set was deleted, the history keeps numbers only.

    `cause`, `wrong_passage` and `losses` (of the expectations that were missed) say where it was lost; they take the
    corpus to tell, and are filled in by services/run_results.py.
    """

    ordinal: int
    key: str
    question: str | None
    expect: Sequence[Any]
    tags: Sequence[str]
    unanswerable: bool
    outcome: str
    code: str
    reason: str
    k: int
    found: bool | None
    found_at: Mapping[str, bool]
    first_rank: int | None
    first_relevant: Place | None
    found_instead: Sequence[Place]
    depth: int
    latency_ms: float | None
    timings_ms: Mapping[str, float]
    epoch: int = 1
    units: Mapping[str, float] = field(default_factory=dict)
    must_pass: bool = False
    cause: str = ""
    wrong_passage: bool = False
    losses: Sequence[Mapping[str, Any]] = ()


def check_k(run: Run, k: int | None) -> int:
    """The run's top_k unless given. Raises ValidationError beyond it: nothing is known there."""
    if k is None:
        return run.top_k
    if not 1 <= k <= run.top_k:
        message = f"k is from 1 to the run's top_k ({run.top_k}), not {k}."
        raise ValidationError(message, field="k", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="k")])
    return k


def of(
    run: Run, *, k: int, outcome: Shown | None = None, tag: str = "", must_pass: bool = False, code: str = ""
) -> QuerySet[Result]:
    """A run's results in question order, annotated with `rank_or_never`, `latency_ms` and `has_relevant`."""
    version_id = run.evaluation.question_set_version_id
    rows = Result.objects.filter(run=run).annotate(
        rank_or_never=Coalesce("first_rank", Value(_NEVER), output_field=IntegerField()),
        latency_ms=RawSQL(
            "(SELECT COALESCE(sum(value::float8), 0) FROM jsonb_each_text(backend_result.timings))",
            [],
            output_field=FloatField(),
        ),
        has_relevant=RawSQL(
            "COALESCE((SELECT bool_or(grade::float8 >= (backend_result.judged->>'threshold')::float8) "
            "FROM jsonb_array_elements_text(backend_result.judged->'grades') AS g(grade)), false)",
            [],
            output_field=BooleanField(),
        ),
    )
    if outcome in {Shown.FOUND, Shown.MISSED}:
        rows = rows.filter(outcome__in=list(GOOD_OUTCOMES), has_relevant=True).exclude(
            ordinal__in=Question.objects.filter(version=version_id, unanswerable=True).values("ordinal")
        )
        is_found = Q(first_rank__lte=k)
        rows = (
            rows.filter(is_found) if outcome is Shown.FOUND else rows.filter(Q(first_rank=None) | Q(first_rank__gt=k))
        )
    elif outcome is not None:
        rows = rows.filter(outcome=outcome.value)
    if tag:
        rows = rows.filter(
            ordinal__in=Question.objects.filter(version=version_id, tags__contains=[tag]).values("ordinal")
        )
    if code:
        rows = rows.filter(code=code)
    if must_pass:
        rows = rows.filter(ordinal__in=Question.objects.filter(version=version_id, must_pass=True).values("ordinal"))
    return rows.order_by("ordinal")


def shown(run: Run, results: Sequence[Any], *, k: int) -> list[ResultRow]:
    """The rows of a page from `of`; one query for the questions' texts."""
    questions = {
        question.ordinal: question
        for question in Question.objects.filter(
            version=run.evaluation.question_set_version_id, ordinal__in=[result.ordinal for result in results]
        )
    }
    ks = sorted({*run.evaluation.plan.get("ks", ()), run.top_k, k})
    return [_row(result, questions.get(result.ordinal), ks=ks, k=k) for result in results]


def _row(result: Any, question: Question | None, *, ks: Sequence[int], k: int) -> ResultRow:
    is_scored = (
        result.outcome in GOOD_OUTCOMES and result.has_relevant and not (question is not None and question.unanswerable)
    )
    rank = result.first_rank
    found_at = {str(cut): rank is not None and rank <= cut for cut in ks} if is_scored else {}
    found = found_at.get(str(k))
    places = [] if found is not False else _instead(result)
    return ResultRow(
        ordinal=result.ordinal,
        key=result.question_key,
        question=None if question is None else question.text,
        expect=[] if question is None else question.expect,
        tags=[] if question is None else question.tags,
        unanswerable=question is not None and question.unanswerable,
        outcome=result.outcome,
        code=result.code,
        reason=result.reason,
        k=k,
        found=found,
        found_at=found_at,
        first_rank=rank,
        first_relevant=_first_relevant(result),
        found_instead=places,
        depth=result.depth,
        latency_ms=round(result.latency_ms, 3) if result.outcome in GOOD_OUTCOMES and result.timings else None,
        timings_ms=result.timings,
        epoch=result.epoch,
        units=result.units,
        must_pass=question is not None and question.must_pass,
    )


def _relevant(result: Any) -> frozenset[int]:
    """The indices of the expectations that count; those past the grades are judgements only."""
    judged = result.judged or {}
    threshold = float(judged.get("threshold", 1.0))
    return frozenset(index for index, grade in enumerate(judged.get("grades", ())) if grade >= threshold)


def _first_relevant(result: Any) -> Place | None:
    """The best-ranked passage that satisfies a relevant expectation, however deep: where a miss was lost shows in
    the ranks of its stages."""
    relevant = _relevant(result)
    for item in result.ranking:
        if relevant.intersection(item.get("x", ())):
            return _place(item)
    return None


def _instead(result: Any) -> list[Place]:
    """The first passages of the documents at the top."""
    relevant = _relevant(result)
    seen: set[str] = set()
    places = []
    for item in result.ranking:
        if item["d"] in seen or relevant.intersection(item.get("x", ())):
            continue
        seen.add(item["d"])
        places.append(_place(item))
        if len(places) == N_INSTEAD:
            break
    return places


def _place(item: Mapping[str, Any]) -> Place:
    return Place(
        rank=item["r"],
        document=item["d"],
        passage=item["c"],
        path=item["p"],
        source=item["s"],
        heading=item.get("h", ""),
        page=item.get("g"),
        snippet=item.get("t", ""),
        stages={name: {"rank": rank, "score": score} for name, (rank, score) in item["k"].items()},
    )


def outcome_of(text: str) -> Shown | None:
    """Raises ValidationError for a word that is none."""
    if not text:
        return None
    if text not in set(Shown):
        message = f"outcome is one of {', '.join(Shown)}, not {text!r}."
        raise ValidationError(
            message, field="outcome", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="outcome")]
        )
    return Shown(text)


def order_of(text: str) -> tuple[str, ...]:
    """Raises ValidationError for a word that is none."""
    if (text or "question") not in ORDERS:
        message = f"order is one of {', '.join(ORDERS)}, not {text!r}."
        raise ValidationError(
            message, field="order", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="order")]
        )
    return ORDERS[text or "question"]


def reasons(run: Run, *, codes: Sequence[str]) -> dict[str, str]:
    """What was said of one question of each code. One query, which stops at the first of each."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT wanted.code, found.reason FROM unnest(%s::text[]) AS wanted(code)
            CROSS JOIN LATERAL (
                SELECT reason FROM backend_result
                WHERE run_id = %s AND outcome IN ('error', 'not_run', 'cancelled') AND code = wanted.code LIMIT 1) found
            """,
            [list(codes), run.id],
        )
        return dict(cursor.fetchall())
