"""Equal scores have one order everywhere."""

import random
from dataclasses import replace

import pytest

from backend.core.errors import ErrorCode, TouchstoneError
from backend.core.ties import Candidate, tie_key


def test_each_part_of_the_rule_decides_where_all_before_are_equal() -> None:
    base = Candidate(id="b", score=1.0, path="m", source="m", ordinal=5, best_leg_rank=5)
    expected = [
        replace(base, score=2.0, best_leg_rank=9, path="z"),
        replace(base, best_leg_rank=4, path="z"),
        replace(base, path="l", source="z"),
        replace(base, source="l", ordinal=9),
        replace(base, ordinal=4, id="z"),
        replace(base, id="a"),
        base,
        replace(base, best_leg_rank=None, path="a"),
        replace(base, score=-1.0, path="a"),
    ]
    for seed in range(50):
        shuffled = random.Random(seed).sample(expected, len(expected))
        assert sorted(shuffled, key=tie_key) == expected


def test_text_is_ordered_by_its_bytes() -> None:
    names = ["a", "B", "é", "z", "Z", "🙂", "ﬁ", "İ", ""]
    in_order = sorted((Candidate(id="1", score=0, path=name) for name in names), key=tie_key)
    assert [one.path for one in in_order] == sorted(names, key=str.encode)


def test_plus_and_minus_zero_are_the_same_score() -> None:
    assert tie_key(Candidate(id="1", score=0.0, path="")) == tie_key(Candidate(id="1", score=-0.0, path=""))


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_no_number_is_the_providers_error(score: float) -> None:
    with pytest.raises(TouchstoneError) as caught:
        tie_key(Candidate(id="1", score=score, path=""))
    assert caught.value.code is ErrorCode.PROVIDER_BAD_ANSWER
