"""The whole of it on one machine: services, tables, page, workers and clock, under one process that can be killed."""

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backend.embedded import page, paths, state, supervisor
from backend.embedded.errors import AlreadyRunningError, EmbeddedError
from backend.embedded.launch import launch, search_path, signal_group, tail
from backend.embedded.locks import FileLock
from backend.embedded.output import LogReader, start_anew_when_large
from backend.embedded.processes import ProcessGroup, ProcessSpec, read_procfile
from backend.embedded.signals import StopSignals
from backend.embedded.state import Services

RELEASE = "release"
WEB = "web"
UP_LOG = "up.log"
# gunicorn's SIGQUIT ends its workers at once. Celery's prefork children ask the kernel to die with their parent,
# and its SIGTERM would wait for work that nobody can store any more: so everything else is killed.
_DEATH_SIGNALS = {WEB: signal.SIGQUIT}
_WORKER_GRACE_SECONDS, _WEB_GRACE_SECONDS = 30.0, 15.0
_OLD_PROCESSES_SECONDS = 30.0
_PAGE_SECONDS = 120.0
_STARTING_SECONDS = 300.0
_LOOK_SECONDS = 0.25
_ADDRESS_FILES = frozenset({"DATABASE_URL_FILE", "REDIS_URL_FILE"})

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """What the first workspace gives a person to begin with."""

    login_url_path: str
    token: str | None
    """None when there is nothing new to write: the token of an earlier start stays good."""


@dataclass(slots=True, kw_only=True)
class Stack:
    base_url: str
    home: Path
    services: Services
    owned: bool
    """False when it was running already: leaving the context then stops nothing."""
    login_url: str | None
    """A one-time link; None for a stack that was running already."""
    say: Say
    verbose: bool = False
    _supervisor: supervisor.Supervisor | None = None
    _group: ProcessGroup | None = None
    _readers: dict[str, LogReader] = field(default_factory=dict)

    @property
    def token_file(self) -> Path:
        return paths.token_file(self.home)

    @property
    def token(self) -> str:
        try:
            return self.token_file.read_text().strip()
        except FileNotFoundError as error:
            raise EmbeddedError(f"there is no token in {self.token_file}; make one on the page") from error

    @property
    def environment(self) -> dict[str, str]:
        """For a command that shall use this stack's services and no others."""
        kept = {name: value for name, value in os.environ.items() if name not in _ADDRESS_FILES}
        return kept | {
            "DATABASE_URL": self.services.database_url,
            "REDIS_URL": self.services.redis_url,
            paths.HOME_VARIABLE: str(self.home),
        }

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def check(self) -> None:
        """One look: start again what has died, show new log lines. Call it now and then while waiting for something.

        Raises EmbeddedError when something keeps dying, or when a stack that we do not own has ended.
        """
        if self._supervisor is not None and self._group is not None:
            for sentence in (*self._supervisor.revive(), *self._group.check()):
                self.say(sentence)
        elif not state.is_running(self.home):
            raise EmbeddedError(f"the stack in {self.home} has ended")
        self._show_logs()

    def _show_logs(self) -> None:
        for name, reader in self._readers.items():
            for line in reader.lines():
                self.say(f"{name:<15} | {line}")

    def watch(self) -> None:
        """`check` for ever; ends by KeyboardInterrupt (also on SIGTERM and SIGHUP) or EmbeddedError."""
        while True:
            self.check()
            time.sleep(_LOOK_SECONDS)


