"""The client and its commands against a small server: what is sent, what is said, and how each ends."""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backend.embedded import paths, state
from cli import folder, main, settings
from tests.unit.cli_stub import Stub, page, serve
from tests.unit.test_cli_tables import a_result, a_run, missed
from touchstone import ApiError, Client, UnreachableError

ROOT = Path(__file__).resolve().parents[2]
BASE = {
    "id": "0192f0c0-11aa-7f00-8000-000000000001",
    "name": "docs",
    "state": "ready",
    "n_documents": 1,
    "n_indexed": 1,
    "n_failed": 0,
    "n_chunks": 2,
    "code": "",
    "reason": "",
    "quality": None,
}
EVALUATION = "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"
RUN = "run-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stub]:
    with serve() as (server, url):
        monkeypatch.setenv("TOUCHSTONE_URL", url)
        monkeypatch.setenv("TOUCHSTONE_TOKEN", "ts_secret")
        monkeypatch.chdir(tmp_path)
        yield server


@pytest.fixture
def touchstone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run the command in this process."""

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["touchstone", *arguments])
        code: Any = 0
        try:
            main.run()
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr()
        return Ended(code=int(code or 0), out=said.out, err=said.err)

    return run


def an_evaluation(state: str = "completed", *runs: dict[str, Any]) -> dict[str, Any]:
    shown = [{"id": f"run-{index}", **run} for index, run in enumerate(runs or (a_run("keyword"),))]
    return {
        "id": EVALUATION,
        "state": state,
        "is_final": state in {"completed", "failed", "cancelled"},
        "code": "",
        "reason": "",
        "n_questions": 2,
        "runs": shown,
        "progress": {"n_questions": 2, "n_done": 2, "n_results": 2, "n_results_total": 2},
        "eta_seconds": None,
    }


def a_service(stub: Stub, *runs: dict[str, Any], rows: tuple[Any, ...] = (a_result(0), missed(1))) -> None:
    """One base, one uploaded set, one evaluation that has ended."""
    stub.on("GET knowledge-bases", 200, page(BASE))
    stub.on("GET question-sets", 200, page())
    stub.on("POST question-sets", 201, {"id": "s", "version": {"number": 1}})
    stub.on("POST evaluations", 202, an_evaluation("queued", *runs))
    stub.on(f"GET evaluations/{EVALUATION}", 200, an_evaluation("completed", *runs))
    for index in range(max(1, len(runs))):
        stub.on(f"GET runs/run-{index}/results", 200, page(*rows))


def test_nothing_listening_asks_whether_the_service_runs(
    touchstone: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("TOUCHSTONE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        ended = touchstone("status")
    assert ended.code == 1
    assert "Is `touchstone up` running?" in ended.err
    assert "Traceback" not in ended.err


def test_status_names_the_set_that_a_bases_latest_figure_is_of(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    quality = {"run_id": "r", "set_name": "golden@3", "mode": "keyword", "metric": "mrr@10", "value": 0.0}
    stub.on("GET /readyz", 200, {"status": "ready", "checks": {}})
    stub.on("GET knowledge-bases", 200, page({**BASE, "quality": quality})).on("GET evaluations", 200, page())
    assert "keyword mrr@10 0.000 of golden@3" in touchstone("status").out


def test_every_fault_of_a_file_is_told_with_its_line(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path
) -> None:
    a_service(stub)
    stub.problem(
        "POST question-sets",
        422,
        "EVAL_CASE_INVALID",
        "line 1: the question is empty (and 1 more)",
        errors=[
            {"code": "EVAL_CASE_INVALID", "detail": "line 1: the question is empty", "line": 1},
            {"code": "EVAL_FILE", "detail": "not JSON", "line": 7},
        ],
        n_errors=2,
    )
    (tmp_path / "bad.jsonl").write_text("{}")
    ended = touchstone("evaluate", "bad.jsonl")
    assert ended.code == 1
    assert "  line 1: the question is empty (EVAL_CASE_INVALID)\n" in ended.err
    assert "  line 7: not JSON (EVAL_FILE)\n" in ended.err


def test_a_wrong_field_is_wrong_usage(stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path) -> None:
    a_service(stub)
    fault = {"code": "VALIDATION", "detail": "There is no mode 'foo'.", "field": "modes[0]"}
    stub.problem("POST evaluations", 422, "VALIDATION", "There is no mode 'foo'.", errors=[fault], n_errors=1)
    (tmp_path / "my.jsonl").write_text("{}")
    assert touchstone("evaluate", "my.jsonl", "--modes", "foo").code == 2


def test_a_refused_token_says_where_one_comes_from(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    stub.problem("GET runs", 401, "UNAUTHENTICATED", "This token is not valid.")
    ended = touchstone("runs")
    assert ended.code == 1
    assert "TOUCHSTONE_TOKEN" in ended.err
    assert "ts_secret" not in ended.err + ended.out


def test_an_answer_that_is_no_problem_document_is_told_all_the_same(
    stub: Stub, touchstone: Callable[..., Ended]
) -> None:
    stub.on("GET runs", 502, b"<html>Bad gateway</html>")
    ended = touchstone("runs")
    assert ended.code == 1
    assert "502" in ended.err
    stub.on("GET runs", 200, b"<html>Log in here</html>")
    assert "is this a Touchstone service?" in touchstone("runs").err


def test_evaluate_uploads_waits_and_prints_both_tables(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path
) -> None:
    a_service(stub)
    (tmp_path / "my.jsonl").write_text('{"question": "q", "expected": ["a"]}')
    ended = touchstone("evaluate", "my.jsonl", "--modes", "keyword", "--fail-under", "mrr@10=0.5")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("#   query ")
    assert "Aggregate metrics (rank of first correct chunk):" in ended.out
    posted = [
        (headers, json.loads(body)) for method, path, headers, body in stub.asked if path.endswith("/evaluations")
    ]
    headers, body = posted[0]
    assert body == {
        "question_set": "s@1",
        "scope": {"knowledge_base": BASE["id"]},
        "modes": ["keyword"],
        "k": [1, 3, 5, 10],
    }
    assert headers["Idempotency-Key"]
    assert headers["Authorization"] == "Bearer ts_secret"


def test_exit_codes_tell_a_broken_rule_from_failed_questions(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "my.jsonl").write_text("{}")
    a_service(stub)
    ended = touchstone("evaluate", "my.jsonl", "--modes", "keyword", "--fail-under", "keyword:mrr@10=0.9")
    assert (ended.code, "rule broken: keyword: mrr@10 is 0.500" in ended.err) == (3, True)
    counts = {"n_total": 2, "n_scored": 1, "n_error": 1, "n_eligible": 2}
    a_service(stub, a_run("keyword", counts=counts))
    ended = touchstone("evaluate", "my.jsonl", "--fail-under", "mrr@10=0.1")
    assert (ended.code, "1 of 2 questions have no result" in ended.err) == (4, True)
    assert touchstone("evaluate", "my.jsonl", "--fail-under", "nonsense").code == 2
    assert touchstone("evaluate").code == 2
    assert touchstone("evaluate", "my.jsonl", "--nonsense").code == 2


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (["--modes", "hybrid"], "hybrid"),
        ([], "hybrid_rerank, hybrid"),
        (["--configurations", "asked.json"], "deep, semantic_rerank"),
        (["--follow", EVALUATION], "keyword"),
    ],
)
def test_a_rule_on_a_mode_that_is_not_asked_for_is_refused_before_anything_is_sent(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path, asked: list[str], names: str
) -> None:
    (tmp_path / "my.jsonl").write_text("{}")
    configurations = [{"name": "deep", "mode": "keyword", "depth": 500}, {"mode": "dense", "reranker": "local"}]
    (tmp_path / "asked.json").write_text(json.dumps(configurations))
    a_service(stub)
    questions = [] if "--follow" in asked else ["my.jsonl"]
    ended = touchstone("evaluate", *questions, *asked, "--fail-under", "fulltext:mrr@10=0.5")
    assert ended.code == 2
    assert f"The rule on 'fulltext' has no run. There are: {names}." in ended.err
    assert not [path for method, path, *_ in stub.asked if method == "POST"]


@pytest.mark.parametrize("text", ["{}", "[3]", "nonsense"])
def test_a_file_that_holds_no_configurations_is_refused(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path, text: str
) -> None:
    (tmp_path / "my.jsonl").write_text("{}")
    (tmp_path / "asked.json").write_text(text)
    a_service(stub)
    ended = touchstone("evaluate", "my.jsonl", "--configurations", "asked.json")
    assert (ended.code, "asked.json" in ended.err) == (2, True)


def test_an_evaluation_that_failed_could_not_run(stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "my.jsonl").write_text("{}")
    a_service(stub)
    failed = {**an_evaluation("failed"), "code": "DEADLINE", "reason": "Too late."}
    stub.on(f"GET evaluations/{EVALUATION}", 200, failed)
    ended = touchstone("evaluate", "my.jsonl")
    assert ended.code == 1
    assert "Too late. (DEADLINE)" in ended.out


def test_json_is_one_value_on_stdout_and_nothing_else(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path
) -> None:
    a_service(stub)
    (tmp_path / "my.jsonl").write_text("{}")
    told = json.loads(touchstone("evaluate", "my.jsonl", "--json").out)
    assert [row["found"] for row in told["runs"][0]["results"]] == [True, False]
    assert json.loads(touchstone("evaluate", "my.jsonl", "--json", "--no-wait").out)["state"] == "queued"
    stub.on("GET runs", 200, page())
    assert json.loads(touchstone("runs", "--json").out) == []


def test_ctrl_c_leaves_the_evaluation_running_and_says_how_to_follow_it(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_service(stub)
    stub.on(f"GET evaluations/{EVALUATION}", 200, an_evaluation("running"))
    (tmp_path / "my.jsonl").write_text("{}")

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.client.time.sleep", interrupted)
    ended = touchstone("evaluate", "my.jsonl")
    assert ended.code == 130
    assert f"touchstone evaluate --follow {EVALUATION}" in ended.err
    assert not [path for method, path, *_ in stub.asked if path.endswith("/cancel")]


def test_waiting_survives_a_service_that_is_started_again(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    a_service(stub)
    looks = iter([UnreachableError("gone"), None])
    ask = Client.evaluation

    def flaky(client: Client, evaluation_id: str) -> Any:
        error = next(looks)
        if error is not None:
            raise error
        return ask(client, evaluation_id)

    monkeypatch.setattr(Client, "evaluation", flaky)
    with Client() as client:
        assert client.wait(EVALUATION)["state"] == "completed"


def test_lists_are_read_over_all_their_pages(stub: Stub) -> None:
    stub.answers["GET runs"] = [
        (200, page({"id": 1}, {"id": 2}, next_="http://elsewhere/api/v1/runs?cursor=abc&limit=500")),
        (200, page({"id": 3})),
    ]
    with Client() as client:
        assert [run["id"] for run in client.runs(limit=None)] == [1, 2, 3]
    assert "cursor=abc" in stub.asked[1][1]
    assert stub.asked[1][2]["Host"].startswith("127.0.0.1"), "a page is asked of the service, wherever it says it lies"


def test_an_api_error_has_the_code_that_scripts_match_on(stub: Stub) -> None:
    stub.problem("GET runs/x", 404, "NOT_FOUND", "There is no run x in this workspace.", request_id="r1")
    with Client() as client, pytest.raises(ApiError, match="no run x") as refused:
        client.run("x")
    assert (refused.value.code, refused.value.status, refused.value.request_id) == ("NOT_FOUND", 404, "r1")


def test_several_bases_are_never_guessed_between(stub: Stub, touchstone: Callable[..., Ended]) -> None:
    stub.on("GET knowledge-bases", 200, page(BASE, {**BASE, "name": "handbook"}))
    ended = touchstone("search", "leave")
    assert ended.code == 2
    assert "docs, handbook" in ended.err


def test_a_file_in_a_source_goes_before_the_set_that_was_made_of_it(
    stub: Stub, touchstone: Callable[..., Ended]
) -> None:
    a_service(stub)
    stub.on(f"GET knowledge-bases/{BASE['id']}/set-files", 200, page({"file": "docs:.touchstone/a.jsonl"}))
    stub.on("GET question-sets", 200, page({"id": "old", "name": "docs:.touchstone/a.jsonl"}))
    assert touchstone("evaluate", "docs:.touchstone/a.jsonl").code == 0
    body = next(json.loads(body) for method, path, _, body in stub.asked if path.endswith("/evaluations"))
    assert body["file"] == "docs:.touchstone/a.jsonl"
    assert "question_set" not in body


# ---- ingest
def test_ingest_sends_what_the_service_lacks_and_tells_what_failed(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    (docs / "deep" / ".git").mkdir(parents=True)
    (docs / ".touchstone").mkdir()
    (docs / "a.md").write_text("A")
    (docs / "deep" / "b.md").write_text("B")
    (docs / "deep" / ".git" / "config").write_text("no")
    (docs / ".touchstone" / "q.jsonl").write_text("{}")
    (docs / ".touchstone" / "stack.json").write_text('{"services": {"database_url": "postgresql://u:password@h"}}')
    (docs / ".touchstone" / "token").write_text("ts_no")
    there = f"knowledge-bases/{BASE['id']}"
    hash_of_a = next(file for file in folder.files(docs) if file.path == "a.md").sha256()
    document = {
        "id": "1", "path": "a.md", "state": "indexed", "size": 1, "bytes_hash": hash_of_a, "collection": "",
        "code": "DOCUMENT_NO_TEXT", "reason": "It holds no text.",
    }  # fmt: skip
    stub.on("GET knowledge-bases", 200, page(BASE)).on(f"GET {there}", 200, BASE)
    stub.on(f"GET {there}/sources", 200, page({"id": "s", "name": "docs"}))
    stub.answers[f"GET {there}/documents"] = [(200, page(document)), (200, page({**document, "path": "deep/b.md"}))]
    stub.on(f"POST {there}/documents", 202, {"documents": [], "ingestion": {"id": "i"}, "set_files": [], "skipped": []})
    stub.on(f"GET {there}/ingestions/i", 200, {"state": "completed", "n_documents": 1, "n_pending": 0})
    stub.on(f"GET {there}/set-files", 200, page())
    ended = touchstone("ingest", "docs")
    assert ended.code == 4, ended.err
    assert "1 of 2 documents sent to docs (source docs), 1 unchanged." in ended.out
    assert "failed   deep/b.md: It holds no text. (DOCUMENT_NO_TEXT)" in ended.out
    sent = next(body for method, path, _, body in stub.asked if method == "POST")
    assert b"deep/b.md" in sent
    assert b".touchstone/q.jsonl" in sent
    for secret in (b"password", b"ts_no", b"config", b"a.md"):
        assert secret not in sent


@pytest.mark.parametrize(
    ("content", "path", "is_told"),
    [("A", "old/a.md", True), ("B", "policies/leave.md", True), ("B", "policies/other.md", False)],
    ids=["the same content", "the same name", "another document"],
)
def test_a_second_copy_of_a_document_is_told_with_where_it_was_put(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path, content: str, path: str, *, is_told: bool
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "leave.md").write_text("A")
    (tmp_path / "there").write_text(content)
    (there_already,) = folder.files(tmp_path / "there")
    document = {"id": "1", "path": path, "source": "acme", "size": 1, "bytes_hash": there_already.sha256()}
    there = f"knowledge-bases/{BASE['id']}"
    stub.on("GET knowledge-bases", 200, page(BASE)).on(f"GET {there}", 200, BASE)
    stub.on(f"GET {there}/sources", 200, page({"id": "s", "name": "acme"})).on(f"GET {there}/set-files", 200, page())
    stub.on(f"GET {there}/documents", 200, page(document))
    stub.on(f"POST {there}/documents", 202, {"ingestion": None, "skipped": []})
    ended = touchstone("ingest", "policies/leave.md", "--name", "docs")
    assert ended.code == 0, ended.err
    assert "1 of 1 documents sent to docs (source policies, path leave.md)." in ended.out
    assert (f"leave.md is in docs already, as {path} of the source acme.\n" in ended.err) == is_told
    assert ("ingest FOLDER --name docs --source acme" in ended.err) == is_told


@pytest.mark.parametrize(
    ("command", "address", "n_before"),
    [
        (["evaluate", "--follow", EVALUATION], f"GET evaluations/{EVALUATION}", 1),
        (["gate", RUN, "--must-pass"], f"GET evaluations/{EVALUATION}", 0),
        (["generate", "--follow", "g"], "GET generations/g", 1),
        (["ingest", "docs"], f"GET knowledge-bases/{BASE['id']}/ingestions/i", 0),
        (["compare", RUN, "run-2"], "GET jobs/j", 0),
    ],
)
def test_every_command_that_waits_says_so_when_the_service_is_away(
    stub: Stub,
    touchstone: Callable[..., Ended],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    address: str,
    n_before: int,
) -> None:
    monkeypatch.setattr("cli.client._SILENT_SECONDS", 0.0)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("A")
    there = f"knowledge-bases/{BASE['id']}"
    job = {"id": "j", "kind": "comparison", "state": "completed", "is_final": True, "n_done": 0, "n_total": 1}
    a_service(stub)
    stub.on("GET knowledge-bases", 200, page(BASE)).on(f"GET {there}", 200, BASE)
    stub.on(f"GET {there}/sources", 200, page()).on(f"GET {there}/set-files", 200, page())
    stub.on(f"GET {there}/documents", 200, page())
    stub.on(f"POST {there}/documents", 202, {"ingestion": {"id": "i"}, "skipped": []})
    stub.on(f"GET {there}/ingestions/i", 200, {"state": "completed", "n_documents": 1, "n_pending": 0})
    for run in (RUN, "run-2"):
        stub.on(f"GET runs/{run}", 200, {"id": run, "evaluation_id": EVALUATION})
    stub.on("POST comparisons", 202, {**job, "state": "queued", "is_final": False}).on("GET jobs/j", 200, job)
    stub.on("GET jobs/j/file", 200, {"candidates": [{"verdict": "better"}]})
    stub.on("GET generations/g", 200, {"id": "g", "job": None}).on("GET generations/g/drafts", 200, page())
    stub.on("POST gates/check", 200, {"exit_code": 0})
    end = stub.answers[address]
    stub.answers[address] = [*[end] * n_before, (503, {"detail": "Away.", "code": "INTERNAL"}), end]
    ended = touchstone(*command, "--json")
    assert ended.code == 0, ended.err
    assert "The service does not answer (Away.); waiting for it, for up to 60 s.\n" in ended.err
    assert "The service answers again.\n" in ended.err


def test_settings_of_a_base_that_is_there_are_not_changed_quietly(
    stub: Stub, touchstone: Callable[..., Ended], tmp_path: Path
) -> None:
    stub.on("GET knowledge-bases", 200, page(BASE))
    (tmp_path / "a.md").write_text("A")
    ended = touchstone("ingest", "a.md", "--settings", "keyword.language=english")
    assert ended.code == 2
    assert "settings of its own" in ended.err
    assert touchstone("ingest", "a.md", "--settings", "nonsense").code == 2


def test_files_go_in_requests_of_a_bounded_size(tmp_path: Path) -> None:
    for number in range(120):
        (tmp_path / f"{number:03}.txt").write_text("x")
    groups = list(folder.batches(list(folder.files(tmp_path))))
    assert [len(group) for group in groups] == [50, 50, 20]


def test_a_link_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("no")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "docs" / "a.txt").write_text("yes")
    assert [file.path for file in folder.files(tmp_path / "docs")] == ["a.txt"]


# ---- where the service is
def test_what_up_leaves_behind_is_found_from_below_its_folder(tmp_path: Path) -> None:
    home = tmp_path / ".touchstone"
    home.mkdir()
    services = state.Services(database_url="", redis_url="", started=())
    state.write(home, state.StackState(services=services, pid=1, run_folder="", base_url="http://127.0.0.1:8123"))
    state.write_private(paths.token_file(home), "ts_kept\n")
    (tmp_path / "below").mkdir()
    found = settings.load({}, folder=tmp_path / "below")
    assert (found.url, found.token) == ("http://127.0.0.1:8123", "ts_kept")


def test_a_token_of_this_machine_is_never_sent_elsewhere(tmp_path: Path) -> None:
    home = tmp_path / ".touchstone"
    home.mkdir()
    (home / "token").write_text("ts_kept")
    assert settings.load({"TOUCHSTONE_URL": "https://evil.example"}, folder=tmp_path).token == ""
    assert settings.load({"TOUCHSTONE_URL": "http://localhost:9"}, folder=tmp_path).token == "ts_kept"
    given = {"TOUCHSTONE_URL": "https://good.example/", "TOUCHSTONE_TOKEN": "ts_given"}
    assert settings.load(given, folder=tmp_path) == settings.Settings(url="https://good.example", token="ts_given")


def test_up_says_what_to_do_where_only_the_client_is_installed(
    touchstone: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cli.server._ROOT", tmp_path)
    ended = touchstone("up")
    assert ended.code == 1
    assert "only the client is installed" in ended.err


def test_up_becomes_the_servers_own_command(touchstone: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr("cli.server.os.execv", lambda _, arguments: became.append(arguments))
    touchstone("up", "--port", "0", "--verbose")
    touchstone("demo", "--handbook", "copy")
    assert [arguments[2:] for arguments in became] == [
        ["up", "--port", "0", "--verbose"],
        ["demo", "--handbook", "copy"],
    ]


def test_the_templates_are_the_examples(touchstone: Callable[..., Ended]) -> None:
    assert touchstone("sets", "template").out == (ROOT / "examples/evals.example.jsonl").read_text()
    assert json.loads(touchstone("sets", "template", "--format", "json").out)["cases"]
    assert touchstone("sets", "template", "--format", "yaml").code == 2


# ---- help
COMMANDS = [
    *(command.name or command.callback.__name__ for command in main.app.registered_commands if command.callback),
]
SET_COMMANDS = ["list", "template", "upload", "show", "export", "delete"]


@pytest.mark.parametrize("name", [*COMMANDS, *(f"sets {name}" for name in SET_COMMANDS)])
def test_every_command_has_help_with_examples_and_is_documented(name: str, touchstone: Callable[..., Ended]) -> None:
    ended = touchstone(*name.split(), "--help")
    assert ended.code == 0
    assert f"touchstone {name.split(maxsplit=1)[0]}" in ended.out.partition("Examples:")[2]
    told = (ROOT / "docs/command-line.md").read_text()
    assert f"touchstone {name}" in told
    # A narrow terminal cuts the longest ones.
    options = {word.strip("│ ,.…") for word in ended.out.split() if word.startswith("--") and word != "--help"}
    assert {option for option in options if option not in told} == set(), "not in docs/command-line.md"
