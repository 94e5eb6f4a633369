"""9: `touchstone up` to its first answer, what its processes import, and their memory at rest.

`python -m bench.start`. In a folder of its own, twice: the first start makes the tables. No reference data.
"""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from bench import machine, report
from bench.report import Report
from bench.service import ROOT

_IMPORTS = {
    "the page (api.wsgi)": "import api.wsgi",
    "a worker (workers.app)": "import workers.app",
    "a command (manage.py)": "import django; django.setup()",
    "Django alone": "import django.db.models, django.urls",
}
_TIMES = 5
_REST_SECONDS = 20.0
_WAIT_SECONDS = 300.0


def run(_: Sequence[str] = ()) -> Report:
    made = Report(name="start", title="9. Start, and memory at rest")
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"PYTHONDONTWRITEBYTECODE"}},
        "DJANGO_SETTINGS_MODULE": "backend.settings",
        "TOUCHSTONE_SECRET_KEY": "Xk3vQ8mT1rZ7wY5uB2nC9pL6sD4fG0hJaEoViKe-RtUyIxNqMz",
    }
    for what, code in _IMPORTS.items():
        timed = f"import time, sys; t = time.process_time(); {code}; print(time.process_time() - t, len(sys.modules))"
        told = [_said(timed, environment) for _ in range(_TIMES)]
        seconds = statistics.median(one for one, _ in told[1:])
        made.add(f"importing {what}", f"{seconds:.2f} s of processor time", note=f"{told[-1][1]:.0f} modules")
        made.raw[code] = seconds
    with tempfile.TemporaryDirectory(prefix="ts-start-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        for which in ("first", "second"):
            started, before = time.monotonic(), machine.load()
            with _up(Path(folder), environment) as (process, port):
                _answer(Path(folder), port=port, started=started, process=process)
                took = time.monotonic() - started
                spent = machine.spent([process.pid])
                made.add(
                    f"`touchstone up` to the first answer, {which} start",
                    f"{took:.1f} s",
                    note=f"{spent:.1f} s of processor time until then; load {before:.0f} before",
                )
                made.raw[which] = {"seconds": took, "cpu": spent, "load": before}
                if which == "second":
                    time.sleep(_REST_SECONDS)
                    memory = machine.memory_mb([process.pid])
                    made.add("memory at rest, all processes (PSS)", f"{memory:.0f} MiB")
                    made.raw["memory_mb"] = memory
    return made


def _said(code: str, environment: dict[str, str]) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    seconds, n = done.stdout.split()[-2:]
    return float(seconds), float(n)


@contextlib.contextmanager
def _up(folder: Path, environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    from tests.e2e.cluster import _free_port  # the tests' own way to a port

    port = _free_port()
    given = {**environment, "TOUCHSTONE_HOME": str(folder / "home")}
    with (folder / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(port)], env=given, cwd=ROOT, stdout=log, stderr=log
        )
    try:
        yield process, port
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)


def _answer(folder: Path, *, port: int, started: float, process: "subprocess.Popen[bytes]") -> None:
    """Wait for a whole answer: one that a token may ask for, from the database."""
    file = folder / "home" / "token"
    while time.monotonic() - started < _WAIT_SECONDS and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError, OSError):
            token = file.read_text().strip()
            address = f"http://127.0.0.1:{port}/api/v1/knowledge-bases"
            if httpx.get(address, headers={"Authorization": f"Bearer {token}"}).status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"the service did not answer:\n{(folder / 'up.log').read_text()}")


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
