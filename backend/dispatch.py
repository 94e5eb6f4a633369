"""The only producer of messages. A message is a doorbell: losing, doubling or delaying it costs time, never data."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from kombu.exceptions import OperationalError

from backend import logs
from backend.celery_app import app

WORK = "touchstone.work"
TICK = "touchstone.tick"
CLEAN = "touchstone.clean"
_log = logs.get("dispatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doorbell:
    slice_id: UUID
    delivery: int
    lane: str


def ring(doorbells: Iterable[Doorbell]) -> int:
    """Send one message for each. Returns how many were sent; a broker that does not answer is no error here, since
    the sweeper rings again."""
    n_sent = 0
    for doorbell in doorbells:
        try:
            app.send_task(
                WORK,
                kwargs={"slice": str(doorbell.slice_id), "delivery": doorbell.delivery},
                queue=doorbell.lane,
                retry=False,
                ignore_result=True,
            )
        except (OperationalError, OSError) as error:
            # One refused message means that the broker is away: the others would each wait for their timeout.
            _log.warning("doorbells_not_sent", n_sent=n_sent, error=type(error).__name__)
            break
        n_sent += 1
    return n_sent
