"""SciFact through the HTTP API of a real service: ingest, evaluate, export, and score again with pytrec_eval.

`make measure`, or `python -m bench.scifact [--documents N] [--chunking document|structure]`. Needs the reference data
data beside the repository (or TOUCHSTONE_SHARED). Prints one JSON line per base with the figures.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytrec_eval

from bench.service import upload
from tests.e2e.cluster import Cluster

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TOUCHSTONE_SHARED", ROOT.parent / "shared")) / "data" / "scifact"
MODES = ["semantic", "keyword", "hybrid"]


def lines(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / name).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def qrels() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    rows = (DATA / "qrels.tsv").read_text().splitlines()[1:]
    for row in rows:
        question, document, grade = row.split("\t")
        found.setdefault(question, {})[f"{document}.txt"] = int(grade)
    return found


def ingest(service: Cluster, *, chunking: str, n_documents: int | None) -> tuple[str, dict[str, Any]]:
    settings = {"chunking": {"mode": chunking}, "keyword": {"language": "english"}}
    base = service.post("knowledge-bases", {"name": f"scifact {chunking}", "settings": settings})["id"]
    started = time.monotonic()
    documents = list(lines("corpus.jsonl"))[:n_documents]
    upload(service, base, documents)
    uploaded = time.monotonic() - started
    while True:
        state = service.get(f"knowledge-bases/{base}")
        counts = {name: value for name, value in state.items() if name.startswith("n_")}
        print(f"\r{chunking}: {json.dumps(counts)} {time.monotonic() - started:.0f} s", end="", file=sys.stderr)
        if counts["n_pending"] == 0 and state["state"] == "ready":
            break
        time.sleep(5)
    print(file=sys.stderr)
    return base, {
        "upload_s": round(uploaded, 1),
        "ingest_s": round(time.monotonic() - started, 1),
        "counts": counts,
        "n_chunks_truncated": state.get("n_chunks_truncated"),
    }


def make_set(service: Cluster) -> str:
    relevant = qrels()
    questions = [
        {
            "id": one["_id"],
            "question": one["text"],
            "expect": [{"path": path, "grade": grade} for path, grade in relevant[one["_id"]].items()],
        }
        for one in lines("queries.jsonl")
    ]
    return str(service.post("question-sets", {"name": "scifact", "questions": questions})["id"])


def evaluate(service: Cluster, *, base: str, question_set: str) -> dict[str, Any]:
    started = time.monotonic()
    body = {"question_set": question_set, "scope": {"knowledge_base": base}, "modes": MODES, "cache": False}
    submitted = service.post("evaluations", body)
    answered = time.monotonic() - started
    final = service.finished(submitted["id"], seconds=1800)
    took = time.monotonic() - started
    out: dict[str, Any] = {"post_ms": round(answered * 1000), "evaluate_s": round(took, 1), "state": final["state"]}
    for run in final["runs"]:
        ours = {key: value["mean"] for key, value in run["metrics"].items()}
        text = service.http.get(f"runs/{run['id']}/export", params={"format": "trec_run"}).raise_for_status().text
        theirs = scored(text)
        out[run["name"]] = {
            "ndcg@10": round(ours["ndcg@10"], 4),
            "recall@10": round(ours["recall@10"], 4),
            "mrr@10": round(ours["mrr@10"], 4),
            "n": run["metrics"]["ndcg@10"]["n"],
            "pytrec_eval ndcg@10": round(theirs["ndcg_cut_10"], 4),
            "difference": max(
                abs(ours["ndcg@10"] - theirs["ndcg_cut_10"]), abs(ours["recall@10"] - theirs["recall_10"])
            ),
            "latency_ms": run["timings"]["latency_ms"],
        }
    return out


def scored(trec_run: str) -> dict[str, float]:
    """Means over all judged questions, a missing one as 0, by pytrec_eval on the exported run."""
    run: dict[str, dict[str, float]] = {}
    for line in trec_run.splitlines():
        question, _, document, _, score, _ = line.split()
        run.setdefault(question, {})[document] = float(score)
    judged = qrels()
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "recall.10"})
    found = evaluator.evaluate(run)
    return {
        name: sum(found.get(question, {}).get(name, 0.0) for question in judged) / len(judged)
        for name in ("ndcg_cut_10", "recall_10")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=None, help="only the first N documents (for trying it out)")
    parser.add_argument("--chunking", choices=["document", "structure"], action="append")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"SciFact is not at {DATA}: set TOUCHSTONE_SHARED to the folder with the reference data.")
    with tempfile.TemporaryDirectory(prefix="ts-scifact-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        # The times of production, not those of the fault tests.
        settings = {
            "TOUCHSTONE_LEASE_SECONDS": "30",
            "TOUCHSTONE_DOORBELL_LOST_SECONDS": "60",
            "TOUCHSTONE_TICK_SECONDS": "5",
        }
        with Cluster(Path(folder), settings=settings) as service:
            question_set = make_set(service)
            for chunking in arguments.chunking or ["document", "structure"]:
                base, ingested = ingest(service, chunking=chunking, n_documents=arguments.documents)
                print(
                    json.dumps(
                        {"chunking": chunking, **ingested, **evaluate(service, base=base, question_set=question_set)}
                    )
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
