"""Evaluations: submitted, advanced, cancelled, tried again. Each move is one conditional update."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from backend import logs
from backend.core.errors import ConflictError, NotFoundError
from backend.core.metrics import METRIC_DEFINITIONS_VERSION
from backend.core.states import (
    OPEN_SLICES,
    TERMINAL,
    WORKING,
    EvaluationState,
    Lane,
    RunKind,
    RunState,
    SliceKind,
    SliceState,
)
from backend.core.types import GOOD_OUTCOMES
from backend.models import Evaluation, Result, Run, Slice, Workspace
from backend.queries import corpora
from backend.search.types import SearchScope
from backend.services import answers, in_use, limits, plans, pump, results, retention, slices, spending
from backend.services.evaluation_requests import Request, measured_by, resolve
from backend.version import CODE_VERSION

_log = logs.get("evaluations")


def start(workspace: Workspace, request: Request, *, now: datetime) -> Evaluation:
    """Submit: everything is checked, frozen and written in one transaction; the doorbell is rung on commit.

    The time it takes does not grow with the number of questions, but where a spend limit makes it estimate the cost.
    Raises TouchstoneError for what cannot be run, and for what a limit of the workspace forbids now.
    """
    resolved = resolve(workspace, request)
    spending.refuse_beyond_limit(workspace, request, resolved)
    scoped, version, base = resolved.scoped, resolved.version, resolved.scoped.knowledge_base
    measured = measured_by(request, version)
    evaluation = Evaluation(
        workspace=workspace,
        question_set_version=version,
        set_name=f"{version.question_set.name}@{version.number}",
        n_questions=version.n_questions,
        scope=scoped.canonical,
        plan={
            "scope": scoped.scope.to_json(),
            "level": measured.level.value,
            "threshold": version.threshold,
            "top_k": measured.top_k,
            "ks": list(measured.ks),
            "keys": [str(key) for key in measured.keys],
            "primary_metric": str(measured.primary),
            "answers": None if resolved.answers is None else resolved.answers.to_json(),
        },
        label=request.label,
        metadata=dict(request.metadata),
        use_cache=request.cache,
        wait_for_index=request.wait_for_index,
        deadline_at=now + timedelta(seconds=settings.EVALUATION_DEADLINE_SECONDS),
    )
    runs = [
        Run(
            workspace=workspace,
            evaluation=evaluation,
            knowledge_base=base,
            knowledge_base_name=base.name if base is not None else "",
            ordinal=ordinal,
            name=config.name,
            mode=config.mode,
            config=config.stored(),
            config_fingerprint=resolved.config_fingerprint(config),
            set_hash=version.content_hash,
            code_version=CODE_VERSION,
            metric_definitions=METRIC_DEFINITIONS_VERSION,
            level=measured.level,
            threshold=version.threshold,
            top_k=measured.top_k,
            primary_metric=str(measured.primary),
            label=request.label,
        )
        for ordinal, config in enumerate(resolved.configs)
    ]
    with transaction.atomic():
        _refuse_too_many(workspace)
        evaluation.save(force_insert=True)
        Run.objects.bulk_create(runs)
        _insert_control_slice(evaluation, SliceKind.PREPARE)
        pump.ring_later()
    _log.info(
        "evaluation_submitted",
        evaluation=str(evaluation.id),
        workspace=str(workspace.id),
        n_questions=evaluation.n_questions,
        n_runs=len(runs),
    )
    return evaluation


def _refuse_too_many(workspace: Workspace) -> None:
    """Raises ConflictError when the workspace has as many open evaluations as it may; inside a transaction, in which
    no other of its evaluations is opened."""
    locked = Workspace.objects.select_for_update(no_key=True).get(id=workspace.id)
    most = limits.of(locked).open_evaluations
    n_open = Evaluation.objects.filter(workspace=workspace).exclude(state__in=TERMINAL).count()
    if n_open >= most:
        raise ConflictError(
            f"{n_open:,} evaluations of this workspace have not ended, and it may have {most:,}. Wait for one to end, "
            "cancel one, or raise the workspace's limit open_evaluations."
        )


def _insert_control_slice(evaluation: Evaluation, kind: SliceKind, *, pool: str = "") -> None:
    Slice.objects.bulk_create(
        [
            Slice(
                workspace_id=evaluation.workspace_id,
                evaluation_id=evaluation.id,
                epoch=evaluation.epoch,
                kind=kind,
                lane=Lane.CONTROL,
                pool=pool,
            )
        ],
        ignore_conflicts=True,
    )


def advance(evaluation_id: UUID) -> bool:
    """Move to aggregation if nothing is open any more. In autocommit, after the caller's own commit: of two last
    slices, at least one sees the other's end, and one update wins."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT e.state, EXISTS (
                SELECT 1 FROM backend_slice s
                WHERE s.evaluation_id = e.id AND s.epoch = e.epoch AND s.state IN ('pending', 'queued', 'leased'))
            FROM backend_evaluation e WHERE e.id = %s
            """,
            [evaluation_id],
        )
        row = cursor.fetchone()
    if row is None or row[0] in TERMINAL or (row[0] in WORKING and row[1]):
        return False
    with transaction.atomic():
        if row[0] == EvaluationState.CANCELLING:
            return _advance_cancelling(evaluation_id)
        with connection.cursor() as cursor:
            cursor.execute(
                """
                UPDATE backend_evaluation e SET state = 'aggregating'
                WHERE e.id = %s AND e.state = 'running' AND NOT EXISTS (
                    SELECT 1 FROM backend_slice s
                    WHERE s.evaluation_id = e.id AND s.epoch = e.epoch AND s.state IN ('pending', 'queued', 'leased'))
                """,
                [evaluation_id],
            )
            moved = cursor.rowcount == 1
        if moved or row[0] == EvaluationState.AGGREGATING:
            return start_aggregating(evaluation_id)
    return False


@transaction.atomic
def start_aggregating(evaluation_id: UUID) -> bool:
    """Insert the aggregate slice of this epoch, unless one is open or the evaluation has ended meanwhile; after a
    repair the second one is told apart."""
    evaluation = (
        Evaluation.objects.select_for_update(no_key=True)
        .only("id", "state", "epoch", "workspace_id")
        .get(id=evaluation_id)
    )
    if evaluation.state not in {EvaluationState.AGGREGATING, EvaluationState.CANCELLING}:
        return False
    earlier = Slice.objects.filter(
        evaluation_id=evaluation_id, epoch=evaluation.epoch, kind=SliceKind.AGGREGATE
    ).values_list("state", "pool")
    if any(state in OPEN_SLICES for state, _ in earlier) or any(pool for _, pool in earlier):
        return False
    _insert_control_slice(evaluation, SliceKind.AGGREGATE, pool="repair" if earlier else "")
    pump.ring_later()
    return True


def _advance_cancelling(evaluation_id: UUID) -> bool:
    """Close every slice without a live lease; with none left alive, aggregate what there is."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT id, state = 'leased' AND lease_until >= now() FROM backend_slice
            WHERE evaluation_id = %s AND state IN ('pending', 'queued', 'leased') AND kind <> 'aggregate'
            """,
            [evaluation_id],
        )
        rows = cursor.fetchall()
    slices.close([row[0] for row in rows if not row[1]], SliceState.CANCELLED)
    if any(row[1] for row in rows):
        return False
    return start_aggregating(evaluation_id)


def lock_for_end(evaluation_id: UUID) -> bool:
    """Lock an evaluation that is being worked on and move it to `aggregating`; inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE backend_evaluation SET state = 'aggregating' "
            "WHERE id = %s AND state IN ('queued', 'preparing', 'running')",
            [evaluation_id],
        )
        return bool(cursor.rowcount == 1)


