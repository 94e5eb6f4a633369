"""Emptying the queues: what was in them is handed out anew, since the rows are the truth."""

from dataclasses import dataclass

import redis
from django.db import connection

from backend.core.errors import ConflictError
from backend.core.states import Lane
from backend.queries import broker
from backend.services import pump


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """`n_messages` were thrown away; `n_waiting` slices had a message out and wait again; `n_handed_out` of them have a
    new one."""

    n_messages: int
    n_waiting: int
    n_handed_out: int


def purge() -> Purged:
    """Throw away the messages that wait, and hand the work out anew. What a worker is at goes on undisturbed; a message
    that it has taken and not begun is an old one, and does nothing. Raises ConflictError when the broker is away."""
    client = broker.client()
    try:
        n_messages = sum(int(client.llen(broker.key(lane.value))) for lane in Lane)
        client.delete(*(broker.key(lane.value) for lane in Lane))
    except (redis.RedisError, OSError) as error:
        raise ConflictError(f"The broker does not answer ({type(error).__name__}): nothing was done.") from error
    finally:
        client.close()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backend_slice SET state = 'pending' WHERE state = 'queued'")
        n_waiting = int(cursor.rowcount)
    return Purged(n_messages=n_messages, n_waiting=n_waiting, n_handed_out=pump.run())
