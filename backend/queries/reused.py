"""Runs whose results were taken over from an earlier one (services/reuse.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from backend.models import Run
from backend.queries.runs import RunRow

# The entry of a run's cost: how many of its results were taken over.
REUSED = "reused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run that results were taken over from, and when it began to measure them."""

    id: UUID
    name: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """`n` of `n_total` results of a run, or of an evaluation's runs, are those of the `sources` that are still there.
    `at`: when these measured, as far as minutes tell; None where they did at several times."""

    n: int
    n_total: int
    sources: tuple[Source, ...]

    @property
    def at(self) -> datetime | None:
        minutes = {one.at.replace(second=0, microsecond=0) for one in self.sources}
        return self.sources[0].at if len(minutes) == 1 else None


def n_reused(run: Run | RunRow) -> int:
    return int(run.cost.get(REUSED, 0))


def is_copy(run: Run) -> bool:
    """Whether all of its results were taken over. One that had to ask some is a measurement of its own."""
    return 0 < run.evaluation.n_questions <= n_reused(run)


def measured_in(run: Run) -> str:
    """The id of the run that a copy's results were measured in, else its own. A query for each copy on the way, of
    which there is none as long as the measured run is kept whole."""
    while is_copy(run):
        key = str(run.origin["reused_from"])
        earlier = Run.objects.filter(id=UUID(key)).select_related("evaluation").first()
        if earlier is None:
            return key
        run = earlier
    return str(run.id)


def of_run(run: RunRow) -> TakenOver | None:
    """None, and no query, where it took nothing over."""
    return of_runs([run])


def of_runs(shown: Sequence[RunRow]) -> TakenOver | None:
    """All of them together. One query; none, and None, where no run took anything over."""
    n = sum(n_reused(run) for run in shown)
    if not n:
        return None
    ids = [run.origin["reused_from"] for run in shown if n_reused(run)]
    found = {run.id: run for run in Run.objects.filter(id__in=ids).only("id", "name", "created_at")}
    return TakenOver(
        n=n,
        n_total=sum(run.n_questions for run in shown),
        sources=tuple(
            Source(id=found[key].id, name=found[key].name, at=found[key].created_at)
            for key in dict.fromkeys(map(UUID, ids))
            if key in found
        ),
    )
