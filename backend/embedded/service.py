"""One server: started, asked until it answers, watched, stopped."""

import abc
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from backend.embedded.errors import EmbeddedError
from backend.embedded.launch import launch, signal_group, tail
from backend.embedded.locks import FileLock
from backend.embedded.paths import Layout

LEAVE_SECONDS = 30.0
ANSWER_SECONDS = 60.0


class Service(abc.ABC):
    name: ClassVar[str]
    key: ClassVar[str]
    death_signal: ClassVar[signal.Signals]
    stop_signals: ClassVar[tuple[tuple[signal.Signals, float], ...]]
    """What to send and how many seconds to wait after each; SIGKILL follows."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.log = layout.logs / f"{self.key}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abc.abstractmethod
    def url(self) -> str: ...

    @abc.abstractmethod
    def prepare(self) -> None:
        """Called while nobody else can be using the data."""

    @abc.abstractmethod
    def command(self) -> Sequence[str]: ...

    @abc.abstractmethod
    def answers(self) -> bool: ...

    def ready(self) -> None:  # noqa: B027 - most have nothing to do here
        """Called once it answers."""

    @property
    def folder(self) -> Path:
        return self.layout.part(self.key)

    @property
    def environment(self) -> dict[str, str]:
        """Small on purpose: no key of ours belongs in a server's environment."""
        return {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC", "HOME": str(self.layout.base)}

    def start(self) -> None:
        """Raise EmbeddedError with the log's tail when it does not come up.

        The lock is inherited by the server and all its children, so holding it proves that an earlier server on
        this data is gone: also one that is still closing after its parent was killed.
        """
        with FileLock(self.layout.home / f"{self.key}.lock") as lock:
            if not lock.acquire(wait_seconds=LEAVE_SECONDS):
                raise EmbeddedError(
                    f"an earlier {self.name} still runs on {self.folder} after {LEAVE_SECONDS:.0f} s; stop it first"
                )
            self.prepare()
            self._process = launch(
                self.command(),
                death_signal=self.death_signal,
                environment=self.environment,
                folder=self.folder,
                log=self.log,
                account=self.layout.account,
                inherit=(lock.descriptor,),
            )
        try:
            self._wait_until_it_answers(self._process)
            self.ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        give_up_at = time.monotonic() + ANSWER_SECONDS
        while not self.answers():
            if process.poll() is not None:
                raise EmbeddedError(f"{self.name} ended at once; the end of {self.log}:\n{tail(self.log)}")
            if time.monotonic() > give_up_at:
                raise EmbeddedError(
                    f"{self.name} did not answer in {ANSWER_SECONDS:.0f} s; the end of {self.log}:\n{tail(self.log)}"
                )
            time.sleep(0.05)

    @property
    def is_dead(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for number, seconds in self.stop_signals:
            process.send_signal(number)  # the server itself only: it knows how to end its own children
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=seconds)
                return
        signal_group(process, signal.SIGKILL)
        process.wait()
