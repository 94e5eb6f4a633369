"""Every metric has the values that the definitions name, and None where a question cannot be scored."""

import subprocess
import sys
from pathlib import Path

import pytest

from backend.core.arithmetic import explain
from backend.core.errors import ValidationError
from backend.core.judging import judge
from backend.core.metric_keys import MetricKey
from backend.core.metrics import Gain, average_precision, hit, judged_share, mrr, ndcg, precision, recall
from backend.core.types import Alternative, Expectation, Level
from tests.unit.judged import documents, expects, judge_ids, passage, question

ROOT = Path(__file__).parents[2]
FIVE_OF_GRADE_3 = {f"d{number}": 3.0 for number in range(1, 6)}


def near(value: float) -> object:
    return pytest.approx(value, abs=5e-6)


def test_one_of_five_found_on_top_has_the_same_ndcg_with_both_gains() -> None:
    judged = judge_ids(["d1", *documents(9)], FIVE_OF_GRADE_3)
    assert ndcg(judged, k=10) == near(0.33916)
    assert ndcg(judged, k=10, gain=Gain.EXP) == near(0.33916)


def test_five_found_at_ranks_6_to_10() -> None:
    judged = judge_ids([*documents(5), *FIVE_OF_GRADE_3], FIVE_OF_GRADE_3)
    assert ndcg(judged, k=10) == near(0.54099)


def test_the_order_of_grades_matters_more_with_exponential_gain() -> None:
    judged = judge_ids(["d2", "d1"], {"d1": 3, "d2": 1})
    assert ndcg(judged, k=10) == near(0.79671)
    assert ndcg(judged, k=10, gain=Gain.EXP) == near(0.70981)


def test_a_key_that_comes_twice_counts_once() -> None:
    judged = judge_ids(["A", "A"], {"A": 1})
    assert (recall(judged, k=2), ndcg(judged, k=2), precision(judged, k=2)) == (1, 1, 0.5)


def test_one_of_two_found_first() -> None:
    judged = judge_ids(["a", "x"], {"a": 1, "b": 1})
    assert ndcg(judged, k=2) == near(0.61315)
    assert (recall(judged, k=2), average_precision(judged, k=2), mrr(judged, k=2)) == (0.5, 0.5, 1)


def test_a_passage_that_satisfies_two_expectations_earns_gain_for_one() -> None:
    both = question(
        Expectation(any_of=(Alternative(content_contains=("alpha",)),)),
        Expectation(any_of=(Alternative(content_contains=("beta",)),)),
    )
    judged = judge([passage("p", text="alpha beta")], both, level=Level.PASSAGE, threshold=1, top_k=10)
    assert (recall(judged, k=10), hit(judged, k=10), mrr(judged, k=10)) == (1, 1, 1)
    assert average_precision(judged, k=10) == 0.5
    assert ndcg(judged, k=10) == near(0.61315)


def test_recall_divides_by_all_relevant_not_by_k() -> None:
    relevant = documents(20, prefix="d")
    judged = judge_ids(relevant[:5], dict.fromkeys(relevant, 1.0), top_k=5)
    assert (recall(judged, k=5), precision(judged, k=5), ndcg(judged, k=5)) == (0.25, 1, 1)


def test_average_precision_divides_by_all_relevant() -> None:
    judged = judge_ids(["a", "x", "b"], dict.fromkeys("abcd", 1.0))
    assert average_precision(judged, k=3) == near(0.41667)
    assert (mrr(judged, k=3), recall(judged, k=3)) == (1, 0.5)


def test_precision_divides_by_k_also_when_fewer_came_back() -> None:
    assert precision(judge_ids(["a", "b", "x"], {"a": 1, "b": 1}), k=10) == 0.2


def test_a_second_alternative_is_relevant_but_earns_nothing_again() -> None:
    judged = judge_ids(["a", "b", "c"], [expects("a", "b"), expects("c")])
    assert recall(judged, k=3) == 1
    assert ndcg(judged, k=3) == near(0.91972)
    assert precision(judged, k=3) == 1


def test_a_first_relevant_result_at_rank_11_is_none_for_mrr_at_10() -> None:
    judged = judge_ids([*documents(10), "a"], {"a": 1}, top_k=20)
    assert mrr(judged, k=10) == 0
    assert mrr(judged, k=11) == pytest.approx(1 / 11)


def test_a_graded_list_with_one_document_never_found() -> None:
    judged = judge_ids(["A", "X", "B"], {"A": 3, "C": 2, "B": 1})
    assert precision(judged, k=10) == 0.2
    assert average_precision(judged, k=10) == near(0.55556)
    assert mrr(judged, k=10) == 1
    assert ndcg(judged, k=10) == pytest.approx(0.735, abs=5e-4)
    assert ndcg(judged, k=10, gain=Gain.EXP) == pytest.approx(0.798, abs=5e-4)


