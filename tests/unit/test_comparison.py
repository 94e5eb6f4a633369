"""A comparison says what it may and no more."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from backend.core.comparison import Candidate, CorpusChange, Side, Verdict, compare, transitions
from backend.core.errors import ValidationError
from backend.core.metric_keys import MetricKey
from backend.core.types import Level

MRR = MetricKey(name="mrr", k=10)
HIT = MetricKey(name="hit", k=10)


def keyed(values: Sequence[float | None]) -> dict[str, float | None]:
    return {f"q{number:03}": value for number, value in enumerate(values)}


def side(name: str, values: Sequence[float | None], *, metric: MetricKey = MRR) -> Side:
    return Side(
        corpus_fingerprint="ours",
        name=name,
        question_set="golden",
        set_hash="set",
        level=Level.DOCUMENT,
        threshold=1.0,
        definitions="1",
        top_k=10,
        values={str(metric): keyed(values)},
        first_ranks={
            key: round(1 / value) if value else None for key, value in keyed(values).items() if value is not None
        },
    )


def verdict(baseline: Sequence[float | None], candidate: Sequence[float | None], **changes: Any) -> Candidate:
    other = replace(side("new", candidate), **changes)
    compared = compare(side("old", baseline), [other], primary=MRR, eligible=list(keyed(baseline)), seed=1)
    return compared.candidates[0]


def test_a_clear_gain_is_better_and_the_same_loss_is_worse() -> None:
    up = verdict([0.5] * 30, [1.0] * 12 + [0.5] * 18)
    assert up.decision.verdict is Verdict.BETTER
    assert up.decision.p == 2 / 2**12
    assert "12 better, 0 worse, 18 equal" in up.decision.sentence
    assert "+0.200" in up.decision.sentence
    down = verdict([1.0] * 12 + [0.5] * 18, [0.5] * 30)
    assert down.decision.verdict is Verdict.WORSE
    assert down.primary is not None
    assert down.primary.mean_delta == pytest.approx(-0.2)


def test_runs_that_differ_in_nothing_show_no_difference_from_20_questions_on() -> None:
    assert verdict([0.5] * 20, [0.5] * 20).decision.verdict is Verdict.NO_DIFFERENCE_SHOWN
    assert verdict([0.5] * 19, [0.5] * 19).decision.verdict is Verdict.TOO_FEW_QUESTIONS


def test_an_interval_that_leaves_the_margin_shows_nothing() -> None:
    baseline: Sequence[float | None] = [0.5, 1.0] * 20
    candidate = [*baseline[:30], *([1.0, 0.5] * 5)]
    decision = verdict(baseline, candidate).decision
    assert decision.verdict is Verdict.TOO_FEW_QUESTIONS
    assert decision.n_needed is None  # the delta is 0
    wide = compare(
        side("old", baseline), [side("new", candidate)], primary=MRR, eligible=list(keyed(baseline)), seed=1, margin=0.3
    )
    assert wide.candidates[0].decision.verdict is Verdict.NO_DIFFERENCE_SHOWN


def test_too_few_questions_says_how_many_would_do() -> None:
    decision = verdict([0.5] * 20, [1.0] * 5 + [0.25] * 3 + [0.5] * 12).decision
    assert decision.verdict is Verdict.TOO_FEW_QUESTIONS
    assert decision.n_needed is not None
    assert decision.n_needed > 20
    assert f"About {decision.n_needed} questions" in decision.sentence


def test_where_fewer_than_six_differ_that_is_said_instead() -> None:
    decision = verdict([0.5] * 20, [1.0] * 5 + [0.5] * 15).decision
    assert decision.verdict is Verdict.TOO_FEW_QUESTIONS
    assert decision.n_needed is None
    assert "Only 5 differ" in decision.sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"set_hash": "other"}, "different versions of the question set"),
        ({"set_hash": "other", "question_set": "other"}, "they asked different question sets"),
        ({"level": Level.PASSAGE}, "the baseline ranks documents and the candidate passages"),
        ({"threshold": 2.0}, "from grade 1 in the baseline and from 2"),
        ({"definitions": "2"}, "different definitions (version 1 and 2)"),
    ],
)
def test_runs_that_measure_different_things_are_not_compared(changes: dict[str, object], words: str) -> None:
    candidate = verdict([0.5] * 30, [1.0] * 30, **changes)
    assert candidate.decision.verdict is Verdict.NOT_COMPARABLE
    assert words in candidate.decision.sentence
    assert candidate.primary is None
    assert candidate.decision.p is None


@pytest.mark.parametrize(
    ("baseline", "candidate", "words"),
    [
        ((False, "a"), (True, "a"), "The candidate took over all its results from the baseline"),
        ((True, "a"), (False, "a"), "The baseline took over all its results from the candidate"),
        ((True, "a"), (True, "a"), "Both took over their results from one earlier run"),
        ((True, "a"), (True, "b"), ""),
        ((False, "a"), (False, "b"), ""),
        ((False, ""), (False, ""), ""),
    ],
)
@pytest.mark.parametrize("n", [5, 20])
def test_results_of_one_measurement_are_the_same_and_that_is_said(
    baseline: tuple[bool, str], candidate: tuple[bool, str], words: str, n: int
) -> None:
    old, new = (
        replace(side("run", [0.5] * n), is_copy=is_copy, measured_in=measured_in)
        for is_copy, measured_in in (baseline, candidate)
    )
    decision = compare(old, [new], primary=MRR, eligible=list(keyed([0.5] * n)), seed=1).candidates[0].decision
    assert decision.verdict is (Verdict.NO_DIFFERENCE_SHOWN if n == 20 else Verdict.TOO_FEW_QUESTIONS)
    assert decision.sentence.endswith(f"{words}, so they are the same.") == bool(words)
    assert ("differ between the runs" in decision.sentence) == (n == 5 and not words)


def test_all_that_differs_is_said_at_once() -> None:
    sentence = verdict([0.5], [0.5], set_hash="other", threshold=2.0).decision.sentence
    assert "question set; a result counts" in sentence


def test_a_run_that_scored_too_few_questions_decides_nothing() -> None:
    enough = verdict([0.5] * 100, [1.0] * 95 + [None] * 5)
    assert enough.decision.verdict is Verdict.BETTER
    assert enough.primary is not None
    assert (enough.primary.n, enough.primary.n_dropped) == (95, 5)
    too_few = verdict([0.5] * 100, [1.0] * 94 + [None] * 6)
    assert too_few.decision.verdict is Verdict.NOT_DECIDED
    assert "94 of 100" in too_few.decision.sentence
    assert too_few.decision.p is None


def test_a_failed_question_is_dropped_from_both_sides() -> None:
    candidate = verdict([None, *[0.5] * 39], [1.0, *[0.5] * 38, None])
    assert candidate.primary is not None
    assert (candidate.primary.n, candidate.primary.n_dropped) == (38, 2)
    assert candidate.primary.candidate_mean == 0.5


def test_a_set_without_a_question_to_score_decides_nothing() -> None:
    compared = compare(side("old", []), [side("new", [])], primary=MRR, eligible=[], seed=1)
    assert compared.candidates[0].decision.verdict is Verdict.NOT_DECIDED


def test_several_candidates_are_adjusted_by_holm() -> None:
    baseline: Sequence[float | None] = [0.5] * 30
    strong = side("strong", [1.0] * 12 + [0.5] * 18)
    weak = side("weak", [1.0] * 6 + [0.5] * 24)
    alone = compare(side("old", baseline), [weak], primary=MRR, eligible=list(keyed(baseline)), seed=1)
    assert alone.candidates[0].decision.verdict is Verdict.BETTER
    others = [side(f"none{number}", [0.5] * 30) for number in range(2)]
    many = compare(side("old", baseline), [weak, strong, *others], primary=MRR, eligible=list(keyed(baseline)), seed=1)
    decisions = [one.decision for one in many.candidates]
    assert [one.p for one in decisions] == [2 / 2**6, 2 / 2**12, 1, 1]
    assert [one.adjusted_p for one in decisions] == pytest.approx([3 * 2 / 2**6, 4 * 2 / 2**12, 1, 1])
    assert decisions[0].verdict is not Verdict.BETTER
    assert decisions[1].verdict is Verdict.BETTER


def test_a_candidate_that_cannot_be_compared_does_not_weaken_the_others() -> None:
    baseline: Sequence[float | None] = [0.5] * 30
    weak = side("weak", [1.0] * 6 + [0.5] * 24)
    other_set = replace(side("other", [1.0] * 30), set_hash="other")
    broken = side("broken", [1.0] * 20 + [None] * 10)
    compared = compare(
        side("old", baseline), [other_set, weak, broken], primary=MRR, eligible=list(keyed(baseline)), seed=1
    )
    assert [one.decision.verdict for one in compared.candidates] == [
        Verdict.NOT_COMPARABLE,
        Verdict.BETTER,
        Verdict.NOT_DECIDED,
    ]


def test_a_rate_is_tested_by_mcnemar() -> None:
    baseline: Sequence[float | None] = [0.0] * 12 + [1.0] * 5 + [1.0] * 33
    candidate: Sequence[float | None] = [1.0] * 12 + [0.0] * 5 + [1.0] * 33
    compared = compare(
        side("old", baseline, metric=HIT),
        [side("new", candidate, metric=HIT)],
        primary=HIT,
        eligible=list(keyed(baseline)),
        seed=1,
    )
    assert compared.candidates[0].decision.p == 0.143463134765625


def test_the_other_metrics_have_a_delta_and_no_verdict() -> None:
    old = replace(side("old", [0.5] * 30), values={"mrr@10": keyed([0.5] * 30), "hit@1": keyed([0.0] * 30)})
    new = replace(
        side("new", [0.5] * 30), values={"hit@1": keyed([1.0] * 30), "mrr@10": keyed([0.5] * 30), "map@3": {}}
    )
    candidate = compare(old, [new], primary=MRR, eligible=list(keyed([0.5] * 30)), seed=1).candidates[0]
    assert [(one.metric, one.mean_delta) for one in candidate.others] == [("hit@1", 1.0)]
    assert candidate.decision.verdict is Verdict.NO_DIFFERENCE_SHOWN


def test_a_baseline_of_0_has_no_percentage() -> None:
    zero = verdict([0.0] * 20, [0.5] * 20).primary
    assert zero is not None
    assert zero.relative is None
    half = verdict([0.5] * 20, [0.6] * 20).primary
    assert half is not None
    assert half.relative == pytest.approx(0.2)


def test_different_documents_are_a_warning_in_words() -> None:
    assert verdict([0.5], [0.5]).warnings == ()
    (plain,) = verdict([0.5], [0.5], corpus_fingerprint="other").warnings
    assert "different documents" in plain
    change = CorpusChange(n_added=3, n_changed=1)
    (counted,) = verdict([0.5], [0.5], corpus_fingerprint="other", corpus_change=change).warnings
    assert "3 added, 0 removed, 1 changed" in counted
    (unknown,) = verdict([0.5], [0.5], corpus_fingerprint="").warnings
    assert "imported" in unknown


def test_a_metric_that_a_run_does_not_have_is_an_error() -> None:
    with pytest.raises(ValidationError, match="old was not measured with ndcg@10"):
        compare(
            side("old", [0.5]), [side("new", [0.5])], primary=MetricKey(name="ndcg", k=10), eligible=["q000"], seed=1
        )


def test_every_question_has_its_delta() -> None:
    deltas = verdict([0.5, 1.0, None], [1.0, 1.0, 1.0]).deltas
    assert [(one.key, one.delta) for one in deltas] == [("q000", 0.5), ("q001", 0.0)]


def test_the_same_seed_repeats_the_whole_answer() -> None:
    draw = random.Random(1)
    old = side("old", [draw.choice([0.0, 0.25, 0.5, 1.0]) for _ in range(60)])
    new = side("new", [draw.choice([0.0, 0.25, 0.5, 1.0]) for _ in range(60)])
    once, again, other = (
        compare(old, [new], primary=MRR, eligible=sorted(old.values["mrr@10"]), seed=seed) for seed in (1, 1, 2)
    )
    assert once == again
    assert once.candidates[0].decision.p != other.candidates[0].decision.p


def test_rank_transitions_say_where_questions_moved() -> None:
    before = {"a": 1, "b": 3, "c": None, "d": 12, "e": 5, "only before": 1}
    after = {"a": 1, "b": 2, "c": 7, "d": 10, "e": None, "only after": 1}
    moved = transitions(before, after, top_k=10)
    assert moved.labels == ("1", "2-3", "4-5", "6-10", "missed")
    assert moved.counts == (
        (1, 0, 0, 0, 0),
        (0, 1, 0, 0, 0),
        (0, 0, 0, 0, 1),
        (0, 0, 0, 0, 0),
        (0, 0, 0, 2, 0),
    )
    assert (moved.n_up, moved.n_down, moved.n_same) == (3, 1, 1)


@pytest.mark.parametrize(
    ("top_k", "labels"),
    [
        (1, ("1", "missed")),
        (2, ("1", "2", "missed")),
        (5, ("1", "2-3", "4-5", "missed")),
        (11, ("1", "2-3", "4-5", "6-10", "11", "missed")),
        (100, ("1", "2-3", "4-5", "6-10", "11-100", "missed")),
    ],
)
def test_bands_end_at_top_k(top_k: int, labels: tuple[str, ...]) -> None:
    assert transitions({}, {}, top_k=top_k).labels == labels
