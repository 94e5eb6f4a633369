"""A whole service of its own for a test: PostgreSQL, broker, web, workers and beat as real processes, to be killed."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import psycopg
import redis

from backend import embedded, env
from backend.embedded.processes import read_procfile
from tests.plugin import never_wait_for_the_disk

ROOT = Path(__file__).resolve().parents[2]
FAULTY = "tests.e2e.faulty"
WORKERS = ("worker-control", "worker-search", "worker-provider")
# Times that let a test see recovery in seconds instead of minutes.
QUICK = {
    "TOUCHSTONE_LEASE_SECONDS": "4",
    "TOUCHSTONE_DOORBELL_LOST_SECONDS": "4",
    "TOUCHSTONE_TICK_SECONDS": "1",
}
# How much longer things take where several services share two cores: a wait ends what hangs, and measures nothing.
BUSY = 3
_BOOTSTRAP = (
    "import django; django.setup(); from backend.services import workspaces; "
    "print(workspaces.bootstrap(existing_token=None).token)"
)


class Cluster:
    """Started by `with`. `http` has the token; `sql` and `broker` reach behind it.

    `app` is the Celery module of workers and beat: FAULTY has trapdoors, opened by `open_door` and `tell`.
    """

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None, app: str = "workers.app") -> None:
        self.folder = folder
        self.settings = dict(settings or {})
        self.app = app
        self._n_doors = self._broker_pid = 0
        self.faults = folder / "faults"
        self.faults.mkdir(exist_ok=True)
        self._stack = contextlib.ExitStack()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        # A background job of a shell ignores it, and so would every process started here.
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        home = self.folder / "home"
        supervisor = self._supervisor = embedded.start(
            # Its own also where the session has others: these are flushed and killed.
            home,
            postgres=True,
            broker=True,
            environment={},
        )
        self._stack.callback(supervisor.stop)
        self._stack.callback(self.stop)
        self.redis_url = supervisor.services.redis_url
        self.database_url = supervisor.services.database_url
        never_wait_for_the_disk(self.database_url)
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")},
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "TOUCHSTONE_HOME": str(home),
            "TOUCHSTONE_SECRET_KEY": "a key for tests, long enough to be one, and secret to nobody",
            "DJANGO_SETTINGS_MODULE": "backend.settings",
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PORT": str(self.port),
            "TOUCHSTONE_HOST": "127.0.0.1",
            "FAULTS_FOLDER": str(self.faults),
            **QUICK,
            **self.settings,
        }
        try:
            self.prepare()
            self.token = self.python("-c", _BOOTSTRAP).strip().splitlines()[-1]
            for name in ("web", *WORKERS, "beat"):
                self.start(name)
            self.http = httpx.Client(
                base_url=f"{self.url}/api/v1/",
                headers={"Authorization": f"Bearer {self.token}"},
                timeout=60,
                event_hooks={"response": [_tell_errors]},
            )
            self._stack.callback(self.http.close)
            self.wait(self._answers, "the web process to answer", seconds=240)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prepare(self) -> None:
        """Make the tables."""
        self.python("-m", "django", "migrate", "--verbosity", "0")

    # ---- processes
    def python(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise AssertionError(f"{arguments} ended {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def start(self, name: str, *, alias: str = "", environment: Mapping[str, str] | None = None) -> None:
        """Start one of the Procfile's processes, in a session of its own so that it can be killed with its children.

        `alias`: a second one beside it, under this name.
        """
        line = read_procfile(ROOT / "Procfile")[name].replace("workers.app", self.app)
        if alias:
            line = line.replace("@%h", f"-{alias}@%h").replace("/beat-schedule", f"/{alias}-schedule")
        log = (self.folder / f"{alias or name}.log").open("ab")
        self._processes[alias or name] = subprocess.Popen(
            ["/bin/sh", "-c", line],
            env={**self.environment, **(environment or {})},
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()

    def restart(self, *names: str) -> None:
        """Kill with all children, and start anew."""
        self.kill(*names)
        for name in names:
            self.start(name)

    def ended(self, name: str, *, seconds: float) -> int:
        """The exit code of a process that is to end by itself; whatever of its session is left is then killed."""
        process = self._processes.pop(name)
        code = process.wait(timeout=seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return code

    @property
    def names(self) -> list[str]:
        return list(self._processes)

    def has(self, name: str) -> bool:
        """It was started, and not killed since."""
        return name in self._processes

    def runs(self, name: str) -> bool:
        return self._processes[name].poll() is None

    def children(self, name: str) -> list[int]:
        """The pool processes of a worker."""
        told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.pid(name))], capture_output=True, check=False)
        return [int(word) for word in told.stdout.split()]

    # ---- trapdoors of FAULTY
    def open_door(self, name: str, *, n: int = 1) -> None:
        """The next `n` that come by here fall through."""
        for _ in range(n):
            self._n_doors += 1
            (self.faults / f"{name}.{self._n_doors}").touch()

    def tell(self, **what: str) -> None:
        """Words for as long as they stand: `poison`, `slow_question`; an empty one is taken back."""
        for name, text in what.items():
            file = self.faults / name.replace("_", "-")
            if text:
                file.write_text(text)
            else:
                file.unlink(missing_ok=True)

    def close_doors(self) -> None:
        for file in self.faults.iterdir():
            file.unlink(missing_ok=True)

    def noted(self, name: str) -> str:
        file = self.faults / name
        return file.read_text() if file.exists() else ""

    def kill(self, *names: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal each process with all its children."""
        for name in names:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._processes[name].pid, number)
        if number is signal.SIGKILL:
            for name in names:
                self._processes.pop(name).wait(timeout=20)

    def stop(self) -> None:
        self.kill(*self._processes)

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    # ---- behind the service
    def sql(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        parts = env.database(self.database_url)
        with psycopg.connect(
            host=str(parts["HOST"]), user=str(parts["USER"]), dbname=str(parts["NAME"]), autocommit=True
        ) as connection:
            cursor = connection.execute(statement.encode(), arguments or None)
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def broker(self) -> Iterator["redis.Redis"]:
        client = redis.Redis.from_url(env.redis_for_client(self.redis_url))
        try:
            yield client
        finally:
            client.close()

    def flush(self) -> None:
        with self.broker() as client:
            client.flushall()

    @property
    def broker_pid(self) -> int:
        """As it was when it last answered: a frozen one does not."""
        if not self._broker_pid:
            with self.broker() as client:
                self._broker_pid = int(client.info("server")["process_id"])
        return self._broker_pid

    def kill_broker(self) -> None:
        os.kill(self.broker_pid, signal.SIGKILL)
        self._broker_pid = 0

    def kill_database(self) -> None:
        """The postmaster; its children end by themselves."""
        folder = Path(self.sql("SHOW data_directory")[0][0])
        os.kill(int((folder / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)

    def revive(self) -> list[str]:
        """Start what was killed of the two again, as `up` does; but the supervisor's patience with what keeps dying is
        not what is tested."""
        self._supervisor._revivals.clear()
        return self._supervisor.revive()

    # ---- in front of it
    def get(self, path: str, **parameters: Any) -> Any:
        return self.http.get(path, params=parameters).raise_for_status().json()

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.http.post(path, json=body, **options).raise_for_status().json()

    def finished(self, evaluation_id: str, *, seconds: float = 240) -> Any:
        """Poll an evaluation to its end."""
        found: dict[str, Any] = {}

        def ended() -> bool:
            found.update(self.get(f"evaluations/{evaluation_id}"))
            return found["state"] in {"completed", "failed", "cancelled"}

        self.wait(ended, f"evaluation {evaluation_id} to end", seconds=seconds)
        return found

    def wait(self, condition: Callable[[], bool], what: str, *, seconds: float) -> float:
        """Seconds until the condition held. `seconds`: more than it takes on an idle machine."""
        started = time.monotonic()
        seconds *= BUSY
        while time.monotonic() - started < seconds:
            if condition():
                return time.monotonic() - started
            time.sleep(0.1)
        logs = "\n".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in self._processes)
        raise AssertionError(f"waited {seconds:.0f} s in vain for {what}\n{logs}")

    def _answers(self) -> bool:
        try:
            return self.http.get(f"{self.url}/healthz").status_code == 200
        except httpx.HTTPError:
            return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _tell_errors(response: httpx.Response) -> None:
    """A refused request shows its problem in the test's failure."""
    if response.status_code >= 400:
        response.read()
        print(response.status_code, response.request.url, response.text)
