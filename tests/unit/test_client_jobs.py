"""The client waits for the jobs that large sets are answered with, as if the answer had come at once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.client import ApiError, Client, UnreachableError
from tests.unit import cli_stub
from tests.unit.cli_stub import Stub


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stub, Client]]:
    monkeypatch.setattr("cli.client.time.sleep", lambda _seconds: None)
    with cli_stub.serve() as (served, url), Client(url, "ts_x") as client:
        yield served, client


def job(state: str, **more: Any) -> dict[str, Any]:
    plain = {"id": "j1", "kind": "comparison", "n_done": 0, "n_total": 9000, "result": {}, "code": "", "reason": ""}
    return {**plain, "state": state, "is_final": state not in {"queued", "running"}, "errors": [], **more}


def test_a_comparison_that_is_a_job_gives_the_jobs_document(stub: tuple[Stub, Client]) -> None:
    served, client = stub
    seen: list[str] = []
    client.on_job = lambda one: seen.append(one["state"])
    served.on("POST comparisons", 202, job("queued"))
    served.answers["GET jobs/j1"] = [(200, job("running")), (200, job("completed"))]
    served.on("GET jobs/j1/file", 200, {"primary_metric": "mrr@10"})
    assert client.compare("a", ["b"]) == {"primary_metric": "mrr@10"}
    assert seen == ["queued", "running", "completed"]


def test_a_run_that_a_job_makes_is_the_answer(stub: tuple[Stub, Client], tmp_path: Path) -> None:
    served, client = stub
    made = job("completed", result={"run": "r9"})
    served.on("POST runs/r1/rescore", 202, made).on("POST runs/import", 202, made).on("GET runs/r9", 200, {"id": "r9"})
    (tmp_path / "a.run").write_text("q 0 d 1 1 x")
    assert client.rescore("r1", k=3) == client.import_run(tmp_path / "a.run", question_set="s") == {"id": "r9"}


def test_a_job_that_failed_is_refused_with_every_fault(stub: tuple[Stub, Client]) -> None:
    served, client = stub
    fault = {"code": "EVAL_FILE", "detail": "not JSON", "line": 7, "field": None}
    served.on("POST runs/r1/rescore", 202, job("queued"))
    served.on("GET jobs/j1", 200, job("failed", code="EVAL_FILE", reason="line 7: not JSON", errors=[fault]))
    with pytest.raises(ApiError) as refused:
        client.rescore("r1")
    assert (refused.value.code, refused.value.faults[0].line) == ("EVAL_FILE", 7)


def test_what_comes_at_once_is_passed_on(stub: tuple[Stub, Client]) -> None:
    served, client = stub
    served.on("POST comparisons", 200, {"primary_metric": "x"}).on("GET runs/r1/export", 200, {"id": "r1"})
    assert client.compare("a", ["b"]) == {"primary_metric": "x"}
    assert client.export("r1") == b'{"id": "r1"}'


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time that only passes in pauses, ten times as fast."""
    now = [100.0]
    monkeypatch.setattr("cli.client.time.monotonic", lambda: now[0])
    monkeypatch.setattr("cli.client.time.sleep", lambda seconds: now.__setitem__(0, now[0] + 10 * seconds))
    return now


Wait = Callable[[Client], Any]
WAITS: dict[str, tuple[Wait, str, Any]] = {
    "evaluation": (lambda client: client.wait("e"), "GET evaluations/e", {"state": "completed"}),
    "generation": (lambda client: client.generation_done("g"), "GET generations/g", {"job": None}),
    "job": (lambda client: client.job_done(job("queued")), "GET jobs/j1", job("completed")),
}


@pytest.mark.parametrize("name", WAITS)
def test_silence_is_told_while_a_call_waits_and_its_end(
    stub: tuple[Stub, Client],
    clock: list[float],
    name: str,
) -> None:
    served, client = stub
    wait, address, end = WAITS[name]
    away = (503, {"detail": "The database does not answer now.", "code": "INTERNAL"})
    served.answers[address] = [away, away, away, (200, end)]
    told: list[str] = []
    client.on_silence = told.append
    wait(client)
    assert told == [
        "The service does not answer (The database does not answer now.); waiting for it, for up to 60 s.",
        "The service answers again.",
    ]


@pytest.mark.parametrize("name", WAITS)
def test_a_service_that_stays_away_is_given_up(clock: list[float], name: str) -> None:
    gone = Client("http://127.0.0.1:9", "x")
    told: list[str] = []
    gone.on_silence = told.append
    began = clock[0]
    with pytest.raises(UnreachableError, match=r"Nothing answers at http.* Nothing has answered for \d\d s"):
        WAITS[name][0](gone)
    assert len(told) == 1
    assert "Connection refused" in told[0]
    assert 60 < clock[0] - began < 100


def test_a_look_that_hangs_ends_in_seconds_and_leaves_the_timeout_as_it_was() -> None:
    seen: list[Any] = []

    def hang(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, json={"state": "completed"})

    client = Client("http://127.0.0.1:9", "x", transport=httpx.MockTransport(hang))
    client.wait("e")
    client.evaluation("e")
    assert seen == [5.0, 60.0]
