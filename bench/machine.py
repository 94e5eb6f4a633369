"""What this machine is, and what processes cost it: seconds of processor time and memory, read from /proc."""

import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_PACKAGES = ("celery", "django", "psycopg", "pgvector", "redis", "bm25s", "fastembed", "onnxruntime", "numpy")


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            fields = _stat(int(folder.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += children.get(one, [])
    return found


def spent(roots: Iterable[int]) -> float:
    """Seconds of processor time of these processes, all below them, and all that those have reaped."""
    total = 0.0
    for pid in {one for root in roots for one in tree(root)}:
        fields = _stat(pid)
        if fields:
            # utime, stime, and those of the children that it has waited for.
            total += sum(int(value) for value in fields[11:15]) / _TICKS
    return total


def memory_mb(roots: Iterable[int]) -> float:
    """Proportional set size: what is shared is counted once, spread over those who share it."""
    kilobytes = 0
    for pid in {one for root in roots for one in tree(root)}:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1024


def load() -> float:
    return os.getloadavg()[0]


def described() -> dict[str, Any]:
    """For beside the figures."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(int(total.split()[1]) / 1024**2),
        "python": platform.python_version(),
        "load": round(load(), 1),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
    }


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, …; nothing for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


@contextmanager
def watched(look: Callable[[], None], *, every: float) -> Iterator[None]:
    """Calls `look` every so many seconds, in a thread of its own, until it is left."""
    ended = threading.Event()

    def look_on() -> None:
        while not ended.wait(every):
            look()

    watcher = threading.Thread(target=look_on)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
