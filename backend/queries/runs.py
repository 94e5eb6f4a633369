"""Run records as API, console and commands show them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.core.states import RunState
from backend.models import Run, Workspace
from backend.queries.lookups import as_uuid, get

# The entry of a run's counts that only its page reads (services/surveys.py): long, and no count.
SURVEY = "survey"
# What a run in one of these states says will not change, unless it is tried again.
_FINAL = frozenset({RunState.SCORED, RunState.UNAVAILABLE, RunState.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRef:
    """The version asked. `name` is `name@number` as it was; `id` None: the set was deleted, the run outlives it."""

    id: UUID | None
    version: int | None
    name: str
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRef:
    """`id` None: the base was deleted, or the run searched several."""

    id: UUID | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """Two runs are comparable as far as these agree."""

    config: str
    question_set: str
    corpus: str
    code: str
    metric_definitions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """`partial`: the numbers are of the questions done so far, or of a run that was cancelled. `metrics` is key ->
    {mean, low, high, n, n_total}; `headline` is that of the primary metric. `code` and `reason` say why a run has no
    numbers. `answers` are the figures of judged answers, apart from all others; `caution` is a sentence that belongs
    beside the numbers. `pruned_at`: since when its rankings are gone. `kind`, `derived_from` and `origin`: how its
    rankings came to be (models/runs.py)."""

    id: UUID
    evaluation_id: UUID
    knowledge_base: BaseRef
    question_set: SetRef
    ordinal: int
    name: str
    mode: str
    kind: str
    derived_from: UUID | None
    origin: Mapping[str, Any]
    config: Mapping[str, Any]
    fingerprints: Fingerprints
    generations: Mapping[str, int]
    corpus_changed: bool
    level: str
    threshold: float
    top_k: int
    ks: tuple[int, ...]
    primary_metric: str
    state: str
    code: str
    reason: str
    partial: bool
    n_questions: int
    metrics: Mapping[str, Any]
    headline: Mapping[str, Any] | None
    counts: Mapping[str, Any]
    answers: Mapping[str, Any]
    caution: str
    timings: Mapping[str, Any]
    cost: Mapping[str, float]
    label: str
    pinned: bool
    pruned_at: datetime | None
    created_at: datetime
    finished_at: datetime | None


def of(
    workspace: Workspace,
    *,
    knowledge_base: str = "",
    question_set: str = "",
    mode: str = "",
    since: datetime | None = None,
) -> QuerySet[Run]:
    """A workspace's runs, newest first. A base or set that is not the workspace's has none.

    Raises NotFoundError for what is no id at all.
    """
    runs = Run.objects.filter(workspace=workspace).select_related("evaluation__question_set_version", "knowledge_base")
    if knowledge_base:
        runs = runs.filter(knowledge_base=as_uuid(knowledge_base, what="knowledge base"))
    if question_set:
        runs = runs.filter(evaluation__question_set_version__question_set=as_uuid(question_set, what="question set"))
    if mode:
        runs = runs.filter(mode=mode)
    if since is not None:
        runs = runs.filter(created_at__gte=since)
    return runs.order_by("-id")


def get_run(workspace: Workspace, key: object) -> Run:
    """Raises NotFoundError."""
    return get(of(workspace), key, what="run")


def question_set_of(run: Run) -> str:
    """The set that a run asked, whatever its version: by its name, where it was deleted."""
    version = run.evaluation.question_set_version
    return run.evaluation.set_name.rpartition("@")[0] if version is None else str(version.question_set_id)


def row(
    run: Run,
    *,
    metrics: Mapping[str, Any] | None = None,
    counts: Mapping[str, Any] | None = None,
) -> RunRow:
    """Without a query where the run comes from `of`. `metrics` and `counts` replace the stored ones of a run that is
    not final: what has been counted so far."""
    evaluation = run.evaluation
    version = evaluation.question_set_version
    is_final = run.state in _FINAL
    shown = run.metrics if metrics is None else metrics
    return RunRow(
        id=run.id,
        evaluation_id=run.evaluation_id,
        knowledge_base=BaseRef(
            id=run.knowledge_base_id,
            name=run.knowledge_base.name if run.knowledge_base is not None else run.knowledge_base_name,
        ),
        question_set=SetRef(
            id=None if version is None else version.question_set_id,
            version=None if version is None else version.number,
            name=evaluation.set_name,
            content_hash=run.set_hash,
        ),
        ordinal=run.ordinal,
        name=run.name,
        mode=run.mode,
        kind=run.kind,
        derived_from=run.derived_from_id,
        origin=run.origin,
        config=run.config,
        fingerprints=Fingerprints(
            config=run.config_fingerprint,
            question_set=run.set_hash,
            corpus=run.corpus_fingerprint,
            code=run.code_version,
            metric_definitions=run.metric_definitions,
        ),
        generations=run.generations,
        corpus_changed=run.corpus_changed,
        level=run.level,
        threshold=run.threshold,
        top_k=run.top_k,
        ks=tuple(evaluation.plan.get("ks", ())),
        primary_metric=run.primary_metric,
        state=run.state,
        code=run.stop_code,
        reason=run.stop_reason,
        partial=not is_final,
        n_questions=evaluation.n_questions,
        metrics=shown,
        headline=shown.get(run.primary_metric),
        counts={name: n for name, n in run.counts.items() if name != SURVEY} if counts is None else counts,
        answers=run.answers,
        caution=caution(run.counts),
        timings=run.timings,
        cost=run.cost,
        label=run.label,
        pinned=run.pinned,
        pruned_at=run.pruned_at,
        created_at=run.created_at,
        finished_at=run.finished_at,
    )


def caution(counts: Mapping[str, Any]) -> str:
    """What must be said beside a run's numbers: on generated questions they show which of two is better, not how good
    either is for the questions that people ask."""
    n = int(counts.get("n_generated") or 0)
    if not n:
        return ""
    return (
        f"{n:,} of {int(counts.get('n_total') or 0):,} questions were generated from the documents: compare runs by "
        "these numbers, but do not take them for how well real questions are answered."
    )


def is_final(run: Run) -> bool:
    return run.state in _FINAL or run.state == RunState.CANCELLED
