"""A stored key is its definition, and a k that the ranking does not reach is an error."""

from pathlib import Path

import pytest

from backend.core.comparison import Verdict
from backend.core.errors import ValidationError
from backend.core.metric_keys import (
    NAMES,
    Cutoffs,
    MetricKey,
    compute_all,
    default_keys,
    default_primary,
    resolve_cutoffs,
)
from backend.core.metrics import Gain
from tests.unit.judged import judge_ids


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_a_key_reads_back_as_it_was_printed(name: str, k: int) -> None:
    key = MetricKey(name=name, k=k)
    assert MetricKey.parse(str(key)) == key
    assert str(key) == f"{name}@{k}"


def test_defaults_are_left_out_of_a_key() -> None:
    assert str(MetricKey.parse("ndcg(gain=linear)@5")) == "ndcg@5"
    exponential = MetricKey(name="ndcg", k=10, gain=Gain.EXP)
    assert str(exponential) == "ndcg(gain=exp)@10"
    assert MetricKey.parse("ndcg(gain=exp)@10") == exponential


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mrr",
        "mrr@",
        "mrr@0",
        "mrr@-1",
        "mrr@01",
        "mrr@1.5",
        "mrr@1e2",
        "mrr@10 ",
        "MRR@10",
        "f1@10",
        "mrr@٣",
        "ndcg()@10",
        "ndcg(gain=log)@10",
        "ndcg(base=2)@10",
        "mrr(gain=exp)@10",
        "mrr(gain=linear)@10",
        "ndcg(gain=exp,gain=exp)@10",
        "mrr@9999999",
        "mrr@10\n",
    ],
)
def test_what_is_no_metric_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        MetricKey.parse(text)


def test_a_key_beyond_top_k_is_refused() -> None:
    assert MetricKey.parse("mrr@5", top_k=5).k == 5
    with pytest.raises(ValidationError, match="top_k 5"):
        MetricKey.parse("mrr@6", top_k=5)


def test_only_hit_is_0_or_1() -> None:
    assert {name for name in NAMES if MetricKey(name=name, k=1).is_binary} == {"hit"}


@pytest.mark.parametrize(
    ("k", "top_k", "expected"),
    [
        (None, None, Cutoffs(top_k=10, ks=(1, 3, 5, 10))),
        (None, 4, Cutoffs(top_k=4, ks=(1, 3))),
        (None, 50, Cutoffs(top_k=50, ks=(1, 3, 5, 10))),
        (5, None, Cutoffs(top_k=10, ks=(5,))),
        (20, None, Cutoffs(top_k=20, ks=(20,))),
        ([20, 1, 20], None, Cutoffs(top_k=20, ks=(1, 20))),
        ([1, 5], 5, Cutoffs(top_k=5, ks=(1, 5))),
    ],
)
def test_cutoffs_follow_from_what_is_given(k: int | list[int] | None, top_k: int | None, expected: Cutoffs) -> None:
    assert resolve_cutoffs(k=k, top_k=top_k) == expected


@pytest.mark.parametrize(
    ("k", "top_k"), [(11, 10), ([1, 11], 10), (0, None), ([], None), (True, None), (None, 0), (-1, None), ([1.5], None)]
)
def test_cutoffs_that_cannot_be_are_refused(k: object, top_k: int | None) -> None:
    with pytest.raises(ValidationError):
        resolve_cutoffs(k=k, top_k=top_k)  # type: ignore[arg-type]


def test_a_run_stores_mrr_once_with_its_cut_in_the_key() -> None:
    names = [str(key) for key in default_keys(ks=(1, 3), top_k=5, graded=False)]
    assert names == [
        *("hit@1", "hit@3", "recall@1", "recall@3", "precision@1", "precision@3"),
        *("mrr@5", "map@1", "map@3", "ndcg@1", "ndcg@3"),
    ]


def test_the_primary_metric_is_always_among_the_defaults() -> None:
    assert str(default_primary(top_k=10, graded=False)) == "mrr@10"
    assert str(default_primary(top_k=7, graded=True)) == "ndcg@7"
    for graded in (False, True):
        keys = default_keys(ks=(5,), top_k=20, graded=graded)
        assert default_primary(top_k=20, graded=graded) in keys
        assert ("judged@5" in map(str, keys)) is graded


def test_all_metrics_come_under_their_printed_keys() -> None:
    judged = judge_ids(["x", "a"], {"a": 1})
    keys = [MetricKey.parse("mrr@10"), MetricKey.parse("hit@1"), MetricKey.parse("ndcg(gain=exp)@10")]
    assert list(compute_all(keys, judged)) == ["mrr@10", "hit@1", "ndcg(gain=exp)@10"]
    assert compute_all(keys[:2], judged) == {"mrr@10": 0.5, "hit@1": 0.0}


def test_every_metric_is_documented_under_its_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"| `{name}@k` |" in page
    assert "| `ndcg(gain=exp)@k` |" in page
    for verdict in Verdict:
        assert f"`{verdict.value}`" in page
