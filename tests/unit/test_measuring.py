"""What is worked out together is, to the last digit, what each has alone."""

import random

import pytest

from backend.core import metric_keys
from backend.core.comparison import Pairing, pair_all
from backend.core.judging import JudgedList
from backend.core.measuring import Measurer
from backend.core.metric_keys import MetricKey
from backend.core.resampling import bootstrap_interval, bootstrap_intervals
from backend.core.summaries import summarise, summarise_groups
from tests.unit.judged import judge_ids

KEYS = metric_keys.default_keys(ks=(1, 3, 10), top_k=10, graded=True)
NDCG, MRR, HIT = (MetricKey.parse(name) for name in ("ndcg@10", "mrr@10", "hit@10"))


def stored_lists(n: int) -> list[dict[str, object]]:
    draw = random.Random(4)
    lists = []
    for _ in range(n):
        grades = {f"d{draw.randrange(30)}": draw.choice([-1, 1, 2, 3]) for _ in range(4)}
        lists.append(judge_ids([f"d{draw.randrange(30)}" for _ in range(12)], grades).to_json())
    return lists


def test_a_list_that_looks_like_another_has_its_own_values() -> None:
    measurer = Measurer(KEYS)
    for stored in stored_lists(300):
        plain = JudgedList.from_json(stored)
        judged, values = measurer.of(stored)
        assert values == metric_keys.compute_all(KEYS, plain)
        assert (judged.n_relevant, [rank.new for rank in judged.ranks]) == (
            plain.n_relevant,
            [rank.new for rank in plain.ranks],
        )


def test_lists_that_look_alike_are_worked_out_once() -> None:
    measurer = Measurer(KEYS)
    one, other = judge_ids(["a", "b", "c"], {"b": 1}).to_json(), judge_ids(["x", "y", "z"], {"y": 1}).to_json()
    assert measurer.of(one)[1] is measurer.of(other)[1]
    assert measurer.of(judge_ids(["a", "b", "c"], {"b": 2}).to_json())[1] is not measurer.of(one)[1]


def test_a_layout_of_a_later_release_is_refused() -> None:
    with pytest.raises(ValueError, match="layout"):
        Measurer(KEYS).of({**judge_ids(["a"], {"a": 1}).to_json(), "v": 99})


def columns() -> dict[str, list[float]]:
    """Many distinct values, few, two, one; and another number of questions."""
    draw = random.Random(9)
    return {
        "many": [draw.random() for _ in range(1200)],
        "many more": [draw.gauss(0, 1) for _ in range(1200)],
        "few": [draw.choice([0.0, 0.5, 1.0]) for _ in range(1200)],
        "one": [0.25] * 1200,
        "shorter": [draw.random() for _ in range(70)],
    }


def test_intervals_drawn_together_are_those_drawn_alone_in_any_order_and_company() -> None:
    asked = columns()
    alone = {name: bootstrap_interval(values, seed=3) for name, values in asked.items()}
    for names in (list(asked), list(asked)[::-1], ["many more", "shorter"]):
        together = bootstrap_intervals([asked[name][::-1] for name in names], seed=3)
        assert dict(zip(names, together, strict=True)) == {name: alone[name] for name in names}
    assert bootstrap_interval(asked["many"], seed=4) != alone["many"]
    assert bootstrap_intervals([], seed=3) == []


def test_runs_summed_up_together_are_those_summed_up_alone() -> None:
    draw = random.Random(2)
    runs = [
        {key: [None if draw.random() < 0.1 else draw.random() for _ in range(90)] for key in (NDCG, MRR)}
        | {HIT: [float(draw.random() < 0.5) for _ in range(90)]}
        for _ in range(3)
    ]
    together = summarise_groups([(one, 95) for one in runs], seed=5)
    assert together == [
        {key: summarise(values, key=key, seed=5, n_total=95) for key, values in one.items()} for one in runs
    ]


def test_metrics_paired_together_are_those_paired_alone() -> None:
    asked = columns()
    pairings = [
        Pairing(metric=NDCG, baseline=values, candidate=values[1:] + values[:1], n_eligible=len(values) + 5)
        for values in asked.values()
    ] + [Pairing(metric=MRR, baseline=[], candidate=[], n_eligible=3)]
    together = pair_all(pairings, seed=1)
    assert together == [pair_all([one], seed=1)[0] for one in pairings]
    assert (together[-1].n, together[-1].n_dropped, together[-1].low) == (0, 3, None)
