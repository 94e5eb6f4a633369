"""A progress bar on a terminal, a line now and then elsewhere. Imports nothing of ours."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import IO, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

# In a log file or a pipe: often enough to show that it lives, seldom enough to be read.
LINE_SECONDS = 10.0


class Bar:
    """Drawn on `stream` while its `with` block lasts, and gone after it. Where `stream` is no terminal, a line every
    LINE_SECONDS instead."""

    def __init__(self, title: str, *, stream: IO[str]) -> None:
        console = Console(file=stream, highlight=False)
        self._lines = None if console.is_terminal else stream
        self._said_at = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._title = title
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        self._task = self._progress.add_task(self._title, total=None, note="")
        return self

    def show(self, n_done: int, n_total: int, *, note: str = "") -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=n_done, total=n_total or None, note=note)
        if self._lines is not None and time.monotonic() - self._said_at >= LINE_SECONDS:
            self._said_at = time.monotonic()
            left = f", {note}" if note else ""
            print(f"{self._title}: {n_done} of {n_total or '?'}{left}", file=self._lines, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


def eta(seconds: float | None) -> str:
    """What is left, in words for the bar."""
    if seconds is None:
        return ""
    return f"{seconds:.0f} s left" if seconds < 90 else f"{seconds / 60:.0f} min left"


def waiting(providers: Sequence[Mapping[str, Any]], *, now: datetime) -> str:
    """What keeps an evaluation (its `waiting_for`), in words for the bar: `stalled: http:near, asked again in 8 s`."""
    said = []
    for one in providers:
        code = f" ({one['code']})" if one["code"] else ""
        said.append(f"{one['state']}: {one['provider']}{code}{_again(one['retry_at'], now)}")
    return "; ".join(said)


def _again(at: datetime | str | None, now: datetime) -> str:
    if at is None:
        return ""
    when = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f", asked again in {max(0.0, (when - now).total_seconds()):.0f} s"
