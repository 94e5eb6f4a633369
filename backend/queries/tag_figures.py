"""A run's figures by tag, and those of the questions that count for themselves: `must_pass` and unanswerable."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection

from backend.core import judging, summaries
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.measuring import Measurer
from backend.core.metric_keys import MetricKey
from backend.core.summaries import Ending
from backend.core.types import Outcome
from backend.models import Run

SEED = 20_240_101
MOST_TAGS = 200
MOST_METRICS = 8
_MOST_FAILED = 100
_BATCH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Questions with something in common. `metrics` as in a run's record; `tag` empty for those without one."""

    tag: str
    n_questions: int
    n_scored: int
    n_eligible: int
    n_error: int
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A must-pass question that was not found within k, or not scored (`outcome`)."""

    ordinal: int
    key: str
    question: str
    outcome: str
    first_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MustPass:
    """Found within `k`, the primary metric's. `failed`: the first hundred of the others."""

    k: int
    n: int
    n_found: int
    failed: Sequence[Failed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswerable:
    """`share` of those that were asked returned nothing; None without a `min_score`, below which nothing is cut, or
    where none was asked."""

    n: int
    n_asked: int
    n_silent: int
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """`n_tags` may be more than are shown: the first 200 by name are."""

    metrics: Sequence[str]
    n_tags: int
    by_tag: Sequence[Group]
    untagged: Group | None
    must_pass: MustPass
    unanswerable: Unanswerable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    ordinal: int
    key: str
    text: str
    tags: tuple[str, ...]
    must_pass: bool
    ending: Ending
    first_rank: int | None
    values: Mapping[str, float | None]


def of(run: Run, *, metrics: Sequence[str] = ()) -> Figures:
    """Reads every judged list of the run once. Raises ValidationError for metrics that are none or look too deep."""
    keys = _keys(run, metrics)
    primary = MetricKey.parse(run.primary_metric)
    rows = list(_rows(run, keys))
    tags: dict[str, list[_Row]] = {}
    for row in rows:
        for tag in dict.fromkeys(row.tags) or ("",):
            tags.setdefault(tag, []).append(row)
    untagged = tags.pop("", None)
    return Figures(
        metrics=[str(key) for key in keys],
        n_tags=len(tags),
        by_tag=[_group(tag, tags[tag], keys) for tag in sorted(tags)[:MOST_TAGS]],
        untagged=_group("", untagged, keys) if untagged else None,
        must_pass=_must_pass(rows, k=primary.k),
        unanswerable=_unanswerable(run, rows),
    )


def _keys(run: Run, metrics: Sequence[str]) -> list[MetricKey]:
    if len(metrics) > MOST_METRICS:
        message = f"Name at most {MOST_METRICS} metrics."
        raise ValidationError(
            message, field="metrics", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="metrics")]
        )
    if metrics:
        return list(dict.fromkeys(MetricKey.parse(name, top_k=run.top_k) for name in metrics))
    primary = MetricKey.parse(run.primary_metric)
    return list(dict.fromkeys([primary, *(MetricKey(name=name, k=primary.k) for name in ("hit", "recall"))]))


def _rows(run: Run, keys: Sequence[MetricKey]) -> Iterator[_Row]:
    measurer = Measurer(keys)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT x.ordinal, x.question_key, x.outcome, x.judged::text, COALESCE(q.text, ''),
                   COALESCE(q.tags, '{}'), COALESCE(q.must_pass, false), COALESCE(q.unanswerable, false)
            FROM backend_result x
            LEFT JOIN backend_question q ON q.version_id = %s AND q.ordinal = x.ordinal
            WHERE x.run_id = %s ORDER BY x.ordinal
            """,
            [run.evaluation.question_set_version_id, run.id],
        )
        while rows := cursor.fetchmany(_BATCH):
            for ordinal, key, outcome, stored, text, tags, must_pass, unanswerable in rows:
                judged, measured = (None, {}) if stored is None else measurer.of(json.loads(stored))
                # As in a run's numbers: without a judged list a question counts as one that expects something.
                n_relevant = judged.n_relevant if judged is not None else int(not unanswerable)
                ending = Ending(outcome=Outcome(outcome), n_relevant=n_relevant, unanswerable=unanswerable)
                yield _Row(
                    ordinal=ordinal,
                    key=key,
                    text=text,
                    tags=tuple(tags),
                    must_pass=must_pass,
                    ending=ending,
                    first_rank=None if judged is None else judging.first_rank(judged),
                    values=measured if ending.is_scored else {},
                )


def _group(tag: str, rows: Sequence[_Row], keys: Sequence[MetricKey]) -> Group:
    counts = summaries.count(row.ending for row in rows)
    return Group(
        tag=tag,
        n_questions=len(rows),
        n_scored=counts.n_scored,
        n_eligible=counts.n_eligible,
        n_error=counts.n_error,
        metrics={
            str(key): asdict(summary)
            for key, summary in summaries.summarise_all(
                {key: [row.values[str(key)] for row in rows if row.values] for key in keys},
                seed=SEED,
                n_total=counts.n_eligible,
            ).items()
        },
    )


def _must_pass(rows: Sequence[_Row], *, k: int) -> MustPass:
    marked = [row for row in rows if row.must_pass]
    failed = [row for row in marked if not row.ending.is_scored or row.first_rank is None or row.first_rank > k]
    return MustPass(
        k=k,
        n=len(marked),
        n_found=len(marked) - len(failed),
        failed=[
            Failed(
                ordinal=row.ordinal,
                key=row.key,
                question=row.text,
                outcome=row.ending.outcome.value,
                first_rank=row.first_rank,
            )
            for row in failed[:_MOST_FAILED]
        ],
    )


def _unanswerable(run: Run, rows: Sequence[_Row]) -> Unanswerable:
    marked = [row.ending for row in rows if row.ending.unanswerable]
    asked = [one for one in marked if one.outcome in {Outcome.OK, Outcome.EMPTY}]
    n_silent = sum(1 for one in asked if one.outcome is Outcome.EMPTY)
    has_floor = run.config.get("min_score") is not None
    return Unanswerable(
        n=len(marked),
        n_asked=len(asked),
        n_silent=n_silent,
        share=n_silent / len(asked) if asked and has_floor else None,
    )