def test_a_negative_grade_has_no_gain_and_no_place_in_the_ideal() -> None:
    grades = {"good": 2.0, "bad": -1.0}
    assert ndcg(judge_ids(["good", "bad"], grades), k=10) == 1
    assert ndcg(judge_ids(["bad", "good"], grades), k=10) == near(0.63093)


def test_the_numbers_in_the_docstrings_are_right() -> None:
    second = judge_ids(["x", "a"], {"a": 1})
    assert (hit(second, k=1), hit(second, k=3), mrr(second, k=10)) == (0, 1, 0.5)
    assert judged_share(judge_ids(["a", "b", "x"], {"a": 1, "b": -1}), k=10) == pytest.approx(2 / 3)


def test_the_threshold_acts_on_all_but_ndcg() -> None:
    grades = {"a": 1.0, "b": 2.0}
    judged = judge_ids(["a", "b"], grades, threshold=2)
    assert (hit(judged, k=1), recall(judged, k=1), precision(judged, k=2), mrr(judged, k=2)) == (0, 0, 0.5, 0.5)
    assert average_precision(judged, k=2) == 0.5
    assert ndcg(judged, k=2) == ndcg(judge_ids(["a", "b"], grades, threshold=1), k=2)


def test_judged_share_counts_every_grade_and_divides_by_what_came_back() -> None:
    judged = judge_ids(["a", "zero", "x", "minus"], {"a": 1, "zero": 0, "minus": -1})
    assert judged_share(judged, k=1) == 1
    assert judged_share(judged, k=10) == 0.75


@pytest.mark.parametrize("metric", [hit, recall, precision, mrr, average_precision, ndcg, judged_share])
def test_an_empty_answer_scores_0(metric) -> None:  # type: ignore[no-untyped-def]
    assert metric(judge_ids([], {"a": 1}), k=10) == 0


@pytest.mark.parametrize("metric", [hit, recall, precision, mrr, average_precision, ndcg, judged_share])
@pytest.mark.parametrize("grades", [{}, {"a": 0.0, "b": -1.0}, {"a": 0.5}])
def test_a_question_without_a_relevant_expectation_is_not_scored_as_0(metric, grades) -> None:  # type: ignore[no-untyped-def]
    assert metric(judge_ids(["a", "b"], grades), k=10) is None


@pytest.mark.parametrize("metric", [hit, recall, precision, mrr, average_precision, ndcg, judged_share])
@pytest.mark.parametrize("k", [0, -1, 6])
def test_a_k_beyond_the_ranking_is_an_error_never_a_quiet_number(metric, k: int) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValidationError):
        metric(judge_ids(["a"], {"a": 1}, top_k=5), k=k)


@pytest.mark.parametrize("grade", [501.0, 2000.0, 1e300])
@pytest.mark.parametrize("gain", list(Gain))
def test_an_absurd_grade_does_not_overflow(gain: Gain, grade: float) -> None:
    assert ndcg(judge_ids(["a", "b"], {"a": grade, "b": grade}), k=10, gain=gain) == 1
    value = ndcg(judge_ids(["x", "a"], {"a": grade, "b": 1}), k=10, gain=gain)
    assert value is not None
    assert 0.6 < value < 0.64


def test_the_terms_of_ndcg_are_shown_with_gain_and_discount() -> None:
    shown = explain(MetricKey(name="ndcg", k=10), judge_ids(["d2", "x", "d1"], {"d1": 3, "d2": 1}))
    assert [(term.rank, term.key, term.gain, term.discount) for term in shown.terms] == [
        (1, "d2", 1, 1),
        (3, "d1", 3, 0.5),
    ]
    assert [(term.rank, term.gain) for term in shown.ideal] == [(1, 3), (2, 1)]
    assert shown.denominator == near(3 + 0.63093)
    assert shown.value == near(2.5 / 3.63093)


def test_the_terms_of_average_precision_are_the_precisions_at_new_hits() -> None:
    shown = explain(MetricKey(name="map", k=3), judge_ids(["a", "x", "b"], dict.fromkeys("abcd", 1.0)))
    assert [(term.rank, term.gain, term.term) for term in shown.terms] == [(1, 1, 1), (3, 2, 2 / 3)]
    assert shown.denominator == 4


def test_a_question_that_cannot_be_scored_has_no_terms() -> None:
    shown = explain(MetricKey(name="mrr", k=3), judge_ids(["a"], {}))
    assert (shown.value, shown.terms) == (None, ())


def test_computing_a_metric_loads_no_framework() -> None:
    script = (
        "import sys, backend.core.metrics, backend.core.metric_keys, backend.core.arithmetic, backend.core.ties\n"
        "print([name for name in ('django', 'celery', 'numpy', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
