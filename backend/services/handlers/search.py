"""`search`: each question's legs once, fusion per configuration; results of what does not wait for a reranker."""

import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog

from backend import logs
from backend.core.configs import RetrievalConfig, fingerprint
from backend.core.errors import ErrorCode
from backend.core.matching import KnownPaths, Targets, merge
from backend.core.states import Lane, SliceKind
from backend.core.types import Outcome, Question
from backend.models import Slice
from backend.search import pipeline, providers
from backend.search.snapshot import Snapshot, open_snapshot
from backend.search.types import Entry, Failure, Ranked
from backend.services import answers, giving_up, labels, owners, plans, pools, pump, rankings, results, slices
from backend.services.handlers import embed
from backend.services.plans import Plan, PlannedRun
from backend.services.results import ResultRow
from backend.services.slices import Lease

COMMIT_SECONDS = 2.0
COMMIT_QUESTIONS = 10
# Of a long slice, while somebody else waits for its place: it goes on a little, and no run of small ones stops it.
FEW_QUESTIONS = 3
# About so many questions of a run are also searched exactly, where it searches approximately.
ANN_SAMPLE = 50
_log = logs.get("search")


@dataclass(slots=True)
class _Batch:
    rows: list[ResultRow] = field(default_factory=list)
    children: list[Slice] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)


def run(lease: Lease) -> None:
    """Commits every few questions; what is committed leaves the slice's items, so a second worker repeats little. The
    rest is given back where somebody else waits for a place and has none."""
    plan = plans.load(lease.evaluation, epoch=lease.epoch)
    asked = plans.questions(plan.version_id, list(lease.items))
    remaining = [ordinal for ordinal in lease.items if ordinal in asked]
    settled = results.answered([planned.run_id for planned in plan.runs], remaining, epoch=lease.epoch)
    stopped = giving_up.stopped(plan.evaluation_id)
    others_wait = len(remaining) > COMMIT_QUESTIONS and _keeps_others_waiting(lease, plan=plan, remaining=remaining)
    size = FEW_QUESTIONS if others_wait else COMMIT_QUESTIONS
    while remaining:
        batch = _Batch()
        until = time.monotonic() + COMMIT_SECONDS
        with open_snapshot(plan.scope) as snapshot:
            known = labels.known_paths(plan.scope, snapshot.generations)
            _read_lexemes(plan, snapshot, [asked[ordinal].text for ordinal in remaining[:size]])
            for ordinal in remaining[:size]:
                if batch.ordinals and time.monotonic() > until:
                    break
                lease.check()
                waiting = [planned for planned in plan.runs if (planned.run_id, ordinal) not in settled]
                with structlog.contextvars.bound_contextvars(question=ordinal):
                    _ask(
                        lease,
                        asked[ordinal],
                        ordinal=ordinal,
                        waiting=waiting,
                        plan=plan,
                        snapshot=snapshot,
                        known=known,
                        stopped=stopped,
                        batch=batch,
                    )
                batch.ordinals.append(ordinal)
        remaining = remaining[len(batch.ordinals) :]
        _commit(lease, plan=plan, batch=batch, remaining=remaining)
        if remaining and _keeps_others_waiting(lease, plan=plan, remaining=remaining):
            # A small run does not wait for the rest of a large one's slice.
            slices.release(lease)
            pump.run_lane(lease.lane)
            return
        size = COMMIT_QUESTIONS
    if not asked:
        with slices.commit(lease, finish=True):
            pass


def _keeps_others_waiting(lease: Lease, *, plan: Plan, remaining: list[int]) -> bool:
    return pump.keeps_others_waiting(lease.lane, evaluation_id=plan.evaluation_id, n_left=len(remaining))


def _read_lexemes(plan: Plan, snapshot: Snapshot, texts: list[str]) -> None:
    """Those of the whole batch, in one query a language."""
    if any("keyword" in planned.config.legs for planned in plan.runs):
        for language in {index.language for index in plan.scope.all_indexes}:
            snapshot.read_lexemes(texts, language=language)


def _ask(
    lease: Lease,
    question: Question,
    *,
    ordinal: int,
    waiting: list[PlannedRun],
    plan: Plan,
    snapshot: Snapshot,
    known: KnownPaths,
    stopped: dict[UUID, tuple[str, str]],
    batch: _Batch,
) -> None:
    """One question in every configuration that still owes it a row."""
    targets = Targets(merge(question.expectations), known=known)
    answers = _answers(lease, question, ordinal=ordinal, runs=waiting, plan=plan, snapshot=snapshot)
    for planned in waiting:
        answer = answers[planned.config.name]
        if isinstance(answer, Failure):
            batch.rows.append(_failed(planned, ordinal, question, answer))
        elif planned.config.reranker and planned.run_id in stopped:
            code, reason = stopped[planned.run_id]
            failure = Failure(code=ErrorCode(code), reason=reason, fatal=True)
            batch.rows.append(_failed(planned, ordinal, question, failure))
        elif planned.config.reranker and answer.entries:
            _add_child(
                batch,
                lease,
                plan=plan,
                planned=planned,
                ordinal=ordinal,
                question=question,
                ranked=answer,
                targets=targets,
            )
        else:
            batch.rows.append(
                rankings.stored_row(
                    plan=plan,
                    planned=planned,
                    ordinal=ordinal,
                    key=question.key,
                    targets=targets,
                    entries=answer.entries,
                    cut=answer.cut,
                    ann_recall=answer.ann_recall,
                    depth=answer.depth,
                    timings=_timings(answer, lease.payload, planned.config),
                    units=_units(plan, planned, lease.payload),
                )
            )


