"""The contextual-retrieval code set through the HTTP API: recall@5, @10, @20 beside the published pipelines.

`make measure-anthropic`, or `python -m bench.anthropic [--language english] [--rerank]`. Needs the reference data
beside the repository (or TOUCHSTONE_SHARED). Prints one JSON line.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.cluster import Cluster

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TOUCHSTONE_SHARED", ROOT.parent / "shared")) / "data" / "anthropic-code"
UPLOAD = 200
MODES = ["semantic", "keyword", "hybrid"]
KS = [5, 10, 20]


def lines(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / name).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def ingest(service: Cluster, *, language: str) -> tuple[str, dict[str, Any]]:
    """Each of the set's own chunks as one document of one passage, so that its labels are ours."""
    settings = {"chunking": {"mode": "document"}, "keyword": {"language": language}}
    base = service.post("knowledge-bases", {"name": f"code {language}", "settings": settings})["id"]
    started = time.monotonic()
    chunks = list(lines("corpus.jsonl"))
    for start in range(0, len(chunks), UPLOAD):
        some = chunks[start : start + UPLOAD]
        service.http.post(
            f"knowledge-bases/{base}/documents",
            files=[("file", (f"{one['_id']}.txt", one["text"].encode(), "text/plain")) for one in some],
            data={"path": [f"{one['_id']}.txt" for one in some]},
        ).raise_for_status()
    while True:
        state = service.get(f"knowledge-bases/{base}")
        if state["n_pending"] == 0 and state["state"] == "ready":
            break
        time.sleep(5)
    return base, {
        "ingest_s": round(time.monotonic() - started, 1),
        "n_indexed": state["n_indexed"],
        "n_failed": state["n_failed"],
        "n_chunks_truncated": state["n_chunks_truncated"],
    }


def make_set(service: Cluster) -> str:
    relevant: dict[str, list[str]] = {}
    for row in (DATA / "qrels.tsv").read_text().splitlines()[1:]:
        question, chunk, _ = row.split("\t")
        relevant.setdefault(question, []).append(f"{chunk}.txt")
    questions = [
        {"id": one["_id"], "question": one["text"], "expected": relevant[one["_id"]]} for one in lines("queries.jsonl")
    ]
    return str(service.post("question-sets", {"name": "code", "questions": questions})["id"])


def evaluate(service: Cluster, *, base: str, question_set: str, modes: list[str]) -> dict[str, Any]:
    body = {
        "question_set": question_set,
        "scope": {"knowledge_base": base},
        "modes": modes,
        "top_k": max(KS),
        "k": KS,
        "cache": False,
    }
    started = time.monotonic()
    final = service.finished(service.post("evaluations", body)["id"], seconds=1800)
    out: dict[str, Any] = {"evaluate_s": round(time.monotonic() - started, 1), "state": final["state"]}
    for run in final["runs"]:
        out[run["name"]] = {
            **{f"recall@{k}": round(100 * run["metrics"][f"recall@{k}"]["mean"], 2) for k in KS},
            "n": run["metrics"]["recall@20"]["n"],
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--language", default="english", help="the keyword configuration")
    parser.add_argument("--rerank", action="store_true", help="the local blend too: seconds a question on two cores")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"The code set is not at {DATA}: set TOUCHSTONE_SHARED to the folder with the reference data.")
    with tempfile.TemporaryDirectory(prefix="ts-code-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        settings = {
            "TOUCHSTONE_LEASE_SECONDS": "30",
            "TOUCHSTONE_DOORBELL_LOST_SECONDS": "60",
            "TOUCHSTONE_TICK_SECONDS": "5",
        }
        with Cluster(Path(folder), settings=settings) as service:
            question_set = make_set(service)
            base, ingested = ingest(service, language=arguments.language)
            modes = [*MODES, *(["hybrid_rerank"] if arguments.rerank else [])]
            found = evaluate(service, base=base, question_set=question_set, modes=modes)
            print(json.dumps({"language": arguments.language, **ingested, **found}))


if __name__ == "__main__":
    main()
