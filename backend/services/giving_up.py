"""Closing work that has no way on: in one commit, the slice ends and the rows that it and its children owed are
written, and the children that can still run are inserted."""

from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from backend.core.answers.kinds import AnswerOutcome
from backend.core.errors import ErrorCode
from backend.core.states import OPEN_SLICES, TERMINAL, EvaluationState, Lane, RunState, SliceKind, SliceState
from backend.core.types import Outcome
from backend.models import Evaluation, Run, Slice
from backend.services import answers, closings, ingestion, jobs, owners, plans, provider_states, results, slices
from backend.services.answers import Written
from backend.services.provider_states import Standing
from backend.services.results import ResultRow
from backend.services.slices import Lease


def owed_rows(piece: Slice, *, outcome: Outcome, code: str, reason: str) -> None:
    """Write what an evaluation's slice owed. An `embed` owes nothing: its search goes on without vectors."""
    if piece.evaluation_id is None:
        raise ValueError("only an evaluation's slices owe rows")
    if piece.kind == SliceKind.SEARCH:
        results.fill_missing(piece.evaluation_id, outcome=outcome, code=code, reason=reason, ordinals=piece.items)
    elif piece.kind == SliceKind.RERANK:
        payload = piece.payload or {}
        results.write(
            [
                ResultRow(
                    run_id=UUID(run_id),
                    ordinal=piece.first,
                    question_key=payload["key"],
                    outcome=outcome,
                    code=code,
                    reason=reason,
                )
                for run_id in payload.get("runs", {})
            ],
            epoch=piece.epoch,
        )
    elif piece.kind == SliceKind.ANSWER:
        payload = piece.payload or {}
        ended = AnswerOutcome.NOT_RUN if outcome is Outcome.NOT_RUN else AnswerOutcome.FAILED
        owed = Written(
            run_id=UUID(payload["run"]),
            ordinal=piece.first,
            question_key=payload["key"],
            outcome=ended,
            code=code,
            reason=reason,
        )
        answers.write([owed], epoch=piece.epoch)


def stop_answers(lease: Lease, *, code: ErrorCode, reason: str) -> None:
    """No other answer of this evaluation can succeed either: those that wait are `not_run`, and later ones see it."""
    with transaction.atomic():
        waiting = Slice.objects.select_for_update().filter(
            evaluation_id=lease.evaluation, kind=SliceKind.ANSWER, state__in=OPEN_SLICES
        )
        found = [
            piece
            for piece in waiting.order_by("id")
            # What is being paid for just now is kept where it is only money that stops them.
            if code is not ErrorCode.SPEND_LIMIT or piece.state != SliceState.LEASED or piece.id == lease.slice_id
        ]
        for piece in found:
            owed_rows(piece, outcome=Outcome.NOT_RUN, code=code.value, reason=reason)
        slices.close([piece.id for piece in found], SliceState.GIVEN_UP, code=code.value, reason=reason)


def stop_reranker(lease: Lease, *, code: ErrorCode, reason: str) -> None:
    """A fault that no other question can escape (auth, billing, quota, unknown model): the modes that use this
    reranker stop with one reason; what has not been tried is `not_run`."""
    with transaction.atomic():
        # Every slice of this reranker that is open: those at work fail by themselves, or find their slice closed. Where
        # it is money that stops them, what is being paid for just now is kept.
        spared = lease.slice_id if code is ErrorCode.SPEND_LIMIT else None
        _end_all(
            lease.evaluation, lease.reranker, outcome=Outcome.NOT_RUN, code=code, reason=reason, leased_only=spared
        )
        run_ids = [
            planned.run_id for planned in plans.load(lease.evaluation).runs if planned.config.reranker == lease.reranker
        ]
        Run.objects.filter(id__in=run_ids).update(stop_code=code, stop_reason=reason)


def stop_embedder(evaluation_id: UUID, *, key: str, code: ErrorCode, reason: str) -> None:
    """The same for an embedder: the runs that need its vectors stop; the others go on."""
    plan = plans.load(evaluation_id)
    run_ids = [planned.run_id for planned in plan.runs if key in plan.embedders_of(planned)]
    Run.objects.filter(id__in=run_ids, stop_code="").update(stop_code=code, stop_reason=reason)


def stopped(evaluation_id: UUID) -> dict[UUID, tuple[str, str]]:
    """The runs of which no further question can succeed: code and reason by run."""
    rows = Run.objects.filter(evaluation_id=evaluation_id).exclude(stop_code="")
    return {run_id: (code, reason) for run_id, code, reason in rows.values_list("id", "stop_code", "stop_reason")}


