"""The client from a virtual environment that holds nothing else, against a service on some port: every command there
is, with only the address and a token set."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import ROOT, Cluster

pytestmark = pytest.mark.chaos
HELPS = (
    "",
    *("up", "demo", "status", "ingest", "search", "evaluate", "cancel", "runs", "show", "rescore", "import", "compare"),
    *("export", "gate", "alerts", "generate"),
    *("sets", "sets list", "sets template", "sets upload", "sets show", "sets export", "sets delete"),
    *("baselines", "baselines list", "baselines approve", "baselines retire"),
    *("schedule", "schedule list", "schedule create", "schedule history", "schedule run-now", "schedule enable"),
    *("schedule disable", "schedule delete"),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ts-client-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with Cluster(Path(folder)) as running:
            yield running


@pytest.fixture(scope="module")
def touchstone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("clean") / "venv"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(home)], check=True)
    made = subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", str(home / "bin" / "python"), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"the client's packages cannot be had here: {made.stderr.strip().splitlines()[-1]}")
    return home / "bin" / "touchstone"


def test_every_command_helps_and_works_with_only_an_address_and_a_token(
    cluster: Cluster, touchstone: Path, tmp_path: Path
) -> None:
    environment = {"PATH": os.defpath, "TOUCHSTONE_URL": cluster.url, "TOUCHSTONE_TOKEN": cluster.token}

    def run(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(touchstone), *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    for command in HELPS:
        said = run(*command.split(), "--help")
        assert "Usage" in said
    assert "touchstone 0." in run("--version")
    docs = tmp_path / "docs"
    docs.mkdir()
    for word in ("heron", "otter"):
        (docs / f"{word}.txt").write_text(f"All about the {word}.")
    golden = [{"id": word, "question": f"the {word}", "expected": [f"{word}.txt"]} for word in ("heron", "otter")]
    (tmp_path / "golden.jsonl").write_text("\n".join(map(json.dumps, golden)))
    run("ingest", "docs", "--name", "animals", "--settings", "embedding.embedder=none")
    assert "heron.txt" in run("search", "the heron", "--modes", "keyword")
    run("sets", "template")
    run("sets", "upload", "golden.jsonl", "--name", "golden")
    run("sets", "show", "golden")
    evaluation = json.loads(run("evaluate", "golden", "--modes", "keyword", "--json", "--fail-under", "hit@10=0.9"))
    first = evaluation["runs"][0]["id"]
    run("evaluate", "golden", "--modes", "keyword", "--fail-under", "hit@10=1", "--top-k", "5", "--no-wait", code=2)
    second = json.loads(run("evaluate", "golden", "--modes", "keyword", "--json"))["runs"][0]["id"]
    run("evaluate", "--follow", evaluation["id"])
    run("cancel", evaluation["id"], code=1)
    run("runs")
    run("show", first, "--outcome", "found")
    run("compare", first, second, "--questions")
    run("rescore", first, "--k", "1,3")
    run("export", first, "--format", "trec_run", "-o", "hybrid.run")
    run("import", "hybrid.run", "--set", "golden", "--missing", "empty")
    for form in ("json", "csv", "junit", "markdown", "html"):
        run("export", first, "--format", form, "-o", f"out.{form}")
    run("sets", "export", "golden")
    run("baselines", "approve", first)
    run("baselines", "list")
    run("gate", second, "--max-drop", "mrr@10=0.02", "--junit", "gate.xml", "--markdown", "gate.md")
    run("gate", second, "--must-pass", code=1)
    run("schedule", "create", "nightly", "--set", "golden", "--cron", "0 2 * * *", "--modes", "keyword")
    for command in ("list", "history nightly", "run-now nightly", "disable nightly", "enable nightly"):
        run("schedule", *command.split())
    run("schedule", "delete", "nightly")
    run("alerts", "--all", "--json")
    run("status")
    run("sets", "delete", "golden", code=1)
    run("sets", "delete", "golden", "--force")
