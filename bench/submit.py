"""5: how long a submission waits, small and large, and what a poll costs while a run is busy.

`python -m bench.submit [--large N] [--times N]`. Keyword runs over a small base; each is cancelled as soon as it was
accepted.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from bench import report, service
from bench.report import Report
from tests.e2e.cluster import Cluster

GOAL = 1.5
MOST_QUERIES = 10
_SMALL = 100
# In a process of its own with the service's settings: how many statements one poll is.
_COUNT = """
import django; django.setup()
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
client = Client(SERVER_NAME="127.0.0.1", headers={{"Authorization": "Bearer {token}"}})
client.get("{path}")
with CaptureQueriesContext(connection) as caught:
    answer = client.get("{path}")
print(answer.status_code, len(caught))
"""


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.submit")
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--polls", type=int, default=200)
    given = parser.parse_args(arguments)
    service.need_data()
    made = Report(name="submit", title=f"5. Submitting {_SMALL} and {given.large:,} questions")
    with service.running() as running:
        base = service.scifact(running, n_documents=500)
        sets = {n: service.question_set(running, n) for n in (_SMALL, given.large)}
        took: dict[int, list[float]] = {n: [] for n in sets}
        for _ in range(given.times):
            for n, chosen in sets.items():
                body = {"question_set": chosen, "scope": {"knowledge_base": base}, "modes": ["keyword"]}
                started = time.monotonic()
                answer = running.http.post("evaluations", json=body)
                took[n].append((time.monotonic() - started) * 1000)
                if answer.status_code != 202:
                    raise SystemExit(answer.text)
                _cancelled(running, answer.json()["id"])
        small, large = (statistics.median(took[n]) for n in sets)
        report.at_most(
            made, "202 for the large set to the small", large / small, goal=GOAL, note=f"{large:.0f} and {small:.0f} ms"
        )
        made.raw["post_ms"] = {str(n): sorted(round(one, 1) for one in values) for n, values in took.items()}
        _polls(made, running, base, n_polls=given.polls)
    return made


def _cancelled(running: Cluster, key: str) -> None:
    running.http.post(f"evaluations/{key}/cancel")
    running.finished(key, seconds=120)


def _polls(made: Report, running: Cluster, base: str, *, n_polls: int) -> None:
    body: dict[str, Any] = {
        "question_set": service.question_set(running, 10_000),
        "scope": {"knowledge_base": base},
        "modes": list(service.MODES),
        "cache": False,
    }
    key = running.post("evaluations", body)["id"]
    running.wait(lambda: running.get(f"evaluations/{key}")["state"] == "running", "it to run", seconds=120)
    took = []
    for _ in range(n_polls):
        started = time.monotonic()
        state = running.get(f"evaluations/{key}")["state"]
        took.append((time.monotonic() - started) * 1000)
        if state != "running":
            break
        time.sleep(0.05)
    code = _COUNT.format(token=running.token, path=f"/api/v1/evaluations/{key}")
    status, n_queries = running.python("-c", code).split()[-2:]
    if status != "200":
        raise SystemExit(f"the poll whose statements are counted was answered {status}")
    _cancelled(running, key)
    p95 = statistics.quantiles(took, n=20)[-1]
    made.add(
        "a poll while 10,000 questions run",
        f"median {statistics.median(took):.0f} ms, p95 {p95:.0f} ms",
        note=f"{len(took)} polls beside workers on every core",
    )
    made.add(
        "statements a poll",
        n_queries,
        goal=f"at most {MOST_QUERIES}",
        holds=int(n_queries) <= MOST_QUERIES,
    )
    made.raw["poll"] = {"p50_ms": statistics.median(took), "p95_ms": p95, "n": len(took), "queries": int(n_queries)}


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
