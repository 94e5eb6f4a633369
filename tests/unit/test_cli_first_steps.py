"""What a newcomer runs into: a wrong path, a folder for a file, another folder's service, no `touchstone` on PATH."""

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli_stub import Stub, page
from tests.unit.test_cli import BASE, EVALUATION, Ended, a_service, an_evaluation, stub, touchstone  # noqa: F401
from tests.unit.test_cli_tables import a_result, a_run, missed
from touchstone import program

pytestmark = pytest.mark.usefixtures("stub")
SET = {"id": "s", "version": 1, "name": "my@1", "content_hash": "x"}


def a_finding(line: int, **more: object) -> dict[str, object]:
    message = "No document is named so: /docs/a.md. Did you mean a.md?"
    return {"line": line, "ordinal": line - 1, "severity": "error", "message": message, **more}


def a_checked_service(stub: Stub, *findings: dict[str, object], warnings: list[str]) -> None:  # noqa: F811
    a_service(stub)
    stub.on("POST evaluations", 202, {**an_evaluation("queued"), "question_set": SET})
    stub.on("GET question-sets/s", 200, {"id": "s", "name": "my", "version": {"number": 1, "warnings": warnings}})
    report = {"n_expectations": 30, "n_errors": sum(one["severity"] == "error" for one in findings)}
    stub.on("POST question-sets/s/preflight", 200, {**report, "findings": list(findings)})


def test_a_label_that_nothing_can_satisfy_is_told_of_and_does_not_look_like_a_bad_search(
    stub: Stub,  # noqa: F811
    touchstone: Callable[..., Ended],  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "my.jsonl").write_text("{}")
    findings = [a_finding(line) for line in range(1, 13)]
    a_checked_service(stub, *findings, a_finding(20, severity="warning", message="odd"), warnings=["`tgas`?"])
    ended = touchstone("evaluate", "my.jsonl")
    assert ended.code == 0, ended.err
    assert "12 of 30 expectations can be met by no search here" in ended.err
    assert "  line 10: No document is named so: /docs/a.md. Did you mean a.md?" in ended.err
    assert "line 11" not in ended.err
    assert "  and 2 more" in ended.err
    assert "Note: `tgas`?" in ended.err
    assert "odd" not in ended.err
    assert "expectations" not in ended.out


def test_a_service_that_cannot_check_a_set_still_evaluates_it(
    stub: Stub,  # noqa: F811
    touchstone: Callable[..., Ended],  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "my.jsonl").write_text("{}")
    a_checked_service(stub, warnings=[])
    stub.problem("POST question-sets/s/preflight", 409, "KB_NOT_READY", "Not yet.")
    ended = touchstone("evaluate", "my.jsonl")
    assert (ended.code, "Not yet" in ended.err) == (0, False)


def test_a_missed_question_is_shown_with_what_it_expected(
    stub: Stub,  # noqa: F811
    touchstone: Callable[..., Ended],  # noqa: F811
) -> None:
    ended_run = an_evaluation()["runs"][0]
    stub.on("GET runs/r", 200, {
        **ended_run, "id": "r", "label": "", "mode": "keyword", "question_set": SET, "knowledge_base": {"name": "docs"},
        "partial": False, "config": {}, "timings": {}, "counts": {},
    })  # fmt: skip
    expect = [{"grade": 1.0, "any_of": [{"path": "policies/leave.pdf"}]}]
    instead = [{"rank": 1, "path": "policies/travel.md"}]
    rows = [{**missed(1), "expect": expect, "found_instead": instead}, {**a_result(0), "found_instead": []}]
    stub.on("GET runs/r/results", 200, page(*rows))
    overall = {"n": 2, "n_missed": 1, "causes": {"below k": 1}, "n_wrong_passage": 0}
    lost = {"k": 10, "overall": overall, "ceiling": None, "recall": None, "lift": None, "corpus_changed": False}
    stub.on("GET runs/r/diagnosis", 200, lost)
    stub.on("GET runs/r/advice", 200, {"advice": [{"id": "few_questions", "sentence": "Ask more."}]})
    ended = touchstone("show", "r", "--outcome", "missed")
    said = ended.out
    assert ended.code == 0, ended.err
    assert "\n    missed\n    expected policies/leave.pdf\n    instead  1. policies/travel.md\n" in said
    assert "\n    found, rank 1" in said
    assert "Missed at 10: 1 of 2\n      1  below k" in said
    assert "Advice\n  - Ask more." in said


