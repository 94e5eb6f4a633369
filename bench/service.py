"""The service that is measured: real processes over a folder that is kept, so that SciFact is embedded only once.

The folder is TOUCHSTONE_BENCH_FOLDER, or .touchstone/bench. Times and durability are those of production, not those of
the tests.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench import machine
from tests.e2e.cluster import WORKERS, Cluster

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TOUCHSTONE_SHARED", ROOT.parent / "shared")) / "data" / "scifact"
FOLDER = Path(os.environ.get("TOUCHSTONE_BENCH_FOLDER", ROOT / ".touchstone" / "bench"))
MODES = ("semantic", "keyword", "hybrid")
BASE = "scifact"
_UPLOAD = 200
# The times of production, not those of the fault tests.
PRODUCTION = {
    "TOUCHSTONE_LEASE_SECONDS": "30",
    "TOUCHSTONE_DOORBELL_LOST_SECONDS": "60",
    "TOUCHSTONE_TICK_SECONDS": "5",
    "TOUCHSTONE_SEARCH_SLOTS": str(os.cpu_count() or 2),
    "TOUCHSTONE_LOG_LEVEL": "WARNING",
}


@contextlib.contextmanager
def running(settings: Mapping[str, str] | None = None, *, folder: Path = FOLDER) -> Iterator[Cluster]:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for log in folder.glob("*.log"):
        log.unlink()
    with Cluster(folder, settings={**PRODUCTION, **(settings or {})}) as service:
        # What the tests leave out: each commit waits for the disk, as it does for users.
        service.sql("ALTER SYSTEM RESET fsync")
        service.sql("SELECT pg_reload_conf()")
        service.wait(lambda: n_workers(service) >= len(WORKERS), "the workers to be ready", seconds=240)
        yield service


def n_workers(service: Cluster, names: str = "worker:%") -> int:
    """How many of these have shown life lately."""
    rows = service.sql("SELECT count(*) FROM backend_pulse WHERE name LIKE %s AND at > now() - interval '30 s'", names)
    return int(rows[0][0])


# ---- SciFact
def need_data() -> None:
    if not DATA.is_dir():
        raise SystemExit(f"SciFact is not at {DATA}: set TOUCHSTONE_SHARED to the folder with the reference data.")


@lru_cache(maxsize=1)
def documents() -> tuple[dict[str, Any], ...]:
    with (DATA / "corpus.jsonl").open(encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


def questions(n: int) -> list[dict[str, Any]]:
    """The set's 300 claims with their judgements, then the titles of documents as questions that expect these."""
    relevant: dict[str, list[dict[str, Any]]] = {}
    for row in (DATA / "qrels.tsv").read_text().splitlines()[1:]:
        key, document, grade = row.split("\t")
        relevant.setdefault(key, []).append({"path": f"{document}.txt", "grade": int(grade)})
    with (DATA / "queries.jsonl").open(encoding="utf-8") as file:
        claims = [json.loads(line) for line in file]
    found = [{"id": one["_id"], "question": one["text"], "expect": relevant[one["_id"]]} for one in claims]
    # Past the 5,483 that differ, titles come again with a number: no two questions are the same text.
    at = 0
    while len(found) < n:
        one = documents()[at % len(documents())]
        again = "" if at < len(documents()) else f" ({at // len(documents())})"
        found.append({"id": f"t{at}", "question": f"{one['title']}{again}", "expected": [f"{one['_id']}.txt"]})
        at += 1
    return found[:n]


def scifact(service: Cluster, *, n_documents: int | None = None) -> str:
    """The base with all abstracts, each one passage; made where it is not there yet, which takes minutes."""
    wanted = len(documents()) if n_documents is None else n_documents
    name = BASE if n_documents is None else f"{BASE} {n_documents}"
    for base in service.get("knowledge-bases")["results"]:
        # What an earlier try left half-way has fewer.
        if base["name"] == name and service.get(f"knowledge-bases/{base['id']}")["n_indexed"] == wanted:
            return str(base["id"])
    settings = {"chunking": {"mode": "document"}, "keyword": {"language": "english"}}
    made = str(service.post("knowledge-bases", {"name": name, "settings": settings})["id"])
    upload(service, made, documents()[:wanted])
    wait_indexed(service, made)
    return made


def upload(service: Cluster, base: str, some: Sequence[Mapping[str, Any]]) -> None:
    for start in range(0, len(some), _UPLOAD):
        batch = some[start : start + _UPLOAD]
        service.http.post(
            f"knowledge-bases/{base}/documents",
            files=[
                ("file", (f"{one['_id']}.txt", f"{one['title']}\n\n{one['text']}".encode(), "text/plain"))
                for one in batch
            ],
            data={"path": [f"{one['_id']}.txt" for one in batch]},
        ).raise_for_status()


def wait_indexed(service: Cluster, base: str, *, pause: float = 1.0) -> None:
    while True:
        state = service.get(f"knowledge-bases/{base}")
        print(f"\r{state['n_indexed']} indexed, {state['n_pending']} to come ", end="", file=sys.stderr, flush=True)
        if state["n_pending"] == 0 and state["state"] == "ready":
            print(file=sys.stderr)
            return
        time.sleep(pause)


def question_set(service: Cluster, n: int) -> str:
    name = f"{n} questions"
    for one in service.get("question-sets")["results"]:
        if one["name"] == name:
            return str(one["id"])
    return str(service.post("question-sets", {"name": name, "questions": questions(n)})["id"])


# ---- runs
def evaluate(
    service: Cluster, body: Mapping[str, Any], *, seconds: float = 3600, pause: float = 0.25
) -> dict[str, Any]:
    """Submit, and poll to the end; with the seconds that passed and that the processor spent, ours and PostgreSQL's."""
    before = cost(service)
    started = time.monotonic()
    answered = service.post("evaluations", body)
    posted, pause = time.monotonic() - started, 0.2
    while True:
        final = service.get(f"evaluations/{answered['id']}")
        if final["state"] in {"completed", "failed", "cancelled"}:
            break
        if time.monotonic() - started > seconds:
            raise SystemExit(f"the evaluation is still {final['state']} after {seconds:.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.2, 2.0)
    after = cost(service)
    if final["state"] != "completed":
        raise SystemExit(f"the evaluation ended {final['state']}: {final.get('reason')}")
    return {
        "id": answered["id"],
        "seconds": posted + (_at(final["finished_at"]) - _at(final["created_at"])).total_seconds(),
        "post_ms": posted * 1000,
        "cpu": {name: after[name] - before[name] for name in before},
        "runs": final["runs"],
    }


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def cost(service: Cluster) -> dict[str, float]:
    """Seconds of processor time so far, by process; `postgres` with all its sessions."""
    folder = Path(service.sql("SHOW data_directory")[0][0])
    postmaster = int((folder / "postmaster.pid").read_text().splitlines()[0])
    return {
        **{name: machine.spent([service.pid(name)]) for name in service.names},
        "postgres": machine.spent([postmaster]),
        "broker": machine.spent([service.broker_pid]),
    }


def ours(cpu: Mapping[str, float]) -> float:
    """Everything but PostgreSQL, whose searches the floor has as well."""
    return sum(value for name, value in cpu.items() if name != "postgres")
