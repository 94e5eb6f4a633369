"""One huge run and many small ones: nobody waits for the huge one, and nothing grows with it.

`make chaos` has 3,000 questions, `make soak` 50,000. F36, F37, F38 of docs/measured.md.
"""

import statistics
import subprocess
import threading
import time
from typing import Any

import httpx
import pytest

from tests.e2e import oracle
from tests.e2e.cluster import WORKERS, Cluster
from tests.e2e.oracle import submit
from tests.e2e.shelf import Shelf, fill

WORDS: dict[str, Any] = {"modes": ["keyword"], "cache": False}
NONE = {"embedding": {"embedder": "none"}}
_OTHER = (
    "import django; django.setup(); from django.utils import timezone; from backend.models import Scope, Workspace; "
    "from backend.services import tokens; "
    "print(tokens.create(Workspace.objects.create(name='another'), name='t', scopes=list(Scope), "
    "now=timezone.now())[1])"
)


@pytest.mark.parametrize(
    "n_huge",
    [
        pytest.param(3_000, marks=[pytest.mark.chaos, pytest.mark.timeout(1200)]),
        pytest.param(50_000, marks=[pytest.mark.soak, pytest.mark.timeout(3 * 3600)]),
    ],
)
def test_f36_small_runs_do_not_wait_for_a_huge_one(cluster: Cluster, n_huge: int) -> None:
    few = fill(cluster, name=f"few {n_huge}", n_documents=40, n_questions=20, settings=NONE)
    huge = fill(cluster, name=f"huge {n_huge}", n_documents=40, n_questions=n_huge, settings=NONE)
    _seconds(cluster, few)
    alone = [_seconds(cluster, few) for _ in range(10)]
    started = time.monotonic()
    giant = submit(cluster, huge, **WORDS)
    cluster.wait(lambda: _n_done(cluster, giant) >= min(1000, n_huge // 3), "the first thousand", seconds=600)
    early = _sizes(cluster)
    beside = [_seconds(cluster, few) for _ in range(20)]
    still_running = cluster.get(f"evaluations/{giant}")["state"] == "running"
    polls: list[float] = []
    late = early
    while (state := _state(cluster, giant, polls)) not in {"completed", "failed"}:
        if _n_done(cluster, giant) >= 0.9 * n_huge:
            late = _sizes(cluster)
        time.sleep(1)
    took = time.monotonic() - started
    assert state == "completed"
    oracle.check_whole(cluster, giant, huge, n_runs=1)
    once, many = statistics.median(alone), statistics.median(beside)
    n_within = sum(one <= 2 * once for one in beside)
    print(
        f"\nMEASURED {n_huge} questions in {took:.0f} s; 20 questions alone {once:.2f} s ({min(alone):.2f} to "
        f"{max(alone):.2f}), beside it {many:.2f} s ({min(beside):.2f} to {max(beside):.2f}; {n_within} of 20 within "
        f"twice); workers "
        f"{early['workers']:.0f} MiB after the first thousand, {late['workers']:.0f} at the end, broker "
        f"{early['broker']:.2f} and {late['broker']:.2f} MiB; {len(polls)} polls, p95 "
        f"{sorted(polls)[int(len(polls) * 0.95)] * 1000:.0f} ms"
    )
    assert still_running or n_huge < 10_000
    # In the median: on a machine with other work one run or another is held up by what is not ours.
    assert many <= 2 * once
    assert late["broker"] <= early["broker"] + 2
    assert late["workers"] <= 1.25 * early["workers"] + 50


@pytest.mark.chaos
@pytest.mark.timeout(1200)
def test_f37_two_hundred_runs_of_one_workspace_do_not_hold_up_another(cluster: Cluster) -> None:
    few = fill(cluster, name="of the crowd", n_documents=40, n_questions=20, settings=NONE)
    token = cluster.python("-c", _OTHER).strip().splitlines()[-1]
    with httpx.Client(
        base_url=cluster.http.base_url, headers={"Authorization": f"Bearer {token}"}, timeout=60
    ) as other:
        mine = cluster.http
        cluster.http = other
        theirs = fill(cluster, name="theirs", n_documents=40, n_questions=20, settings=NONE)
        alone = statistics.median([_seconds(cluster, theirs) for _ in range(5)])
        cluster.http = mine
        times: list[float] = []
        made: list[str] = []

        def submit_some() -> None:
            for _ in range(50):
                started = time.monotonic()
                made.append(submit(cluster, few, **WORDS))
                times.append(time.monotonic() - started)

        crowd = [threading.Thread(target=submit_some) for _ in range(4)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        cluster.http = other
        beside = _seconds(cluster, theirs)
        cluster.http = mine
        n_open = sum(cluster.get(f"evaluations/{one}")["state"] in {"queued", "running"} for one in made)
    for one in made:
        assert cluster.finished(one, seconds=600)["state"] == "completed"
        oracle.check_whole(cluster, one, few, n_runs=1)
    p95 = sorted(times)[int(0.95 * len(times))]
    print(
        f"\nMEASURED 200 submits in four threads: p95 {p95:.2f} s; another workspace's 20 questions {alone:.2f} s "
        f"alone, {beside:.2f} s behind {n_open} open runs"
    )
    # Unaffected is the goal; it was 13 times before places were shared by questions.
    assert beside <= 5 * alone


def _seconds(cluster: Cluster, shelf: Shelf) -> float:
    """From submit to its end as the database saw it: how often somebody asks is no part of it."""
    evaluation = submit(cluster, shelf, **WORDS)
    assert cluster.finished(evaluation, seconds=300)["state"] == "completed"
    ((seconds,),) = cluster.sql(
        "SELECT EXTRACT(epoch FROM finished_at - created_at) FROM backend_evaluation WHERE id = %s", evaluation
    )
    return float(seconds)


def _state(cluster: Cluster, evaluation: str, polls: list[float]) -> str:
    started = time.monotonic()
    state = str(cluster.get(f"evaluations/{evaluation}")["state"])
    polls.append(time.monotonic() - started)
    return state


def _n_done(cluster: Cluster, evaluation: str) -> int:
    return oracle.n_results(cluster, evaluation)


def _sizes(cluster: Cluster) -> dict[str, float]:
    """MiB: what the workers with their children have resident, and what the broker uses."""
    groups = ",".join(str(cluster.pid(name)) for name in WORKERS)
    told = subprocess.run(["ps", "-o", "rss=", "-g", groups], capture_output=True, text=True, check=True)
    with cluster.broker() as client:
        used = int(client.info("memory")["used_memory"])
    return {"workers": sum(map(int, told.stdout.split())) / 1024, "broker": used / 2**20}
