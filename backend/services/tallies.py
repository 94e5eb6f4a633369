"""Counting what happens, for /metrics: in the process, and every few seconds in the database.

An event costs no write of its own (a flood of old doorbells must not become one of writes); a process that is killed
takes the events of a few seconds with it.
"""

import os
import threading
import time
from collections import Counter
from enum import StrEnum

from django.db import DatabaseError, connection

from backend import logs

FLUSH_SECONDS = 5.0
_log = logs.get("tallies")


class Event(StrEnum):
    """Each with its label's meaning."""

    RESULTS = "results"  # outcome
    PROVIDER_FAILURES = "provider_failures"  # code
    DOORBELLS_DROPPED = "doorbells_dropped"  # none: old, doubled, or its owner has ended
    DOORBELLS_RUNG_AGAIN = "doorbells_rung_again"  # none
    COMMITS_FENCED = "commits_fenced"  # kind of slice
    LEASES_EXPIRED = "leases_expired"  # none
    WORKERS_LOST = "workers_lost"  # kind of slice: given up after its deaths
    SLICES_PACED = "slices_paced"  # kind of slice: handed back for want of leave to call


_lock = threading.Lock()
_waiting: Counter[tuple[str, str]] = Counter()
_flushed_at = -FLUSH_SECONDS


def _after_fork() -> None:
    """What the parent has counted is the parent's to write."""
    global _lock  # noqa: PLW0603  it may have been held at the fork
    _lock = threading.Lock()
    _waiting.clear()


os.register_at_fork(after_in_child=_after_fork)


def add(event: Event, n: int = 1, *, label: str = "") -> None:
    with _lock:
        _waiting[event.value, label] += n


def flush(*, at_once: bool = False) -> None:
    """Write what was counted, unless it was done just now. Outside a transaction. Never raises for the database."""
    global _flushed_at  # noqa: PLW0603  one for the process
    with _lock:
        if not _waiting or (not at_once and time.monotonic() - _flushed_at < FLUSH_SECONDS):
            return
        _flushed_at = time.monotonic()
        # In one order everywhere, so that two processes never wait for each other in a circle.
        taken = sorted(_waiting.items())
        _waiting.clear()
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO backend_tally AS t (name, label, n)
                SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[])
                ON CONFLICT (name, label) DO UPDATE SET n = t.n + excluded.n
                """,
                [[key[0] for key, _ in taken], [key[1] for key, _ in taken], [n for _, n in taken]],
            )
    except DatabaseError as error:
        _log.warning("tallies_kept_back", error=type(error).__name__)
        with _lock:
            for key, n in taken:
                _waiting[key] += n
