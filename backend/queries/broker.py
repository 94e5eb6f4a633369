"""What lies in the broker: doorbells, which may be lost, and how much room they take."""

from collections.abc import Iterator

import redis
from django.conf import settings

from backend import env
from backend.core.states import Lane
from backend.queries.gauges import Gauge

_ANSWER_SECONDS = 1.0


def client() -> "redis.Redis":
    """One that does not wait for long."""
    return redis.Redis.from_url(
        env.redis_for_client(settings.REDIS_URL),
        socket_timeout=_ANSWER_SECONDS,
        socket_connect_timeout=_ANSWER_SECONDS,
    )


def key(name: str) -> str:
    """As Celery's client writes it."""
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}{name}"


def gauges() -> Iterator[Gauge]:
    """`broker_up` is 0, and nothing else is told, while it does not answer."""
    up = Gauge(name="broker_up", help="Whether the broker answers.", values={(): 0.0})
    there = client()
    try:
        lengths: dict[tuple[str, ...], float] = {(lane.value,): float(there.llen(key(lane.value))) for lane in Lane}
        unacknowledged = float(there.hlen(key("unacked")))
        memory = float(there.info("memory")["used_memory"])
    except (redis.RedisError, OSError):
        yield up
        return
    finally:
        there.close()
    up.values[()] = 1.0
    yield up
    yield Gauge(name="broker_messages", help="Messages that wait, by lane.", labels=("lane",), values=lengths)
    yield Gauge(
        name="broker_unacknowledged",
        help="Messages that a worker has taken and not acknowledged.",
        values={(): unacknowledged},
    )
    yield Gauge(name="broker_memory_bytes", help="What the broker's data takes.", values={(): memory})
