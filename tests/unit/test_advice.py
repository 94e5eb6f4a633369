"""Each rule speaks on a case made for it, with the figure in its sentence, and is silent on the case beside it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.core.advice import RULES, Chunks, Figures, Interval, Label, Languages, NotIndexed, Thresholds, advise
from backend.core.comparison import Verdict
from backend.core.diagnosis import Cause

QUIET = Figures(
    n_scored=100,
    primary_metric="mrr@10",
    primary=Interval(mean=0.8, low=0.75, high=0.85),
    metrics={"recall@5": 0.9, "mrr@10": 0.8, "precision@5": 0.9, "ndcg@5": 0.9},
    best_recall=1.0,
    is_graded=True,
    mean_relevant=4.0,
    mode="hybrid",
    ceiling=0.95,
    pool_depth=50,
    n_missed=10,
    causes={Cause.BELOW_K: 10},
    n_expectations=100,
    semantic_recall=0.9,
    keyword_recall=0.8,
    keyword_language="english",
    languages=Languages(questions=("english",), documents=("english",)),
    embedder="local",
    embedder_is_english_only=True,
    chunks=Chunks(size=1200, n=1000),
    ann_recall=0.99,
)


def metrics(**changed: float) -> dict[str, Any]:
    return {"metrics": {**QUIET.metrics, **{key.replace("_at_", "@"): value for key, value in changed.items()}}}


# Rule, what makes it speak, what the sentence must hold, and the neighbours on which it is silent.
CASES: list[tuple[str, dict[str, Any], tuple[str, ...], list[dict[str, Any]]]] = [
    ("few_questions", {"n_scored": 19}, ("Only 19 questions",), [{"n_scored": 20}]),
    (
        "few_questions",
        {"primary": Interval(mean=0.5, low=0.39, high=0.6)},
        ("100 questions", "0.39 to 0.60", "mrr@10"),
        [{"primary": Interval(mean=0.5, low=0.4, high=0.6)}, {"primary": None}],
    ),
    (
        "labels_unresolved",
        {"n_unresolved": 2, "unresolved": (Label(label="/srv/handbook/policies/x.pdf", nearest="policies/x.pdf"),)},
        ("2 of 100", "/srv/handbook/policies/x.pdf → policies/x.pdf", "Documents"),
        [{"n_unresolved": 0}],
    ),
    (
        "labels_unresolved",
        {"best_recall": 0.0},
        ("0 for every one of 100",),
        [{"best_recall": 0.1}, {"best_recall": None}],
    ),
    (
        "not_indexed",
        {"causes": {Cause.NOT_INDEXED: 3}, "not_indexed": (NotIndexed(path="scan.pdf", reason="no text layer."),)},
        ("3 questions are", "scan.pdf (no text layer)"),
        [{"causes": {Cause.NOT_INDEXED: 0}}, {"causes": {Cause.NOT_INDEXED: 3}, "n_unresolved": 3}],
    ),
    (
        "rerank",
        metrics(recall_at_5=0.85, mrr_at_10=0.7),
        ("0.85", "0.70", "ceiling is 0.95", "hybrid_rerank"),
        [
            metrics(recall_at_5=0.84, mrr_at_10=0.7),
            metrics(recall_at_5=0.85, mrr_at_10=0.71),
            {**metrics(mrr_at_10=0.7), "reranker": "local"},
        ],
    ),
    (
        "rerank_go",
        {"rerank_verdict": Verdict.BETTER, "rerank_delta": 0.08},
        ("better", "+0.080 in mrr@10"),
        [{"rerank_verdict": verdict} for verdict in Verdict if verdict is not Verdict.BETTER],
    ),
    (
        "rerank_no_go",
        {"rerank_verdict": Verdict.WORSE, "rerank_delta": -0.03, "rerank_ms": 120.4},
        ("worse", "-0.030", "120 ms"),
        [
            {"rerank_verdict": None},
            {"rerank_verdict": Verdict.TOO_FEW_QUESTIONS},
            {"rerank_verdict": Verdict.NOT_DECIDED},
        ],
    ),
    (
        "rerank_no_go",
        {"rerank_verdict": Verdict.NO_DIFFERENCE_SHOWN},
        ("no difference",),
        [{"rerank_verdict": Verdict.BETTER}],
    ),
    (
        "low_recall",
        {**metrics(recall_at_5=0.69), "ceiling": 0.72},
        ("0.69", "ceiling 0.72", "only too low"),
        [metrics(recall_at_5=0.7)],
    ),
    (
        "low_recall",
        {**metrics(recall_at_5=0.5), "ceiling": 0.55},
        ("does not hold it", "0.55", "50", "deeper"),
        [{"metrics": {}}],
    ),
    (
        "low_precision",
        {**metrics(precision_at_5=0.59), "mean_relevant": 3.0},
        ("0.59", "3.0"),
        [metrics(precision_at_5=0.6), {**metrics(precision_at_5=0.1), "mean_relevant": 2.9}],
    ),
    (
        "low_mrr",
        {**metrics(mrr_at_10=0.59), "reranker": "cohere:x"},
        ("0.59", "0.90", "cohere:x"),
        [
            metrics(mrr_at_10=0.59),
            {**metrics(mrr_at_10=0.6), "reranker": "cohere:x"},
            {**metrics(mrr_at_10=0.59, recall_at_5=0.69), "reranker": "cohere:x"},
        ],
    ),
    (
        "low_ndcg",
        metrics(ndcg_at_5=0.59),
        ("0.59", "fusion"),
        [metrics(ndcg_at_5=0.6), {**metrics(ndcg_at_5=0.5), "is_graded": False}],
    ),
    (
        "keyword_language",
        {"keyword_recall": 0.1, "semantic_recall": 0.6, "keyword_language": "simple"},
        ("0.10", "0.60", "keyword.language to english"),
        [
            {"keyword_recall": 0.1, "semantic_recall": 0.6},
            {"keyword_recall": 0.11, "semantic_recall": 0.9, "keyword_language": "simple"},
            {"keyword_recall": 0.1, "semantic_recall": 0.2, "keyword_language": "simple"},
            {
                "keyword_recall": 0.1,
                "semantic_recall": 0.6,
                "keyword_language": "simple",
                "languages": Languages(documents=("english", "turkish")),
            },
        ],
    ),
    ("keep_hybrid_codes", {"n_codes_by_words_alone": 2}, ("2 questions",), [{"n_codes_by_words_alone": 1}]),
    ("keep_hybrid_paraphrase", {"n_by_meaning_alone": 7}, ("7 questions",), [{"n_by_meaning_alone": 1}]),
    (
        "multilingual",
        {"languages": Languages(questions=("turkish",), documents=("english",))},
        ("2 languages", "english, turkish", "local"),
        [
            {"languages": Languages(questions=("english",), documents=("english",))},
            {"languages": Languages(questions=("turkish", "english")), "embedder_is_english_only": False},
        ],
    ),
    (
        "chunk_smaller",
        {"n_wrong_passage": 5},
        ("5 of 10", "1,200"),
        [
            {"n_wrong_passage": 4},
            {"n_wrong_passage": 5, "chunks": Chunks(size=999)},
            {"n_wrong_passage": 5, "chunks": None},
        ],
    ),
    (
        "chunk_larger",
        {"n_wrong_passage": 6, "chunks": Chunks(size=300)},
        ("6 of 10", "300"),
        [{"n_wrong_passage": 6, "chunks": Chunks(size=501)}, {"n_wrong_passage": 4, "chunks": Chunks(size=300)}],
    ),
    (
        "chunks_truncated",
        {"chunks": Chunks(size=800, n=1000, n_truncated=12)},
        ("12 of 1,000",),
        [{"chunks": Chunks(size=800, n=1000)}, {"chunks": None}],
    ),
    (
        "prefixes",
        {"overrides_prefixes": True, "semantic_recall": 0.6},
        ("0.60", "defaults"),
        [{"semantic_recall": 0.6}, {"overrides_prefixes": True}, {"overrides_prefixes": True, "semantic_recall": None}],
    ),
    (
        "fusion_hurts",
        {"fusion_verdict": Verdict.WORSE, "better_leg": "semantic", "fusion_delta": -0.05},
        ("worse than semantic", "-0.050"),
        [{"fusion_verdict": verdict, "better_leg": "semantic"} for verdict in Verdict if verdict is not Verdict.WORSE],
    ),
    ("ann_loss", {"ann_recall": 0.949}, ("0.949", "ef_search"), [{"ann_recall": 0.95}, {"ann_recall": None}]),
]


def ids(figures: Figures) -> list[str]:
    return [one.id for one in advise(figures, Thresholds(most=99))]


def test_nothing_is_said_where_nothing_is_wrong() -> None:
    assert advise(QUIET) == []


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(RULES)


@pytest.mark.parametrize(
    ("rule", "change", "said", "_"), CASES, ids=[f"{case[0]}-{at}" for at, case in enumerate(CASES)]
)
def test_a_rule_speaks_on_its_case_with_the_figure(
    rule: str, change: dict[str, Any], said: tuple[str, ...], _: list[dict[str, Any]]
) -> None:
    (told,) = [one for one in advise(replace(QUIET, **change)) if one.id == rule]
    for part in said:
        assert part in told.sentence
    assert told.sentence.endswith(".")
    assert "  " not in told.sentence
    assert "None" not in told.sentence


@pytest.mark.parametrize(
    ("rule", "change"), [(rule, change) for rule, _, _, silent in CASES for change in silent], ids=str
)
def test_a_rule_is_silent_on_the_neighbour_of_its_case(rule: str, change: dict[str, Any]) -> None:
    assert rule not in ids(replace(QUIET, **change))


def test_without_data_every_rule_but_the_number_of_questions_is_silent() -> None:
    assert ids(Figures(n_scored=100)) == []
    assert ids(Figures(n_scored=0)) == ["few_questions"]


def test_with_few_questions_only_faults_of_the_set_are_told() -> None:
    figures = replace(
        QUIET,
        n_scored=19,
        n_unresolved=1,
        causes={Cause.NOT_INDEXED: 1},
        not_indexed=(NotIndexed(path="a.pdf"),),
        ann_recall=0.1,
        **metrics(recall_at_5=0.1),
    )
    assert set(ids(figures)) == {"few_questions", "labels_unresolved", "not_indexed"}


def test_at_most_five_are_told_the_strongest_first() -> None:
    figures = replace(
        QUIET,
        n_unresolved=10,
        ann_recall=0.5,
        n_codes_by_words_alone=3,
        n_by_meaning_alone=3,
        fusion_verdict=Verdict.WORSE,
        better_leg="semantic",
        rerank_verdict=Verdict.BETTER,
        chunks=Chunks(size=1200, n=10, n_truncated=5),
        **metrics(recall_at_5=0.3),
    )
    told = advise(figures)
    assert len(told) == 5
    assert [one.strength for one in told] == sorted((one.strength for one in told), reverse=True)
    assert told[0].id == "labels_unresolved"
    assert len(advise(figures, Thresholds(most=2))) == 2


def test_thresholds_are_settings() -> None:
    assert ids(replace(QUIET, ann_recall=0.99)) == []
    assert [one.id for one in advise(QUIET, Thresholds(ann_recall=0.999))] == ["ann_loss"]


def test_the_number_of_questions_that_is_needed_follows_the_formula_or_the_comparison() -> None:
    """sd 0.5 from the interval: ((1.96 + 0.84) x 0.5 / 0.1)^2 = 196."""
    half = 1.96 * 0.5 / 5
    figures = replace(QUIET, n_scored=25, primary=Interval(mean=0.5, low=0.5 - half, high=0.5 + half))
    (told,) = advise(figures)
    assert "About 171 more would tell settings apart that differ by 0.1." in told.sentence
    (told,) = advise(replace(figures, n_needed=90))
    assert "About 65 more would show the difference from the other run." in told.sentence


def test_every_rule_is_documented_in_its_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "advice.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(RULES)
