"""Read what was added to log files since the last look."""

from pathlib import Path


class LogReader:
    """Whole lines only; starts at the end of what is there, so that an earlier run's lines are not shown again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def lines(self) -> list[str]:
        try:
            with self.path.open("rb") as stream:
                if stream.seek(0, 2) < self._offset:  # begun anew
                    self._offset, self._rest = 0, b""
                stream.seek(self._offset)
                added = stream.read()
        except FileNotFoundError:
            return []
        self._offset += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        return [line.decode(errors="replace") for line in whole]


LARGEST_LOG_BYTES = 10_000_000


def start_anew_when_large(log: Path) -> None:
    """Keep one older file. Called before anything writes to the log, never while a child holds it open."""
    if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))