def test_a_folder_is_no_question_set(
    stub: Stub,  # noqa: F811
    touchstone: Callable[..., Ended],  # noqa: F811
    tmp_path: Path,
) -> None:
    a_service(stub)
    (tmp_path / "docs").mkdir()
    ended = touchstone("evaluate", "docs")
    assert (ended.code, "'docs' is a folder" in ended.err) == (2, True)


def test_without_a_recorded_address_it_is_said_that_the_service_may_run_in_another_folder(
    touchstone: Callable[..., Ended],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr("cli.settings.DEFAULT_URL", address)
        monkeypatch.delenv("TOUCHSTONE_URL")
        monkeypatch.delenv("TOUCHSTONE_HOME", raising=False)
        assert "If it runs in another folder" in touchstone("status").err
        monkeypatch.setenv("TOUCHSTONE_URL", address)
        assert "If it runs in another folder" not in touchstone("status").err
        monkeypatch.delenv("TOUCHSTONE_URL")
        (tmp_path / ".touchstone").mkdir()
        (tmp_path / ".touchstone" / "token").write_text("ts_kept")
        assert "If it runs in another folder" not in touchstone("status").err


def test_commands_to_paste_name_the_program_as_this_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_ = tmp_path / "a folder" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "touchstone").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(bin_ / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert program.name() == "'a folder/bin/touchstone'"
    monkeypatch.chdir(bin_)
    assert program.name() == "./touchstone"
    monkeypatch.setenv("PATH", str(bin_))
    assert program.name() == "touchstone"
    (bin_ / "touchstone").unlink()
    assert program.name() == "touchstone"


def test_what_to_do_after_an_upload_works_as_it_is_printed(
    stub: Stub,  # noqa: F811
    touchstone: Callable[..., Ended],  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "big.jsonl").write_text("{}")
    version = {"number": 1, "format": "jsonl", "warnings": []}
    stub.on("GET question-sets", 200, page())
    stub.on("POST question-sets", 201, {"id": "s", "version": version})
    stub.on("GET question-sets/s", 200, {"name": "big", "n_questions": 2, "version": version})

    def printed(*bases: dict[str, Any]) -> list[str]:
        stub.on("GET knowledge-bases", 200, page(*bases))
        return touchstone("sets", "upload", "big.jsonl").out.replace(program.name(), "touchstone").splitlines()[1:]

    assert printed() == ["Next: touchstone ingest ./docs", "Then: touchstone evaluate s@1"]
    assert printed(BASE) == ["Next: touchstone evaluate s@1 -b docs"]
    assert printed({**BASE, "name": "our docs"}, BASE) == [
        "Next: touchstone evaluate s@1 -b 'our docs'",
        "Other knowledge bases: docs",
    ]


def test_what_was_taken_over_is_not_printed_as_if_it_were_measured(
    stub: Stub,  # noqa: F811
    touchstone: Callable[..., Ended],  # noqa: F811
) -> None:
    reused = {"cost": {"reused": 2.0}, "origin": {"reused_from": "r0"}, "timings": {"latency_ms": {"p50": 5, "p95": 9}}}
    told = "2 of 2 results were taken over from run r0: nothing has changed since. Ask again with --no-cache.\n"
    a_service(stub, a_run("keyword", **reused))
    assert told in touchstone("evaluate", "--follow", EVALUATION).out
    run = an_evaluation("completed", a_run("keyword", **reused))["runs"][0]
    shown = {"label": "", "mode": "keyword", "question_set": SET, "knowledge_base": BASE, "config": {}, "partial": True}
    stub.on("GET runs/run-0", 200, {**run, **shown})
    said = touchstone("show", "run-0").out
    assert f"reused    {told}" in said
    assert "latency   5 ms at the median, 9 ms at 95 %, as the earlier run measured it\n" in said


def test_what_to_do_after_questions_were_accepted_names_the_base_they_are_about(
    stub: Stub,  # noqa: F811
    touchstone: Callable[..., Ended],  # noqa: F811
) -> None:
    made = {
        "id": "g", "knowledge_base": BASE["id"], "llm": "local", "is_local": False, "n_drawn": 1, "counts": {},
        "job": {"state": "completed"},
    }  # fmt: skip
    stub.on("GET generations/g", 200, made).on("GET generations/g/drafts", 200, page())
    stub.on("POST generations/g/question-set", 201, {"id": "s"})
    said = touchstone("generate", "--follow", "g", "--accept-all", "made").out
    assert said.endswith(f" evaluate s -b {BASE['id']}\n")
