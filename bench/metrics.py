"""8: our metrics and comparison beside pytrec_eval (C) and ranx (numba), on 10,000 rankings of 100.

`python -m bench.metrics [--questions N]`. Seconds of processor time, no service. ranx is in no install of ours: it
brings numba and pandas. `uv pip install --group bench`, or TOUCHSTONE_BENCH_RANX names a Python that has it.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backend.core.measuring import Measurer
from bench import numbers, report
from bench.report import Report

LENGTH = 100
_THEIRS = {
    "hit@10": "hit_rate@10",
    "recall@10": "recall@10",
    "mrr@10": "mrr@10",
    "ndcg@10": "ndcg@10",
    "map@10": "map@10",
}
# Run by the Python that has ranx; twice, since numba compiles at the first use.
_RANX = """
import json, sys, time
started = time.process_time()
import numpy
import ranx
imported = time.process_time() - started
with open(sys.argv[1]) as file:
    given = json.load(file)
told = {"import_s": imported}
qrels = ranx.Qrels(given["qrels"])
for which in ("first", "second"):
    started = time.process_time()
    runs = [ranx.Run(one, name=str(at)) for at, one in enumerate(given["runs"])]
    means = [ranx.evaluate(qrels, one, given["metrics"]) for one in runs]
    told[which + "_s"] = time.process_time() - started
started = time.process_time()
ranx.compare(qrels, runs, given["metrics"], stat_test="fisher")
told["compare_s"] = time.process_time() - started
told["means"] = {key: float(value) for key, value in means[0].items()}
print(json.dumps(told))
"""


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.metrics")
    parser.add_argument("--questions", type=int, default=10_000)
    n = parser.parse_args(arguments).questions
    relevant, runs = numbers.made(n, 2, length=LENGTH)
    stored, judging_s = numbers.timed(
        lambda: [numbers.judged_lists(relevant, rankings, top_k=LENGTH) for rankings in runs]
    )
    computed, metrics_s = numbers.timed(lambda: [numbers.values(one, Measurer(numbers.KEYS)) for one in stored])
    sides = numbers.sides_of(computed, top_k=LENGTH)
    _, comparing_s = numbers.timed(lambda: numbers.compare(sides, n))
    theirs = [numbers.trec(relevant, [one[: numbers.TOP_K] for one in rankings]) for rankings in runs]
    trec_s = sum(took for _, took in theirs)
    off = numbers.largest_difference(computed, theirs)
    made = Report(name="metrics", title=f"8. Metrics: {n:,} rankings of {LENGTH}, two runs (seconds of processor time)")
    made.add("judging 100 places against labels", f"{judging_s:.1f} s", note="pytrec_eval and ranx compare ids only")
    made.add(f"our {len(numbers.KEYS)} metrics", f"{metrics_s:.1f} s")
    made.add(f"pytrec_eval, {len(numbers.SAME)} metrics", f"{trec_s:.1f} s")
    made.add(
        "largest difference to pytrec_eval, over all questions", f"{off:.1g}", goal="below 1e-12", holds=off < 1e-12
    )
    made.add("our comparison: every metric with its interval, the primary one tested", f"{comparing_s:.1f} s")
    made.raw = {
        "questions": n,
        "judging_s": judging_s,
        "metrics_s": metrics_s,
        "pytrec_eval_s": trec_s,
        "comparing_s": comparing_s,
        "difference": off,
    }
    _beside_ranx(made, relevant, runs, computed)
    return made


def _beside_ranx(
    made: Report,
    relevant: list[dict[str, int]],
    runs: list[list[list[str]]],
    computed: list[dict[str, dict[str, float | None]]],
) -> None:
    python = os.environ.get("TOUCHSTONE_BENCH_RANX") or (sys.executable if importlib.util.find_spec("ranx") else "")
    if not python:
        made.add("ranx", "not here", goal="beside ours", note="uv pip install --group bench")
        return
    given = {
        "qrels": {f"q{at}": one for at, one in enumerate(relevant)},
        "runs": [
            {f"q{at}": {key: float(LENGTH - place) for place, key in enumerate(one)} for at, one in enumerate(rankings)}
            for rankings in runs
        ],
        "metrics": list(_THEIRS.values()),
    }
    with tempfile.TemporaryDirectory(prefix="ts-ranx-") as folder:
        file = Path(folder) / "given.json"
        file.write_text(json.dumps(given))
        done = subprocess.run([python, "-c", _RANX, str(file)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"ranx failed:\n{done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    made.add("ranx: its import", f"{told['import_s']:.1f} s")
    made.add(f"ranx, {len(_THEIRS)} metrics, first use (numba compiles)", f"{told['first_s']:.1f} s")
    made.add(f"ranx, {len(_THEIRS)} metrics, again", f"{told['second_s']:.1f} s", note="with making its own structures")
    made.add("ranx: comparing two runs (Fisher)", f"{told['compare_s']:.1f} s")
    for ours, their in _THEIRS.items():
        values = [value for value in computed[0][ours].values() if value is not None]
        mean = sum(values) / len(values)
        if abs(mean - told["means"][their]) > 1e-9:
            made.add(f"{ours}: ranx says otherwise", f"{told['means'][their]:.6f}, ours {mean:.6f}")
    made.raw["ranx"] = told


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
