"""The only producer of messages. A message is a doorbell: losing, doubling or delaying it costs time, never data."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from kombu.exceptions import OperationalError

from backend import logs
from backend.celery_app import app

WORK = "touchstone.work"
TICK = "touchstone.tick"
CLEAN = "touchstone.clean"
_HURRY_SECONDS = 2.0
_log = logs.get("dispatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doorbell:
    slice_id: UUID
    delivery: int
    lane: str


class _Patience:
    """How this process waits for a broker. A worker has time, and what it does not ring is rung a minute later; a
    request has not, so that one which hangs is asked once in a while."""

    hurried = False
    away_until = 0.0


def hurry() -> None:
    """For a process that answers requests, before its first message: a broker that accepts and says nothing costs a
    request two seconds, not a quarter of a minute for each lane."""
    _Patience.hurried = True
    app.conf.broker_transport_options = {
        **app.conf.broker_transport_options,
        "socket_timeout": _HURRY_SECONDS,
        "socket_connect_timeout": _HURRY_SECONDS,
    }


def ring(doorbells: Iterable[Doorbell]) -> int:
    """Send one message for each. Returns how many were sent; a broker that does not answer is no error here, since
    the sweeper rings again."""
    n_sent = 0
    if _Patience.hurried and time.monotonic() < _Patience.away_until:
        return n_sent
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
            _Patience.away_until = time.monotonic() + _HURRY_SECONDS
            break
        n_sent += 1
    return n_sent