def close_open_slices(evaluation_id: UUID, *, code: str, reason: str) -> int:
    return slices.close(slices.open_of(evaluation_id), SliceState.GIVEN_UP, code=code, reason=reason)


def cancel(workspace: Workspace, evaluation_id: UUID) -> Evaluation:
    """Stop: no new question starts, finished ones are kept. Idempotent while cancelling and after.

    Raises ConflictError when the evaluation has ended otherwise, or is writing its numbers.
    """
    with transaction.atomic():
        evaluation = Evaluation.objects.select_for_update().filter(workspace=workspace, id=evaluation_id).first()
        if evaluation is None:
            raise NotFoundError("evaluation", evaluation_id)
        if evaluation.state in {EvaluationState.CANCELLING, EvaluationState.CANCELLED}:
            return evaluation
        if evaluation.state in TERMINAL or evaluation.state == EvaluationState.AGGREGATING:
            raise ConflictError(f"This evaluation is {evaluation.state}: there is nothing left to cancel.")
        Evaluation.objects.filter(id=evaluation.id).update(state=EvaluationState.CANCELLING)
        waiting = Slice.objects.filter(
            evaluation_id=evaluation.id, state__in=[SliceState.PENDING, SliceState.QUEUED]
        ).values_list("id", flat=True)
        slices.close(list(waiting), SliceState.CANCELLED)
    advance(evaluation.id)
    evaluation.refresh_from_db()
    return evaluation


