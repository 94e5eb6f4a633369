"""Where evaluation tools disagree: which convention is ours, on the cases where that shows."""

import json
from collections import defaultdict
from typing import Any

import pytest

from backend.core.judging import JudgedList
from backend.core.metric_keys import MetricKey, compute
from backend.core.metrics import precision
from backend.core.summaries import summarise
from tests.shared import shared_data
from tests.unit.judged import judge_ids

pytestmark = pytest.mark.shared

_OURS = {
    "AP": "map@1000",
    "RR": "mrr@1000",
    "P@1": "precision@1",
    "P@10": "precision@10",
    "R@10": "recall@10",
    "nDCG@10": "ndcg@10",
    "AP@10": "map@10",
    "Success@10": "hit@10",
}
CASES = [
    *("binary-basic", "graded-basic", "graded-ideal", "ties-two", "ties-two-mirror", "ties-all-equal"),
    *("ties-float32", "negative-grade", "only-negative", "no-relevant", "query-missing-in-run"),
    *("query-missing-in-qrels", "short-list", "more-relevant-than-k", "unjudged-top", "deep-hit", "big-grades"),
    *("negative-scores", "unicode-ids", "two-queries-mean"),
]


def load(case: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(shared_data("oracle-crosscheck", "cases.json").read_text(encoding="utf-8"))[
        case
    ]
    return loaded


def judge_case(case: dict[str, Any]) -> dict[str, JudgedList]:
    """Judged topics. The ranking is given to us in trec_eval's order: we never order by score inside a metric."""
    lists = {}
    for topic, grades in case["qrels"].items():
        scores = case["run"].get(topic, {})
        ranking = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
        lists[topic] = judge_ids(ranking, grades, top_k=1000)
    return lists


def test_every_case_is_looked_at() -> None:
    everything = json.loads(shared_data("oracle-crosscheck", "cases.json").read_text(encoding="utf-8"))
    assert sorted(everything) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_per_question_values_are_trec_evals(name: str) -> None:
    """Linear gain, double precision, P over k, AP over all relevant; judged and missing from the run is 0 (-c)."""
    case = load(name)
    expected = case["expected"]["trec_eval-10.0 -c"]
    for topic, judged in judge_case(case).items():
        for measure, key in _OURS.items():
            ours = compute(MetricKey.parse(key), judged)
            if judged.n_relevant == 0:
                assert ours is None  # trec_eval says 0: see the next test
            else:
                theirs = expected[topic][measure] if topic in expected else 0.0
                assert ours == pytest.approx(theirs, abs=5.0001e-5), (topic, measure)


def test_a_topic_without_relevant_documents_is_left_out_where_others_count_0() -> None:
    case = load("no-relevant")
    values = [compute(MetricKey.parse("mrr@1000"), judged) for judged in judge_case(case).values()]
    assert sorted(values, key=str) == [1.0, None]
    assert case["expected"]["trec_eval-10.0 -c"]["all"]["RR"] == 0.5
    summary = summarise(values, key=MetricKey.parse("mrr@1000"), seed=1)
    assert (summary.mean, summary.n, summary.n_total) == (1.0, 1, 2)


def test_a_topic_missing_from_the_run_counts_0_where_others_drop_it() -> None:
    case = load("query-missing-in-run")
    values = [compute(MetricKey.parse("mrr@1000"), judged) for judged in judge_case(case).values()]
    assert summarise(values, key=MetricKey.parse("mrr@1000"), seed=1).mean == 0.5
    assert case["expected"]["trec_eval-10.0 -c"]["all"]["RR"] == 0.5
    assert list(case["expected"]["pytrec_eval-terrier"]) == ["q1"]


def test_means_are_over_questions_not_over_results() -> None:
    case = load("two-queries-mean")
    for measure, key in _OURS.items():
        values = [compute(MetricKey.parse(key), judged) for judged in judge_case(case).values()]
        mean = summarise(values, key=MetricKey.parse(key), seed=1).mean
        assert mean == pytest.approx(case["expected"]["trec_eval-10.0"]["all"][measure], abs=5.0001e-5)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("ties")])
def test_exponential_gain_is_that_of_burges(name: str) -> None:
    case = load(name)
    theirs = case["expected"]["ranx(make_comparable)"]["ndcg_burges@10"]
    values = [compute(MetricKey.parse("ndcg(gain=exp)@10"), judged) for judged in judge_case(case).values()]
    ours = [0.0 if value is None else value for value in values]
    assert sum(ours) / len(ours) == pytest.approx(theirs, abs=2e-6)


@pytest.mark.parametrize("name", ["graded-basic", "unjudged-top", "negative-grade"])
def test_judged_share_is_that_of_ir_measures(name: str) -> None:
    case = load(name)
    for topic, judged in judge_case(case).items():
        theirs = case["expected"]["ir_measures"][topic]["Judged@10"]
        assert compute(MetricKey.parse("judged@10"), judged) == pytest.approx(theirs, abs=5e-5)


@pytest.mark.parametrize("system", ["retrieve_base", "retrieve_level_two", "retrieve_level_three"])
def test_published_scores_of_real_lists(system: str) -> None:
    """100 questions each, top 3. Their precision divides by what came back, ours by k."""
    folder = shared_data("oracle-anthropic-promptfoo")
    rankings: dict[str, list[str]] = defaultdict(list)
    for line in (folder / f"{system}.run").read_text(encoding="utf-8").splitlines():
        topic, _, document, *_ = line.split()
        rankings[topic].append(document)
    values: dict[str, list[float | None]] = {"mrr@3": [], "recall@3": []}
    n_scored = 0
    for topic, row in json.loads((folder / f"{system}.expected.json").read_text(encoding="utf-8")).items():
        published = row.get("published")
        if published is None:
            for scores in values.values():
                scores.append(None)  # the search failed: no number, and not a zero
            continue
        n_scored += 1
        assert rankings[topic] == row["retrieved"]
        judged = judge_ids(row["retrieved"], dict.fromkeys(row["relevant"], 1.0), top_k=3)
        ours = precision(judged, k=3)
        assert ours == pytest.approx(published["Precision"] * len(row["retrieved"]) / 3, abs=1e-12)
        for key, name in (("mrr@3", "MRR"), ("recall@3", "Recall")):
            value = compute(MetricKey.parse(key), judged)
            assert value == pytest.approx(published[name], abs=1e-12)
            values[key].append(value)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))[system]
    assert n_scored == summary["with_scores"]
    for key, name in (("mrr@3", "MRR"), ("recall@3", "Recall")):
        mean = summarise(values[key], key=MetricKey.parse(key), seed=1)
        assert mean.mean == pytest.approx(summary[name], abs=1e-12)
        assert (mean.n, mean.n_total) == (summary["with_scores"], 100)
