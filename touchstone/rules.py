"""`--fail-under`: the least value of a metric, in every mode or in one. Imports nothing of ours."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]

DONE, COULD_NOT_RUN, WRONG_USAGE, RULE_BROKE, NOT_COVERED, INTERRUPTED = 0, 1, 2, 3, 4, 130
_ALIASES = {"dense": "semantic", "fulltext": "keyword"}
_DEFAULT_MODES = ("hybrid_rerank", "hybrid")
_METRIC = re.compile(r"[a-z]+(\([a-z]+=[a-z]+\))?@([1-9][0-9]{0,3})")


class RuleError(ValueError):
    """A rule that cannot be read; the sentence says how one looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`mode` is a run's name; empty for every run."""

    mode: str
    metric: str
    least: float

    @property
    def k(self) -> int:
        return int(self.metric.rpartition("@")[2])


def parse(text: str) -> Rule:
    """`mrr@10=0.70` or `hybrid:mrr@10=0.70`. Raises RuleError."""
    left, equals, value = text.strip().rpartition("=")
    mode, _, metric = (part.strip() for part in left.rpartition(":"))
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if not equals or not _METRIC.fullmatch(metric) or not 0 <= least <= 1:
        raise RuleError(
            f"{text!r} is no rule. Write the metric with its cut and the least value from 0 to 1: 'mrr@10=0.70' for"
            " every mode, 'hybrid:mrr@10=0.70' for one."
        )
    return Rule(mode=mode, metric=metric, least=least)


def run_names(modes: Sequence[str] | None, configurations: Sequence[Values] | None = None) -> list[str]:
    """What the service will call the runs of a request, so that a rule without a run is refused before the questions
    are asked."""
    if not modes and not configurations:
        return list(_DEFAULT_MODES)
    items = [*({"mode": mode} for mode in modes or ()), *(configurations or ())]
    return [_run_name(item) for item in items]


def _run_name(item: Values) -> str:
    base, _, suffix = str(item.get("mode", "hybrid")).partition("_rerank")
    is_reranked = str(item.get("mode", "")).endswith("_rerank") or bool(item.get("reranker"))
    return str(item.get("name") or f"{_ALIASES.get(base, base)}{'_rerank' if is_reranked else ''}{suffix}")


def check_modes(rules: Sequence[Rule], names: Sequence[str]) -> None:
    """Raises RuleError for a rule on a mode that is not among those asked for: it could never hold."""
    for rule in rules:
        if rule.mode and rule.mode not in names:
            raise RuleError(f"The rule on {rule.mode!r} has no run. There are: {', '.join(names)}.")


def check_metrics(rules: Sequence[Rule], runs: Sequence[Values]) -> None:
    """Raises RuleError for a metric that no scored run was measured with."""
    for rule in rules:
        measured = [run["metrics"] for run in runs if run["metrics"] and rule.mode in {"", run["name"]}]
        if measured and not any(rule.metric in metrics for metrics in measured):
            raise RuleError(f"{rule.metric} was not measured. There are: {', '.join(measured[0])}.")


def broken(rules: Sequence[Rule], runs: Sequence[Values]) -> list[str]:
    """A sentence for each rule that a run does not keep; a run without a figure breaks it."""
    sentences = []
    for rule in rules:
        for run in runs:
            if rule.mode and rule.mode != run["name"]:
                continue
            mean = (run["metrics"].get(rule.metric) or {}).get("mean")
            if mean is None:
                sentences.append(f"{run['name']}: {rule.metric} is n/a, and has to be at least {rule.least:g}")
            elif mean < rule.least:
                sentences.append(
                    f"{run['name']}: {rule.metric} is {_below(mean, rule.least)}, and has to be at least {rule.least:g}"
                )
    return sentences


def uncovered(runs: Sequence[Values]) -> list[str]:
    """A sentence for each run that lacks questions: failed, not run, or the mode could not run at all."""
    sentences = []
    for run in runs:
        counts = run["counts"]
        if run["state"] != "scored":
            sentences.append(f"{run['name']} has no figures ({run['code'] or run['state']})")
            continue
        n = sum(counts.get(name, 0) for name in ("n_error", "n_not_run", "n_cancelled"))
        if n:
            sentences.append(f"{run['name']}: {n:,} of {counts['n_total']:,} questions have no result")
    return sentences


def exit_code(rules: Sequence[Rule], evaluation: Values) -> int:
    """Of a finished evaluation: 1 when it could not run, 3 for a broken rule, 4 when only questions failed, else 0."""
    if evaluation["state"] != "completed":
        return COULD_NOT_RUN
    if broken(rules, evaluation["runs"]):
        return RULE_BROKE
    return NOT_COVERED if uncovered(evaluation["runs"]) else DONE


def _below(mean: float, least: float) -> str:
    """Rounded, unless that would show the value as if the rule were kept."""
    shown = f"{mean:.3f}"
    return shown if float(shown) < least else repr(mean)


def cutoffs(rules: Sequence[Rule], *, top_k: int | None, given: Sequence[int] | None = None) -> list[int] | None:
    """The ks to ask for: those given, else the usual ones, and those that rules are about. None: the service's own."""
    if not rules:
        return None if given is None else list(given)
    most = top_k or max(10, *(rule.k for rule in rules))
    return sorted({*(given or [k for k in (1, 3, 5, 10) if k <= most]), *(rule.k for rule in rules)})


def unusual_metric(rules: Sequence[Rule]) -> str:
    """A metric that is measured only when asked for (mrr@5), to be asked for as the primary one."""
    return next((rule.metric for rule in rules if "(" in rule.metric or _is_other_mrr(rule.metric)), "")


def _is_other_mrr(metric: str) -> bool:
    return metric.startswith("mrr@") and metric != "mrr@10"
