"""Our own processes: started from shell lines, started again when they die, stopped in order."""

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backend.embedded.errors import EmbeddedError
from backend.embedded.launch import launch, signal_group, tail
from backend.embedded.locks import FileLock
from backend.embedded.output import start_anew_when_large

_PROCFILE_LINE = re.compile(r"([A-Za-z0-9_-]+):\s*(.+)\Z")
MOST_QUICK_DEATHS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    name: str
    line: str
    """For /bin/sh, which the program replaces by `exec`: signals then reach the program itself."""
    death_signal: signal.Signals = signal.SIGKILL
    grace_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    quick_seconds: float = 20.0
    """A death earlier than this after the start is a quick one; a later one begins the count anew."""
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0

    def wait_seconds(self, n_quick_deaths: int) -> float:
        return float(min(self.longest_wait_seconds, self.first_wait_seconds * 2 ** max(0, n_quick_deaths - 1)))


class ProcessKeepsDyingError(EmbeddedError):
    """A process died several times in a row soon after its start; the message ends with its log's tail."""

    def __init__(self, *, name: str, log: Path) -> None:
        super().__init__(
            f"{name} died {MOST_QUICK_DEATHS} times in a row soon after its start; the end of {log}:\n{tail(log)}"
        )
        self.name = name


@dataclass(slots=True, kw_only=True)
class _Child:
    spec: ProcessSpec
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    n_quick_deaths: int = 0
    start_at: float | None = field(default=None)
    """When to start it again; None while it lives."""


class ProcessGroup:
    """Main thread only (see `launch`). Nothing happens by itself: `check` is called again and again."""

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        *,
        environment: Mapping[str, str],
        folder: Path,
        logs: Path,
        lock: Path,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._children = {spec.name: _Child(spec=spec) for spec in specs}
        self._environment = dict(environment)
        self._folder = folder
        self._logs = logs
        self._lock = lock
        self._policy = policy or RestartPolicy()

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def start(self) -> None:
        for child in self._children.values():
            start_anew_when_large(self.log(child.spec.name))
            self._launch(child)

    def _launch(self, child: _Child) -> None:
        # Inherited by the child and its children: the lock is free again when the last of them is gone.
        with FileLock(self._lock) as lock:
            if not lock.acquire(shared=True, wait_seconds=5.0):
                raise EmbeddedError(f"{self._lock} is held by another process")
            child.process = launch(
                ["/bin/sh", "-c", child.spec.line],
                death_signal=child.spec.death_signal,
                environment=self._environment,
                folder=self._folder,
                log=self.log(child.spec.name),
                inherit=(lock.descriptor,),
            )
        child.started_at = time.monotonic()
        child.start_at = None

    def pids(self) -> dict[str, int]:
        """Of those that were alive at the last `check`."""
        return {name: child.process.pid for name, child in self._children.items() if child.process is not None}

    def check(self) -> list[str]:
        """Notice deaths, start what is due, and say both. Raises ProcessKeepsDyingError."""
        said = []
        for name, child in self._children.items():
            now = time.monotonic()
            if child.process is not None and (code := child.process.poll()) is not None:
                lived = now - child.started_at
                signal_group(child.process, signal.SIGKILL)  # what it may have left of its own children
                child.process = None
                child.n_quick_deaths = child.n_quick_deaths + 1 if lived < self._policy.quick_seconds else 0
                if child.n_quick_deaths >= MOST_QUICK_DEATHS:
                    raise ProcessKeepsDyingError(name=name, log=self.log(name))
                wait = self._policy.wait_seconds(child.n_quick_deaths)
                child.start_at = now + wait
                said.append(
                    f"{name} died ({_how(code)}) after {lived:.0f} s and starts again in {wait:.1f} s;"
                    f" its log is {self.log(name)}"
                )
            elif child.start_at is not None and now >= child.start_at:
                self._launch(child)
                said.append(f"{name} was started again")
        return said

    def stop(self, names: Sequence[str], *, hurry: Callable[[], bool] = lambda: False) -> list[str]:
        """SIGTERM to all of `names` at once, then SIGKILL to each whose grace is over, or to all on `hurry`.

        Returns the names of those that had to be killed.
        """
        children = [self._children[name] for name in names]
        for child in children:
            child.start_at = None
            if child.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    child.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        killed = []
        while alive := [child for child in children if child.process is not None]:
            for child in alive:
                process = child.process
                if process is None:
                    continue
                if process.poll() is None and (hurry() or time.monotonic() - began > child.spec.grace_seconds):
                    killed.append(child.spec.name)
                    signal_group(process, signal.SIGKILL)
                    process.wait()
                if process.poll() is not None:
                    signal_group(process, signal.SIGKILL)
                    child.process = None
            time.sleep(0.05)
        return killed


def read_procfile(path: Path) -> dict[str, str]:
    """Name to shell line, in the file's order. Raises EmbeddedError on a line that is none."""
    lines: dict[str, str] = {}
    for number, raw in enumerate(path.read_text().splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        found = _PROCFILE_LINE.match(line)
        if found is None or found[1] in lines:
            raise EmbeddedError(f"{path}, line {number}: expected `name: command`, each name once")
        lines[found[1]] = found[2]
    return lines


def _how(code: int) -> str:
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name