def retry(
    workspace: Workspace, evaluation_id: UUID, *, now: datetime, allow_changed_corpus: bool = False
) -> Evaluation:
    """A new epoch over the (run, question) pairs without a good result, under the same plan.

    Only from `completed`, `failed` or `cancelled`, and over the documents that the first try searched unless
    `allow_changed_corpus`. With nothing left to ask it aggregates again.
    """
    with transaction.atomic():
        evaluation = Evaluation.objects.select_for_update().filter(workspace=workspace, id=evaluation_id).first()
        if evaluation is None:
            raise NotFoundError("evaluation", evaluation_id)
        if evaluation.state not in TERMINAL:
            raise ConflictError(f"This evaluation is {evaluation.state}: retry is for one that has ended.")
        if evaluation.question_set_version_id is None:
            raise ConflictError("Its question set was deleted: the questions cannot be asked again.")
        if evaluation.runs.exclude(kind=RunKind.SEARCHED).exists():
            raise ConflictError("Its rankings were not searched here: there is nothing to ask again.")
        in_use.check_no_baseline(evaluation.runs.all())
        retention.check_whole(*evaluation.runs.all())
        _check_corpus(evaluation, may_have_changed=allow_changed_corpus)
        spending.refuse_when_spent(plans.load(evaluation.id), workspace)
        _refuse_too_many(workspace)
        Evaluation.objects.filter(id=evaluation.id).update(
            state=EvaluationState.QUEUED,
            epoch=F("epoch") + 1,
            code="",
            reason="",
            # What was asked before is no part of how long it takes now, also where nothing is left to ask.
            started_at=now,
            finished_at=None,
            deadline_at=now + timedelta(seconds=settings.EVALUATION_DEADLINE_SECONDS),
        )
        good = Result.objects.filter(run__evaluation_id=evaluation.id, outcome__in=GOOD_OUTCOMES)
        n_good = good.count()
        Run.objects.filter(evaluation_id=evaluation.id).update(
            state=RunState.PENDING, stop_code="", stop_reason="", finished_at=None
        )
        slices.close(slices.open_of(evaluation.id), SliceState.CANCELLED)
        results.note_anew(evaluation.id)
        evaluation.refresh_from_db()
        all_good = n_good == evaluation.n_questions * evaluation.runs.count()
        if all_good and not (evaluation.plan.get("answers") and answers.owed(evaluation.id)):
            Evaluation.objects.filter(id=evaluation.id).update(state=EvaluationState.AGGREGATING)
            _insert_control_slice(evaluation, SliceKind.AGGREGATE)
        else:
            _insert_control_slice(evaluation, SliceKind.PREPARE)
        pump.ring_later()
    evaluation.refresh_from_db()
    return evaluation


def _check_corpus(evaluation: Evaluation, *, may_have_changed: bool) -> None:
    """Refuse to mix answers from two states of the documents in one run; and, in any case, to search what is gone:
    the retry would fail, and with it the numbers that there are."""
    scope = SearchScope.from_json(evaluation.plan["scope"])
    runs = {run.id: run for run in evaluation.runs.only("config", "corpus_fingerprint")}
    wanted = {
        key: [index.id for index in scope.indexes_for(str(run.config.get("index", "")))] for key, run in runs.items()
    }
    read = corpora.describe_each(wanted)
    if any(len(generations) < len(wanted[key]) for key, (generations, _) in read.items()):
        raise ConflictError("An Index that it searched is gone: submit a new evaluation.")
    if may_have_changed:
        return
    if any(runs[key].corpus_fingerprint not in {"", fingerprint} for key, (_, fingerprint) in read.items()):
        raise ConflictError(
            "The documents have changed since it ran: its numbers would mix two corpora. Submit a new evaluation, or "
            "send allow_changed_corpus: true."
        )
