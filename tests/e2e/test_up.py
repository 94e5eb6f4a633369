"""`manage.py up` for real: from an empty folder, killed, started again, attached to, stopped."""

import contextlib
import os
import queue
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from backend import embedded
from backend.embedded import paths
from backend.embedded.launch import Account, reachable
from backend.embedded.locks import FileLock
from backend.embedded.processes import read_procfile

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = Account(uid=65534, gid=65534)
_CONFIGURED = ("DATABASE_URL", "DATABASE_URL_FILE", "REDIS_URL", "REDIS_URL_FILE", "TOUCHSTONE_HOME")


class User:
    """Who runs the commands: we ourselves, or an ordinary user who may need another interpreter than ours."""

    def __init__(self, folder: Path, *, account: Account | None) -> None:
        self.account = account
        self.home = folder / "home"
        self.environment = {name: value for name, value in os.environ.items() if name not in _CONFIGURED}
        self.environment["TOUCHSTONE_HOME"] = str(self.home)
        self.python = sys.executable
        if account is not None:
            os.chown(folder, account.uid, account.gid)
            self._use_reachable_python(folder, account)

    def _use_reachable_python(self, folder: Path, account: Account) -> None:
        self.environment["HOME"] = str(folder)
        if reachable(Path(sys.executable).resolve(), account):
            return
        system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
        packages = Path(psycopg.__file__).parents[1]
        if not system.exists() or not reachable(packages, account) or not reachable(REPOSITORY, account):
            pytest.skip("no interpreter of this version, or no packages, that an ordinary user can reach")
        self.python = str(system)
        self.environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), str(packages)])
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        programs = folder / "bin"
        programs.mkdir(mode=0o755)
        for name, arguments in {"python": "", "celery": "-m celery", "gunicorn": "-m gunicorn"}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {system} {arguments} "$@"\n')
            (programs / name).chmod(0o755)
        # Behind the interpreter's own folder, which has none of these names.
        self.environment["PATH"] = os.pathsep.join([str(programs), "/bin"])

    def command(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [self.python, str(REPOSITORY / "manage.py"), *arguments],
            env=self.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=None if self.account is None else self.account.uid,
            group=None if self.account is None else self.account.gid,
            extra_groups=None if self.account is None else [],
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.command(*arguments)
        output, _ = process.communicate(timeout=400)
        return process.returncode, output


class Up:
    """A running `manage.py up`, read line by line."""

    def __init__(self, user: User, *arguments: str) -> None:
        self.process = user.command("up", *arguments)
        self.output = ""
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self.process.stdout is not None:
            for line in self.process.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def until(self, words: str, *, seconds: float = 400) -> str:
        """The first line that has `words`; fails with everything said so far."""
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            with contextlib.suppress(queue.Empty):
                line = self._lines.get(timeout=0.5)
                if line is None:
                    break
                self.output += line
                if words in line:
                    return line
        raise AssertionError(f"{words!r} was never said:\n{self.output}")

    def page(self) -> str:
        found = re.search(r"http://[^\s/]+", self.until("  page "))
        if found is None:
            raise AssertionError(self.output)
        self.until("Ctrl-C")
        return found[0]

    def end(self, number: signal.Signals | None = None) -> int:
        """Signal it, or only wait for it."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=200)
        self._reader.join(timeout=10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@pytest.fixture
def folder() -> Iterator[Path]:
    """Outside pytest's own folder, which is closed to other users."""
    place = Path(tempfile.mkdtemp(prefix="ts-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Up]]:
    """Starts an Up; what a test that fails has left of them is killed."""
    started: list[Up] = []

    def start_one(*arguments: Any) -> Up:
        started.append(Up(*arguments))
        return started[-1]

    yield start_one
    for up in started:
        if up.process.returncode is None:
            up.end(signal.SIGKILL)


def _wait_until_nothing_runs(home: Path, *, seconds: float) -> None:
    """Each lock was inherited by every process of its tree."""
    for name in ("stack", "postgres", "valkey", "processes"):
        with FileLock(home / f"{name}.lock") as lock:
            assert lock.acquire(wait_seconds=seconds), f"something still holds {name}.lock"


def _status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.slow
def test_up_is_attached_to_killed_started_again_with_its_data_and_stopped(
    folder: Path, start: Callable[..., Up]
) -> None:
    """One story and not five tests: each start costs seconds."""
    user = User(folder, account=None)
    first = start(user, "--port", "0", "--search-workers", "1")
    page, token = _look_at_what_was_started(first, user)
    services = embedded.attach(user.home)
    assert services is not None
    with psycopg.connect(services.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

    second = start(user)
    assert second.page() == page
    assert "Already running" in second.output
    link = re.search(r"http://\S+/login/\S+", second.output)
    assert link is not None, "whoever has used the first link gets another"
    assert link[0] not in first.output
    assert second.end(signal.SIGINT) == 0
    code, output = user.run("migrate", "--check")
    assert code == 0, output
    assert _status(page) < 500, "those who attach stop nothing"

    first.end(signal.SIGKILL)
    _wait_until_nothing_runs(user.home, seconds=60)

    again = start(user, "--port", page.rpartition(":")[2], "--search-workers", "1")
    assert _look_at_what_was_started(again, user) == (page, token)
    with psycopg.connect(services.database_url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)

    follower = start(user)
    follower.page()
    assert again.end(signal.SIGTERM) == 0
    _wait_until_nothing_runs(user.home, seconds=0)
    follower.until("has ended")
    assert follower.end() == 0


@pytest.mark.slow
def test_up_serves_an_ordinary_user_and_leaves_nothing_when_killed(folder: Path, start: Callable[..., Up]) -> None:
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    user = User(folder, account=NOBODY)
    up = start(user, "--port", "0", "--search-workers", "1")
    _look_at_what_was_started(up, user)
    assert user.home.stat().st_uid == NOBODY.uid
    up.end(signal.SIGKILL)
    _wait_until_nothing_runs(user.home, seconds=60)


def _look_at_what_was_started(up: Up, user: User) -> tuple[str, str]:
    """The page's address and the token."""
    page = up.page()
    services = embedded.attach(user.home)
    assert services is not None
    assert services.started == ("postgres", "valkey")
    assert _status(page) < 500
    for secret in ("token", "secret_key", "stack.json"):
        assert stat.S_IMODE((user.home / secret).stat().st_mode) == 0o600
    assert re.search(rf"{page}/login/\S{{20,}}", up.output), "a link that signs in"
    return page, (user.home / "token").read_text().strip()


def test_a_busy_port_is_named_together_with_the_option(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, output = User(folder, account=None).run("up", "--port", str(port))
    assert code == 1
    assert f"port {port}" in output
    assert "--port" in output
    assert not (folder / "home" / "postgres").exists(), "nothing is started for a page that cannot be served"


def test_a_command_without_any_database_says_what_to_do(folder: Path) -> None:
    user = User(folder, account=None)
    # Where no server can be, whatever this machine runs.
    user.environment["PGHOSTADDR"] = "127.0.0.1"
    user.environment["PGPORT"] = "9"
    for command in (("migrate", "--check"), ("showmigrations",)):
        code, output = user.run(*command)
        assert code == 1
        assert "Start `touchstone up` in another terminal, or set DATABASE_URL." in output
        assert "Traceback" not in output
    assert not user.home.exists(), "only up and demo make anything"


def test_the_procfile_has_the_designs_processes_and_every_line_becomes_its_program() -> None:
    lines = read_procfile(REPOSITORY / "Procfile")
    assert list(lines) == ["release", "web", "worker-control", "worker-search", "worker-provider", "beat"]
    for name, line in lines.items():
        # Without exec the shell would stay in between, and take the signals meant for the program.
        assert re.search(r"(^|&& )exec \S+", line), name
    for queue_name in ("control", "search", "provider"):
        line = lines[f"worker-{queue_name}"]
        assert f"-Q {queue_name} " in line
        assert f"-n {queue_name}@%h" in line
        assert "--without-gossip --without-mingle" in line
    assert paths.HOME_VARIABLE in lines["beat"]
