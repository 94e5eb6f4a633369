"""`rerank`: one question's pool through one reranker; a result for every run that shares them."""

from uuid import UUID

from backend.core.types import Outcome, Passage
from backend.models import Purpose, Slice
from backend.providers.base import ProviderError, ProviderFault
from backend.search import providers, rerank
from backend.search.ledger import PaidFor
from backend.search.pacing import PacedError
from backend.services import answers, giving_up, owners, plans, pools, provider_states, pump, rankings, results, slices
from backend.services.plans import PlannedRun
from backend.services.results import ResultRow
from backend.services.slices import Lease


def run(lease: Lease) -> None:
    """Raises ProviderError while trying again can help. A fault that no other question can escape stops the mode."""
    plan = plans.load(lease.evaluation, epoch=lease.epoch)
    ordinal = lease.items[0]
    waiting = [planned for planned in plan.runs if str(planned.run_id) in lease.payload["runs"]]
    standing = provider_states.check(lease, lease.reranker)
    if standing.gave_up:
        giving_up.stalled(lease, provider=lease.reranker, standing=standing)
        return
    entries, satisfied = pools.unpack(lease.payload["entries"])
    depth = int(lease.payload["rerank_depth"])
    try:
        scored = rerank.score_pool(
            lease.workspace_id,
            lease.reranker,
            lease.payload["query"],
            entries[:depth],
            use_cache=plan.use_cache,
            timeout=lease.call_seconds(
                local=providers.describe_reranker(lease.reranker, workspace_id=lease.workspace_id).local
            ),
            before_call=lambda: _refuse_stopped(lease),
            paid_for=PaidFor(purpose=Purpose.EVALUATION, owner=lease.evaluation),
        )
    except PacedError:
        raise
    except _StoppedError as stop:
        _not_run(lease, waiting=waiting, code=stop.code, reason=stop.reason)
        return
    except ProviderError as error:
        if provider_states.will_try_again(lease, error, provider=lease.reranker):
            raise
        _give_up(lease, waiting=waiting, error=error)
        return
    if standing.ailing:
        provider_states.succeeded(lease.workspace_id, lease.reranker)
    targets = pools.targets_from_json(lease.payload["grades"])

    def known(passage: Passage) -> tuple[int, ...]:
        return satisfied[passage.id]

    rows = []
    for planned in waiting:
        reordered, cut = rerank.apply_and_cut(entries, scored.scores, depth=depth, min_score=planned.config.min_score)
        told = lease.payload["runs"][str(planned.run_id)]
        timings = {**told["timings"]}
        if scored.n_cached < min(depth, len(entries)):
            timings["rerank"] = round(scored.ms, 3)
        rows.append(
            rankings.stored_row(
                plan=plan,
                planned=planned,
                ordinal=ordinal,
                key=lease.payload["key"],
                targets=targets,
                entries=reordered,
                cut=cut,
                ann_recall=told.get("ann_recall"),
                depth=int(lease.payload["depth"]),
                timings=timings,
                satisfied=known,
                units={
                    **told["units"],
                    **scored.units,
                    "rerank_calls": float(scored.n_calls),
                    "rerank_cached": float(scored.n_cached),
                },
            )
        )
    children = answers.children(plan, rows, epoch=lease.epoch)
    with slices.commit(lease, finish=True):
        if children and owners.is_open(plan.evaluation_id, epoch=lease.epoch):
            Slice.objects.bulk_create(children, ignore_conflicts=True)
        results.write(rows, epoch=lease.epoch)
    if children:
        pump.ring_later()


class _StoppedError(Exception):
    """Another question found out that no call can succeed."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason


def _refuse_stopped(lease: Lease) -> None:
    """Right before a call: what was inserted, or waited for its turn, while the mode was stopped makes none."""
    stopped = giving_up.stopped(lease.evaluation)
    for run_id in lease.payload["runs"]:
        if UUID(run_id) in stopped:
            raise _StoppedError(*stopped[UUID(run_id)])


def _not_run(lease: Lease, *, waiting: list[PlannedRun], code: str, reason: str) -> None:
    rows = [
        ResultRow(
            run_id=planned.run_id,
            ordinal=lease.items[0],
            question_key=lease.payload["key"],
            outcome=Outcome.NOT_RUN,
            code=code,
            reason=reason,
        )
        for planned in waiting
    ]
    with slices.commit(lease, finish=True):
        results.write(rows, epoch=lease.epoch)


def _give_up(lease: Lease, *, waiting: list[PlannedRun], error: ProviderError) -> None:
    if error.fatal:
        giving_up.stop_reranker(lease, code=error.code, reason=error.message)
        return
    reason = error.message
    if error.fault is ProviderFault.SERVER and lease.tries:
        reason = f"{reason} Tried {lease.tries + 1} times."
    with slices.commit(lease, finish=True):
        results.write(
            [
                ResultRow(
                    run_id=planned.run_id,
                    ordinal=lease.items[0],
                    question_key=lease.payload["key"],
                    outcome=Outcome.ERROR,
                    code=error.code.value,
                    reason=reason,
                )
                for planned in waiting
            ],
            epoch=lease.epoch,
        )
