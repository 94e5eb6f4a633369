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
import typer.core
import typer.main

from cli.main import app
from tests.e2e.cluster import ROOT, Cluster

pytestmark = pytest.mark.chaos


def commands() -> list[str]:
    """Every command there is, as it is typed: a new one that this file does not use fails it."""

    def below(command: object, *words: str) -> Iterator[str]:
        if isinstance(command, typer.core.TyperGroup):
            for name, part in command.commands.items():
                yield from below(part, *words, name)
        else:
            yield " ".join(words)

    return list(below(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ts-client-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with Cluster(Path(folder)) as running:
            yield running


@pytest.fixture(scope="module")
def touchstone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    made = subprocess.run(
        [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", str(ROOT)],
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
    known, used = commands(), set[str]()

    def run(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(touchstone), *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        if "--help" not in arguments:
            used.update({arguments[0], " ".join(arguments[:2])} & set(known))
        return done.stdout if code == 0 else done.stderr

    assert "django" not in {package.name for package in touchstone.parent.parent.rglob("site-packages/*")}
    for command in ("", "sets", "baselines", "schedule", *known):
        said = run(*command.split(), "--help")
        assert "Usage" in said
        assert "Examples:" in said or command not in known, command
    assert "touchstone 0." in run("--version")
    docs = tmp_path / "docs"
    docs.mkdir()
    for word in ("heron", "otter"):
        (docs / f"{word}.md").write_text(f"# The {word}\n\n" + f"All about the {word}, which lives by the river. " * 9)
    golden = [{"id": word, "question": f"the {word}", "expected": [f"{word}.md"]} for word in ("heron", "otter")]
    (tmp_path / "golden.jsonl").write_text("\n".join(map(json.dumps, golden)))
    run("ingest", "docs", "--name", "animals", "--settings", "embedding.embedder=none")
    assert "heron.md" in run("search", "the heron", "--modes", "keyword")
    assert '"question"' in run("sets", "template")
    run("sets", "upload", "golden.jsonl", "--name", "golden")
    assert "golden" in run("sets", "list")
    run("sets", "show", "golden")
    evaluation = json.loads(run("evaluate", "golden", "--modes", "keyword", "--json", "--fail-under", "hit@10=0.9"))
    first = evaluation["runs"][0]["id"]
    run("evaluate", "golden", "--modes", "keyword", "--fail-under", "hit@10=1", "--top-k", "5", "--no-wait", code=2)
    second = json.loads(run("evaluate", "golden", "--modes", "keyword", "--json"))["runs"][0]["id"]
    run("evaluate", "--follow", evaluation["id"])
    assert "nothing left to cancel" in run("cancel", evaluation["id"], code=1)
    assert first in run("runs")
    run("show", first, "--outcome", "found")
    run("compare", first, second, "--questions")
    run("rescore", first, "--k", "1,3")
    run("export", first, "--format", "trec_run", "-o", "hybrid.run")
    run("import", "hybrid.run", "--set", "golden", "--missing", "empty")
    for form in ("json", "csv", "junit", "markdown", "html"):
        run("export", first, "--format", form, "-o", f"out.{form}")
        assert (tmp_path / f"out.{form}").stat().st_size > 100
    assert "heron" in run("sets", "export", "golden")
    run("baselines", "approve", first)
    assert first in run("baselines", "list", "--json")
    run("gate", second, "--max-drop", "mrr@10=0.02", "--junit", "gate.xml", "--markdown", "gate.md")
    run("gate", second, "--must-pass", code=1)
    run("baselines", "retire", json.loads(run("baselines", "list", "--json"))[0]["id"])
    run("schedule", "create", "nightly", "--set", "golden", "--cron", "0 2 * * *", "--modes", "keyword")
    for command in ("list", "history nightly", "run-now nightly", "disable nightly", "enable nightly"):
        run("schedule", *command.split())
    assert "nightly" in run("sets", "delete", "golden", code=1), "a schedule uses it"
    run("schedule", "delete", "nightly")
    run("alerts", "--all", "--json")
    drafted = run("generate", "-n", "2", "--llm", "local", "--kinds", "keyword", "--accept-all", "drafted")
    assert "2 drawn by local" in drafted
    run("status")
    run("sets", "delete", "golden")
    run("sets", "delete", "drafted", "--force")
    # These are the service itself, which is not installed here: they say so, and what to do.
    for command in ("up", "demo"):
        assert "only the client is installed" in run(command, code=1)
    assert used == set(known)