def stalled(lease: Lease, *, provider: str, standing: Standing) -> None:
    """The provider has been away for too long: everything that waits for it ends with one code."""
    sentence = provider_states.gave_up_on(provider, standing)
    with transaction.atomic():
        _end_all(
            lease.evaluation,
            provider,
            outcome=Outcome.ERROR,
            code=ErrorCode.PROVIDER_UNAVAILABLE,
            reason=sentence,
        )


def _end_all(
    evaluation_id: UUID,
    reranker: str,
    *,
    outcome: Outcome,
    code: ErrorCode,
    reason: str,
    leased_only: UUID | None = None,
) -> None:
    """Close an evaluation's open slices of a reranker and write their rows; inside a transaction. `leased_only`: of
    those at work, this one alone."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT id FROM backend_slice
            WHERE evaluation_id = %s AND reranker = %s AND kind = 'rerank' AND state IN ('pending', 'queued', 'leased')
              AND (state <> 'leased' OR %s::uuid IS NULL OR id = %s)
            ORDER BY id FOR UPDATE
            """,
            [evaluation_id, reranker, leased_only, leased_only],
        )
        ids = [row[0] for row in cursor.fetchall()]
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        for piece in Slice.objects.filter(id__in=some):
            owed_rows(piece, outcome=outcome, code=code.value, reason=reason)
        slices.close(some, SliceState.GIVEN_UP, code=code.value, reason=reason)


def give_up(piece: Slice, *, code: ErrorCode, reason: str) -> None:
    """End one open slice for good: its rows are written, or its owner fails where nothing else can go on."""
    with transaction.atomic():
        locked = Slice.objects.select_for_update().filter(id=piece.id, state__in=OPEN_SLICES).first()
        if locked is None:
            return
        if locked.ingestion_id is not None:
            ingestion.give_up(locked, code=code, reason=reason)
        elif locked.job_id is not None:
            jobs.give_up(locked.job_id, code=code, reason=reason)
        elif locked.kind == SliceKind.EMBED:
            _search_without_vectors(locked, code=code, reason=reason)
        elif locked.kind in {SliceKind.PREPARE, SliceKind.AGGREGATE}:
            _fail_evaluation(locked, code=code, reason=reason)
        else:
            owed_rows(locked, outcome=Outcome.ERROR, code=code.value, reason=reason)
        slices.close([locked.id], SliceState.GIVEN_UP, code=code.value, reason=reason)


def _search_without_vectors(piece: Slice, *, code: ErrorCode, reason: str) -> None:
    """The questions are searched all the same: configurations that need no vector go on, the others get the code."""
    if piece.evaluation_id is None:
        raise ValueError("an embed slice belongs to an evaluation")
    if not owners.is_open(piece.evaluation_id, epoch=piece.epoch):
        return
    failures = {key: [code.value, reason, False] for key in plans.load(piece.evaluation_id).embedders()}
    Slice.objects.bulk_create(
        [
            Slice(
                workspace_id=piece.workspace_id,
                evaluation_id=piece.evaluation_id,
                epoch=piece.epoch,
                kind=SliceKind.SEARCH,
                lane=Lane.SEARCH,
                items=piece.items,
                first=piece.first,
                last=piece.last,
                pool=piece.pool,
                payload={"vectors": {}, "failures": failures},
            )
        ],
        ignore_conflicts=True,
    )


def _fail_evaluation(piece: Slice, *, code: ErrorCode, reason: str) -> None:
    """`prepare` and `aggregate` cannot be split: the evaluation fails, and its results stay."""
    if piece.evaluation_id is None:
        raise ValueError("prepare and aggregate belong to an evaluation")
    Evaluation.objects.filter(id=piece.evaluation_id).exclude(state__in=TERMINAL).update(
        state=EvaluationState.FAILED,
        revision=F("revision") + 1,
        code=code,
        reason=f"{piece.kind} failed. {reason}",
        finished_at=Now(),
    )
    Run.objects.filter(evaluation_id=piece.evaluation_id).exclude(state=RunState.SCORED).update(state=RunState.FAILED)
    open_ids = list(
        Slice.objects.filter(evaluation_id=piece.evaluation_id, state__in=OPEN_SLICES)
        .exclude(id=piece.id)
        .values_list("id", flat=True)
    )
    slices.close(open_ids, SliceState.CANCELLED, code=code.value, reason=reason)
    closings.announce(piece.evaluation_id)