def _answers(
    lease: Lease,
    question: Question,
    *,
    ordinal: int,
    runs: list[PlannedRun],
    plan: Plan,
    snapshot: Snapshot,
) -> dict[str, Ranked | Failure]:
    configs: list[RetrievalConfig] = [run_.config for run_ in runs]
    if not configs:
        return {}
    try:
        return dict(
            pipeline.search_question(
                question.text,
                vectors=_vectors(lease, ordinal=ordinal, plan=plan),
                configs=configs,
                scope=plan.scope,
                snapshot=snapshot,
                top_k=plan.top_k,
                # A sample, evenly over the set: it says of the graph, not of the question.
                measure_ann=ordinal % max(1, plan.n_questions // ANN_SAMPLE) == 0,
            )
        )
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        # A fault of ours in one question must not cost the others; a database that went away is not one of these.
        _log.exception("search_failed")
        failure = Failure(code=ErrorCode.INTERNAL, reason=f"The search failed: {type(error).__name__}.")
        return {config.name: failure for config in configs}


def _vectors(lease: Lease, *, ordinal: int, plan: Plan) -> dict[UUID, list[float] | Failure]:
    failures = embed.failures_of(lease.payload)
    found: dict[UUID, list[float] | Failure] = {}
    for index in plan.scope.all_indexes:
        if not index.embedder:
            found[index.id] = Failure(
                code=ErrorCode.PROVIDER_NOT_CONFIGURED,
                reason="This knowledge base has no embedding model (embedding.embedder is none).",
                fatal=True,
            )
            continue
        key = plans.embedder_of(index).key
        vector = embed.vector_of(lease.payload, key=key, ordinal=ordinal)
        if vector is not None:
            found[index.id] = vector
        elif key in failures:
            code, reason, fatal = failures[key]
            found[index.id] = Failure(code=ErrorCode(code), reason=reason, fatal=fatal)
    return found


def _failed(planned: PlannedRun, ordinal: int, question: Question, failure: Failure) -> ResultRow:
    return ResultRow(
        run_id=planned.run_id,
        ordinal=ordinal,
        question_key=question.key,
        outcome=Outcome.NOT_RUN if failure.fatal else Outcome.ERROR,
        code=failure.code.value,
        reason=failure.reason,
    )


def _timings(ranked: Ranked, payload: dict[str, Any], config: RetrievalConfig) -> dict[str, float]:
    timings = {name: round(value, 3) for name, value in ranked.timings_ms.items()}
    if config.needs_vector and payload.get("embed"):
        timings["embed"] = round(sum(told["ms"] for told in payload["embed"].values()), 3)
    return timings


def _units(plan: Plan, planned: PlannedRun, payload: dict[str, Any]) -> dict[str, float]:
    """This question's share of what embedding its batch took: calls, tokens as billed, vectors from the cache."""
    told = payload.get("embed") or {}
    found: dict[str, float] = {}
    for key in plan.embedders_of(planned):
        for name, amount in (told.get(key, {}).get("units") or {}).items():
            found[name] = found.get(name, 0.0) + amount
    return found


def _add_child(
    batch: _Batch,
    lease: Lease,
    *,
    plan: Plan,
    planned: PlannedRun,
    ordinal: int,
    question: Question,
    ranked: Ranked,
    targets: Targets,
) -> None:
    """One rerank slice per question, reranker and pool: runs whose pools are the same share it."""
    config = planned.config
    pool = fingerprint([config.rerank_depth, [entry.passage.id for entry in ranked.entries]])
    told: dict[str, Any] = {
        "timings": _timings(ranked, lease.payload, config),
        "units": _units(plan, planned, lease.payload),
    }
    if ranked.ann_recall is not None:
        told["ann_recall"] = ranked.ann_recall
    for child in batch.children:
        if (child.first, child.reranker, child.pool) == (ordinal, config.reranker, pool):
            child.payload["runs"][str(planned.run_id)] = told  # type: ignore[index]
            return
    entries: tuple[Entry, ...] = ranked.entries
    local = providers.describe_reranker(config.reranker, workspace_id=plan.workspace_id).local
    batch.children.append(
        Slice(
            workspace_id=plan.workspace_id,
            evaluation_id=plan.evaluation_id,
            epoch=lease.epoch,
            kind=SliceKind.RERANK,
            lane=Lane.SEARCH if local else Lane.PROVIDER,
            items=[ordinal],
            first=ordinal,
            last=ordinal,
            reranker=config.reranker,
            pool=pool,
            payload={
                "query": question.text,
                "key": question.key,
                "rerank_depth": config.rerank_depth,
                "depth": ranked.depth,
                "runs": {str(planned.run_id): told},
                "grades": [expectation.grade for expectation in targets.expectations],
                "entries": pools.pack(entries, targets=targets, with_text=config.rerank_depth),
            },
        )
    )


def _commit(lease: Lease, *, plan: Plan, batch: _Batch, remaining: list[int]) -> None:
    children = [*batch.children, *answers.children(plan, batch.rows, epoch=lease.epoch)]
    with slices.commit(lease, finish=not remaining):
        if children and owners.is_open(plan.evaluation_id, epoch=lease.epoch):
            Slice.objects.bulk_create(children, ignore_conflicts=True)
        results.write(batch.rows, epoch=lease.epoch)
        slices.shrink(lease, remaining)
    if children:
        pump.ring_later({Lane(child.lane) for child in children})
