"""The rules of a gate: what breaks them, and that nothing that is missing or changed passes one."""

from dataclasses import replace
from typing import Any

import pytest

from backend.core import gates
from backend.core.comparison import Decision, Paired, Verdict
from backend.core.errors import ValidationError
from backend.core.gates import Against, Figure, Figures, Outcome, Status

WELL = Figures(
    name="hybrid",
    has_ended=True,
    reason="",
    primary_metric="mrr@10",
    metrics={"mrr@10": Figure(mean=0.8, n=50, n_total=50)},
    n_questions=50,
    n_without_result=0,
    n_must_pass=2,
    latency_ms={"p50": 40.0, "p95": 120.0},
    spent=0.5,
    currency="USD",
)


def beside(
    *, delta: float | None, verdict: Verdict = Verdict.NO_DIFFERENCE_SHOWN, why_not: tuple[str, ...] = ()
) -> Against:
    paired = Paired(
        metric="mrr@10",
        n=0 if delta is None else 50,
        n_dropped=50 if delta is None else 0,
        baseline_mean=None if delta is None else 0.8,
        candidate_mean=None if delta is None else 0.8 + delta,
        mean_delta=delta,
    )
    return Against(
        name="before",
        why_not=why_not,
        asks_approval=bool(why_not),
        paired={"mrr@10": paired},
        decisions={"mrr@10": Decision(verdict=verdict, sentence=f"{verdict}: so it is.")},
    )


def outcome(rule: dict[str, Any], **changes: Any) -> gates.Report:
    return gates.check(gates.parse([rule]), [replace(WELL, **changes)])


FLOOR = {"rule": "floor", "metric": "mrr@10", "least": 0.75}
DROP = {"rule": "drop", "most": 0.02}
TESTED = {"rule": "significant_drop"}


@pytest.mark.parametrize(
    ("rule", "changes", "expected"),
    [
        (FLOOR, {}, Outcome.PASSED),
        (FLOOR, {"metrics": {"mrr@10": Figure(mean=0.7499, n=50, n_total=50)}}, Outcome.BROKEN),
        (FLOOR, {"metrics": {}}, Outcome.BROKEN),
        ({**FLOOR, "metric": "ndcg@10"}, {}, Outcome.UNCHECKED),
        ({**FLOOR, "run": "keyword"}, {}, Outcome.UNCHECKED),
        (DROP, {"against": beside(delta=-0.02)}, Outcome.PASSED),
        (DROP, {"against": beside(delta=-0.021)}, Outcome.BROKEN),
        (DROP, {"against": beside(delta=None)}, Outcome.BROKEN),
        (DROP, {}, Outcome.UNCHECKED),
        (DROP, {"against": beside(delta=0.1, why_not=("the labels have changed",))}, Outcome.BROKEN),
        (TESTED, {"against": beside(delta=-0.1, verdict=Verdict.WORSE)}, Outcome.BROKEN),
        (TESTED, {"against": beside(delta=-0.1, verdict=Verdict.TOO_FEW_QUESTIONS)}, Outcome.PASSED),
        (TESTED, {"against": beside(delta=-0.1, verdict=Verdict.NOT_DECIDED)}, Outcome.UNCOVERED),
        (TESTED, {"against": beside(delta=0.0, verdict=Verdict.NOT_COMPARABLE)}, Outcome.BROKEN),
        ({"rule": "must_pass"}, {}, Outcome.PASSED),
        ({"rule": "must_pass"}, {"lacking": ("q7",)}, Outcome.BROKEN),
        ({"rule": "must_pass"}, {"unanswered": ("q7",)}, Outcome.UNCOVERED),
        ({"rule": "must_pass"}, {"n_must_pass": 0}, Outcome.UNCHECKED),
        ({"rule": "coverage", "least": 0.9}, {"n_without_result": 5}, Outcome.PASSED),
        ({"rule": "coverage", "least": 0.9}, {"n_without_result": 6}, Outcome.UNCOVERED),
        ({"rule": "latency", "most": 120}, {}, Outcome.PASSED),
        ({"rule": "latency", "most": 39, "percentile": "p50"}, {}, Outcome.BROKEN),
        ({"rule": "latency", "most": 120}, {"latency_ms": {}}, Outcome.UNCHECKED),
        ({"rule": "spend", "most": 0.5}, {}, Outcome.PASSED),
        ({"rule": "spend", "most": 0.4}, {}, Outcome.BROKEN),
        ({"rule": "spend", "most": 0.4}, {"spent": None}, Outcome.UNCHECKED),
        # Nobody said what is enough: every question has to have a result.
        (FLOOR, {"n_without_result": 1}, Outcome.UNCOVERED),
        (FLOOR, {"has_ended": False}, Outcome.UNCHECKED),
        (FLOOR, {"n_questions": 0}, Outcome.UNCOVERED),
    ],
)
def test_a_rule_is_kept_only_where_that_can_be_shown(
    rule: dict[str, Any], changes: dict[str, Any], expected: Outcome
) -> None:
    assert outcome(rule, **changes).outcome is expected


