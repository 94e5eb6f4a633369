"""Means, intervals and counts over a run's questions."""

import random

import pytest
from scipy import stats

from backend.core.metric_keys import MetricKey
from backend.core.resampling import bootstrap_interval
from backend.core.summaries import Counts, Ending, Summary, count, summarise, wilson_interval
from backend.core.types import Outcome

MRR = MetricKey(name="mrr", k=10)
HIT = MetricKey(name="hit", k=10)


def test_a_failed_question_is_not_averaged_as_zero() -> None:
    summary = summarise([1.0, None, 0.5], key=MRR, seed=1)
    assert (summary.mean, summary.n, summary.n_total) == (0.75, 2, 3)


def test_a_run_that_scored_nothing_has_no_mean() -> None:
    assert summarise([None, None], key=MRR, seed=1) == Summary(mean=None, low=None, high=None, n=0, n_total=2)
    assert summarise([], key=HIT, seed=1).mean is None


def test_nothing_is_rounded_before_averaging() -> None:
    assert summarise([1 / 3] * 3 + [0.0] * 4, key=MRR, seed=1).mean == pytest.approx(1 / 7, abs=1e-16)


def test_the_wilson_interval_has_its_known_values() -> None:
    assert wilson_interval(42, 50) == pytest.approx((0.7148578393696501, 0.916625793219666), abs=1e-12)
    assert wilson_interval(0, 10)[0] == 0
    assert wilson_interval(10, 10)[1] == 1


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (3, 7), (498, 500), (9_999, 10_000)])
def test_the_wilson_interval_is_scipys(hits: int, n: int) -> None:
    theirs = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson_interval(hits, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_a_rate_has_wilsons_interval_and_another_mean_a_bootstrap() -> None:
    values = [1.0] * 42 + [0.0] * 8
    rate = summarise(values, key=HIT, seed=1)
    assert (rate.low, rate.high) == wilson_interval(42, 50)
    mean = summarise(values, key=MRR, seed=1)
    assert (mean.low, mean.high) == bootstrap_interval(values, seed=1)


def test_the_same_seed_gives_the_same_interval_in_any_order_of_questions() -> None:
    draw = random.Random(3)
    values = [draw.choice([0.0, 0.2, 0.5, 1.0]) for _ in range(200)]
    shuffled = draw.sample(values, len(values))
    assert summarise(values, key=MRR, seed=7) == summarise(shuffled, key=MRR, seed=7)
    assert summarise(values, key=MRR, seed=7) != summarise(values, key=MRR, seed=8)


@pytest.mark.parametrize("n_distinct", [4, 400], ids=["few distinct values", "all distinct values"])
def test_the_bootstrap_interval_is_scipys_up_to_chance(n_distinct: int) -> None:
    draw = random.Random(5)
    levels = [draw.random() for _ in range(n_distinct)]
    values = [draw.choice(levels) for _ in range(400)]
    theirs = stats.bootstrap(
        (values,), lambda x, axis: x.mean(axis=axis), n_resamples=10_000, method="percentile", rng=1
    ).confidence_interval
    assert bootstrap_interval(values, seed=1) == pytest.approx((theirs.low, theirs.high), abs=2e-3)


def test_questions_that_all_score_alike_have_an_interval_of_no_width() -> None:
    assert bootstrap_interval([0.1] * 30, seed=1) == (0.1, 0.1)


def test_every_question_is_counted_in_one_place() -> None:
    endings = [
        Ending(outcome=Outcome.OK, n_relevant=1),
        Ending(outcome=Outcome.EMPTY, n_relevant=2),
        Ending(outcome=Outcome.ERROR, n_relevant=1),
        Ending(outcome=Outcome.CANCELLED, n_relevant=1),
        Ending(outcome=Outcome.NOT_RUN, n_relevant=1),
        Ending(outcome=Outcome.OK, n_relevant=0),
        Ending(outcome=Outcome.EMPTY, n_relevant=0),
        Ending(outcome=Outcome.OK, n_relevant=0, unanswerable=True),
        Ending(outcome=Outcome.OK, n_relevant=1, unanswerable=True),
        Ending(outcome=Outcome.EMPTY, n_relevant=0, unanswerable=True),
        Ending(outcome=Outcome.ERROR, n_relevant=0, unanswerable=True),
    ]
    counts = count(endings)
    assert counts == Counts(
        n_total=11,
        n_scored=2,
        n_empty=1,
        n_error=2,
        n_cancelled=1,
        n_not_run=1,
        n_unanswerable=3,
        n_unanswerable_empty=1,
        n_without_expectation=2,
        n_eligible=5,
    )
    assert counts.n_scored == sum(ending.is_scored for ending in endings)


def test_an_empty_answer_is_scored_and_an_error_is_not() -> None:
    assert Ending(outcome=Outcome.EMPTY, n_relevant=1).is_scored
    assert not Ending(outcome=Outcome.ERROR, n_relevant=1).is_scored
