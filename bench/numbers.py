"""How long the numbers take: 10,000 questions in 4 runs, aggregated with intervals, compared with 10,000 resamples, and
the metrics alone beside pytrec_eval on the same lists.

`python -m bench.numbers [--questions N] [--runs N]`. No service is needed. Prints one JSON object, with seconds of
processor time.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import django
import pytrec_eval

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
django.setup()

# Models load with it, so only after the set-up.
from backend.core import comparison, judging, metric_keys  # noqa: E402
from backend.core.comparison import Side  # noqa: E402
from backend.core.measuring import Measurer  # noqa: E402
from backend.core.metric_keys import MetricKey  # noqa: E402
from backend.core.types import Alternative, Expectation, Level, Outcome, Passage, Question  # noqa: E402
from backend.search.types import SearchScope  # noqa: E402
from backend.services import run_numbers  # noqa: E402
from backend.services.plans import Plan  # noqa: E402
from backend.services.run_numbers import Row  # noqa: E402

TOP_K = 10
KEYS = metric_keys.default_keys(ks=(1, 3, 5, 10), top_k=TOP_K, graded=True)
# Ours, and what trec_eval calls it. (mrr: recip_rank on a run cut at 10, which ours are.)
SAME = {
    **{f"recall@{k}": f"recall_{k}" for k in (1, 3, 5, 10)},
    **{f"precision@{k}": f"P_{k}" for k in (1, 3, 5, 10)},
    **{f"hit@{k}": f"success_{k}" for k in (1, 3, 5, 10)},
    **{f"map@{k}": f"map_cut_{k}" for k in (1, 3, 5, 10)},
    **{f"ndcg@{k}": f"ndcg_cut_{k}" for k in (1, 3, 5, 10)},
    "mrr@10": "recip_rank",
}
MEASURES = {"recip_rank"} | {f"{name}.1,3,5,10" for name in ("recall", "P", "success", "map_cut", "ndcg_cut")}
_Value = TypeVar("_Value")
# By metric, then by question.
_Values = dict[str, dict[str, float | None]]
# By question, then by measure; and the seconds it took.
_Theirs = tuple[dict[str, dict[str, float]], float]


def timed(work: Callable[[], _Value]) -> tuple[_Value, float]:
    """With the seconds of processor time it took: on a machine that does other things, what it costs."""
    started = time.process_time()
    value = work()
    return value, round(time.process_time() - started, 2)


def made(n_questions: int, n_runs: int, *, length: int = TOP_K) -> tuple[list[dict[str, int]], list[list[list[str]]]]:
    """Graded judgements of each question, and each run's ranking of it; the runs differ by a little."""
    draw = random.Random(20_240_101)
    relevant = [
        {f"d{draw.randrange(200)}": draw.choice([1, 1, 2, 3]) for _ in range(draw.randint(1, 4))}
        for _ in range(n_questions)
    ]
    runs = []
    for run in range(n_runs):
        rankings = []
        for judged in relevant:
            found = [key for key in judged if draw.random() < 0.6 + 0.05 * run]
            others = [f"d{draw.randrange(200, 5000)}" for _ in range(length)]
            ranking = list(dict.fromkeys([*found, *others]))
            draw.shuffle(ranking)
            rankings.append(ranking[:length])
        runs.append(rankings)
    return relevant, runs


def judged_lists(
    relevant: list[dict[str, int]], rankings: list[list[str]], *, top_k: int = TOP_K
) -> list[dict[str, Any]]:
    """As results keep them."""
    return [
        judging.judge(
            [Passage(id=key, document_id=key, path=key, source="", text="") for key in ranking],
            Question(
                key="q",
                text="q",
                expectations=tuple(
                    Expectation(any_of=(Alternative(path=key),), grade=grade) for key, grade in judged.items()
                ),
            ),
            level=Level.DOCUMENT,
            threshold=1.0,
            top_k=top_k,
        ).to_json()
        for judged, ranking in zip(relevant, rankings, strict=True)
    ]