def test_a_broken_rule_outweighs_missing_results_and_each_ending_has_its_exit_code() -> None:
    both = outcome(FLOOR, metrics={"mrr@10": Figure(mean=0.1, n=40, n_total=50)}, n_without_result=10)
    assert both.outcome is Outcome.BROKEN
    assert [one.status for one in both.results] == [Status.BROKEN, Status.UNCOVERED]
    assert {one: gates.EXIT_CODES[one] for one in Outcome} == {
        Outcome.PASSED: 0,
        Outcome.UNCHECKED: 1,
        Outcome.BROKEN: 3,
        Outcome.UNCOVERED: 4,
    }


def test_changed_labels_ask_for_approval_again() -> None:
    said = outcome(DROP, against=beside(delta=0.5, why_not=("the labels have changed",))).results[0].sentence
    assert "the labels have changed" in said
    assert "Approve a run of the new labels" in said


def test_a_rule_for_every_run_is_checked_on_each() -> None:
    runs = [WELL, replace(WELL, name="keyword", metrics={"mrr@10": Figure(mean=0.4, n=50, n_total=50)})]
    report = gates.check(gates.parse([FLOOR]), runs)
    assert [(one.run, one.status) for one in report.results[:2]] == [
        ("hybrid", Status.KEPT),
        ("keyword", Status.BROKEN),
    ]
    assert gates.check(gates.parse([{**FLOOR, "run": "hybrid"}]), runs).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"n_reused": 50}, "its results were taken over from an earlier run, with the latency measured then"),
        ({"n_reused": 20}, "20 of 50 results were taken over from an earlier run, with the latency measured then"),
        ({"is_rescored": True}, "measured in the run that this one was scored from"),
    ],
)
def test_a_latency_that_was_measured_in_an_earlier_run_is_said_to_be(changes: dict[str, Any], words: str) -> None:
    for most, status in ((120, Status.KEPT), (119, Status.BROKEN)):
        result = outcome({"rule": "latency", "most": most}, **changes).results[0]
        assert result.status is status
        told = f"hybrid: p95 of the latency is 120 ms, at most {most} ms are allowed"
        assert result.sentence.startswith(f"{told}; " if words else told)
        assert words in result.sentence


@pytest.mark.parametrize(
    ("n_losses", "delta", "verdict", "words"),
    [
        (5, -0.214, Verdict.TOO_FEW_QUESTIONS, "too few questions differ for this rule to break at all"),
        (6, -0.214, Verdict.TOO_FEW_QUESTIONS, "the questions are too few to show that"),
        (5, 0.214, Verdict.TOO_FEW_QUESTIONS, ""),
        (0, 0.0, Verdict.TOO_FEW_QUESTIONS, ""),
        (9, -0.001, Verdict.NO_DIFFERENCE_SHOWN, ""),
    ],
)
def test_a_fall_that_the_test_cannot_show_is_kept_and_says_what_covers_it(
    n_losses: int, delta: float, verdict: Verdict, words: str
) -> None:
    against = beside(delta=delta, verdict=verdict)
    paired = {"mrr@10": replace(against.paired["mrr@10"], n_losses=n_losses)}
    result = outcome(TESTED, against=replace(against, paired=paired)).results[0]
    assert result.status is Status.KEPT
    assert words in result.sentence
    assert ("--max-drop" in result.sentence) == bool(words)


def test_a_figure_just_below_its_floor_is_not_shown_as_if_it_were_kept() -> None:
    said = outcome(FLOOR, metrics={"mrr@10": Figure(mean=0.74999, n=50, n_total=50)}).results[0].sentence
    assert "0.74999" in said


def test_every_fault_of_the_rules_is_told_by_its_place() -> None:
    with pytest.raises(ValidationError) as caught:
        gates.parse(
            [
                {"rule": "floor", "metric": "mrr@10"},
                {"rule": "soft"},
                {"rule": "drop", "most": 2},
                {"rule": "must_pass", "least": 1},
                {"rule": "latency", "most": -1, "percentile": "p99"},
                {"rule": "floor", "metric": "beauty@10", "least": 0.1},
                "floor",
                {"rule": "spend", "most": float("nan")},
            ]
        )
    assert [fault.field for fault in caught.value.faults] == [
        "rules[0].least",
        "rules[1].rule",
        "rules[2].most",
        "rules[3].least",
        "rules[4].most",
        "rules[4].percentile",
        "rules[5].metric",
        "rules[6].rule",
        "rules[7].most",
    ]
    nothings: list[Any] = [None, [], {}, "floor"]
    for nothing in nothings:
        with pytest.raises(ValidationError):
            gates.parse(nothing)


def test_rules_come_back_as_they_were_written() -> None:
    given = [
        {"rule": "floor", "run": "hybrid", "metric": "mrr@10", "least": 0.7},
        {"rule": "latency", "most": 800.0, "percentile": "p50"},
        {"rule": "must_pass"},
    ]
    assert [rule.to_json() for rule in gates.parse(given)] == given