@contextlib.contextmanager
def run_stack(
    *,
    home: Path,
    project: Path,
    bootstrap: Callable[[Mapping[str, str]], Bootstrap],
    say: Say,
    host: str = "127.0.0.1",
    port: int = 8000,
    search_workers: int | None = None,
    verbose: bool = False,
) -> Iterator[Stack]:
    """Start the stack of `project`'s Procfile in `home`, or attach to the one that runs there.

    `bootstrap` gets the environment of the processes (with the addresses) after the tables are there. `port` 0
    takes a free one. Call it from the main thread. What was started here is stopped at the end, workers first.
    """
    signals = StopSignals()
    try:
        attached = _attached(home, say=say, verbose=verbose)
        if attached is not None:
            yield attached
            return
        try:
            with _own_stack(
                home=home,
                project=project,
                bootstrap=bootstrap,
                say=say,
                host=host,
                port=port,
                search_workers=search_workers,
                verbose=verbose,
                signals=signals,
            ) as stack:
                yield stack
        except AlreadyRunningError as error:
            raise EmbeddedError(f"{error}; it began at the same moment: try again to attach to it") from error
    finally:
        signals.restore()


def _attached(home: Path, *, say: Say, verbose: bool) -> Stack | None:
    if not state.is_running(home):
        return None
    found = state.wait_for_page(home, seconds=_STARTING_SECONDS)
    if found is None or found.base_url is None:
        if state.is_running(home):
            raise EmbeddedError(f"{home} is in use by a process that serves no page; end it, or use another home")
        return None
    logs = home / "logs"
    shown = sorted(path for path in logs.glob("*.log") if path.name != UP_LOG) if verbose else []
    readers = {path.stem: LogReader(path) for path in (logs / UP_LOG, *shown)}
    return Stack(
        base_url=found.base_url,
        home=home,
        services=found.services,
        owned=False,
        login_url=None,
        say=say,
        verbose=verbose,
        _readers=readers,
    )


@contextlib.contextmanager
def _own_stack(
    *,
    home: Path,
    project: Path,
    bootstrap: Callable[[Mapping[str, str]], Bootstrap],
    say: Say,
    host: str,
    port: int,
    search_workers: int | None,
    verbose: bool,
    signals: StopSignals,
) -> Iterator[Stack]:
    commands = read_procfile(project / "Procfile")
    paths.make_home(home)
    tell = _also_logged(say, home / "logs" / UP_LOG)
    _wait_for_old_processes(home)
    port = page.free_port(host=host, port=port)
    base_url = f"http://{page.for_url(host)}:{port}"
    with contextlib.ExitStack() as undo:
        running = undo.enter_context(supervisor.start(home, postgres=True, broker=True, say=tell))
        undo.callback(_note_stopping, signals)
        environment = _environment(running.services, home=home, host=host, port=port, search_workers=search_workers)
        _keep_secret_key(home)
        tell("bringing the tables up to date")
        _release(commands[RELEASE], environment=environment, project=project, home=home)
        tell("the tables are up to date")
        first = bootstrap(environment)
        if first.token:
            state.write_private(paths.token_file(home), f"{first.token}\n")
        group = ProcessGroup(
            [
                ProcessSpec(
                    name=name,
                    line=line,
                    death_signal=_DEATH_SIGNALS.get(name, signal.SIGKILL),
                    grace_seconds=_WEB_GRACE_SECONDS if name == WEB else _WORKER_GRACE_SECONDS,
                )
                for name, line in commands.items()
                if name != RELEASE
            ],
            environment=environment,
            folder=project,
            logs=home / "logs",
            lock=paths.processes_lock_file(home),
        )
        others = [name for name in commands if name not in {RELEASE, WEB}]
        undo.callback(_stop_processes, group, others=others, signals=signals, tell=tell)
        stack = Stack(
            base_url=base_url,
            home=home,
            services=running.services,
            owned=True,
            login_url=f"{base_url}{first.login_url_path}",
            say=tell,
            verbose=verbose,
            _supervisor=running,
            _group=group,
        )
        if verbose:
            stack._readers = {name: LogReader(group.log(name)) for name in (WEB, *others)}  # noqa: SLF001 - made here
        tell("the first workspace is there; starting the page, the workers and the clock")
        group.start()
        _wait_for_page(stack, host=host, port=port)
        running.announce(base_url=base_url)
        tell("the page answers")
        yield stack


