"""`gate`, `baselines`, `schedule` and `alerts` against a small server: what is sent, what is said, how each ends."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli import main
from tests.unit.cli_stub import Stub, page, serve

EVALUATION = "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"
RUN = "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c12"
Ended = tuple[int, str, str]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stub]:
    with serve() as (server, url):
        monkeypatch.setenv("TOUCHSTONE_URL", url)
        monkeypatch.setenv("TOUCHSTONE_TOKEN", "ts_secret")
        monkeypatch.chdir(tmp_path)
        yield server


@pytest.fixture
def touchstone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["touchstone", *arguments])
        code: Any = 0
        try:
            main.run()
        except SystemExit as ended:
            code = ended.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


def told(outcome: str, code: int, **more: Any) -> dict[str, Any]:
    result = {"run": "hybrid", "rule": {"rule": "floor"}, "status": "broken", "sentence": "hybrid: too low", "value": 0}
    lost = [{"id": "q7", "question": "where is it"}]
    run = {"run": RUN, "name": "hybrid", "baseline": RUN, "k": 10, "lost": lost}
    return {"outcome": outcome, "exit_code": code, "evaluation": EVALUATION, "results": [result], "runs": [run], **more}


def sent(stub: Stub, what: str) -> Any:
    method, path = what.split()
    return next(json.loads(body) for made, at, _, body in stub.asked if made == method and at.endswith(path))


@pytest.mark.parametrize(("outcome", "code"), [("passed", 0), ("broken", 3), ("uncovered", 4), ("unchecked", 1)])
def test_the_gate_ends_with_the_code_of_its_outcome(
    stub: Stub, touchstone: Callable[..., Ended], outcome: str, code: int
) -> None:
    ended_one = {"id": EVALUATION, "state": "completed", "is_final": True, "runs": []}
    stub.on(f"GET evaluations/{EVALUATION}", body=ended_one)
    stub.on("POST gates/check", body=told(outcome, code))
    ended, out, _ = touchstone("gate", EVALUATION, "--fail-under", "hybrid:mrr@10=0.7")
    assert ended == code
    assert "hybrid: too low" in out
    assert "q7  where is it" in out


def test_every_rule_is_sent_and_the_files_are_written(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path
) -> None:
    stub.problem(f"GET evaluations/{RUN}", 404, "NOT_FOUND", "There is no evaluation.")
    stub.on(f"GET runs/{RUN}", body={"id": RUN, "evaluation_id": EVALUATION})
    stub.on(f"GET evaluations/{EVALUATION}", body={"id": EVALUATION, "state": "completed"})
    stub.on("POST gates/check", body=told("passed", 0, junit="<testsuites/>", markdown="### passed"))
    rules = ["--fail-under", "mrr@10=0.7", "--max-drop", "hybrid:mrr@10=0.02", "--no-significant-drop", "--must-pass"]
    rules += ["--min-coverage", "0.9", "--max-latency", "800", "--max-spend", "2.5"]
    files = ["--junit", "out.xml", "--markdown", "out.md"]
    assert touchstone("gate", RUN, *rules, *files, "--baseline", "before", "--json")[0] == 0
    assert sent(stub, "POST gates/check") == {
        "run": RUN,
        "baseline": "before",
        "include": ["junit", "markdown"],
        "rules": [
            {"rule": "floor", "metric": "mrr@10", "least": 0.7},
            {"rule": "drop", "metric": "mrr@10", "most": 0.02, "run": "hybrid"},
            {"rule": "significant_drop"},
            {"rule": "must_pass"},
            {"rule": "coverage", "least": 0.9},
            {"rule": "latency", "most": 800.0},
            {"rule": "spend", "most": 2.5},
        ],
    }
    assert (tmp_path / "out.xml").read_text() == "<testsuites/>"
    assert (tmp_path / "out.md").read_text() == "### passed"


@pytest.mark.parametrize(
    "arguments",
    [
        (EVALUATION,),
        ("--must-pass",),
        (EVALUATION, "--gate", "merge", "--must-pass"),
        (EVALUATION, "--fail-under", "good"),
        ("--past", "3", "--must-pass"),
        (EVALUATION, "--gate", "unknown"),
    ],
)
def test_a_gate_that_makes_no_sense_is_wrong_usage(
    stub: Stub, touchstone: Callable[..., Ended], arguments: tuple[str, ...]
) -> None:
    stub.on("GET gates", body=page())
    assert touchstone("gate", *arguments)[0] == 2


def test_a_gate_over_the_past_lists_what_it_would_have_said(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    stub.on("GET gates", body=page({"id": "g1", "name": "merge"}))
    stub.on("POST gates/g1/dry-run", body={"checks": [told("broken", 3)]})
    code, out, _ = touchstone("gate", "--gate", "merge", "--past", "5")
    assert code == 0
    assert "broken" in out
    assert "hybrid: too low" in out


def test_a_schedule_is_made_of_what_is_named(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    stub.on("GET question-sets", body=page({"id": "s1", "name": "golden"}))
    stub.on("GET knowledge-bases", body=page({"id": "b1", "name": "handbook"}))
    made = {"id": "1", "name": "nightly", "upcoming": ["2026-03-02T01:00:00Z"]}
    stub.on("POST schedules", 201, made)
    code, out, err = touchstone(
        *("schedule", "create", "nightly", "--set", "golden", "-b", "handbook", "--cron", "0 2 * * *"),
        *("--time-zone", "Europe/Berlin", "--modes", "hybrid", "--grace", "2"),
    )
    assert code == 0, err
    assert "2026-03-02 01:00 UTC" in out
    assert sent(stub, "POST schedules") == {
        "name": "nightly",
        "cron": "0 2 * * *",
        "time_zone": "Europe/Berlin",
        "grace_seconds": 7200,
        "evaluation": {"question_set": "s1", "scope": {"knowledge_base": "b1"}, "modes": ["hybrid"]},
    }
    stub.asked.clear()
    touchstone("schedule", "create", "nightly", "--set", "golden", "--cron", "0 2 * * *", "--no-cache")
    assert sent(stub, "POST schedules")["evaluation"]["cache"] is False


def test_a_schedule_is_switched_run_and_told_by_name(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    last = {"slot_at": "2026-03-01T01:00:00Z", "evaluation_state": "completed", "state": "started"}
    row = {
        "id": "1",
        "name": "nightly",
        "cron": "0 2 * * *",
        "time_zone": "UTC",
        "set_name": "golden",
        "base_name": "handbook",
        "enabled": True,
        "next_run_at": "2026-03-02T02:00:00Z",
        "n_open_alerts": 2,
        "last": last,
    }
    stub.on("GET schedules", body=page(row)).on("PATCH schedules/1", body={**row, "enabled": False})
    stub.on("POST schedules/1/run-now", 202, {"evaluation": EVALUATION}).on("DELETE schedules/1", 204, {})
    firing = {
        "slot_at": "2026-03-01T01:00:00Z",
        "manual": False,
        "state": "missed",
        "n_slots": 7,
        "evaluation": None,
        "evaluation_state": None,
        "outcomes": {},
        "reason": "nothing looked at the clock",
    }
    stub.on("GET schedules/1/history", body=page(firing))
    assert "2026-03-02 02:00" in touchstone("schedule", "list")[1]
    assert "missed x7" in touchstone("schedule", "history", "nightly")[1]
    assert "nightly is off" in touchstone("schedule", "disable", "nightly")[1]
    assert EVALUATION in touchstone("schedule", "run-now", "nightly")[1]
    assert touchstone("schedule", "delete", "nightly")[0] == 0
    assert touchstone("schedule", "delete", "weekly")[0] == 2


def test_alerts_say_what_is_wrong_since_when_and_what_was_lost(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    alert = {
        "title": "merge: hit@10 floor broke",
        "opened_at": "2026-03-02T02:01:00Z",
        "resolved_at": None,
        "sentences": ["hit@10 is 0.667"],
        "because": ["corpus +214 documents"],
        "lost": ["q1", "q2"],
    }
    stub.on("GET alerts", body=page(alert))
    code, out, _ = touchstone("alerts")
    assert code == 0, "asking what is wrong is no failure"
    for said in ("merge: hit@10 floor broke  (2026-03-02 02:01 UTC, open)", "corpus +214 documents", "lost: q1, q2"):
        assert said in out
    stub.on("GET alerts", body=page())
    assert touchstone("alerts")[1] == "Nothing is wrong.\n"


def test_all_runs_of_an_evaluation_are_approved_at_once(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    stub.on(f"GET evaluations/{EVALUATION}", body={"runs": [{"id": RUN}]})
    stub.on("POST baselines", 201, {"id": "b", "name": "hybrid", "set_name": "golden@1"})
    code, out, _ = touchstone("baselines", "approve", EVALUATION, "--label", "release 4")
    assert (code, out) == (0, "hybrid on golden@1 is the baseline now (b)\n")
    assert sent(stub, "POST baselines") == {"run": RUN, "label": "release 4"}


@pytest.mark.parametrize(
    "command",
    [
        ["show", "abc"],
        ["compare", "abc", RUN],
        ["compare", RUN, "abc"],
        ["gate", "abc", "--must-pass"],
        ["gate", "abc", "--must-pass", "--no-wait"],
        ["baselines", "approve", "abc"],
    ],
)
def test_an_id_that_is_neither_a_run_nor_an_evaluation_is_told_to_be_neither(
    stub: Stub, touchstone: Callable[..., Ended], command: list[str]
) -> None:
    stub.on(f"GET runs/{RUN}", body={"id": RUN})
    for what in ("run", "evaluation"):
        stub.problem(f"GET {what}s/abc", 404, "NOT_FOUND", f"There is no {what} abc in this workspace.")
    code, out, err = touchstone(*command)
    assert (code, out) == (1, "")
    assert err == "There is no run and no evaluation abc in this workspace. (NOT_FOUND)\n"


def test_a_run_is_not_compared_with_an_evaluation(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    stub.on(f"GET runs/{RUN}", body={"id": RUN})
    stub.on(f"GET evaluations/{EVALUATION}", body={"id": EVALUATION, "runs": [{"id": RUN, "name": "hybrid"}]})
    for named in ([RUN, EVALUATION], [EVALUATION, RUN]):
        code, _, err = touchstone("compare", *named)
        assert (code, err) == (2, "Compare runs with runs, or evaluations with evaluations.\n")
