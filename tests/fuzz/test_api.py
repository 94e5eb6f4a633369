"""schemathesis over the OpenAPI document against a live server: no 500, no answer that is not described, and every
operation reaches its success. `make test-api-fuzz`: at least 5,000 cases."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.cluster import ROOT, Cluster
from tests.fuzz.world import World, make

N_EXAMPLES = int(os.environ.get("TOUCHSTONE_FUZZ_EXAMPLES") or 2)
SEED = os.environ.get("TOUCHSTONE_FUZZ_SEED") or "7"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
FEWEST_CASES = {True: 5000, False: 200}[N_EXAMPLES > 20]
# What the service can only do with something that is not there in a test, and how each is shown to work instead.
NO_SUCCESS: dict[str, str] = {}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ts-fuzz-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        settings = {
            "TOUCHSTONE_REQUESTS_PER_MINUTE": "0",
            "TOUCHSTONE_SECRET_KEYS": "A" * 43 + "=",
            # A chat model that is configured, and nobody there.
            "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
            "OPENAI_API_KEY": "for nobody",
        }
        with Cluster(Path(folder), settings=settings) as running:
            yield running


def run(cluster: Cluster, world: World, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "world.json").write_text(json.dumps(world.told()))
    phases = "examples,fuzzing,stateful" if N_EXAMPLES > 20 else "examples,fuzzing"
    return subprocess.run(
        [
            *(str(Path(sys.executable).parent / "schemathesis"), "run", f"{cluster.url}/api/v1/schema"),
            *("-H", f"Authorization: Bearer {cluster.token}"),
            *("--phases", phases, "--max-examples", str(N_EXAMPLES), "--seed", SEED, "--workers", "2"),
            *("--checks", CHECKS, "--continue-on-failure"),
            *("--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "60", "--no-color"),
        ],
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
            "FUZZ_FOLDER": str(folder),
            "PYTHONPATH": str(ROOT),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_no_answer_is_a_surprise_and_every_operation_succeeds(cluster: Cluster, tmp_path: Path) -> None:
    world = make(cluster, "fuzzed")
    done = run(cluster, world, tmp_path)
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    broken = [one for one in answers if one["status"] >= 500 and one["status"] != 503]
    assert not broken, broken[:5]
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert len(answers) >= FEWEST_CASES
    statuses: dict[str, Counter[int]] = defaultdict(Counter)
    for one in answers:
        statuses[one["operation"]][one["status"]] += 1
    described = yaml.safe_load(cluster.http.get("schema", headers={"Accept": "application/yaml"}).text)
    operations = {f"{method.upper()} {path}" for path, found in described["paths"].items() for method in found}
    n_met = sum(any(status < 300 for status in found) for found in statuses.values())
    make(cluster, "walked").walk(cluster, statuses, operations)
    without = sorted(
        one for one in operations if one not in NO_SUCCESS and not any(status < 300 for status in statuses[one])
    )
    by_class = Counter(f"{one['status'] // 100}xx" for one in answers)
    print(f"{len(answers)} cases of {len(operations)} operations, {dict(by_class)}; {n_met} met a 2xx before the walk")
    assert not without, {one: dict(statuses[one]) for one in without}
