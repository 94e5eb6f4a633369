"""What the fault tests share: looks behind the service, doorbells rung by hand, and the check after each fault."""

import signal
from typing import Any

from celery import Celery

from backend import env
from tests.e2e import oracle
from tests.e2e.cluster import WORKERS, Cluster
from tests.e2e.shelf import Shelf, document

N_QUESTIONS = 60
MODES: dict[str, Any] = {"modes": ["keyword", "keyword_rerank"], "reranker": "http:near", "cache": False}
WORDS: dict[str, Any] = {"modes": ["keyword"], "cache": False}
# Of the reranker `paced`, the same server.
PER_MINUTE = 600
SETTINGS = {
    # A pool of up to 50 passages goes in one call.
    **{f"TOUCHSTONE_RERANK_{name}_BATCH": "64" for name in ("NEAR", "PACED")},
    **{f"TOUCHSTONE_RERANK_{name}_SHAPE": "tei" for name in ("NEAR", "PACED")},
    "TOUCHSTONE_RATE_HTTP_PACED": str(PER_MINUTE),
    "TOUCHSTONE_PROVIDER_STALL_SECONDS": "30",
    "TOUCHSTONE_PROVIDER_PROBE_SECONDS": "1",
    "TOUCHSTONE_SEARCH_SLOTS": "2",
    "TOUCHSTONE_PROVIDER_SLOTS": "16",
    # Long enough for a heartbeat that waits for a busy processor.
    "TOUCHSTONE_LEASE_SECONDS": "6",
}
# Questions of a search slice, for 60 of them and two search slots.
SLICE = 4


def settings(url: str) -> dict[str, str]:
    """Of a service whose rerankers `near` and `paced` are at this address."""
    return {**SETTINGS, **{f"TOUCHSTONE_RERANK_{name}_URL": url for name in ("NEAR", "PACED")}}


def all_start(cluster: Cluster) -> None:
    """Start what an earlier test left dead, frozen or doubled."""
    for name in cluster.names:
        if name not in {"web", "beat", *WORKERS}:
            cluster.kill(name)
    for name in ("beat", *WORKERS):
        if not cluster.has(name):
            cluster.start(name)
        cluster.kill(name, number=signal.SIGCONT)
    revive_workers(cluster)


def check(cluster: Cluster, evaluation: str, shelf: Shelf, undisturbed: str, *, seconds: float = 300) -> Any:
    """It completed, and nobody can tell from its results that anything had happened."""
    final = cluster.finished(evaluation, seconds=seconds)
    assert final["state"] == "completed", final
    oracle.check_whole(cluster, evaluation, shelf, n_runs=2)
    oracle.check_same(cluster, evaluation, undisturbed)
    return final


def leased(cluster: Cluster, evaluation: str, *, kind: str = "search") -> int:
    rows = cluster.sql(
        "SELECT count(*) FROM backend_slice WHERE evaluation_id = %s AND kind = %s AND state = 'leased'",
        evaluation,
        kind,
    )
    return int(rows[0][0])


def deaths(cluster: Cluster, evaluation: str) -> int:
    rows = cluster.sql("SELECT COALESCE(sum(deaths), 0) FROM backend_slice WHERE evaluation_id = %s", evaluation)
    return int(rows[0][0])


def in_mid_slice(cluster: Cluster, evaluation: str, *, kind: str = "search") -> None:
    cluster.wait(lambda: leased(cluster, evaluation, kind=kind) >= 1, f"a {kind} slice to be worked on", seconds=180)


def gets_on(cluster: Cluster, evaluation: str, *, n: int) -> None:
    cluster.wait(lambda: oracle.n_results(cluster, evaluation) >= n, f"{n} results", seconds=180)


def revive_workers(cluster: Cluster) -> int:
    """Start again what died of the workers, as a supervisor does. Returns how many."""
    dead = [name for name in WORKERS if not cluster.runs(name)]
    for name in dead:
        cluster.ended(name, seconds=5)
        cluster.start(name)
    return len(dead)


def ring(cluster: Cluster, *, lane: str, task: str = "touchstone.work", **what: Any) -> None:
    app = Celery("tests", broker=env.redis_for_celery(cluster.redis_url))
    app.conf.broker_transport_options = {"global_keyprefix": "touchstone:"}
    app.send_task(task, kwargs=what, queue=lane, ignore_result=True)
    app.close()


def with_a(word: str, *, cluster: Cluster, shelf: Shelf, n: int = 20) -> Shelf:
    """A set over the shelf's documents, the sixth question of which (q5) ends in the word."""
    questions = [
        {
            "id": f"q{number}",
            "question": f"order {1000 + number} {word if number == 5 else 'fine'}",
            "expected": [document(number)[0]],
        }
        for number in range(n)
    ]
    made = cluster.post("question-sets", {"name": f"with {word}", "questions": questions})
    return Shelf(knowledge_base=shelf.knowledge_base, question_set=made["id"], n_questions=n)
