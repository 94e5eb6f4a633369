"""`prepare`: from a submitted evaluation to its first slices."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from backend.core.errors import ErrorCode
from backend.core.states import EvaluationState, IndexState, Lane, RunState, SliceKind, SliceState
from backend.models import Evaluation, Index, Run, Slice
from backend.providers import rates
from backend.providers.base import EmbedderInfo
from backend.queries import corpora
from backend.search import ann, providers
from backend.services import answers, closings, plans, pump, results, reuse, slices
from backend.services.plans import Plan
from backend.services.slices import Lease

MOST_QUESTIONS_A_SLICE = 50


def run(lease: Lease) -> None:
    """Insert one `embed` slice per batch of questions, or `search` where no configuration needs a vector.

    An Index that is still being built keeps the evaluation `queued`, when it was asked to wait. A configuration of
    approximate search has its graph built first, once per Index. What an earlier run has answered, and nothing has
    changed since, is taken over first: these questions are not asked.
    """
    plan = plans.load(lease.evaluation)
    index_ids = [index.id for index in plan.scope.all_indexes]
    states = dict(Index.objects.filter(id__in=index_ids).values_list("id", "state"))
    gone = [index_id for index_id in index_ids if states.get(index_id) in {None, IndexState.FAILED}]
    if gone:
        _fail(lease, ErrorCode.KB_NOT_READY, "An Index that this evaluation reads failed to build or was deleted.")
        return
    if any(states[index_id] == IndexState.BUILDING for index_id in index_ids):
        slices.release(lease, wait_seconds=settings.TICK_SECONDS)
        return
    for planned in plan.runs:
        if planned.config.needs_vector and not planned.config.exact:
            for index in plan.scope.indexes_for(planned.config.index):
                ann.ensure_ann_index(index)
    read = corpora.describe_each(plan.index_ids())
    asked = {planned.run_id: reuse.asked_with(plan, planned) for planned in plan.runs}
    if lease.epoch == 1:
        _take_over(lease, plan, read=read, asked=asked)
    with slices.commit(lease, finish=True):
        moved = Evaluation.objects.filter(id=plan.evaluation_id, state=EvaluationState.QUEUED).update(
            state=EvaluationState.RUNNING, started_at=Now()
        )
        if moved != 1:
            return
        Run.objects.filter(evaluation_id=plan.evaluation_id).exclude(state=RunState.SCORED).update(
            state=RunState.RUNNING, stop_code="", stop_reason=""
        )
        _note_what_is_searched(plan, read=read, asked=asked, earlier_of={})
        insert_roots(plan, results.missing_ordinals(plan.evaluation_id), epoch=lease.epoch)
        answers.insert_owed(plan, epoch=lease.epoch)
    pump.ring_later()


def _take_over(lease: Lease, plan: Plan, *, read: reuse.Corpora, asked: Mapping[UUID, str]) -> None:
    """What unchanged earlier runs have, a block at a time: a large set is no single commit. What they stand for is
    written with the first, so that whatever comes between cannot pass them off as results of other documents; those
    that an earlier attempt took from other documents are dropped."""
    earlier_of = reuse.sources(plan, read, asked)
    outdated = reuse.outdated(plan, read, asked)
    if earlier_of or outdated:
        with slices.commit(lease):
            reuse.drop(outdated)
            _note_what_is_searched(plan, read=read, asked=asked, earlier_of=earlier_of)
    for ordinals in reuse.blocks(plan) if earlier_of else ():
        with slices.commit(lease):
            for run_id, earlier in earlier_of.items():
                reuse.take(run_id, earlier=earlier, ordinals=ordinals, epoch=lease.epoch)


def _note_what_is_searched(
    plan: Plan, *, read: reuse.Corpora, asked: Mapping[UUID, str], earlier_of: Mapping[UUID, UUID]
) -> None:
    """Once: a retry goes on over what it began with. One that asks other providers than the first try is no source for
    anybody, for its results are of both."""
    for run_ in Run.objects.filter(evaluation_id=plan.evaluation_id).only("corpus_fingerprint", "origin"):
        generations, fingerprint = read[run_.id]
        changes: dict[str, Any] = {}
        origin = run_.origin
        if not run_.corpus_fingerprint:
            changes = {"corpus_fingerprint": fingerprint, "generations": corpora.generations_as_json(generations)}
            origin = {"asked_with": asked[run_.id]}
        elif origin.get("asked_with", "") != asked[run_.id]:
            origin = {**origin, "asked_with": ""}
        if run_.id in earlier_of:
            # Also on a second attempt, for which an earlier run may have ended only now.
            origin = {"reused_from": str(earlier_of[run_.id]), **origin}
        if changes or origin != run_.origin:
            Run.objects.filter(id=run_.id).update(**changes, origin=origin)


def insert_roots(plan: Plan, ordinals: list[int], *, epoch: int, pool: str = "") -> None:
    """The first slices of these questions. `pool` sets apart the questions that are asked again in one epoch."""
    if not ordinals:
        return
    embedders = plan.embedders()
    kind = SliceKind.EMBED if embedders else SliceKind.SEARCH
    infos = {
        key: providers.describe_embedder(embedder.spec, workspace_id=plan.workspace_id)
        for key, embedder in embedders.items()
    }
    remote = any(not info.local for info in infos.values())
    size = min(slice_size(len(ordinals)), *(_most_texts(plan, info) for info in infos.values()), len(ordinals))
    Slice.objects.bulk_create(
        [
            Slice(
                workspace_id=plan.workspace_id,
                evaluation_id=plan.evaluation_id,
                epoch=epoch,
                kind=kind,
                lane=Lane.PROVIDER if remote else Lane.SEARCH,
                root=True,
                items=ordinals[start : start + size],
                first=ordinals[start],
                last=ordinals[min(start + size, len(ordinals)) - 1],
                pool=pool,
            )
            for start in range(0, len(ordinals), size)
        ],
        ignore_conflicts=True,
        batch_size=1000,
    )


def _most_texts(plan: Plan, embedder: EmbedderInfo) -> int:
    """What one call may hold: under a small limit a slice of several calls would lose the first while it waits."""
    rate = rates.of_embedder(embedder, providers.settings(plan.workspace_id))
    return MOST_QUESTIONS_A_SLICE if rate is None else rate.most_inputs


def slice_size(n_questions: int) -> int:
    """Up to 50 questions, and never so many that a small set cannot use every place: two turns each, since a slice
    costs as much as several questions."""
    return max(1, min(MOST_QUESTIONS_A_SLICE, -(-n_questions // (settings.SEARCH_SLOTS * 2))))


def _fail(lease: Lease, code: ErrorCode, reason: str) -> None:
    with slices.commit(lease):
        slices.end(lease, SliceState.GIVEN_UP, code=code, reason=reason)
        failed = Evaluation.objects.filter(id=lease.evaluation, state=EvaluationState.QUEUED).update(
            state=EvaluationState.FAILED,
            revision=F("revision") + 1,
            code=code,
            reason=reason,
            finished_at=Now(),
        )
        if failed:  # and was not cancelled meanwhile, which ends otherwise
            Run.objects.filter(evaluation_id=lease.evaluation).update(state=RunState.FAILED)
            closings.announce(lease.evaluation)
