"""Fusion against the reference values, and the rules around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.core.configs import Fusion
from backend.core.fusion import convex, fuse, rrf
from backend.core.ties import Candidate


def ranking(ids: str, *scores: float) -> list[Candidate]:
    values = scores or tuple(float(len(ids) - place) for place in range(len(ids)))
    return [Candidate(id=key, score=score, path=key) for key, score in zip(ids, values, strict=True)]


def scores(fused: list[Candidate]) -> dict[str, float]:
    return {candidate.id: candidate.score for candidate in fused}


def test_rrf_gives_the_reference_values_bit_for_bit() -> None:
    fused = rrf([ranking("abc"), ranking("cda")])
    assert scores(fused) == {
        "a": 0.032266458495966696,
        "c": 0.032266458495966696,
        "b": 0.016129032258064516,
        "d": 0.016129032258064516,
    }
    assert [candidate.id for candidate in fused] == ["a", "c", "b", "d"]


def test_ranks_can_be_counted_from_zero_as_some_engines_do() -> None:
    assert scores(rrf([ranking("a")], constant=2, rank_base=0)) == {"a": 1 / 2}
    assert scores(rrf([ranking("ab"), ranking("b")], constant=61, rank_base=0)) == scores(
        rrf([ranking("ab"), ranking("b")], constant=60, rank_base=1)
    )


def test_weights_scale_what_a_list_gives() -> None:
    fused = rrf([ranking("ab"), ranking("ba")], weights=(1, 3))
    assert scores(fused) == {"a": pytest.approx(1 / 61 + 3 / 62), "b": pytest.approx(1 / 62 + 3 / 61)}
    assert [candidate.id for candidate in fused] == ["b", "a"]


def test_a_list_of_weight_zero_takes_no_part() -> None:
    for formula in ("rrf", "convex"):
        fused = fuse([ranking("ab"), ranking("cb")], fusion=Fusion(formula=formula, weights=(1.0, 0.0)))
        assert [candidate.id for candidate in fused] == ["a", "b"]
        assert fused[0].best_leg_rank == 1


def test_equal_scores_go_by_the_best_leg_rank_then_the_path() -> None:
    # b and c have equal scores (ranks 2 and 2 against 1 and none would not be equal: both are second once).
    fused = rrf([ranking("xc"), ranking("yb")])
    assert [candidate.id for candidate in fused] == ["x", "y", "b", "c"]
    # The same score from unlike ranks: 1/2 from rank 1 alone, and 1/4 + 1/4 from rank 3 twice.
    unlike = rrf([ranking("apz"), ranking("qrz")], constant=1)
    assert [candidate.id for candidate in unlike][:3] == ["a", "q", "z"]


def test_a_list_that_was_fused_before_keeps_the_ranks_of_its_legs() -> None:
    first = rrf([ranking("ab"), ranking("ba")])
    assert {candidate.best_leg_rank for candidate in rrf([first])} == {1}


def test_a_candidate_that_comes_twice_counts_at_its_first_place() -> None:
    assert [candidate.id for candidate in rrf([ranking("aba")])] == ["a", "b"]
    assert scores(rrf([ranking("aba")])) == {"a": 1 / 61, "b": 1 / 62}


def test_the_convex_combination_normalises_each_list_by_its_own_range() -> None:
    fused = convex([ranking("abc", 0.9, 0.8, 0.5), ranking("cd", 12.0, 2.0)], weights=(3, 1))
    assert scores(fused) == {
        "a": pytest.approx(0.75),
        "b": pytest.approx(0.75 * 0.75),
        "c": pytest.approx(0.25),
        "d": pytest.approx(0.0),
    }


def test_a_list_of_equal_scores_gives_one_to_each() -> None:
    assert scores(convex([ranking("ab", 0.4, 0.4), ranking("c", 7.0)])) == {"a": 0.5, "b": 0.5, "c": 0.5}


def test_an_empty_leg_leaves_the_order_of_the_other() -> None:
    for formula in ("rrf", "convex"):
        fused = fuse([ranking("abc"), []], fusion=Fusion(formula=formula))
        assert [candidate.id for candidate in fused] == ["a", "b", "c"]
    assert rrf([]) == []
    assert convex([[], []]) == []


def test_unequal_numbers_of_lists_and_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="2 lists need as many weights"):
        rrf([ranking("a"), ranking("b")], weights=(1,))


@given(st.lists(st.permutations("abcdefg"), min_size=1, max_size=4))
def test_the_order_of_the_lists_changes_nothing(lists: list[list[str]]) -> None:
    rankings = [ranking("".join(ids)) for ids in lists]
    assert rrf(rankings) == rrf(rankings[::-1])


def test_rrf_gives_the_values_of_ranx() -> None:
    """Three runs over two questions, k = 60: the case that ranx tests itself with."""
    by_score: list[dict[str, dict[str, float]]] = [
        {"q1": {"d1": 1, "d2": 2, "d3": 3}, "q2": {"d1": 1, "d2": 2}},
        {"q1": {"d1": 3, "d2": 2}, "q2": {"d1": 1, "d3": 3}},
        {"q1": {"d3": 1}, "q2": {"d2": 2, "d3": 3}},
    ]
    expected = {
        "q1": {"d1": 1 / 63 + 1 / 61, "d2": 1 / 62 + 1 / 62, "d3": 1 / 61 + 1 / 61},
        "q2": {"d1": 1 / 62 + 1 / 62, "d2": 1 / 61 + 1 / 62, "d3": 1 / 61 + 1 / 61},
    }
    for question, values in expected.items():
        lists = []
        for run in by_score:
            ordered = sorted(run[question].items(), key=lambda item: -item[1])
            lists.append([Candidate(id=key, score=score, path=key) for key, score in ordered])
        assert scores(rrf(lists)) == {key: pytest.approx(value) for key, value in values.items()}
