"""2: what a user would pick instead, on the same data, machine and model.

`python -m bench.peers [--questions N]`. The 40-line script of `script.py` runs in this environment. Each run of ours is
uncached. What comes from the cores and what from shared legs is told apart: the script as it is uses one core.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backend import env
from bench import machine, report, service
from bench.report import Report
from tests.e2e.cluster import Cluster

GOAL = 3.0


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.peers")
    parser.add_argument("--questions", type=int, default=600)
    n = parser.parse_args(arguments).questions
    service.need_data()
    made = Report(name="peers", title=f"2. Peers: {n} questions × {', '.join(service.MODES)}")
    with service.running() as running:
        base = service.scifact(running)
        body = {"scope": {"knowledge_base": base}, "modes": list(service.MODES), "cache": False, "top_k": 10}
        service.evaluate(running, {**body, "question_set": service.question_set(running, 200)})
        done = service.evaluate(running, {**body, "question_set": service.question_set(running, n)})
        ours = {"seconds": done["seconds"], "cpu": sum(done["cpu"].values())}
        index = str(running.sql("SELECT live_index_id FROM backend_knowledgebase WHERE id = %s", base)[0][0])
        theirs = _script(running, index, n)
    for run_ in done["runs"]:
        mean = run_["metrics"]["recall@10"]["mean"]
        made.add(
            f"recall@10 of {run_['name']}", f"{mean:.3f}", note=f"the script's {theirs['recall@10'][run_['name']]:.3f}"
        )
    report.at_least(
        made,
        "the 40-line script's time to ours",
        theirs["seconds"] / ours["seconds"],
        goal=GOAL,
        note=f"{theirs['seconds']:.0f} and {ours['seconds']:.0f} s; load {machine.load():.0f}",
    )
    made.add(
        "of that, by doing less: its processor time to ours",
        f"{theirs['cpu'] / ours['cpu']:.2f} ×",
        note=f"{1000 * theirs['cpu'] / n:.0f} and {1000 * ours['cpu'] / n:.0f} ms a question, PostgreSQL's included; "
        "the rest comes from the cores",
    )
    made.raw = {"questions": n, "ours": ours, "script": theirs}
    return made


def _script(running: Cluster, index: str, n: int) -> dict[str, Any]:
    parts = env.database(running.database_url)
    address = f"host={parts['HOST']} user={parts['USER']} dbname={parts['NAME']}"
    model = next((Path(running.environment["TOUCHSTONE_HOME"]) / "models").iterdir())
    asked = [
        {
            "question": one["question"],
            "expected": one.get("expected") or [each["path"] for each in one["expect"]],
        }
        for one in service.questions(n)
    ]
    before = service.cost(running)["postgres"]
    with tempfile.TemporaryDirectory(prefix="ts-peer-") as folder:
        file = Path(folder) / "questions.json"
        file.write_text(json.dumps(asked))
        done = subprocess.run(
            [sys.executable, "-m", "bench.peers.script", address, index, str(file)],
            env={**os.environ, "TOUCHSTONE_BENCH_MODEL": str(model)},
            cwd=service.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"the script failed:\n{done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    told["cpu"] += service.cost(running)["postgres"] - before
    return told


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
