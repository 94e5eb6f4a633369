"""Runs whose results were taken over from an earlier one (services/reuse.py)."""

from uuid import UUID

from backend.models import Run

# The entry of a run's cost: how many of its results were taken over.
REUSED = "reused"


def n_reused(run: Run) -> int:
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
