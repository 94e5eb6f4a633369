"""Clocks that differ, several beats, and what must not cross a fork. Numbers as in docs/measured.md."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e import oracle
from tests.e2e.cluster import WORKERS, Cluster
from tests.e2e.faults import MODES, N_QUESTIONS, check, deaths, gets_on, in_mid_slice
from tests.e2e.oracle import submit
from tests.e2e.shelf import Shelf, fill

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
HOUR = 3600


@pytest.fixture(scope="module")
def skewed_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and LD_PRELOAD")
    made = tmp_path_factory.mktemp("clock") / "skewed_clock.so"
    source = Path(__file__).with_name("skewed_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


def test_f32_three_beats_sweep_no_more_than_one_and_one_killed_is_not_missed(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    for name in ("beat-2", "beat-3"):
        faulty.start("beat", alias=name)
    faulty.tell(slow_question="0.1")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    faulty.kill("beat", "worker-search")
    faulty.start("worker-search")
    gets_on(faulty, evaluation, n=N_QUESTIONS // 2)
    faulty.start("beat")
    faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    faulty.kill("beat-2", "beat-3")


@pytest.mark.parametrize("hours", [1, -1])
def test_f35_a_worker_whose_clock_is_an_hour_off_expires_no_lease_and_drops_no_tick(
    faulty: Cluster, small: Shelf, undisturbed: str, skewed_clock: Path, hours: int
) -> None:
    skew = {"LD_PRELOAD": str(skewed_clock), "SKEW_SECONDS": str(hours * HOUR)}
    told = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        check=True,
        env={**os.environ, **skew},
        capture_output=True,
    )
    assert abs(float(told.stdout) - time.time() - hours * HOUR) < 60
    faulty.kill(*WORKERS)
    for name in WORKERS:
        faulty.start(name, environment=skew)
    faulty.tell(slow_question="0.1")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    # The sweeper is at work too: what is lost is rung again.
    faulty.flush()
    faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    assert deaths(faulty, evaluation) == 0
    assert len(faulty.noted("asked")) == N_QUESTIONS
    faulty.restart(*WORKERS)


def test_f43_models_load_in_the_child_and_no_connection_crosses_a_fork(faulty: Cluster) -> None:
    """A model of this process, so that there is something to load; children are killed and forked again meanwhile."""
    faulty.restart("worker-search")
    shelf = fill(faulty, name="with a model", n_documents=12, n_questions=24)
    evaluation = submit(faulty, shelf, modes=["semantic"], cache=False)
    assert faulty.finished(evaluation)["state"] == "completed"
    os.kill(faulty.children("worker-search")[0], 9)
    again = submit(faulty, shelf, modes=["semantic"], cache=False)
    assert faulty.finished(again)["state"] == "completed"
    oracle.check_same(faulty, again, evaluation)
    main = faulty.pid("worker-search")
    children = {int(line) for line in faulty.noted("children").split()}
    loaded_in = {int(line) for line in faulty.noted("models").split()}
    assert loaded_in
    assert loaded_in <= children
    assert main not in loaded_in
    forks = [line for line in faulty.noted("forks").splitlines() if line.startswith(f"{main} ")]
    assert len(forks) >= 3
    assert {line.partition(" threads=")[0] for line in forks} == {f"{main} connection=False models=0"}
    # After the first forks the worker's main process may have threads of Celery's own; none holds a lock of ours.
    assert not any("heartbeat" in line for line in forks)
