"""2: what a user would pick instead, on the same data, machine and model.

`python -m bench.peers [--questions N] [--only script]`. Each peer's settings stand in its own file. The script runs in
this environment, the frameworks in one of their own (TOUCHSTONE_BENCH_PEERS, by default beside the bench's folder),
made from requirements.txt when it is not there. Runs of ours are uncached. What comes from the cores and what from
shared legs is told apart by processor time: a peer may use one core and ask everything three times.
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
from bench import report, service
from bench.report import Report
from tests.e2e.cluster import Cluster

GOAL = 3.0
# By name: the module, and what it is called.
PEERS = {
    "script": "the 40-line script",
    "llama": "LlamaIndex's RetrieverEvaluator over PGVectorStore",
    "haystack_": "Haystack's pipelines and evaluators over pgvector",
}
FOLDER = Path(os.environ.get("TOUCHSTONE_BENCH_PEERS", service.FOLDER.parent / "bench-peers"))


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.peers")
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--only", choices=list(PEERS), action="append")
    given = parser.parse_args(arguments)
    n = given.questions
    service.need_data()
    wanted = given.only or list(PEERS)
    python = _environment() if any(name != "script" for name in wanted) else ""
    made = Report(name="peers", title=f"2. Peers: {n} questions × {', '.join(service.MODES)}")
    with service.running() as running:
        base = service.scifact(running)
        body = {"scope": {"knowledge_base": base}, "modes": list(service.MODES), "cache": False, "top_k": 10}
        service.evaluate(running, {**body, "question_set": service.question_set(running, 200)})
        done = service.evaluate(running, {**body, "question_set": service.question_set(running, n)})
        ours = {"seconds": done["seconds"], "cpu": sum(done["cpu"].values())}
        index = str(running.sql("SELECT live_index_id FROM backend_knowledgebase WHERE id = %s", base)[0][0])
        theirs = {
            name: _peer(running, name, index, n, python=sys.executable if name == "script" else python)
            for name in wanted
        }
    own = {one["name"]: one["metrics"]["recall@10"]["mean"] for one in done["runs"]}
    made.add("ours", f"{ours['seconds']:.1f} s", note=_found(own))
    for name, one in theirs.items():
        report.at_least(
            made,
            f"{PEERS[name]}: its time to ours",
            one["seconds"] / ours["seconds"],
            goal=GOAL,
            note=f"{one['seconds']:.0f} s; {_found(one['recall@10'])}",
        )
        made.add(
            "of that, by doing less: its processor time to ours",
            f"{one['cpu'] / ours['cpu']:.2f} ×",
            note=f"{1000 * one['cpu'] / n:.0f} and {1000 * ours['cpu'] / n:.0f} ms a question, PostgreSQL's included; "
            f"it kept {one['cpu'] / one['seconds']:.1f} cores busy, ours {ours['cpu'] / ours['seconds']:.1f}",
        )
    made.raw = {"questions": n, "ours": ours, **theirs}
    return made


def _found(recall: dict[str, float]) -> str:
    return "recall@10 " + ", ".join(f"{name} {value:.3f}" for name, value in recall.items())


def _environment() -> str:
    """The Python of the frameworks' environment."""
    python = FOLDER / "bin" / "python"
    if not python.exists():
        uv = Path(sys.executable).parent / "uv"
        subprocess.run([str(uv), "venv", "--quiet", "--python", sys.executable, str(FOLDER)], check=True)
        listed = Path(__file__).with_name("requirements.txt")
        subprocess.run([str(uv), "pip", "install", "--quiet", "--python", str(python), "-r", str(listed)], check=True)
    return str(python)


def _peer(running: Cluster, name: str, index: str, n: int, *, python: str) -> dict[str, Any]:
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
            [python, "-m", f"bench.peers.{name}", address, index, str(file)],
            env={**os.environ, "TOUCHSTONE_BENCH_MODEL": str(model), "PYTHONPATH": str(service.ROOT)},
            cwd=service.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    told["cpu"] += service.cost(running)["postgres"] - before
    return told


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
