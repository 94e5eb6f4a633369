"""How questions spread over ranks and times."""

import pytest

from backend.core import metrics, spreads
from backend.core.spreads import Spread
from tests.unit.judged import documents, judge_ids


def spread(*lists: list[str], wanted: tuple[str, ...] = ("a",), depth: int = 10) -> Spread:
    found = Spread(depth=depth)
    for ids in lists:
        found.add(judge_ids(ids, dict.fromkeys(wanted, 1.0), top_k=depth))
    return found


def test_the_curves_at_each_k_are_the_means_of_the_metrics_there() -> None:
    lists = [["a", "x", "b"], ["x", "b", "a"], documents(4), ["b", "x", "y", "z", "a"]]
    by_rank = spread(*lists, wanted=("a", "b")).by_rank()
    judged = [judge_ids(ids, {"a": 1.0, "b": 1.0}) for ids in lists]
    for k in range(1, 11):
        assert by_rank["recall"][k - 1] == pytest.approx(sum(metrics.recall(one, k=k) or 0 for one in judged) / 4)
        assert spreads.hits(by_rank)[k - 1] == pytest.approx(sum(metrics.hit(one, k=k) or 0 for one in judged) / 4)


def test_first_ranks_fall_into_bands_and_add_up_to_the_questions() -> None:
    lists = [["a"], ["x", "a"], [*documents(3), "a"], [*documents(4), "a"], [*documents(9), "a"], documents(10)]
    assert spreads.bands(spread(*lists).by_rank()) == [
        ("1", 1),
        ("2", 1),
        ("3", 0),
        ("4-5", 2),
        ("6-10", 1),
        ("miss", 1),
    ]


@pytest.mark.parametrize(
    ("depth", "names"),
    [
        (1, ["1", "miss"]),
        (4, ["1", "2", "3", "4", "miss"]),
        (8, ["1", "2", "3", "4-5", "6-8", "miss"]),
        (20, ["1", "2", "3", "4-5", "6-10", "11-20", "miss"]),
    ],
)
def test_bands_reach_as_far_as_the_run_does(depth: int, names: list[str]) -> None:
    assert [name for name, _ in spreads.bands(spread(["a"], depth=depth).by_rank())] == names


def test_a_deep_run_keeps_no_more_ranks_than_are_drawn() -> None:
    assert len(spread(["a"], depth=1000).by_rank()["first"]) == spreads.DEEPEST


def test_an_irrelevant_expectation_answers_no_question() -> None:
    found = Spread(depth=3)
    found.add(judge_ids(["a", "b"], {"a": 1.0, "b": 2.0}, threshold=2.0, top_k=3))
    assert found.by_rank() == {"n": 1, "first": [0, 1, 0], "recall": [0.0, 1.0, 1.0]}


def test_times_are_counted_up_to_each_end_and_beyond_the_last() -> None:
    found = Spread(depth=1)
    for milliseconds in (0.2, 1.0, 1.5, 10_000, 10_001):
        found.add_latency(milliseconds)
    counted = found.latencies()
    assert (counted[0], counted[1], counted[-2], counted[-1]) == (2, 1, 1, 1)
    assert sum(counted) == 5
