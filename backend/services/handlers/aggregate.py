"""`aggregate`: from result rows to Run records; the terminal state is written together with the numbers."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection
from django.db.models import F
from django.db.models.functions import Now

from backend import logs
from backend.core.answers.kinds import AnswerOutcome
from backend.core.errors import ErrorCode, TouchstoneError
from backend.core.states import EvaluationState, RunState, SliceState
from backend.core.types import Outcome
from backend.models import Evaluation, Result, Run
from backend.queries import corpora
from backend.services import answers, closings, diagnoses, plans, pump, results, run_numbers, slices
from backend.services.handlers import prepare
from backend.services.plans import Plan
from backend.services.run_numbers import Numbers, Row
from backend.services.slices import Lease

REPAIR = "repair"
_log = logs.get("aggregate")


def run(lease: Lease) -> None:
    """One row per (run, planned question): a missing one is asked again once, then the evaluation is `failed`."""
    plan = plans.load(lease.evaluation)
    state = Evaluation.objects.values_list("state", flat=True).get(id=plan.evaluation_id)
    cancelled = state == EvaluationState.CANCELLING
    if cancelled:
        with slices.commit(lease):
            results.fill_missing(
                plan.evaluation_id, outcome=Outcome.CANCELLED, reason="The evaluation was cancelled first."
            )
    missing = results.missing_ordinals(plan.evaluation_id)
    if missing and lease.pool != REPAIR:
        _ask_again(lease, plan=plan, missing=missing)
        return
    if missing:
        _fail(lease, plan=plan, missing=missing)
        return
    _end_answers(lease, plan=plan, cancelled=cancelled)
    told = run_numbers.compute_all(plan=plan, rows_of_runs=(_rows(planned.run_id, lease) for planned in plan.runs))
    numbers = dict(zip((planned.run_id for planned in plan.runs), told, strict=True))
    _close(lease, plan=plan, numbers=numbers, cancelled=cancelled)
    _log.info("evaluation_closed", cancelled=cancelled, n_runs=len(numbers))
    _resolve_labels(plan)


def _end_answers(lease: Lease, *, plan: Plan, cancelled: bool) -> None:
    """What was not answered by now never will be, in this epoch: it is told why, and counted."""
    if plan.answers is None:
        return
    late = Evaluation.objects.filter(id=plan.evaluation_id, deadline_at__lt=Now()).exists()
    code, reason = "", "The evaluation was cancelled first."
    if not cancelled:
        code = ErrorCode.DEADLINE.value if late else ErrorCode.INTERNAL.value
        reason = f"The evaluation {'reached its deadline' if late else 'ended'} before this answer was judged."
    outcome = AnswerOutcome.CANCELLED if cancelled else AnswerOutcome.FAILED
    with slices.commit(lease):
        answers.fill_missing(plan, epoch=lease.epoch, outcome=outcome, code=code, reason=reason)


def _resolve_labels(plan: Plan) -> None:
    """While the corpus is still the one that was searched; what fails here is made when somebody asks for it."""
    for run_ in Run.objects.filter(evaluation_id=plan.evaluation_id).select_related("evaluation__question_set_version"):
        try:
            diagnoses.prepare(run_)
        except (TouchstoneError, DatabaseError):
            _log.warning("labels_not_resolved", run=str(run_.id), exc_info=True)


def _rows(run_id: UUID, lease: Lease) -> Iterator[Row]:
    """A run's results in question order, streamed; judged lists are read, rankings are not."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT x.ordinal, x.outcome, x.code, x.reason, x.judged::text, x.timings::text, x.units::text,
                   q.unanswerable, x.ranking <> '[]'::jsonb, x.ann_recall
            FROM backend_result x
            JOIN backend_run r ON r.id = x.run_id
            JOIN backend_evaluation e ON e.id = r.evaluation_id
            LEFT JOIN backend_question q ON q.version_id = e.question_set_version_id AND q.ordinal = x.ordinal
            WHERE x.run_id = %s ORDER BY x.ordinal
            """,
            [run_id],
        )
        while rows := cursor.fetchmany(2000):
            lease.check()
            for row in rows:
                yield Row(
                    ordinal=row[0],
                    outcome=Outcome(row[1]),
                    code=row[2],
                    reason=row[3],
                    judged=None if row[4] is None else json.loads(row[4]),
                    timings=json.loads(row[5]),
                    units=json.loads(row[6]),
                    unanswerable=bool(row[7]),
                    returned_something=bool(row[8]),
                    ann_recall=row[9],
                )


def _ask_again(lease: Lease, *, plan: Plan, missing: list[int]) -> None:
    with slices.commit(lease, finish=True):
        moved = Evaluation.objects.filter(id=plan.evaluation_id, state=EvaluationState.AGGREGATING).update(
            state=EvaluationState.RUNNING
        )
        if moved:
            prepare.insert_roots(plan, missing, epoch=lease.epoch, pool=REPAIR)
    pump.ring_later()


def _fail(lease: Lease, *, plan: Plan, missing: list[int]) -> None:
    named = ", ".join(str(ordinal + 1) for ordinal in missing[:10]) + ("…" if len(missing) > 10 else "")
    reason = f"{len(missing)} questions have no result after being asked again: numbers {named}."
    with slices.commit(lease):
        slices.end(lease, SliceState.GIVEN_UP, code=ErrorCode.INTERNAL, reason=reason)
        Evaluation.objects.filter(id=plan.evaluation_id).update(
            state=EvaluationState.FAILED,
            revision=F("revision") + 1,
            code=ErrorCode.INTERNAL,
            reason=reason,
            finished_at=Now(),
        )
        Run.objects.filter(evaluation_id=plan.evaluation_id).update(state=RunState.FAILED)
        closings.announce(plan.evaluation_id)


def _close(lease: Lease, *, plan: Plan, numbers: dict[UUID, Numbers], cancelled: bool) -> None:
    read = corpora.describe_each(plan.index_ids())
    states: dict[RunState, int] = defaultdict(int)
    changes: dict[UUID, dict[str, Any]] = {}
    for run_ in Run.objects.filter(evaluation_id=plan.evaluation_id):
        told = numbers[run_.id]
        generations, fingerprint = read[run_.id]
        generations_now = corpora.generations_as_json(generations)
        state = RunState.CANCELLED if cancelled else told.state
        states[state] += 1
        changes[run_.id] = {
            "state": state,
            "stop_code": run_.stop_code or ("" if told.counts["n_scored"] else told.first_code),
            "stop_reason": run_.stop_reason or ("" if told.counts["n_scored"] else told.first_reason),
            "metrics": told.metrics,
            "counts": told.counts,
            "timings": told.timings,
            "cost": told.cost,
            "answers": answers.figures_of(plan, run_.id),
            "corpus_changed": _has_changed(run_, fingerprint, generations_now, epoch=lease.epoch),
        }
    final = EvaluationState.CANCELLED if cancelled else EvaluationState.COMPLETED
    reason, code = "", ""
    if not cancelled and not states[RunState.SCORED]:
        final, code = EvaluationState.FAILED, _first(numbers, "first_code")
        reason = f"No run scored a single question. {_first(numbers, 'first_reason')}".strip()
    with slices.commit(lease, finish=True):
        for run_id, change in changes.items():
            Run.objects.filter(id=run_id).update(finished_at=Now(), **change)
        with connection.cursor() as cursor:
            cursor.execute(
                """
                UPDATE backend_evaluation
                SET state = %s, revision = revision + 1, finished_at = now(),
                    code = CASE WHEN code = '' THEN %s ELSE code END,
                    reason = CASE WHEN reason = '' THEN %s ELSE reason END
                WHERE id = %s AND state IN ('aggregating', 'cancelling')
                """,
                [final.value, code, reason, plan.evaluation_id],
            )
        closings.announce(plan.evaluation_id)


def _has_changed(run_: Run, fingerprint: str, generations: dict[str, int], *, epoch: int) -> bool:
    """Whether the documents are others now than those it began with. A try that searched nothing, since it was
    cancelled first or everything had its result, cannot have mixed them."""
    if not run_.corpus_fingerprint or not Result.objects.filter(run=run_, epoch=epoch).exists():
        return run_.corpus_changed
    return run_.corpus_fingerprint != fingerprint or run_.generations != generations


def _first(numbers: dict[UUID, Numbers], name: str) -> str:
    return next((value for told in numbers.values() if (value := str(getattr(told, name)))), "")
