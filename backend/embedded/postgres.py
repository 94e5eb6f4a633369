"""PostgreSQL with pgvector, on a unix socket only."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import psycopg

from backend.embedded.errors import EmbeddedError
from backend.embedded.launch import tail
from backend.embedded.programs import postgres_bin
from backend.embedded.service import Service

DATABASE = "touchstone"
_INITDB_OPTIONS = (
    "--username=postgres",
    "--auth=trust",  # the socket's folder is 0700: whoever gets there is us
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-instructions",
)
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "2GB",
    "idle_in_transaction_session_timeout": "60s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A refused statement holds the texts of documents and questions, and so do the details of its error.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_SHARED_MEMORY_BYTES = 1 << 30


class Postgres(Service):
    name: ClassVar[str] = "PostgreSQL"
    key: ClassVar[str] = "postgres"
    death_signal: ClassVar[signal.Signals] = signal.SIGINT
    # Fast (sessions are ended, then a checkpoint), then immediate (recovery at the next start).
    stop_signals: ClassVar[tuple[tuple[signal.Signals, float], ...]] = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0))

    @property
    def url(self) -> str:
        return self._url(DATABASE)

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.layout.run}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def prepare(self) -> None:
        binaries = postgres_bin(self.layout)
        if not self.data.is_dir():
            self._initialise(binaries)
        self._check_version(binaries)
        _forget_dead_server(self.data)
        for left in self.layout.run.glob(".s.PGSQL.*"):
            left.unlink(missing_ok=True)

    def _initialise(self, binaries: Path) -> None:
        """Beside the data folder, then renamed: an interrupted initdb leaves nothing that looks like data."""
        unfinished = self.folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        account = self.layout.account
        with self.log.open("ab") as output:
            done = subprocess.run(
                [binaries / "initdb", *_INITDB_OPTIONS, "-D", unfinished],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.folder,
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else [],
                check=False,
            )
        if done.returncode != 0:
            raise EmbeddedError(f"initdb failed; the end of {self.log}:\n{tail(self.log)}")
        unfinished.rename(self.data)

    def _check_version(self, binaries: Path) -> None:
        made_by = (self.data / "PG_VERSION").read_text().strip()
        answer = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True)
        installed = answer.stdout.split()[-1]
        if installed.partition(".")[0] != made_by:
            raise EmbeddedError(
                f"{self.data} was made by PostgreSQL {made_by} and the installed one is {installed};"
                " dump it with the old package and load it with the new one, or move the folder away"
            )

    def command(self) -> Sequence[str]:
        settings = {**_SETTINGS, "unix_socket_directories": str(self.layout.run)}
        if not _has_shared_memory():
            # Parallel index builds fail in a container's usual 64 MB of /dev/shm.
            settings["dynamic_shared_memory_type"] = "mmap"
        program = postgres_bin(self.layout) / "postgres"
        return [str(program), "-D", str(self.data), *(f"--{key}={value}" for key, value in settings.items())]

    def answers(self) -> bool:
        try:
            with psycopg.connect(self._url("postgres"), connect_timeout=5) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def ready(self) -> None:
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if found is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")


def _forget_dead_server(data: Path) -> None:
    """Remove a pid file whose server is gone.

    PostgreSQL takes any living pid, also a zombie's or one used again, for a running server and refuses to start.
    The caller holds the lock that our servers inherit; a server that somebody started by hand is told by its
    working folder and left alone (PostgreSQL then refuses, rightly).
    """
    pid_file = data / "postmaster.pid"
    try:
        pid = pid_file.read_text().split()[0]
    except (FileNotFoundError, IndexError):
        pid_file.unlink(missing_ok=True)
        return
    try:
        runs_here = Path(f"/proc/{pid}/cwd").samefile(data)
    except OSError:  # gone, a zombie, or another user's
        runs_here = False
    if not runs_here:
        pid_file.unlink(missing_ok=True)


def _has_shared_memory() -> bool:
    try:
        room = os.statvfs("/dev/shm")  # noqa: S108 - only asked for its size
    except OSError:
        return True
    return room.f_bavail * room.f_frsize >= _SHARED_MEMORY_BYTES
