"""4: the same evaluation again: no provider call, and a third of the time.

`python -m bench.again [--questions N] [--documents N]`. Semantic, keyword, hybrid and `hybrid_rerank` against a
provider that takes 300 ms a call.
"""

import argparse
import sys
from collections.abc import Sequence

from bench import report, service, standin
from bench.report import Report

GOAL = 1 / 3
_FORGET = ("DELETE FROM backend_cachedembedding", "DELETE FROM backend_cachedscore")


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.again")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--documents", type=int, default=None, help="only the first N of SciFact")
    given = parser.parse_args(arguments)
    service.need_data()
    n = given.questions
    made = Report(name="again", title=f"4. Again, unchanged: {n} questions in four modes")
    with standin.running() as provider, service.running(provider.settings()) as running:
        body = {
            "question_set": service.question_set(running, n),
            "scope": {"knowledge_base": service.scifact(running, n_documents=given.documents)},
            "modes": [*service.MODES, "hybrid_rerank"],
            "reranker": standin.COHERE,
        }
        provider.tell()
        # Warm workers, without touching the cache.
        service.evaluate(running, {**body, "question_set": service.question_set(running, 200), "cache": False})
        for statement in _FORGET:
            running.sql(statement)
        provider.tell(latency_seconds=0.3)
        first = service.evaluate(running, body)
        n_first = len(provider.started_at())
        provider.tell(latency_seconds=0.3)
        second = service.evaluate(running, body)
        n_second = len(provider.started_at())
    made.add("calls of the second run", str(n_second), goal="none", holds=n_second == 0, note=f"{n_first} of the first")
    report.at_most(
        made,
        "time of the second to the first",
        second["seconds"] / first["seconds"],
        goal=round(GOAL, 2),
        note=f"{second['seconds']:.1f} and {first['seconds']:.1f} s",
    )
    same = [one["metrics"] for one in first["runs"]] == [one["metrics"] for one in second["runs"]]
    made.add("metrics", "the same" if same else "different", goal="the same", holds=same)
    made.raw = {
        name: {key: one[key] for key in ("seconds", "cpu")} for name, one in {"first": first, "second": second}.items()
    } | {"calls": [n_first, n_second]}
    return made


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
