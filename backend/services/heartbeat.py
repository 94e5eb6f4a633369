"""One thread per process that renews the leases of what the process is working on.

Started with the first lease, after the fork; its own database connection. A lease it cannot renew is marked lost, and
the handler stops at its next look.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection

from backend import logs
from backend.services import slices
from backend.services.slices import Lease

_log = logs.get("heartbeat")
_lock = threading.Lock()
_held: dict[UUID, Lease] = {}
_owner_pid = 0


@contextmanager
def holding(lease: Lease) -> Iterator[None]:
    """Renew this lease until the block ends."""
    _start()
    with _lock:
        _held[lease.slice_id] = lease
    try:
        yield
    finally:
        with _lock:
            _held.pop(lease.slice_id, None)


def _start() -> None:
    global _owner_pid  # noqa: PLW0603  one thread per process, also after a fork
    with _lock:
        if _owner_pid == os.getpid():
            return
        _owner_pid = os.getpid()
        _held.clear()
    threading.Thread(target=_beat, name="slice-heartbeat", daemon=True).start()


def _beat() -> None:
    pause = threading.Event()
    while not pause.wait(settings.SLICE_HEARTBEAT_SECONDS):
        with _lock:
            leases = list(_held.values())
        for lease in leases:
            try:
                if not slices.renew(lease):
                    lease.lost.set()
                    _log.info("lease_lost", slice=str(lease.slice_id), owner=str(lease.owner))
            except DatabaseError as error:
                # PostgreSQL is away: the lease may run out meanwhile, and the commit will tell.
                _log.warning("heartbeat_failed", error=type(error).__name__)
                connection.close()
                break
        else:
            connection.close_if_unusable_or_obsolete()
