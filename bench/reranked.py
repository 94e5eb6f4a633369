"""3: a reranked set against a provider that takes 300 ms a call, and how much of a rate limit is used.

`python -m bench.reranked [--questions N] [--documents N]`. `hybrid_rerank` by the cohere SDK, 32 calls in flight; then
by a reranker whose limit is 600 calls a minute.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from bench import report, service, standin
from bench.report import Report
from bench.standin import PACED, PACED_A_MINUTE, Provider
from tests.e2e.cluster import Cluster

LATENCY = 0.3
SLOTS = 32
GOAL, RATE_GOAL = 1.15, 0.95


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.reranked")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--documents", type=int, default=None, help="only the first N of SciFact")
    parser.add_argument("--paced", type=int, default=700, help="questions under the limit; 0 leaves it out")
    given = parser.parse_args(arguments)
    service.need_data()
    made = Report(name="reranked", title=f"3. Reranked: {given.questions} questions at {LATENCY * 1000:.0f} ms a call")
    with standin.running() as provider, service.running(provider.settings()) as running:
        base = service.scifact(running, n_documents=given.documents)
        body = {
            "question_set": service.question_set(running, given.questions),
            "scope": {"knowledge_base": base},
            "cache": False,
        }
        _at_300_ms(made, running, provider, body, n=given.questions)
        if given.paced:
            body["question_set"] = service.question_set(running, given.paced)
            _paced(made, running, provider, body, n=given.paced)
    return made


def _at_300_ms(made: Report, running: Cluster, provider: Provider, body: dict[str, Any], *, n: int) -> None:
    body = {**body, "modes": ["hybrid_rerank"], "reranker": standin.COHERE}
    provider.tell()
    few = {**body, "question_set": service.question_set(running, 200)}
    # What a worker does once: the SDK's import, the model, the words' file.
    service.evaluate(running, few)
    provider.tell(latency_seconds=LATENCY)
    done = service.evaluate(running, body)
    calls = provider.started_at()
    most = provider.statistics()["max_in_flight"]
    bound = n * LATENCY / SLOTS
    cpu = done["cpu"]
    report.at_most(
        made,
        f"{done['seconds']:.1f} s to the bound of {bound:.1f} s",
        done["seconds"] / bound,
        goal=GOAL,
        note=f"{most} calls in flight at most; one after the other {n * LATENCY:.0f} s",
    )
    total = sum(cpu.values())
    spent = ", ".join(f"{name} {1000 * value / n:.1f}" for name, value in sorted(cpu.items(), key=lambda one: -one[1]))
    made.add(
        "processor time a question",
        f"{1000 * total / n:.1f} ms",
        note=f"{spent}. The bound leaves {1000 * bound * 2 / n:.1f} ms on two cores",
    )
    made.raw["at_300_ms"] = {
        "questions": n,
        "seconds": done["seconds"],
        "bound": bound,
        "calls": len(calls),
        "calls_within": calls[-1] - calls[0] + LATENCY if calls else None,
        "max_in_flight": most,
        "cpu": cpu,
    }


def _paced(made: Report, running: Cluster, provider: Provider, body: dict[str, Any], *, n: int) -> None:
    provider.tell()
    one = {"mode": "keyword_rerank", "reranker": PACED, "rerank_depth": 20}
    done = service.evaluate(running, {**body, "configurations": [one]})
    calls = provider.started_at()
    by_status = provider.statistics()["by_status"]
    # The first second's burst is leave of the time before: what counts is the rate that was kept.
    rate = (len(calls) - 1) / (calls[-1] - calls[0]) * 60 if len(calls) > 1 else 0.0
    most = max(sum(1 for at in calls if start <= at < start + 60) for start in calls)
    report.at_least(
        made,
        f"{n} calls under a limit of {PACED_A_MINUTE} a minute: the part that is used",
        rate / PACED_A_MINUTE,
        goal=RATE_GOAL,
        note=f"at most {most} in any minute",
    )
    made.add(
        "calls that a provider with this limit would refuse",
        str(max(0, most - PACED_A_MINUTE)),
        goal="none",
        holds=most <= PACED_A_MINUTE and set(by_status) == {"200"},
    )
    made.raw["paced"] = {"calls": len(calls), "seconds": done["seconds"], "rate": rate, "most_in_a_minute": most}


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
