"""The demo as a newcomer runs it, and what it says held against the service's own records."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from touchstone import Client, tables

REPOSITORY = Path(__file__).resolve().parents[2]
HANDBOOK = REPOSITORY / "examples" / "handbook"
MODES = ("semantic", "keyword", "hybrid", "hybrid_rerank")
SETS = ("handbook:.touchstone/handbook.jsonl", "handbook:.touchstone/handbook-content.json")
# It answers some questions alone.
DELETED = "policies/parental-leave.md"


class Home:
    """A state folder of its own, and the commands run with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TOUCHSTONE_") and not name.startswith(("DATABASE_URL", "REDIS_URL"))
        }
        self.environment["TOUCHSTONE_HOME"] = str(self.folder)

    def run(self, *arguments: str, seconds: float = 800) -> subprocess.CompletedProcess[str]:
        """`touchstone …`, as the console script would start it."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            env=self.environment,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def client(self) -> Client:
        recorded = json.loads((self.folder / "stack.json").read_text())
        return Client(recorded["base_url"], (self.folder / "token").read_text().strip())


@pytest.fixture
def home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="ts-"))
    yield Home(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _up(home: Home) -> "subprocess.Popen[bytes]":
    log = (home.folder / "up.out").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "up", "--port", "0"],
        env=home.environment,
        cwd=REPOSITORY,
        stdout=log,
        stderr=log,
    )
    log.close()
    give_up_at = time.monotonic() + 200
    while b"Ctrl-C stops everything" not in (home.folder / "up.out").read_bytes():
        assert process.poll() is None, (home.folder / "up.out").read_text()
        assert time.monotonic() < give_up_at, (home.folder / "up.out").read_text()
        time.sleep(0.3)
    return process


def _parts(said: str) -> dict[str, str]:
    """What the demo printed about each set."""
    return {name: said.partition(f"{name}\n{'-' * len(name)}\n")[2].partition("\nhandbook:")[0] for name in SETS}


def _runs(part: str) -> list[str]:
    return re.findall(r"^run (\S+) ", part, flags=re.MULTILINE)


def _found(client: Client, part: str) -> dict[tuple[str, str], Any]:
    """Whether each question was found, by mode and key."""
    return {
        (mode, row["key"]): row["found"]
        for mode, run in zip(MODES, _runs(part), strict=True)
        for row in client.results(run)
    }


def _answered_only_by(path: str, part_of: Mapping[str, str], client: Client) -> set[str]:
    """The keys of the questions that the document alone answers: its path is in each of their expectations."""
    alone = set()
    for name in SETS:
        for row in client.results(_runs(part_of[name])[0]):
            if row["expect"] and all(_is_of(one, path) for one in row["expect"]):
                alone.add(row["key"])
    return alone


def _is_of(expectation: Any, path: str) -> bool:
    alternatives = expectation.get("any_of") or [expectation]
    return all(one.get("path") == path or (one.get("document") and one["document"] in path) for one in alternatives)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_demo_says_what_the_records_say_and_loses_exactly_what_a_deleted_file_answered(home: Home) -> None:
    """One story and not four tests: each start costs seconds."""
    first = home.run("demo")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "22 documents read and indexed" in first.stdout
    for command in ("touchstone up", "touchstone ingest ./docs", "touchstone evaluate my.jsonl", "touchstone compare"):
        assert command in first.stdout
    up = _up(home)
    try:
        with home.client() as client:
            _the_tables_are_those_of_the_records(client, first.stdout)
            _a_second_run_takes_over_what_nothing_has_changed_for(home, first.stdout)
            _a_deleted_file_loses_what_it_alone_answered(home, client)
        _the_client_does_the_same(home)
    finally:
        up.send_signal(signal.SIGINT)
        assert up.wait(timeout=400) == 0


def _the_tables_are_those_of_the_records(client: Client, said: str) -> None:
    for name, part in _parts(said).items():
        runs = [client.run(run_id) for run_id in _runs(part)]
        assert [run["name"] for run in runs] == list(MODES), name
        assert {run["state"] for run in runs} == {"scored"}
        assert tables.aggregate(runs) in part
        assert tables.questions(runs, [list(client.results(run["id"])) for run in runs]) in part
        for run in runs:
            ranks = [row["first_rank"] for row in client.results(run["id"])]
            reciprocal = sum(1 / rank for rank in ranks if rank is not None) / len(ranks)
            assert run["metrics"]["mrr@10"]["mean"] == pytest.approx(reciprocal, abs=1e-12)


def _a_second_run_takes_over_what_nothing_has_changed_for(home: Home, said: str) -> None:
    again = home.run("demo")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Touchstone runs already" in again.stdout
    assert "22 unchanged, not read again" in again.stdout
    assert "its 120 results were taken over, none searched for" in again.stdout
    first, second = (_parts(one) for one in (said, again.stdout))
    with home.client() as client:
        for name, part in second.items():
            metrics = [[client.run(run_id)["metrics"] for run_id in _runs(one)] for one in (first[name], part)]
            assert metrics[0] == metrics[1]


def _a_deleted_file_loses_what_it_alone_answered(home: Home, client: Client) -> None:
    copy = home.folder.parent / "copy"
    shutil.copytree(HANDBOOK, copy)
    before = home.run("demo", "--handbook", str(copy))
    assert before.returncode == 0, before.stdout + before.stderr
    # Another base with the same texts: nothing is taken over, and nothing computed twice.
    assert "Embedded: 0 passages, 0 questions (30 of 30 questions from the cache)" in before.stdout
    assert re.search(r"Reranked: 0 calls, [1-9]\d* scores from the cache", before.stdout)
    (copy / DELETED).unlink()
    after = home.run("demo", "--handbook", str(copy))
    assert after.returncode == 0, after.stdout + after.stderr
    assert "21 unchanged, not read again, 1 removed" in after.stdout
    parts = _parts(before.stdout)
    alone = _answered_only_by(DELETED, parts, client)
    assert alone, "the deleted file has to answer something alone"
    for name, part in parts.items():
        found, still = _found(client, part), _found(client, _parts(after.stdout)[name])
        lost = {(mode, key) for (mode, key), was in found.items() if was and not still[mode, key]}
        assert lost == {(mode, key) for (mode, key), was in found.items() if was and key in alone}


def _the_client_does_the_same(home: Home) -> None:
    docs = home.folder.parent / "docs"
    shutil.copytree(HANDBOOK / "policies", docs)
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    ingested = home.run("ingest", str(docs))
    assert ingested.returncode == 4, ingested.stdout + ingested.stderr
    assert "failed   broken.pdf: " in ingested.stdout
    (docs / "broken.pdf").unlink()
    assert home.run("ingest", str(docs), "--prune").returncode == 0
    questions = home.folder.parent / "my.jsonl"
    questions.write_text('{"question": "how many days of leave do I get", "expected": ["leave.pdf"]}\n')
    told = []
    for _ in range(2):
        measured = home.run("evaluate", str(questions), "-b", "docs", "--modes", "keyword,hybrid", "--json")
        assert measured.returncode == 0, measured.stdout + measured.stderr
        told.append(json.loads(measured.stdout))
    compared = home.run("compare", told[0]["id"], told[1]["id"])
    assert compared.returncode == 0, compared.stderr
    assert compared.stdout.count("too few questions") == len(told[0]["runs"])
    exported = home.run("export", told[0]["runs"][0]["id"], "--format", "trec_run")
    assert " Q0 leave.pdf " in exported.stdout
    assert home.run("status").returncode == 0
    assert home.run("evaluate", str(questions), "-b", "docs", "--fail-under", "hit@1=1.0").returncode in {0, 3}
