"""1: what API, broker, workers, rows and aggregate add to the searches themselves.

`python -m bench.overhead [--questions N] [--rounds N] [--modes keyword]`. SciFact in three modes through the whole
service, and the same searches in a plain loop (bench/floor.py), by turns in one run; no cache.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import floor, machine, report, service
from bench.report import Report
from tests.e2e.cluster import Cluster

GOAL = 1.3
_SIZE = 50


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.overhead")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--modes", default=",".join(service.MODES))
    given = parser.parse_args(arguments)
    service.need_data()
    with service.running() as running:
        return measure(running, n=given.questions, n_rounds=given.rounds, modes=given.modes.split(","))


def measure(running: Cluster, *, n: int, n_rounds: int, modes: Sequence[str]) -> Report:
    n_processes = int(service.PRODUCTION["TOUCHSTONE_SEARCH_SLOTS"])
    body = {
        "scope": {"knowledge_base": service.scifact(running)},
        "modes": list(modes),
        "cache": False,
        "top_k": 10,
    }
    asked = service.question_set(running, n)
    # Warm: each child has its model and the words' file, as the floor's have.
    first = service.evaluate(running, {**body, "question_set": service.question_set(running, 200)})
    texts = [one["question"] for one in service.questions(n)]
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    with floor.running(running, floor.spec_of(running, first["id"]), n_processes=n_processes) as plain:
        for _ in range(n_rounds):
            ours.append(_ours(running, {**body, "question_set": asked}))
            theirs.append(_floor(running, plain, texts))
        # At once: what a shared machine does to one it does to the other. PostgreSQL's part cannot be told apart here.
        with ThreadPoolExecutor(1) as pool:
            own = pool.submit(_floor, running, plain, texts)
            together = {"ours": _ours(running, {**body, "question_set": asked})["ours"], "floor": own.result()["ours"]}
    made = Report(name="overhead", title=f"1. Overhead: {n:,} questions × {', '.join(modes)}")
    ratios = {key: _ratio(ours, theirs, key) for key in ("cpu", "seconds", "ours")}
    ratios["together"] = together["ours"] / together["floor"]
    report.at_most(made, "processor time, all processes, to the floor's", ratios["cpu"], goal=GOAL)
    report.at_most(made, "wall time to the floor's", ratios["seconds"], goal=GOAL, note=f"load {machine.load():.0f}")
    report.at_most(
        made,
        "processor time without PostgreSQL's, both at the same time",
        ratios["together"],
        goal=GOAL,
        note="what neighbours do to a shared core is the same for both",
    )
    made.add(
        "processor time without PostgreSQL's, to the floor's",
        f"{ratios['ours']:.2f} ×",
        note=f"{1000 * _mean(ours, 'ours') / n:.1f} and {1000 * _mean(theirs, 'ours') / n:.1f} ms a question",
    )
    made.raw = {
        "questions": n,
        "modes": list(modes),
        "ratios": ratios,
        "ours": ours,
        "floor": theirs,
        "together": together,
    }
    return made


def _ours(running: Cluster, body: dict[str, Any]) -> dict[str, float]:
    done = service.evaluate(running, body)
    cpu = done["cpu"]
    one = {"seconds": done["seconds"], "ours": service.ours(cpu), "cpu": sum(cpu.values()), "load": machine.load()}
    return told({**one, **{f"cpu {name}": value for name, value in cpu.items()}})


def _floor(running: Cluster, plain: floor.Floor, texts: Sequence[str]) -> dict[str, float]:
    before, postgres = plain.cpu(), service.cost(running)["postgres"]
    took = plain.search(texts, size=_SIZE)
    own, postgres = plain.cpu() - before, service.cost(running)["postgres"] - postgres
    return told({"seconds": took, "ours": own, "postgres": postgres, "cpu": own + postgres, "load": machine.load()})


def told(one: dict[str, float]) -> dict[str, float]:
    print({key: round(value, 2) for key, value in one.items()}, file=sys.stderr)
    return one


def _mean(rounds: Sequence[dict[str, float]], key: str) -> float:
    return statistics.mean(one[key] for one in rounds)


def _ratio(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]], key: str) -> float:
    """The median of the rounds' ratios: each pair ran side by side in time."""
    return statistics.median(one[key] / other[key] for one, other in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
    report.main(run, sys.argv[1:])
