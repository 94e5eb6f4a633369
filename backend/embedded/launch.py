"""Start a child that dies with us, in a session of its own, perhaps as another user."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
# Looked up here and not in the child: between fork and exec nothing may be loaded.
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None

TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The user that a service runs as when we are root (PostgreSQL refuses to run as root)."""

    uid: int
    gid: int


def launch(
    command: Sequence[str],
    *,
    death_signal: signal.Signals,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    account: Account | None = None,
    inherit: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    """Start `command`; the kernel sends it `death_signal` when this process ends, by whatever cause.

    Only from the main thread: the signal is sent when the *thread* that forked ends. A session of its own keeps
    a terminal's Ctrl-C away from the child, so that its parent can stop things in order. Where there is no
    prctl (macOS) a killed parent leaves its children; the locks still tell that they are alive.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("children are started from the main thread only")
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
            pass_fds=inherit,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
            preexec_fn=_die_with_parent(death_signal),  # noqa: PLW1509 - a few C calls, nothing that locks
        )


def _die_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    if _prctl is None:
        return None
    parent, prctl, number = os.getpid(), _prctl, int(death_signal)

    def ask_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the call: no signal will come
            os._exit(1)

    return ask_kernel


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal every process of the child's session group; one that is gone is no error."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        # macOS answers EPERM for a group of zombies.
        return


def tail(log: Path, *, lines: int = 20) -> str:
    """The last lines of a log, "" when there is none."""
    try:
        with log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - TAIL_BYTES))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def reachable(path: Path, account: Account) -> bool:
    """Whether that user can enter every parent of `path` and use it: tried, because ACLs are not in the mode bits."""
    probe = subprocess.run(
        ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        check=False,
        capture_output=True,
    )
    return probe.returncode == 0


def search_path(environment: Mapping[str, str]) -> str:
    """PATH with this interpreter's folder first, so that `python`, `celery` and `gunicorn` are the venv's."""
    return os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
