"""How often one caller may ask: a bucket in Redis for all web processes; while Redis is away, one in each of them.

The bucket is one number a caller (GCRA), gone when it is full again: memory is bounded by who asked in the last
minute, here by a number of callers.
"""

import os
import threading
import time
from collections import OrderedDict
from typing import Any

import redis
from django.conf import settings

from backend import env, logs

_ANSWER_SECONDS = 0.25
_AWAY_SECONDS = 5.0
_MOST_CALLERS = 10_000
_log = logs.get("rate_limits")

_SCRIPT = """
local told = redis.call('TIME')
local now = told[1] * 1000 + told[2] / 1000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local free = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local wait = free + interval - (now + burst * interval)
if wait > 0 then return math.ceil(wait) end
redis.call('SET', KEYS[1], string.format('%.3f', free + interval), 'PX', math.ceil(free + interval - now) + 1000)
return 0
"""


class _Limiter:
    """One for the process, and a new one after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._script: Any = None
        self._away_until = 0.0
        self._here: OrderedDict[str, float] = OrderedDict()

    def wait(self, caller: str, *, interval: float, burst: int) -> float:
        if time.monotonic() >= self._away_until:
            try:
                return float(self._redis()(keys=[f"touchstone:asks:{caller}"], args=[interval * 1000, burst])) / 1000
            except (redis.RedisError, OSError) as error:
                self._away_until = time.monotonic() + _AWAY_SECONDS
                _log.warning("limiting_by_process", error=type(error).__name__)
        return self._wait_here(caller, interval=interval, burst=burst)

    def _wait_here(self, caller: str, *, interval: float, burst: int) -> float:
        now = time.monotonic()
        with self._lock:
            free = max(now, self._here.pop(caller, 0.0))
            wait = free + interval - (now + burst * interval)
            self._here[caller] = free if wait > 0 else free + interval
            if len(self._here) > _MOST_CALLERS:
                self._here.popitem(last=False)
        return max(0.0, wait)

    def _redis(self) -> Any:
        with self._lock:
            if self._script is None:
                client = redis.Redis.from_url(
                    env.redis_for_client(settings.REDIS_URL),
                    socket_timeout=_ANSWER_SECONDS,
                    socket_connect_timeout=_ANSWER_SECONDS,
                )
                self._script = client.register_script(_SCRIPT)
            return self._script


_limiter = _Limiter()


def forget() -> None:
    """Begin anew: after a fork, and for tests."""
    global _limiter  # noqa: PLW0603  one for the process
    _limiter = _Limiter()


os.register_at_fork(after_in_child=forget)


def wait(caller: str) -> float:
    """Count one request of this caller. 0: go on; else the seconds after which there is room."""
    limit = settings.REQUESTS_PER_MINUTE
    if not limit:
        return 0.0
    return _limiter.wait(caller, interval=60.0 / limit, burst=max(1, limit // 4))
