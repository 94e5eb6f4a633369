"""A worker outlives its broker.

When a connection is lost, the client hands back the messages that were not acknowledged, over a new connection. While
the broker is still away that fails, and with an error that ends the whole worker: any that has a task in hand. A
doorbell is a hint: one that is not handed back is rung again.
"""

from typing import Any

from kombu.transport import redis

from backend import logs

_log = logs.get("worker")


class ForgivingQoS(redis.QoS):
    """Handing back is tried, and may fail."""

    def restore_unacked_once(self, stderr: Any = None) -> None:
        try:
            super().restore_unacked_once(stderr=stderr)
        except Exception as error:  # noqa: BLE001  whatever it is, the connection is being closed
            _log.warning("doorbells_not_handed_back", error=type(error).__name__)


def connect() -> None:
    redis.Channel.QoS = ForgivingQoS
