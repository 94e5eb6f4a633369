"""Our numbers are trec_eval's: on its own test files, on random lists, and on a published BM25 run."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest
import pytrec_eval

from backend.core.judging import JudgedList
from backend.core.metric_keys import MetricKey, compute
from tests.shared import shared_data
from tests.unit.judged import judge_ids

Run = dict[str, list[str]]
Qrels = dict[str, dict[str, float]]
Expected = dict[str, dict[str, float]]

# trec_eval's measures and ours. Its `map`, `recip_rank` and `ndcg` are not cut: ours are taken at the run's depth.
_CUT = {"P": "precision", "recall": "recall", "map_cut": "map", "ndcg_cut": "ndcg", "success": "hit"}
_WHOLE = {"map": "map", "recip_rank": "mrr", "ndcg": "ndcg"}


def read_qrels(path: Path) -> Qrels:
    qrels: Qrels = defaultdict(dict)
    for line in _lines(path):
        topic, _, document, grade = line.split()
        qrels[topic][document] = float(grade)
    return qrels


def read_run(path: Path) -> Run:
    """Rankings as trec_eval orders them: score descending, equal scores by document id descending."""
    scored: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in _lines(path):
        topic, _, document, _, score, *_ = line.split()
        scored[topic].append((float(score), document))
    return {topic: [document for _, document in sorted(rows, reverse=True)] for topic, rows in scored.items()}


def read_output(path: Path) -> Expected:
    """Topic (or `all`) -> measure -> value, of the measures that are also ours."""
    expected: Expected = defaultdict(dict)
    for line in _lines(path):
        measure, topic, value = line.split()
        if our_key(measure, depth=1) is not None:
            expected[topic][measure] = float(value)
    return expected


def our_key(measure: str, *, depth: int) -> MetricKey | None:
    if measure in _WHOLE:
        return MetricKey(name=_WHOLE[measure], k=depth)
    name, _, k = measure.rpartition("_")
    return MetricKey(name=_CUT[name], k=int(k)) if name in _CUT and k.isdigit() else None


def judge_topics(
    qrels: Qrels, run: Mapping[str, list[str]], *, depth: int, threshold: float = 1
) -> dict[str, JudgedList]:
    """Every judged topic; one that the run does not have came back empty (trec_eval -c)."""
    return {
        topic: judge_ids(run.get(topic, []), grades, top_k=depth, threshold=threshold)
        for topic, grades in qrels.items()
    }


def check(expected: Expected, judged: dict[str, JudgedList], *, depth: int) -> int:
    """Compare to the four digits that trec_eval prints; gives how many numbers were compared."""
    n_compared = 0
    for topic, measures in expected.items():
        for measure, value in measures.items():
            key = our_key(measure, depth=depth)
            if key is None or key.k > depth or (measure == "ndcg" and depth < 1000):
                continue  # their uncut ndcg keeps the whole ideal where the run is cut (-M)
            lists = list(judged.values()) if topic == "all" else [judged[topic]]
            # A topic without relevant documents is 0 in their mean and not in ours.
            ours = [compute(key, single) or 0.0 for single in lists]
            assert math.fsum(ours) / len(ours) == pytest.approx(value, abs=5.0001e-5), (topic, measure)
            n_compared += 1
    return n_compared


@pytest.mark.shared
@pytest.mark.parametrize(
    ("output", "qrels", "run", "threshold", "depth", "at_least"),
    [
        ("out.test", "qrels.test", "results.test", 1, 1000, 11),
        ("out.test", "qrels.test.with-comments", "results.test", 1, 1000, 11),
        ("out.comment.test", "qrels.comment.test", "results.comment.test", 1, 1000, 11),
        ("out.test.a", "qrels.test", "results.test", 1, 1000, 40),
        ("out.test.aq", "qrels.test", "results.test", 1, 1000, 160),
        ("out.test.aqc", "qrels.test", "results.trunc", 1, 1000, 160),
        ("out.test.aqcM", "qrels.test", "results.trunc", 1, 100, 100),
        ("out.test.aql", "qrels.rel_level", "results.test", 2, 1000, 160),
        ("out.test.meas_params", "qrels.test", "results.test", 1, 2000, 40),
    ],
)
def test_trec_evals_own_expected_outputs(
    output: str, qrels: str, run: str, threshold: float, depth: int, at_least: int
) -> None:
    folder = shared_data("oracle-trec_eval")
    judged = judge_topics(read_qrels(folder / qrels), read_run(folder / run), depth=depth, threshold=threshold)
    assert check(read_output(folder / output), judged, depth=depth) >= at_least


@pytest.mark.shared
@pytest.mark.parametrize("output", ["trec_eval-10.0.txt", "trec_eval-10.0.c.txt"])
def test_the_cacm_run_and_the_topics_it_has_without_judgements(output: str) -> None:
    folder = shared_data("oracle-anserini")
    qrels, run = read_qrels(folder / "qrels.cacm.txt"), read_run(folder / "cacm-bm25.run.txt")
    assert (len(run), len(qrels)) == (64, 52)
    assert check(read_output(folder / output), judge_topics(qrels, run, depth=30), depth=30) == 7


@pytest.mark.shared
@pytest.mark.parametrize("corpus", ["anthropic-docs", "scifact"])
def test_a_bm25_run_over_a_whole_public_set(corpus: str) -> None:
    folder = shared_data(corpus)
    qrels: Qrels = defaultdict(dict)
    for line in _lines(folder / "qrels.tsv")[1:]:
        topic, document, grade = line.split("\t")
        qrels[topic][document] = float(grade)
    judged = judge_topics(qrels, read_run(folder / "bm25s.top100.run"), depth=100)
    assert check(read_output(folder / "bm25s.top100.trec_eval.txt"), judged, depth=100) == 16
    per_query = read_output(folder / "bm25s.top100.per-query.txt")
    assert check(per_query, judged, depth=100) == 5 * (len(qrels) + 1)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("T1", {"map": 0.7087, "recip_rank": 1, "P_1": 1, "P_5": 0.6, "P_10": 0.5, "P_20": 0.25}),
        ("T2", {"map": 0.7438, "recip_rank": 1, "P_1": 1, "P_5": 0.6, "P_10": 0.6, "P_20": 0.3}),
        ("T3", {"map": 0.3068, "recip_rank": 0.1667, "P_1": 0, "P_5": 0, "P_10": 0.4, "P_20": 0.2}),
    ],
)
def test_the_three_topics_of_the_cwl_evaluation(topic: str, expected: dict[str, float]) -> None:
    folder = shared_data("oracle-ir_measures")
    judged = judge_topics(read_qrels(folder / "cwl.qrels"), read_run(folder / "cwl.run"), depth=1000)
    assert check({topic: expected}, judged, depth=1000) == 6


KS = (1, 2, 3, 5, 10, 30)


@pytest.mark.parametrize("threshold", [1, 2])
@pytest.mark.parametrize("seed", range(40))
def test_random_graded_lists_with_falling_scores_equal_pytrec_eval_to_1e_9(seed: int, threshold: int) -> None:
    draw = random.Random(seed)
    pool = [f"d{number}" for number in range(draw.choice([3, 20, 60]))]
    qrels = {
        f"q{number}": {document: draw.randint(-1, 4) for document in draw.sample(pool, draw.randint(1, len(pool)))}
        for number in range(8)
    }
    rankings = {topic: draw.sample(pool, draw.randint(1, len(pool)))[: KS[-1]] for topic in qrels}
    graded: Qrels = {topic: {**grades} for topic, grades in qrels.items()}
    listed = ",".join(map(str, KS))
    theirs = _pytrec_eval(qrels, rankings, [f"{name}.{listed}" for name in _CUT], threshold=threshold)
    judged = judge_topics(graded, rankings, depth=KS[-1], threshold=threshold)
    for k in KS:
        cut = {topic: ranking[:k] for topic, ranking in rankings.items()}
        reciprocal = _pytrec_eval(qrels, cut, ["recip_rank"], threshold=threshold)
        for topic, single in judged.items():
            if single.n_relevant == 0:
                continue
            assert compute(MetricKey(name="mrr", k=k), single) == pytest.approx(
                reciprocal[topic]["recip_rank"], abs=1e-9
            )
            for name, our_name in _CUT.items():
                ours = compute(MetricKey(name=our_name, k=k), single)
                assert ours == pytest.approx(theirs[topic][f"{name}_{k}"], abs=1e-9), (topic, name, k)


def _pytrec_eval(
    qrels: Mapping[str, Mapping[str, int]], rankings: Mapping[str, list[str]], measures: list[str], *, threshold: int
) -> dict[str, dict[str, float]]:
    run = {
        topic: {document: float(len(ranking) - place) for place, document in enumerate(ranking)}
        for topic, ranking in rankings.items()
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(measures), relevance_level=threshold)
    results: dict[str, dict[str, float]] = evaluator.evaluate(run)
    return results


def _lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
