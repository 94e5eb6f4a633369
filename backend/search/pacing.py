"""Pacing: leave to call a provider, from one bucket for all workers (docs/decisions/0005).

The bucket is one number in Redis: the time at which all that was granted is used up (GCRA). What is granted lies at
most HORIZON_SECONDS ahead. A bucket that is gone though it was used in the last minutes was flushed: it begins again
behind everything that may have been granted. Without Redis each slot keeps to its share of the limit.
"""

import os
import threading
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import redis
from django.conf import settings
from django.db import connection

from backend import env, logs
from backend.providers.base import ProviderError, ProviderFault
from backend.providers.rates import Rate

MOST_SLEEP_SECONDS = 2.0
HORIZON_SECONDS = 1.5
# Leave that is used later than this could crowd a second: it is left unused, and other leave is asked for.
_VALID_SECONDS = 0.15
_NOTE_SECONDS = 20.0
_FORGOTTEN_SECONDS = 90.0
_AWAY_SECONDS = 1.0
_ANSWER_SECONDS = 1.0
_MOST_TURNS = 8
_log = logs.get("pacing")

# Times in milliseconds of Redis. `free` is when the next may go if `burst` were 1; -1 where the bucket is gone and
# the caller does not say how to begin. What is refused is told a place in a line that binds nobody, so that those
# who wait do not all come back at once.
_SCRIPT = """
local told = redis.call('TIME')
local now = told[1] * 1000 + told[2] / 1000
local interval, burst, n, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local free = tonumber(redis.call('GET', KEYS[1]) or '')
if not free then
  if ARGV[5] == '' then return {-1, 0} end
  free = now + tonumber(ARGV[5])
end
if ARGV[6] ~= '' then free = math.max(free, now + tonumber(ARGV[6])) end
local at = math.max(now, free - (burst - 1) * interval)
if at - now > horizon then
  redis.call('SET', KEYS[1], string.format('%.3f', free), 'PX', 3600000)
  local line = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), at)
  if line - now > 60000 then line = at end
  redis.call('SET', KEYS[2], string.format('%.3f', line + n * interval), 'PX', 120000)
  return {0, math.ceil(line - now)}
end
redis.call('SET', KEYS[1], string.format('%.3f', math.max(free, now) + n * interval), 'PX', 3600000)
return {1, math.ceil(at - now)}
"""


class PacedError(ProviderError):
    """There is no leave soon enough: come back after `wait_seconds`. No call was made, and no try is used."""

    def __init__(self, message: str, *, wait_seconds: float) -> None:
        super().__init__(ProviderFault.RATE, message, retryable=True, wait_seconds=wait_seconds)


@dataclass(slots=True)
class _Local:
    """What this process knows of a bucket, in seconds of time.monotonic()."""

    noted_at: float | None = None
    free: float | None = None


