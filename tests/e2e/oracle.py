"""What must hold after every fault: one row per run and question, nothing open, sums right, and the same numbers."""

from typing import Any

from tests.e2e.cluster import Cluster
from tests.e2e.shelf import Shelf

_PARTS = ("n_scored", "n_error", "n_cancelled", "n_not_run", "n_unanswerable", "n_without_expectation")


def submit(cluster: Cluster, shelf: Shelf, **fields: Any) -> str:
    body = {"question_set": shelf.question_set, "scope": {"knowledge_base": shelf.knowledge_base}, **fields}
    return str(cluster.post("evaluations", body)["id"])


def n_results(cluster: Cluster, evaluation: str, *, mode: str = "") -> int:
    rows = cluster.sql(
        "SELECT count(*) FROM backend_result x JOIN backend_run r ON r.id = x.run_id "
        "WHERE r.evaluation_id = %s AND (r.mode = %s OR %s = '')",
        evaluation,
        mode,
        mode,
    )
    return int(rows[0][0])


def ranks(cluster: Cluster, evaluation: str) -> dict[str, list[tuple[Any, ...]]]:
    """What every question of every run ended as, with its judged list: two undisturbed runs give the same."""
    rows = cluster.sql(
        """
        SELECT r.name, x.ordinal, x.outcome, x.code, x.first_rank, x.judged::text
        FROM backend_result x JOIN backend_run r ON r.id = x.run_id
        WHERE r.evaluation_id = %s ORDER BY r.name, x.ordinal
        """,
        evaluation,
    )
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name, *rest in rows:
        found.setdefault(name, []).append(tuple(rest))
    return found


def check_whole(cluster: Cluster, evaluation: str, shelf: Shelf, *, n_runs: int) -> Any:
    """One row per run and question, no open slice, sums right (also those that polls told while it went), and the mean
    that was stored is the rows' mean.

    Returns the evaluation.
    """
    rows = cluster.sql(
        "SELECT count(*), count(DISTINCT (x.run_id, x.ordinal)) FROM backend_result x "
        "JOIN backend_run r ON r.id = x.run_id WHERE r.evaluation_id = %s",
        evaluation,
    )
    assert rows == [(shelf.n_questions * n_runs,) * 2]
    assert _noted(cluster, evaluation) == {
        (run, outcome): int(n)
        for run, outcome, n in cluster.sql(
            "SELECT x.run_id, x.outcome, count(*) FROM backend_result x JOIN backend_run r ON r.id = x.run_id "
            "WHERE r.evaluation_id = %s GROUP BY 1, 2",
            evaluation,
        )
    }
    still_open = cluster.sql(
        "SELECT count(*) FROM backend_slice WHERE evaluation_id = %s AND state IN ('pending', 'queued', 'leased')",
        evaluation,
    )
    assert still_open == [(0,)]
    found = cluster.get(f"evaluations/{evaluation}")
    assert found["state"] in {"completed", "failed", "cancelled"}
    for run in found["runs"]:
        counts = run["counts"]
        assert counts["n_total"] == shelf.n_questions
        assert sum(counts[part] for part in _PARTS) == shelf.n_questions
        if "mrr@10" in run["metrics"]:
            _check_mean(cluster, run)
    return found


def _noted(cluster: Cluster, evaluation: str) -> dict[tuple[Any, str], int]:
    """Results by run and ending, as polls of an open evaluation sum them."""
    rows = cluster.sql(
        """
        SELECT p.run_id, p.outcome, sum(p.n) FROM backend_progressentry p
        JOIN backend_run r ON r.id = p.run_id JOIN backend_evaluation e ON e.id = r.evaluation_id
        WHERE e.id = %s AND (p.outcome IN ('ok', 'empty') OR p.epoch >= e.epoch) GROUP BY 1, 2
        """,
        evaluation,
    )
    return {(run, outcome): int(n) for run, outcome, n in rows}


def _check_mean(cluster: Cluster, run: Any) -> None:
    told = run["metrics"]["mrr@10"]
    ((n, mean),) = cluster.sql(
        "SELECT count(*), avg(CASE WHEN first_rank <= 10 THEN 1.0 / first_rank ELSE 0 END) FROM backend_result "
        "WHERE run_id = %s AND outcome IN ('ok', 'empty')",
        run["id"],
    )
    assert told["n"] == n
    if n:
        assert abs(told["mean"] - float(mean)) < 1e-9


def check_same(cluster: Cluster, evaluation: str, undisturbed: str) -> None:
    """Every question's end and every metric, bit for bit."""
    assert ranks(cluster, evaluation) == ranks(cluster, undisturbed)
    first, second = (cluster.get(f"evaluations/{key}")["runs"] for key in (undisturbed, evaluation))
    assert [run["metrics"] for run in first] == [run["metrics"] for run in second]


def check_drained(cluster: Cluster, *, seconds: float = 60) -> None:
    """No message waits. What a killed worker had not acknowledged stays noted until it is handed out again, much later,
    and is dropped then: it is not counted."""

    def drained() -> bool:
        with cluster.broker() as client:
            return [client.llen(f"touchstone:{lane}") for lane in ("search", "provider")] == [0, 0]

    cluster.wait(drained, "the broker to be drained", seconds=seconds)


def endings(cluster: Cluster, run: Any) -> dict[str, tuple[str, str]]:
    """Outcome and code by question."""
    rows = cluster.sql("SELECT question_key, outcome, code FROM backend_result WHERE run_id = %s", run["id"])
    return {key: (outcome, code) for key, outcome, code in rows}