def plan(n_questions: int) -> Plan:
    return Plan(
        evaluation_id=UUID(int=0),
        workspace_id=UUID(int=0),
        version_id=None,
        runs=(),
        scope=SearchScope(indexes=()),
        level=Level.DOCUMENT,
        threshold=1.0,
        top_k=TOP_K,
        keys=tuple(str(key) for key in KEYS),
        primary_metric="ndcg@10",
        n_questions=n_questions,
        use_cache=False,
    )


def aggregate(stored: list[list[dict[str, Any]]]) -> int:
    """As the service does: all runs of an evaluation together. Returns how many numbers there are."""
    rows_of_runs = (
        [
            Row(ordinal=at, outcome=Outcome.OK, judged=one, timings={"words": 1.0}, returned_something=True)
            for at, one in enumerate(of_run)
        ]
        for of_run in stored
    )
    numbers = run_numbers.compute_all(plan=plan(len(stored[0])), rows_of_runs=rows_of_runs)
    return sum(len(one.metrics) for one in numbers)


def values(stored: list[dict[str, Any]], measurer: Measurer) -> _Values:
    found: dict[str, dict[str, float | None]] = {str(key): {} for key in KEYS}
    for at, one in enumerate(stored):
        for name, value in measurer.of(one)[1].items():
            found[name][f"q{at}"] = value
    return found


def compare(sides: list[Side], n_questions: int) -> str:
    told = comparison.compare(
        sides[0],
        sides[1:],
        primary=MetricKey.parse("ndcg@10"),
        eligible=[f"q{at}" for at in range(n_questions)],
        seed=1,
    )
    return ", ".join(one.decision.verdict.value for one in told.candidates)


def trec(relevant: list[dict[str, int]], rankings: list[list[str]]) -> _Theirs:
    judged = {f"q{at}": one for at, one in enumerate(relevant)}
    run = {f"q{at}": {key: float(-place) for place, key in enumerate(one)} for at, one in enumerate(rankings)}
    return timed(lambda: dict(pytrec_eval.RelevanceEvaluator(judged, MEASURES).evaluate(run)))


def sides_of(computed: Sequence[_Values], *, top_k: int) -> list[Side]:
    """Runs as they are compared."""
    return [
        Side(
            name=f"run {at}",
            question_set="set",
            set_hash="s",
            level=Level.DOCUMENT,
            threshold=1.0,
            definitions="1",
            top_k=top_k,
            values=one,
            first_ranks={},
        )
        for at, one in enumerate(computed)
    ]


def largest_difference(
    computed: Sequence[_Values], theirs: Sequence[tuple[dict[str, dict[str, float]], float]]
) -> float:
    """Of our values from those of `trec`, over all questions and the metrics that both have."""
    return max(
        abs((computed[at][ours][key] or 0.0) - found[their])
        for at, (by_question, _) in enumerate(theirs)
        for key, found in by_question.items()
        for ours, their in SAME.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=4)
    arguments = parser.parse_args()
    relevant, runs = made(arguments.questions, arguments.runs)
    stored, judging_s = timed(lambda: [judged_lists(relevant, rankings) for rankings in runs])
    _, aggregating_s = timed(lambda: aggregate(stored))
    alone = Measurer(KEYS)
    computed, metrics_s = timed(lambda: [values(one, alone) for one in stored])
    theirs = [trec(relevant, rankings) for rankings in runs]
    difference = largest_difference(computed, theirs)
    sides = sides_of(computed, top_k=TOP_K)
    verdicts, comparing_s = timed(lambda: compare(sides, arguments.questions))
    print(
        json.dumps(
            {
                "questions": arguments.questions,
                "runs": arguments.runs,
                "metrics": len(KEYS),
                "judging_s": judging_s,
                "aggregating_s": aggregating_s,
                "metrics_alone_s": metrics_s,
                "pytrec_eval_s": round(sum(took for _, took in theirs), 2),
                "largest_difference": difference,
                "comparing_s": comparing_s,
                "verdicts": verdicts,
            }
        )
    )


if __name__ == "__main__":
    main()
