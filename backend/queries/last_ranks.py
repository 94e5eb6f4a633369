"""Where a set's questions were found last, in each configuration that the set was evaluated in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from backend.core.states import RunState
from backend.core.types import Outcome
from backend.models import Question, QuestionSet, Result, Run

MOST_RUNS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The latest scored run of a configuration's name."""

    id: UUID
    name: str
    base: str
    at: datetime
    top_k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRank:
    """`rank` None with the outcome `ok` or `empty`: missed. `outcome` empty: this run did not ask it."""

    run_id: UUID
    ordinal: int | None = None
    outcome: str = ""
    rank: int | None = None

    @property
    def is_found(self) -> bool:
        return self.rank is not None

    @property
    def is_missed(self) -> bool:
        return self.rank is None and self.outcome in {Outcome.OK, Outcome.EMPTY}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRanks:
    """`by_key`: for each question's key one LastRank per run, in the order of `runs`."""

    runs: tuple[LastRun, ...]
    by_key: Mapping[str, tuple[LastRank, ...]]


def of(question_set: QuestionSet, keys: Sequence[str]) -> LastRanks:
    """Three queries, whatever the runs' lengths: questions are looked up by their place in each run's version."""
    latest = (
        Run.objects.filter(
            workspace_id=question_set.workspace_id,
            state=RunState.SCORED,
            evaluation__question_set_version__question_set=question_set,
        )
        .select_related("evaluation", "knowledge_base")
        .order_by("name", "-id")
        .distinct("name")
        .defer("config", "metrics", "counts", "timings", "cost", "origin", "evaluation__plan")
    )
    found = sorted(latest, key=lambda run: run.id, reverse=True)[:MOST_RUNS]
    found.sort(key=lambda run: run.name)
    runs = tuple(
        LastRun(
            id=run.id,
            name=run.name,
            base=run.knowledge_base.name if run.knowledge_base is not None else run.knowledge_base_name,
            at=run.created_at,
            top_k=run.top_k,
        )
        for run in found
    )
    if not runs or not keys:
        return LastRanks(runs=runs, by_key={})
    version_of = {run.id: run.evaluation.question_set_version_id for run in found}
    place: dict[tuple[UUID, str], int] = {
        (version_id, key): ordinal
        for version_id, key, ordinal in Question.objects.filter(
            version__in={one for one in version_of.values() if one is not None}, key__in=list(keys)
        ).values_list("version_id", "key", "ordinal")
    }
    wanted = Q()
    for run_id, version_id in version_of.items():
        ordinals = [place[version_id, key] for key in keys if version_id is not None and (version_id, key) in place]
        if ordinals:
            wanted |= Q(run=run_id, ordinal__in=ordinals)
    rows = Result.objects.filter(wanted).values_list("run_id", "ordinal", "outcome", "first_rank") if wanted else ()
    asked = {(run_id, ordinal): (outcome, rank) for run_id, ordinal, outcome, rank in rows}
    by_key: dict[str, tuple[LastRank, ...]] = {}
    for key in keys:
        ranks = []
        for run in runs:
            version_id = version_of[run.id]
            ordinal = None if version_id is None else place.get((version_id, key))
            outcome, rank = asked.get((run.id, ordinal), ("", None)) if ordinal is not None else ("", None)
            ranks.append(LastRank(run_id=run.id, ordinal=ordinal, outcome=outcome, rank=rank))
        by_key[key] = tuple(ranks)
    return LastRanks(runs=runs, by_key=by_key)
