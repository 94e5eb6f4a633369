"""The service's side of the reader child: starts it, feeds it, replaces it when a document breaks it."""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from backend.core.errors import DocumentError, ErrorCode
from backend.core.types import ExtractedText, Mark
from backend.readers import wire
from backend.readers.building import DEFAULT_LIMITS, ReadLimits
from backend.readers.reading import too_much_memory

_ROOT = Path(__file__).resolve().parents[2]
# The environment is empty, so the place of the package is an argument. -I: no user site, no current folder.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from backend.readers.child import main; main(sys.argv[2:])"
_START_SECONDS = 30.0
_DOCUMENTS_PER_CHILD = 2_000
_END_SECONDS = 2.0
_ATTEMPTS = 2


class ReaderChild:
    """Reads documents in a process with an empty environment, no network, and limits on memory and time.

    The process is started by the first document and kept for the next ones (0.2 to 0.5 seconds a start,
    about a millisecond a small text file). A document that takes longer than `timeout_seconds`, asks for more than
    `memory_bytes` or breaks the process is refused, and the next one gets a new process. One document at a time:
    other threads wait for their turn. Best kept one a thread: the kernel ends the process with the thread that
    started it, so that a thread which ends costs the next one a new start.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 60.0,
        memory_bytes: int = 1_536 * 1024 * 1024,
        limits: ReadLimits = DEFAULT_LIMITS,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._memory_bytes = memory_bytes
        self._limits = limits
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._owner = 0
        self._n_read = 0
        self._isolation: dict[str, bool] = {}
        self._inherited_rss = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def isolation(self) -> Mapping[str, bool]:
        """Which walls stand around the process (isolation.Isolation); starts it when none is running."""
        with self._lock:
            self._ready()
            return dict(self._isolation)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def read(self, data: bytes, *, path: str) -> ExtractedText:
        """Raises DocumentError. RuntimeError where the process cannot even be started: no document's fault."""
        with self._lock:
            request = {"path": path, "limits": asdict(self._limits)}
            for attempt in range(_ATTEMPTS):
                connection = self._ready()
                deadline = time.monotonic() + self._timeout_seconds
                try:
                    wire.send(connection, request, data, deadline=deadline)
                    header, body = wire.receive(connection, deadline=deadline)
                except wire.WireTimeoutError as error:
                    self._stop()
                    raise DocumentError(
                        ErrorCode.DOCUMENT_UNREADABLE,
                        f"Reading the file took longer than {self._timeout_seconds:g} seconds. "
                        "Split it, or save it in a simpler form.",
                    ) from error
                except wire.WireClosedError as error:
                    n_bytes = self._stop(has_closed=True)
                    if n_bytes > self._memory_bytes * 0.6:
                        raise DocumentError(ErrorCode.DOCUMENT_TOO_LARGE, too_much_memory()) from error
                    # Once may be the machine's doing (out of memory elsewhere): the document gets a second try.
                    if attempt + 1 == _ATTEMPTS:
                        raise DocumentError(
                            ErrorCode.DOCUMENT_UNREADABLE,
                            "The file is broken in a way that ends the program that reads it. Save it anew.",
                        ) from error
                    continue
                except BaseException:
                    self._stop()  # half a frame is on its way: the connection cannot be used again
                    raise
                self._n_read += 1
                if header.get("spent") or self._n_read >= _DOCUMENTS_PER_CHILD:
                    self._stop()
                try:
                    return _extracted(header, body)
                except (KeyError, TypeError, ValueError) as error:
                    # A process that a document has taken over may answer anything.
                    self._stop()
                    raise DocumentError(
                        ErrorCode.DOCUMENT_UNREADABLE, "The file is broken: it cannot be read."
                    ) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _ready(self) -> socket.socket:
        if self._owner != os.getpid():
            # After a fork the process belongs to the parent: forget it, and start one of our own.
            if self._process is not None:
                self._process.returncode = 0  # not ours to wait for
            self._process, self._owner = None, os.getpid()
            if self._connection is not None:
                self._connection.close()
                self._connection = None
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._connection is None:
            self._start()
        if self._connection is None:
            raise RuntimeError("the process that reads documents did not start")
        return self._connection

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [str(_ROOT), str(theirs.fileno()), str(self._memory_bytes), str(os.getpid())]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", _BOOT, *arguments],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        ours.setblocking(False)
        self._connection = ours
        self._n_read = 0
        try:
            hello, _ = wire.receive(ours, deadline=time.monotonic() + _START_SECONDS)
            self._isolation = dict(hello["ready"])
            self._inherited_rss = int(hello["ru_maxrss"])
        except (wire.WireClosedError, wire.WireTimeoutError, KeyError, TypeError, ValueError) as error:
            self._stop()
            raise RuntimeError("the process that reads documents does not start") from error

    def _stop(self, *, has_closed: bool = False) -> int:
        """Ends the process; the bytes of memory that it held at most, 0 where that is not known. One that closed its
        end is ending by itself: it gets a moment, since how it ended tells why."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None or process.returncode is not None:
            return 0
        try:
            until = time.monotonic() + (_END_SECONDS if has_closed else 0.0)
            while time.monotonic() < until and not os.waitid(
                os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
            ):
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
            # wait4 and not Popen.wait: it tells the memory of this one process.
            _, status, usage = os.wait4(process.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            process.returncode = -signal.SIGKILL
            return 0
        process.returncode = os.waitstatus_to_exitcode(status)
        # No more than it began with is the size of whoever started it, a worker with its models: not its own. Then a
        # kill from outside says nothing of the document, and any other end is most likely that of its memory.
        is_unknown = usage.ru_maxrss <= self._inherited_rss
        return 0 if is_unknown and process.returncode == -signal.SIGKILL else _resident_bytes(usage)


def _resident_bytes(usage: resource.struct_rusage) -> int:
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def _extracted(header: dict[str, Any], body: bytes) -> ExtractedText:
    if "error" in header:
        raise DocumentError(ErrorCode(header["error"]), str(header["message"]))
    return ExtractedText(
        text=body.decode(),
        marks=tuple(Mark(start=start, heading=tuple(heading), page=page) for start, heading, page in header["marks"]),
        reader=str(header["reader"]),
        warnings=tuple(header["warnings"]),
    )
