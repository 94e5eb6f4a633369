"""The tests behind a verdict have their reference values."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from backend.core.comparison import pair, question_deltas
from backend.core.comparison.verdicts import questions_needed
from backend.core.metric_keys import MetricKey
from backend.core.resampling import bootstrap_interval, holm, mcnemar_p, sign_flip_p

BASELINE = [1, 0.5, 0, 1, 1 / 3, 0, 1, 1, 0.25, 0.5]
CANDIDATE = [1, 1, 0.5, 1, 0.5, 0, 1, 0.5, 1, 1]
DELTAS = [after - before for before, after in zip(BASELINE, CANDIDATE, strict=True)]
MRR = MetricKey(name="mrr", k=10)


def keyed(values: Sequence[float | None]) -> dict[str, float | None]:
    return {f"q{number}": value for number, value in enumerate(values)}


def test_the_paired_figures_of_the_reference_example() -> None:
    deltas = question_deltas(keyed(BASELINE), keyed(CANDIDATE), eligible=list(keyed(BASELINE)))
    paired = pair(deltas, metric=MRR, n_eligible=10, seed=0)
    assert paired.mean_delta == pytest.approx(0.19166666666666668, abs=1e-15)
    assert paired.sd == pytest.approx(0.368618542167414, abs=1e-12)
    assert (paired.n_wins, paired.n_ties, paired.n_losses) == (5, 4, 1)
    assert paired.low == pytest.approx(-0.025, abs=0.0100001)
    assert paired.high == pytest.approx(0.4, abs=0.0100001)


def test_the_exact_sign_flip_test_of_the_reference_example() -> None:
    assert sign_flip_p(DELTAS, seed=0) == 0.1875
    assert sign_flip_p(DELTAS, seed=1) == 0.1875


@pytest.mark.parametrize("m", [1, 2, 5, 6, 10, 13])
def test_m_questions_that_all_rise_reach_the_floor_and_no_less(m: int) -> None:
    assert sign_flip_p([0.5] * m + [0.0] * 30, seed=0) == 2 / 2**m


def test_fewer_than_six_differing_questions_never_reach_5_percent() -> None:
    assert sign_flip_p([1.0] * 5, seed=0) == 0.0625
    assert sign_flip_p([1.0] * 6, seed=0) == 0.03125


def test_the_exact_sign_flip_test_is_scipys() -> None:
    draw = random.Random(1)
    deltas = [round(draw.gauss(0.1, 0.3), 3) for _ in range(12)]
    theirs = stats.permutation_test((np.array(deltas),), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p(deltas, seed=0) == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("levels", [None, [-0.5, 0.0, 0.5, 1.0]], ids=["all distinct", "few distinct"])
def test_the_sampled_sign_flip_test_is_near_the_normal_approximation(levels: list[float] | None) -> None:
    draw = random.Random(2)
    deltas = [draw.gauss(0.03, 0.3) if levels is None else draw.choice(levels) - 0.2 for _ in range(300)]
    z = abs(sum(deltas)) / sum(delta * delta for delta in deltas) ** 0.5
    assert sign_flip_p(deltas, seed=3) == pytest.approx(2 * stats.norm.sf(z), abs=0.02)


def test_the_sampled_test_is_seeded_free_of_order_and_never_0() -> None:
    deltas = [0.2 + number / 1000 for number in range(40)]
    assert sign_flip_p(deltas, seed=1) == 1 / 10_001
    mixed = [random.Random(number).gauss(0.05, 0.3) for number in range(40)]
    assert sign_flip_p(mixed, seed=1) == sign_flip_p(mixed[::-1], seed=1)
    assert sign_flip_p(mixed, seed=1) != sign_flip_p(mixed, seed=2)


@settings(deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1 / 3, 1.0]), max_size=9), st.integers(0, 3))
def test_the_sampled_test_agrees_with_the_exact_one(deltas: list[float], seed: int) -> None:
    exact = sign_flip_p(deltas, seed=seed)
    # Too few resamples to enumerate, yet enough to be near.
    differing = sum(1 for delta in deltas if delta)
    sampled = sign_flip_p(deltas, seed=seed, n_resamples=max(1, 2**differing - 1))
    assert 0 < sampled <= 1
    assert sampled == pytest.approx(
        exact, abs=1.96 * (0.25 / max(1, 2**differing - 1)) ** 0.5 * 3 + 0.51 / 2**differing
    )


def test_no_difference_at_all_has_p_1() -> None:
    assert sign_flip_p([0.0, 1e-12], seed=0) == 1
    assert sign_flip_p([], seed=0) == 1
    assert mcnemar_p(n_wins=0, n_losses=0) == 1


def test_mcnemar_of_12_against_5() -> None:
    assert mcnemar_p(n_wins=12, n_losses=5) == 0.143463134765625
    assert mcnemar_p(n_wins=5, n_losses=12) == 0.143463134765625


@pytest.mark.parametrize(("wins", "losses"), [(1, 0), (3, 3), (7, 6), (60, 35), (900, 1100)])
def test_mcnemar_is_scipys_binomial_test(wins: int, losses: int) -> None:
    theirs = stats.binomtest(wins, wins + losses, 0.5).pvalue
    assert mcnemar_p(n_wins=wins, n_losses=losses) == pytest.approx(theirs, rel=1e-9)


def test_holm_of_the_reference_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], abs=1e-12)
    assert holm([]) == []
    assert holm([0.6, 0.9]) == [1.0, 1.0]


def test_the_interval_of_the_reference_example() -> None:
    low, high = bootstrap_interval(DELTAS, seed=0)
    assert low == pytest.approx(-0.025, abs=0.01)
    assert high == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(("sd", "least", "most"), [(0.2, 125, 126), (0.3, 282, 283), (0.4, 502, 503), (0.5, 784, 785)])
def test_the_questions_needed_for_a_gain_of_5_points(sd: float, least: int, most: int) -> None:
    deltas = [0.05 - sd, 0.05 + sd] * 10
    scale = (19 / 20) ** 0.5  # so that the sample deviation is sd
    deltas = [0.05 + (delta - 0.05) * scale for delta in deltas]
    values = question_deltas(keyed([0.0] * 20), keyed(deltas), eligible=list(keyed(deltas)))
    needed = questions_needed(pair(values, metric=MRR, n_eligible=20, seed=0))
    assert needed is not None
    assert least <= needed <= most


def test_the_questions_needed_grow_with_the_holm_step_and_never_fall_to_n() -> None:
    values = question_deltas(keyed([0.0] * 4), keyed([0.4, 0.6, 0.5, 0.5]), eligible=list(keyed([0.0] * 4)))
    paired = pair(values, metric=MRR, n_eligible=4, seed=0)
    assert questions_needed(paired) == 5
    noisy = pair(
        question_deltas(keyed(BASELINE), keyed(CANDIDATE), eligible=list(keyed(BASELINE))),
        metric=MRR,
        n_eligible=10,
        seed=0,
    )
    one, five = questions_needed(noisy), questions_needed(noisy, n_steps=5)
    assert one is not None
    assert five is not None
    assert five > one


def test_a_delta_of_0_needs_no_number_of_questions() -> None:
    values = question_deltas(keyed([0.0, 1.0]), keyed([1.0, 0.0]), eligible=["q0", "q1"])
    assert questions_needed(pair(values, metric=MRR, n_eligible=2, seed=0)) is None
