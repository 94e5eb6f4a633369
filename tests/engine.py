"""Runs slices in this process, as workers would, until nothing waits: for tests that need results and no processes."""

from uuid import UUID

from backend.core.states import SliceState
from backend.models import Slice
from backend.services import pump, sweeper, work


def drain(*, most: int = 10_000) -> int:
    """Hand out and work on slices until none is left that could go on now. Returns how many were worked on."""
    n = 0
    while n < most:
        pump.run()
        queued = list(Slice.objects.filter(state=SliceState.QUEUED).order_by("id").values_list("id", "delivery"))
        if not queued:
            if not sweeper.advance() and not Slice.objects.filter(state=SliceState.QUEUED).exists():
                return n
            continue
        for slice_id, delivery in queued:
            work.run(slice_id, delivery=delivery)
            n += 1
    raise AssertionError(f"still going after {most} slices")


def states(evaluation_id: UUID) -> dict[str, int]:
    """How many slices of an evaluation are in each state."""
    found: dict[str, int] = {}
    for state in Slice.objects.filter(evaluation_id=evaluation_id).values_list("state", flat=True):
        found[state] = found.get(state, 0) + 1
    return found
