"""Start the services that nobody configured, watch them, stop them."""

import contextlib
import dataclasses
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from backend.embedded import paths, state
from backend.embedded.errors import AlreadyRunningError, EmbeddedError
from backend.embedded.locks import FileLock
from backend.embedded.postgres import Postgres
from backend.embedded.service import Service
from backend.embedded.state import Services, StackState
from backend.embedded.valkey import Valkey

_MOST_REVIVALS, _REVIVAL_SECONDS = 5, 60.0
# Longer than somebody who only looks at the lock holds it.
_LOCK_SECONDS = 1.0


class Supervisor:
    """Holds the home's lock from `start` to `stop`; used as a context manager, or stopped by hand."""

    def __init__(self, *, home: Path, lock: FileLock, running: list[Service], state_now: StackState) -> None:
        self.home = home
        self.services = state_now.services
        self._lock = lock
        self._running = running
        self._state = state_now
        self._revivals: deque[float] = deque(maxlen=_MOST_REVIVALS)

    def announce(self, *, base_url: str) -> None:
        """Tell those who attach where the page is."""
        self._state = dataclasses.replace(self._state, base_url=base_url)
        state.write(self.home, self._state)

    def revive(self) -> list[str]:
        """Start again each service that has died, and say so. Data is safe: both write ahead.

        Raises EmbeddedError when one cannot be started, or when they die again and again.
        """
        said = []
        for service in self._running:
            if not service.is_dead:
                continue
            now = time.monotonic()
            if len(self._revivals) == _MOST_REVIVALS and now - self._revivals[0] < _REVIVAL_SECONDS:
                raise EmbeddedError(f"{service.name} keeps dying; its log is {service.log}")
            self._revivals.append(now)
            service.start()
            said.append(f"{service.name} had died and was started again; its log is {service.log}")
        return said

    def stop(self) -> None:
        """May be called twice. The broker goes before the database: nobody then is told of work he cannot store."""
        while self._running:
            self._running[-1].stop()
            self._running.pop()
        if self._lock.is_open:
            state.forget(self.home)
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(
    home: Path,
    *,
    postgres: bool,
    broker: bool,
    environment: Mapping[str, str] = os.environ,
    say: Callable[[str], None] | None = None,
) -> Supervisor:
    """Start what is wanted and not configured: `DATABASE_URL` and `REDIS_URL` win over PostgreSQL and Valkey.

    Call it from the main thread (see `launch`). An address is "" when its service is neither wanted nor
    configured. Raises AlreadyRunningError when another process holds this home, EmbeddedError when a service does
    not come up.
    """
    tell = say or _say_nothing
    paths.make_home(home)
    lock = FileLock(paths.lock_file(home))
    try:
        held = lock.acquire(wait_seconds=_LOCK_SECONDS)
    except PermissionError as error:
        raise EmbeddedError(
            f"the state folder {home} belongs to another user; set {paths.HOME_VARIABLE} to a folder of yours"
        ) from error
    if not held:
        raise AlreadyRunningError(home)
    with contextlib.ExitStack() as undo:
        undo.callback(lock.close)
        state.forget(home)
        database_url, redis_url = configured(environment, "DATABASE_URL"), configured(environment, "REDIS_URL")
        running: list[Service] = []
        run_folder = ""
        if (postgres and not database_url) or (broker and not redis_url):
            where = paths.layout(home)
            run_folder = str(where.run)
            if postgres and not database_url:
                running.append(_started(Postgres(where), undo=undo, tell=tell))
                database_url = running[-1].url
            if broker and not redis_url:
                running.append(_started(Valkey(where), undo=undo, tell=tell))
                redis_url = running[-1].url
        services = Services(
            database_url=database_url, redis_url=redis_url, started=tuple(service.key for service in running)
        )
        now = StackState(services=services, pid=os.getpid(), run_folder=run_folder)
        state.write(home, now)
        undo.pop_all()
    return Supervisor(home=home, lock=lock, running=running, state_now=now)


def configured(environment: Mapping[str, str], name: str) -> str:
    """The address that somebody set, also by a file that `NAME_FILE` names; "" for none."""
    file = environment.get(f"{name}_FILE")
    if not file:
        return environment.get(name, "")
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise EmbeddedError(f"{name}_FILE names {file}, which cannot be read: {error.strerror}") from error


def attach(home: Path) -> Services | None:
    """The addresses of the stack that runs in `home`; None when none does. Starts nothing."""
    found = state.read(home)
    return None if found is None else found.services


def _started(service: Service, *, undo: contextlib.ExitStack, tell: Callable[[str], None]) -> Service:
    service.start()
    undo.callback(service.stop)
    tell(f"{service.name} answers")
    return service


def _say_nothing(_sentence: str) -> None:
    return
