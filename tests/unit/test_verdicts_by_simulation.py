"""What a verdict promises, by trying it many times: seldom a difference where there is none, and an effect that is
there is found as often as the number of questions asked for says."""

import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence

import pytest

from backend.core import judging
from backend.core.comparison import Side, Verdict, compare
from backend.core.comparison.pairing import pair, question_deltas
from backend.core.comparison.verdicts import questions_needed
from backend.core.fusion import rrf
from backend.core.metric_keys import MetricKey, compute
from backend.core.resampling import mcnemar_p, sign_flip_p
from backend.core.ties import Candidate
from backend.core.types import Level
from tests.unit.judged import judge_ids

MRR = MetricKey(name="mrr", k=10)
N_NULL = 2000
# 5 % with the margin that 2,000 throws have of themselves (97.5 % of them stay below).
MOST_FALSE = 0.05 * N_NULL + 1.96 * math.sqrt(N_NULL * 0.05 * 0.95)


def values_of(draw: random.Random, n: int) -> list[float]:
    """Reciprocal ranks as a search gives them: many firsts, some misses."""
    return [draw.choice([1.0, 1.0, 1.0, 0.5, 1 / 3, 0.25, 0.2, 0.0, 0.0]) for _ in range(n)]


def null_pair(draw: random.Random, n: int) -> tuple[list[float], list[float]]:
    """Two systems that are alike: where they differ, it is chance which of them has the better rank."""
    one, other = values_of(draw, n), values_of(draw, n)
    same = [draw.random() < 0.5 for _ in range(n)]
    return one, [first if is_same else second for first, second, is_same in zip(one, other, same, strict=True)]


def side(name: str, values: Sequence[float]) -> Side:
    keyed = {f"q{at}": value for at, value in enumerate(values)}
    return Side(
        name=name,
        question_set="set",
        set_hash="s",
        level=Level.DOCUMENT,
        threshold=1.0,
        definitions="1",
        top_k=10,
        values={str(MRR): keyed},
        first_ranks={key: round(1 / value) if value else None for key, value in keyed.items()},
    )


def verdict(baseline: Sequence[float], candidate: Sequence[float], *, seed: int = 1) -> Verdict:
    keys = [f"q{at}" for at in range(len(baseline))]
    made = compare(side("old", baseline), [side("new", candidate)], primary=MRR, eligible=keys, seed=seed)
    return made.candidates[0].decision.verdict


@pytest.mark.slow
def test_of_2000_comparisons_without_a_difference_few_see_one() -> None:
    draw = random.Random(20_240_101)
    n_ranks = n_hits = 0
    for at in range(N_NULL):
        one, other = null_pair(draw, draw.choice([30, 50, 80]))
        deltas = [after - before for before, after in zip(one, other, strict=True)]
        p = sign_flip_p(deltas, seed=at)
        n_ranks += p < 0.05
        changed = [(before == 1.0) - (after == 1.0) for before, after in zip(one, other, strict=True)]
        n_hits += mcnemar_p(n_wins=changed.count(-1), n_losses=changed.count(1)) < 0.05
        if at % 40 == 0:
            # The verdict says what the test says.
            assert (verdict(one, other, seed=at) in {Verdict.BETTER, Verdict.WORSE}) == (p < 0.05)
    assert n_ranks <= MOST_FALSE
    assert n_ranks >= 0.02 * N_NULL, "a test that never fires would pass as well"
    assert n_hits <= MOST_FALSE


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "spread"), [(0.08, 0.3), (-0.12, 0.4)])
def test_an_effect_is_found_as_often_as_the_questions_needed_promise(delta: float, spread: float) -> None:
    pilot = [delta - spread, delta + spread] * 10
    scale = math.sqrt(19 / 20)
    keyed = {f"q{at}": delta + (value - delta) * scale for at, value in enumerate(pilot)}
    deltas = question_deltas(dict.fromkeys(keyed, 0.0), keyed, eligible=list(keyed))
    needed = questions_needed(pair(deltas, metric=MRR, n_eligible=20, seed=1))
    assert needed == math.ceil((2.8 * spread / abs(delta)) ** 2) or needed == math.ceil(
        ((1.959964 + 0.84) * spread / abs(delta)) ** 2
    )
    draw = random.Random(7)
    n_trials = 400
    n_found = 0
    for at in range(n_trials):
        sample = [draw.gauss(delta, spread) for _ in range(needed or 0)]
        found = sign_flip_p(sample, seed=at) < 0.05
        n_found += found and (sum(sample) > 0) == (delta > 0)
    assert n_found / n_trials == pytest.approx(0.80, abs=0.05)


def test_the_same_seed_gives_the_same_p_in_another_process_and_in_another_order() -> None:
    draw = random.Random(3)
    deltas = [draw.gauss(0.03, 0.3) for _ in range(60)]
    code = (
        "import json, sys; from backend.core.resampling import bootstrap_interval, sign_flip_p;"
        "d = json.load(sys.stdin);"
        "print(json.dumps([sign_flip_p(d, seed=11), *bootstrap_interval(d, seed=11)]))"
    )
    told = []
    for ordered in (deltas, deltas[::-1]):
        done = subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(ordered), capture_output=True, text=True, check=True
        )
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]
    assert told[0][0] == sign_flip_p(deltas, seed=11)


def listed(keys: Sequence[str]) -> list[Candidate]:
    return [Candidate(id=key, score=1.0 / rank, path=key) for rank, key in enumerate(keys, start=1)]


def test_fusion_that_is_worse_than_its_better_leg_is_told_as_worse() -> None:
    """Words find it at once, meaning does not find it at all: what both find in the middle comes before it."""
    words_alone: list[float] = []
    fused: list[float] = []
    for at in range(30):
        right = f"right{at}"
        words = [right, *(f"both{at}-{place}" for place in range(1, 6))]
        meaning = [*(f"both{at}-{place}" for place in range(1, 6)), *(f"far{at}-{place}" for place in range(20))]
        if at % 10 == 0:
            meaning.insert(0, right)  # now and then meaning agrees
        order = [one.id for one in rrf([listed(meaning), listed(words)])]
        for ranking, values in ((words, words_alone), (order, fused)):
            values.append(compute(MRR, judge_ids(ranking, {right: 1})) or 0.0)
    assert sum(fused) / len(fused) > 0, "it still finds something"
    made = compare(
        side("words", words_alone),
        [side("hybrid", fused)],
        primary=MRR,
        eligible=[f"q{at}" for at in range(30)],
        seed=1,
    )
    decision = made.candidates[0].decision
    assert decision.verdict is Verdict.WORSE
    assert decision.sentence.startswith("Worse")
    assert judging.first_rank(judge_ids(order, {right: 1})) != 1