class _Pacer:
    """One for the process, and a new one after a fork."""

    def __init__(self, *, slots: int = 1) -> None:
        self.slots = slots
        self._lock = threading.Lock()
        self._buckets: dict[str, _Local] = {}
        self._client: Any = None
        self._script: Any = None
        self._away_until = 0.0

    def ask(self, name: str, rate: Rate, *, n: int) -> tuple[bool, float]:
        """Whether there is leave, and in how many seconds it holds; or how long to wait before asking again."""
        with self._lock:
            bucket = self._buckets.setdefault(name, _Local())
        if time.monotonic() >= self._away_until:
            try:
                return self._ask_redis(name, bucket, rate, n=n)
            except (redis.RedisError, OSError) as error:
                self._away_until = time.monotonic() + _AWAY_SECONDS
                _log.warning("pacing_by_share", error=type(error).__name__)
        return self._ask_here(bucket, rate, n=n)

    def _ask_redis(self, name: str, bucket: _Local, rate: Rate, *, n: int) -> tuple[bool, float]:
        interval = rate.interval(n)
        behind = HORIZON_SECONDS + (rate.burst - 1 + n) * interval
        # After a time without Redis others may still hold leave by their shares.
        floor = "" if bucket.free is None else str(behind * 1000)
        if bucket.noted_at is None or time.monotonic() - bucket.noted_at > _NOTE_SECONDS:
            before = _note(name)
            bucket.noted_at = time.monotonic()
        else:
            before = 0.0
        arguments = [interval * 1000, rate.burst, n, HORIZON_SECONDS * 1000, "", floor]
        granted, wait = self._run(name, arguments)
        if granted < 0:
            used_lately = before is not None and before < _FORGOTTEN_SECONDS
            arguments[4] = behind * 1000 if used_lately else 0
            granted, wait = self._run(name, arguments)
        bucket.free = None
        return granted == 1, wait / 1000

    def _run(self, name: str, arguments: list[Any]) -> tuple[int, float]:
        with self._lock:
            if self._script is None:
                self._client = redis.Redis.from_url(
                    env.redis_for_client(settings.REDIS_URL),
                    socket_timeout=_ANSWER_SECONDS,
                    socket_connect_timeout=_ANSWER_SECONDS,
                )
                self._script = self._client.register_script(_SCRIPT)
        answer = self._script(keys=[f"touchstone:pace:{name}", f"touchstone:pace:{name}:line"], args=arguments)
        return int(answer[0]), float(answer[1])

    def _ask_here(self, bucket: _Local, rate: Rate, *, n: int) -> tuple[bool, float]:
        interval = rate.interval(n) * max(1.0, _slots_seen() / self.slots)
        now = time.monotonic()
        with self._lock:
            if bucket.free is None:
                # Redis went away just now: what it granted to all comes first.
                bucket.free = now + HORIZON_SECONDS + n * interval
            wait = max(0.0, bucket.free - now)
            if wait > HORIZON_SECONDS:
                return False, wait
            bucket.free = max(bucket.free, now) + n * interval
        return True, wait


_pacer = _Pacer()


def _after_fork() -> None:
    global _pacer  # noqa: PLW0603  one for the process
    _pacer = _Pacer()


os.register_at_fork(after_in_child=_after_fork)


def has_slots(n: int) -> None:
    """Say that so many slots of this process may call at once: its share while Redis is away. One unless said."""
    _pacer.slots = n


def take(workspace_id: UUID, rate: Rate | None, *, n: int = 1) -> float:
    """Wait for leave to make `n` calls (or to send `n` texts), for at most MOST_SLEEP_SECONDS. Returns the seconds
    slept. Raises PacedError, with how long to stay away, where it would take longer."""
    if rate is None:
        return 0.0
    name = f"{workspace_id}:{rate.bucket}"
    began = time.monotonic()
    wait = 0.0
    for _ in range(_MOST_TURNS):
        asked = time.monotonic()
        granted, wait = _pacer.ask(name, rate, n=n)
        if not granted and asked + wait - began > MOST_SLEEP_SECONDS:
            break
        left = asked + wait - time.monotonic()
        if left > 0:
            time.sleep(left)
        if granted and time.monotonic() - (asked + wait) <= _VALID_SECONDS:
            return time.monotonic() - began
    raise PacedError(
        f"{rate.spec} is at its limit of {rate.limit:,} a minute; there is room in {wait:.3g} s.",
        # Back a little before its turn: the last stretch is slept.
        wait_seconds=max(0.1, wait - HORIZON_SECONDS / 2),
    )


def _note(name: str) -> float | None:
    """Write down that the bucket is in use, where no flush reaches. Returns how many seconds ago that was last done."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO backend_pulse (name, at, lane, slots) VALUES (%(name)s, now(), '', 0)
            ON CONFLICT (name) DO UPDATE SET at = now()
            RETURNING (SELECT EXTRACT(epoch FROM now() - at) FROM backend_pulse WHERE name = %(name)s)
            """,
            {"name": f"pace:{name}"},
        )
        row = cursor.fetchone()
    return None if row is None or row[0] is None else float(row[0])


def _slots_seen() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(sum(slots), 0) FROM backend_pulse "
            "WHERE lane <> 'control' AND at > now() - interval '60 seconds'"
        )
        # And one for the web processes, which search too.
        return int(cursor.fetchone()[0]) + 1
