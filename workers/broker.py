"""A worker outlives its broker.

After a connection was lost, the client acknowledges and hands back messages on the channel that was closed with it. It
means to open a new connection for that, and fails with an AttributeError, which nothing expects: it ends the worker,
any that had a task in hand. Told as the connection error that it is, Celery passes over it and connects again. What was
not acknowledged comes twice, and a doorbell may.

Nor does it wait for ever for what it could not acknowledge. A broker that stalls longer than a call waits, and then
goes on, closes no connection; the client keeps counting the message among those in hand, and with one in hand a worker
takes no other. It is given back here, as if it had been acknowledged.

Nor does a worker end for what somebody else put into its queue: what is no message is passed over. Celery refuses what
it can read and does not trust, but what is not even JSON, or lacks its envelope, ended every worker that took it.
"""

from typing import Any

from kombu.transport import redis, virtual
from redis.exceptions import ConnectionError as BrokerAwayError

from backend import logs

_log = logs.get("broker")


class QoS(redis.QoS):
    """A message whose acknowledgement fails is no longer in hand; should the broker not have heard, it comes again."""

    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        finally:
            virtual.QoS.ack(self, delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001  the client's signature
        try:
            super().reject(delivery_tag, requeue=requeue)
        finally:
            virtual.QoS.ack(self, delivery_tag)


class Channel(redis.Channel):
    """One that says that it is closed, and that outlives what is no message."""

    QoS = QoS

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # the stubs leave it out
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            # It has left the queue already. Had it been a doorbell, it would be rung again.
            _log.warning("message_refused", error=type(error).__name__)
            return True

    def _connparams(self, asynchronous: bool = False) -> Any:  # noqa: FBT001  the client's signature
        if self.connection is None or self.connection.client is None:
            raise BrokerAwayError("This channel was closed with its connection.")
        return super()._connparams(asynchronous)  # type: ignore[misc]  # the stubs leave it out


def connect() -> None:
    redis.Transport.Channel = Channel
