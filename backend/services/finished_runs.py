"""A run that was never searched here, written as a finished one: an evaluation of its own, results, numbers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from backend.core.metrics import METRIC_DEFINITIONS_VERSION
from backend.core.states import EvaluationState, RunKind, RunState
from backend.models import Evaluation, KnowledgeBase, QuestionSetVersion, Run, Workspace
from backend.models.base import new_id
from backend.services import plans, results, run_numbers
from backend.services.evaluation_requests import Measured
from backend.services.results import ResultRow
from backend.services.run_numbers import Row
from backend.version import CODE_VERSION

_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One question's row (its run is filled in), and whether the set marks it unanswerable."""

    row: ResultRow
    unanswerable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the run is to say of itself beside its numbers. `scope` and `searched` as an evaluation and its plan keep
    them."""

    name: str
    mode: str
    kind: RunKind
    config: Mapping[str, Any]
    config_fingerprint: str
    scope: Mapping[str, Any]
    searched: Mapping[str, Any]
    origin: Mapping[str, Any]
    derived_from: UUID | None = None
    knowledge_base: KnowledgeBase | None = None
    knowledge_base_name: str = ""
    corpus_fingerprint: str = ""
    generations: Mapping[str, int] | None = None
    corpus_changed: bool = False
    label: str = ""


def write(
    workspace: Workspace,
    record: Record,
    *,
    version: QuestionSetVersion,
    measured: Measured,
    threshold: float,
    rows: Iterable[Made],
    now: datetime,
) -> Run:
    """In one transaction, rows as they come: what `rows` raises leaves nothing behind."""
    with transaction.atomic():
        evaluation = _evaluation(workspace, record, version=version, measured=measured, threshold=threshold, now=now)
        run = Run.objects.create(
            workspace=workspace,
            evaluation=evaluation,
            knowledge_base=record.knowledge_base,
            knowledge_base_name=record.knowledge_base_name,
            ordinal=0,
            name=record.name,
            mode=record.mode,
            kind=record.kind,
            derived_from_id=record.derived_from,
            origin=dict(record.origin),
            config=dict(record.config),
            config_fingerprint=record.config_fingerprint,
            set_hash=version.content_hash,
            corpus_fingerprint=record.corpus_fingerprint,
            generations=dict(record.generations or {}),
            corpus_changed=record.corpus_changed,
            code_version=CODE_VERSION,
            metric_definitions=METRIC_DEFINITIONS_VERSION,
            level=measured.level,
            threshold=threshold,
            top_k=measured.top_k,
            primary_metric=str(measured.primary),
            label=record.label,
        )
        told = run_numbers.compute(plan=plans.load(evaluation.id), rows=_written(run.id, rows))
        run.state, run.finished_at = told.state, now
        run.stop_code = "" if told.state == RunState.SCORED else told.first_code
        run.stop_reason = "" if told.state == RunState.SCORED else told.first_reason
        run.metrics, run.counts, run.timings, run.cost = told.metrics, told.counts, told.timings, told.cost
        run.save(
            update_fields=[
                "state",
                "finished_at",
                "stop_code",
                "stop_reason",
                "metrics",
                "counts",
                "timings",
                "cost",
            ]
        )
    return run


def _written(run_id: UUID, rows: Iterable[Made]) -> Iterator[Row]:
    """Writes the rows in batches while the numbers are made of them."""
    batch: list[ResultRow] = []
    for made in rows:
        row = replace(made.row, run_id=run_id)
        batch.append(row)
        if len(batch) == _BATCH:
            results.write(batch, epoch=1)
            batch = []
        yield Row(
            ordinal=row.ordinal,
            outcome=row.outcome,
            code=row.code,
            reason=row.reason,
            judged=row.judged,
            timings=row.timings,
            units=row.units,
            unanswerable=made.unanswerable,
            returned_something=bool(row.ranking),
        )
    results.write(batch, epoch=1)


def _evaluation(
    workspace: Workspace,
    record: Record,
    *,
    version: QuestionSetVersion,
    measured: Measured,
    threshold: float,
    now: datetime,
) -> Evaluation:
    return Evaluation.objects.create(
        id=new_id(),
        workspace=workspace,
        question_set_version=version,
        set_name=f"{version.question_set.name}@{version.number}",
        n_questions=version.n_questions,
        scope=dict(record.scope),
        plan={
            "scope": dict(record.searched),
            "level": measured.level.value,
            "threshold": threshold,
            "top_k": measured.top_k,
            "ks": list(measured.ks),
            "keys": [str(key) for key in measured.keys],
            "primary_metric": str(measured.primary),
        },
        state=EvaluationState.COMPLETED,
        revision=1,
        label=record.label,
        deadline_at=now,
        started_at=now,
        finished_at=now,
    )
