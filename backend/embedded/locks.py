"""Who is alive, told by the kernel: a `flock` ends with its last holder, whatever way that ended.

A pid in a file may be stale, reused or a zombie; a lock is none of these. A child that inherits the descriptor
holds the lock together with its own children, so a free lock means that the whole tree is gone.
"""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLock:
    """Never unlocked by hand, only closed: LOCK_UN would take it from the children that inherited it too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, *, shared: bool = False, wait_seconds: float = 0.0) -> bool:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        give_up_at = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    os.close(descriptor)
                    return False
                time.sleep(0.05)
            else:
                self._descriptor = descriptor
                return True

    @property
    def descriptor(self) -> int:
        if self._descriptor is None:
            raise RuntimeError(f"{self.path} is not held")
        return self._descriptor

    @property
    def is_open(self) -> bool:
        return self._descriptor is not None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_held(path: Path) -> bool:
    """Whether anybody holds it for himself alone. A missing file is a free lock; PermissionError is the caller's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who look at once do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
