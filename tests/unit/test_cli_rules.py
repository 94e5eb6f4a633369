"""`--fail-under` and the exit codes."""

from typing import Any

import pytest

from backend.core import configs
from touchstone import rules
from touchstone.rules import RuleError


def a_run(name: str, mean: float | None, **counts: int) -> dict[str, Any]:
    return {
        "name": name,
        "state": "scored" if mean is not None else "unavailable",
        "code": "" if mean is not None else "PROVIDER_UNAVAILABLE",
        "metrics": {} if mean is None else {"mrr@10": {"mean": mean}},
        "counts": {"n_total": 10, **counts},
    }


def ended(*runs: dict[str, Any], state: str = "completed") -> dict[str, Any]:
    return {"state": state, "runs": list(runs)}


@pytest.mark.parametrize(
    ("text", "mode", "metric", "least"),
    [
        ("mrr@10=0.70", "", "mrr@10", 0.7),
        ("hybrid:mrr@10=0.70", "hybrid", "mrr@10", 0.7),
        (" hybrid : ndcg(gain=exp)@5 = 1 ", "hybrid", "ndcg(gain=exp)@5", 1.0),
        ("my: mode:hit@1=0", "my: mode", "hit@1", 0.0),
        ("ndcg(gain=exp)@5=0.5", "", "ndcg(gain=exp)@5", 0.5),
    ],
)
def test_a_rule_names_a_metric_and_perhaps_a_mode(text: str, mode: str, metric: str, least: float) -> None:
    rule = rules.parse(text)
    assert (rule.mode, rule.metric, rule.least) == (mode, metric, least)


@pytest.mark.parametrize("text", ["", "mrr=0.7", "mrr@10", "mrr@10=", "mrr@10=70", "mrr@10=nan", "mrr@0=0.5", "=0.5"])
def test_a_rule_that_cannot_be_read_says_how_one_looks(text: str) -> None:
    with pytest.raises(RuleError, match=r"hybrid:mrr@10=0\.70"):
        rules.parse(text)


def test_a_rule_without_a_mode_holds_for_every_mode() -> None:
    rule = rules.parse("mrr@10=0.5")
    assert rules.broken([rule], [a_run("a", 0.5), a_run("b", 0.4)]) == [
        "b: mrr@10 is 0.400, and has to be at least 0.5"
    ]


def test_a_mode_without_a_figure_breaks_its_rule() -> None:
    rule = rules.parse("semantic:mrr@10=0")
    assert rules.exit_code([rule], ended(a_run("semantic", None), a_run("keyword", 1.0))) == rules.RULE_BROKE


def test_a_value_just_below_the_rule_is_not_shown_as_if_it_were_kept() -> None:
    sentence = rules.broken([rules.parse("mrr@10=0.7")], [a_run("a", 0.69999)])[0]
    assert "0.69999" in sentence


def test_exit_codes_tell_the_worst_that_happened() -> None:
    rule = [rules.parse("mrr@10=0.5")]
    assert rules.exit_code(rule, ended(a_run("a", 0.6))) == rules.DONE
    assert rules.exit_code(rule, ended(a_run("a", 0.4, n_error=1))) == rules.RULE_BROKE
    assert rules.exit_code(rule, ended(a_run("a", 0.6, n_error=1))) == rules.NOT_COVERED
    assert rules.exit_code([], ended(a_run("a", 0.6), a_run("b", None))) == rules.NOT_COVERED
    assert rules.exit_code([], ended(a_run("a", None), state="failed")) == rules.COULD_NOT_RUN
    assert rules.exit_code([], ended(a_run("a", 0.6), state="cancelled")) == rules.COULD_NOT_RUN


def test_a_rule_on_a_mode_that_is_not_measured_is_refused() -> None:
    with pytest.raises(RuleError, match="hybrid"):
        rules.check_modes([rules.parse("hybrid:mrr@10=0.5")], ["keyword"])


@pytest.mark.parametrize(
    ("modes", "configurations"),
    [
        (None, None),
        ([], []),
        (["dense", "fulltext_rerank", "hybrid"], None),
        (["keyword"], [{}, {"mode": "keyword", "reranker": "local"}, {"mode": "semantic_rerank"}, {"name": "deep"}]),
    ],
)
def test_runs_are_named_as_the_service_names_them(modes: list[str] | None, configurations: list[Any] | None) -> None:
    made = configs.parse_all(modes=modes, configurations=configurations, reranker="local")
    assert rules.run_names(modes, configurations) == [one.name for one in made]


def test_a_rule_on_a_metric_that_was_not_measured_names_those_there_are() -> None:
    with pytest.raises(RuleError, match=r"There are: mrr@10"):
        rules.check_metrics([rules.parse("map@7=0.5")], [a_run("a", 0.5)])


def test_the_ranks_that_rules_need_are_asked_for() -> None:
    assert rules.cutoffs([], top_k=None) is None
    assert rules.cutoffs([rules.parse("hit@2=0.5")], top_k=None) == [1, 2, 3, 5, 10]
    assert rules.cutoffs([rules.parse("hit@20=0.5")], top_k=None) == [1, 3, 5, 10, 20]
    assert rules.cutoffs([rules.parse("hit@2=0.5")], top_k=4) == [1, 2, 3]
    assert rules.unusual_metric([rules.parse("hit@2=0.5"), rules.parse("mrr@3=0.5")]) == "mrr@3"