def _note_stopping(signals: StopSignals) -> None:
    signals.stopping = True


def _stop_processes(group: ProcessGroup, *, others: list[str], signals: StopSignals, tell: Say) -> None:
    """Workers before the page, the page before the services."""
    signals.stopping = True
    tell("stopping: workers finish what they hold (Ctrl-C again ends them at once)")
    killed = group.stop(others, hurry=lambda: signals.hurry)
    killed += group.stop([WEB], hurry=lambda: signals.hurry)
    if killed:
        tell(f"ended by force: {', '.join(killed)}; what they held is taken up at the next start")


def _also_logged(say: Say, log: Path) -> Say:
    """Say it here, and in a file that those who attach follow."""
    start_anew_when_large(log)

    def tell(sentence: str) -> None:
        with log.open("a") as stream:
            stream.write(f"{sentence}\n")
        say(sentence)

    return tell


def _wait_for_old_processes(home: Path) -> None:
    """After a kill -9 the old page may hold the port a little longer, and a worker its task."""
    with FileLock(paths.processes_lock_file(home)) as lock:
        if not lock.acquire(wait_seconds=_OLD_PROCESSES_SECONDS):
            raise EmbeddedError(
                f"processes of an earlier stack in {home} still run after {_OLD_PROCESSES_SECONDS:.0f} s;"
                " end them first"
            )


def _keep_secret_key(home: Path) -> None:
    """Settings read it from here, so that sign-ins survive a restart and all processes agree."""
    key = paths.secret_key_file(home)
    if not key.exists():
        state.write_private(key, f"{secrets.token_urlsafe(48)}\n")


def _environment(services: Services, *, home: Path, host: str, port: int, search_workers: int | None) -> dict[str, str]:
    environment = {
        **os.environ,
        "PATH": search_path(os.environ),
        "PYTHONUNBUFFERED": "1",
        "DATABASE_URL": services.database_url,
        "REDIS_URL": services.redis_url,
        paths.HOME_VARIABLE: str(home),
        "TOUCHSTONE_HOST": f"[{host}]" if ":" in host else host,
        "PORT": str(port),
    }
    # A name or address to listen on is one to answer to, unless somebody has said which ones are.
    environment.setdefault(
        "TOUCHSTONE_HOSTS", ",".join(dict.fromkeys(("localhost", "127.0.0.1", "[::1]", page.for_url(host))))
    )
    if search_workers is not None:
        environment["TOUCHSTONE_SEARCH_SLOTS"] = str(search_workers)
    return environment


def run_once(line: str, *, environment: Mapping[str, str], folder: Path, log: Path) -> int:
    """Run a shell line to its end and return its code; it dies with us, and with what interrupts us."""
    process = launch(
        ["/bin/sh", "-c", line], death_signal=signal.SIGKILL, environment=environment, folder=folder, log=log
    )
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            signal_group(process, signal.SIGKILL)
            process.wait()


def _release(line: str, *, environment: Mapping[str, str], project: Path, home: Path) -> None:
    log = home / "logs" / f"{RELEASE}.log"
    if run_once(line, environment=environment, folder=project, log=log) != 0:
        said = tail(log)
        # The usual cause: the code was updated, and the packages were not.
        advice = "\nThe code may be newer than the packages: run `make setup`." if "ModuleNotFoundError" in said else ""
        raise EmbeddedError(f"`{line}` failed; the end of {log}:\n{said}{advice}")


def _wait_for_page(stack: Stack, *, host: str, port: int) -> None:
    give_up_at = time.monotonic() + _PAGE_SECONDS
    while not page.answers(host=host, port=port):
        if time.monotonic() > give_up_at:
            log = stack.logs / f"{WEB}.log"
            raise EmbeddedError(f"the page did not answer in {_PAGE_SECONDS:.0f} s; the end of {log}:\n{tail(log)}")
        stack.check()
        time.sleep(_LOOK_SECONDS)
