"""What a run has to keep, and whether it does: the rules of a gate, read and checked.

A rule that cannot be shown to be kept is not kept: failed questions, changed labels and a missing baseline never let a
run through. `significant_drop` asks the other way round, for a fall that is shown, and says where one could not be.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any

from backend.core.comparison import Decision, Paired, Verdict
from backend.core.comparison.verdicts import LEAST_DIFFERING
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.metric_keys import MetricKey
from backend.core.resampling import TIE

MOST_RULES = 100


class RuleKind(StrEnum):
    FLOOR = "floor"
    DROP = "drop"
    SIGNIFICANT_DROP = "significant_drop"
    MUST_PASS = "must_pass"  # noqa: S105  a rule's name
    COVERAGE = "coverage"
    LATENCY = "latency"
    SPEND = "spend"


class Status(StrEnum):
    """`uncovered`: only questions without a result are in the way. `unchecked`: there is nothing to check it with."""

    KEPT = "kept"
    BROKEN = "broken"
    UNCHECKED = "unchecked"
    UNCOVERED = "uncovered"


class Outcome(StrEnum):
    PASSED = "passed"
    BROKEN = "broken"
    UNCHECKED = "unchecked"
    UNCOVERED = "uncovered"


# As `touchstone gate` ends.
EXIT_CODES: Mapping[Outcome, int] = {
    Outcome.PASSED: 0,
    Outcome.UNCHECKED: 1,
    Outcome.BROKEN: 3,
    Outcome.UNCOVERED: 4,
}
# kind -> (the field of its limit, whether the limit may be above 1).
_LIMITS: Mapping[RuleKind, tuple[str, bool]] = {
    RuleKind.FLOOR: ("least", False),
    RuleKind.DROP: ("most", False),
    RuleKind.COVERAGE: ("least", False),
    RuleKind.LATENCY: ("most", True),
    RuleKind.SPEND: ("most", True),
}
_WITH_METRIC = frozenset({RuleKind.FLOOR, RuleKind.DROP, RuleKind.SIGNIFICANT_DROP})
_PERCENTILES = ("p50", "p95")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`run` is a run's name, empty for every run. `metric` empty: the run's primary one. `limit` is the least or the
    most, by kind: a share for a floor, a drop and coverage, milliseconds of latency, money spent."""

    kind: RuleKind
    run: str = ""
    metric: str = ""
    limit: float | None = None
    percentile: str = "p95"

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"rule": self.kind.value}
        if self.run:
            told["run"] = self.run
        if self.metric:
            told["metric"] = self.metric
        if self.kind in _LIMITS:
            told[_LIMITS[self.kind][0]] = self.limit
        if self.kind is RuleKind.LATENCY:
            told["percentile"] = self.percentile
        return told

    @property
    def needs_baseline(self) -> bool:
        return self.kind in {RuleKind.DROP, RuleKind.SIGNIFICANT_DROP}


def parse(given: Any) -> tuple[Rule, ...]:
    """A JSON list of rules. Raises ValidationError with every fault, by its place: `rules[2].most`."""
    if not isinstance(given, list) or not given or len(given) > MOST_RULES:
        example = "{'rule': 'floor', 'metric': 'mrr@10', 'least': 0.7}"
        message = f"rules is a list of 1 to {MOST_RULES} rules, such as {example}."
        raise ValidationError(message, field="rules", faults=[_fault(message, "rules")])
    faults: list[Fault] = []
    found = [_rule(one, f"rules[{index}]", faults) for index, one in enumerate(given)]
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return tuple(rule for rule in found if rule is not None)


def _rule(given: Any, where: str, faults: list[Fault]) -> Rule | None:
    if not isinstance(given, Mapping) or given.get("rule") not in set(RuleKind):
        said = given.get("rule") if isinstance(given, Mapping) else given
        faults.append(_fault(f"A rule is one of {', '.join(RuleKind)}, not {said!r}.", f"{where}.rule"))
        return None
    kind = RuleKind(given["rule"])
    limit_name, is_open = _LIMITS.get(kind, ("", False))
    known = {"rule", "run", *filter(None, [limit_name])}
    known |= {"metric"} if kind in _WITH_METRIC else set()
    known |= {"percentile"} if kind is RuleKind.LATENCY else set()
    faults += [
        _fault(f"A {kind} rule has no field {name!r}. It has: {', '.join(sorted(known))}.", f"{where}.{name}")
        for name in sorted(set(given) - known)
    ]
    run, metric = given.get("run", ""), given.get("metric", "")
    if not isinstance(run, str):
        faults.append(_fault("run is a run's name, such as hybrid.", f"{where}.run"))
    if kind in _WITH_METRIC:
        metric = _metric(metric, kind, f"{where}.metric", faults)
    limit = given.get(limit_name) if limit_name else None
    if limit_name and not _is_limit(limit, is_open=is_open):
        faults.append(
            _fault(
                f"{limit_name} is a number {'of 0 or more' if is_open else 'from 0 to 1'}, not {limit!r}.",
                f"{where}.{limit_name}",
            )
        )
    percentile = given.get("percentile", "p95")
    if percentile not in _PERCENTILES:
        faults.append(_fault(f"percentile is {' or '.join(_PERCENTILES)}, not {percentile!r}.", f"{where}.percentile"))
    if any((fault.field or "").startswith(where) for fault in faults):
        return None
    return Rule(
        kind=kind,
        run=run,
        metric=metric,
        limit=None if limit is None else float(limit),
        percentile=percentile,
    )


def _metric(given: Any, kind: RuleKind, where: str, faults: list[Fault]) -> str:
    if given == "" and kind is not RuleKind.FLOOR:
        return ""
    try:
        return str(MetricKey.parse(given if isinstance(given, str) else ""))
    except ValidationError as error:
        faults.append(_fault(error.message, where))
        return ""


def _is_limit(value: Any, *, is_open: bool) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return is_number and value >= 0 and (is_open or value <= 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    mean: float | None
    n: int
    n_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """The baseline of one run. `why_not` says why the two measure different things; `asks_approval`: since the labels
    or the metrics' definitions changed, so that a person has to approve a new one. `paired` by metric, `decisions` for
    the metrics that a test was asked for."""

    name: str
    why_not: tuple[str, ...] = ()
    asks_approval: bool = False
    paired: Mapping[str, Paired] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One run as the rules see it. `lacking` are the keys of must-pass questions that were missed, `unanswered` of
    those without a result. `spent` None: no price is known. `has_ended` is false for one that was cancelled or failed.
    Of `n_reused` questions the result, with its latency, is that of an earlier run; of all where `is_rescored`.
    """

    name: str
    has_ended: bool
    reason: str
    primary_metric: str
    metrics: Mapping[str, Figure]
    n_questions: int
    n_without_result: int
    n_must_pass: int = 0
    lacking: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    n_reused: int = 0
    is_rescored: bool = False
    spent: float | None = None
    currency: str = ""
    against: Against | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """One rule on one run. `value` is what was found, where that is a number."""

    run: str
    rule: Rule
    status: Status
    sentence: str
    value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    outcome: Outcome
    results: tuple[RuleResult, ...]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]

    def of(self, status: Status) -> tuple[RuleResult, ...]:
        return tuple(one for one in self.results if one.status is status)


def check(rules: Sequence[Rule], runs: Sequence[Figures]) -> Report:
    """Every rule on every run it is about. Where no rule says what coverage is enough, every question has to have a
    result. A broken rule outweighs one that could not be checked, and that one missing results."""
    results: list[RuleResult] = []
    for rule in rules:
        about = [run for run in runs if rule.run in {"", run.name}]
        results += [_checked(rule, run) for run in about]
        if not about:
            said = f"There is no run {rule.run!r}. There are: {', '.join(run.name for run in runs) or 'none'}."
            results.append(RuleResult(run=rule.run, rule=rule, status=Status.UNCHECKED, sentence=said))
    for run in runs:
        if not any(rule.kind is RuleKind.COVERAGE and rule.run in {"", run.name} for rule in rules):
            results.append(_checked(Rule(kind=RuleKind.COVERAGE, limit=1.0), run))
    statuses = {one.status for one in results}
    for status, outcome in (
        (Status.BROKEN, Outcome.BROKEN),
        (Status.UNCHECKED, Outcome.UNCHECKED),
        (Status.UNCOVERED, Outcome.UNCOVERED),
    ):
        if status in statuses:
            return Report(outcome=outcome, results=tuple(results))
    return Report(outcome=Outcome.PASSED if results else Outcome.UNCHECKED, results=tuple(results))


def _checked(rule: Rule, run: Figures) -> RuleResult:
    if not run.has_ended:
        said = f"{run.name} has no final figures. {run.reason}".strip()
        return RuleResult(run=run.name, rule=rule, status=Status.UNCHECKED, sentence=said)
    status, sentence, value = _CHECKS[rule.kind](rule, run)
    return RuleResult(run=run.name, rule=rule, status=status, sentence=f"{run.name}: {sentence}", value=value)


_Found = tuple[Status, str, float | None]


def _floor(rule: Rule, run: Figures) -> _Found:
    least = rule.limit or 0.0
    figure = run.metrics.get(rule.metric)
    if figure is None and run.metrics:
        return Status.UNCHECKED, f"{rule.metric} was not measured; there are {', '.join(run.metrics)}", None
    if figure is None or figure.mean is None:
        return Status.BROKEN, f"{rule.metric} is n/a, and has to be at least {least:g}. {run.reason}".strip(), None
    said = f"{rule.metric} is {_shown(figure.mean, least)} ({figure.n} of {figure.n_total}), at least {least:g}"
    return (Status.KEPT if figure.mean >= least else Status.BROKEN), f"{said} is asked for", figure.mean


def _drop(rule: Rule, run: Figures) -> _Found:
    metric, most = rule.metric or run.primary_metric, rule.limit or 0.0
    refused = _without_baseline(run)
    if refused is not None:
        return refused
    against = _baseline(run)
    paired = against.paired.get(metric)
    if paired is None:
        return Status.UNCHECKED, f"{metric} was not measured in both runs", None
    if paired.mean_delta is None:
        return Status.BROKEN, f"{metric} is n/a beside {against.name}: no question was scored in both", None
    drop = -paired.mean_delta
    # What floating point makes of two equal means is no drop.
    status = Status.KEPT if drop <= most + 1e-9 else Status.BROKEN
    said = (
        f"{metric} went from {paired.baseline_mean:.3f} to {paired.candidate_mean:.3f} ({paired.mean_delta:+.3f}) over"
        f" {paired.n} questions beside {against.name}; a drop of at most {most:g} is allowed"
    )
    return status, said, paired.mean_delta


def _significant_drop(rule: Rule, run: Figures) -> _Found:
    metric = rule.metric or run.primary_metric
    refused = _without_baseline(run)
    if refused is not None:
        return refused
    against = _baseline(run)
    decision = against.decisions.get(metric)
    if decision is None:
        return Status.UNCHECKED, f"{metric} was not measured in both runs", None
    said = f"beside {against.name}: {decision.sentence}".rstrip(".")
    if decision.verdict is Verdict.NOT_DECIDED:
        return Status.UNCOVERED, said, None
    is_kept = decision.verdict not in {Verdict.WORSE, Verdict.NOT_COMPARABLE}
    paired = against.paired.get(metric)
    if paired is None or paired.mean_delta is None:
        return (Status.KEPT if is_kept else Status.BROKEN), said, None
    if decision.verdict is Verdict.TOO_FEW_QUESTIONS and paired.mean_delta < -TIE:
        said = f"{said}. {_unshown_fall(paired)}"
    return (Status.KEPT if is_kept else Status.BROKEN), said, paired.mean_delta


def _unshown_fall(paired: Paired) -> str:
    """A change of three answers should not fail every merge, nor pass without a word."""
    why = "the questions are too few to show that"
    if paired.n_differing < LEAST_DIFFERING:
        why = "too few questions differ for this rule to break at all"
    return f"The mean fell, and {why}; a rule with a largest drop (--max-drop, `drop`) covers it"


def _must_pass(rule: Rule, run: Figures) -> _Found:  # noqa: ARG001  as all checks
    if not run.n_must_pass:
        return Status.UNCHECKED, "the set marks no question must_pass", None
    n_found = run.n_must_pass - len(run.lacking) - len(run.unanswered)
    said = f"{n_found} of {run.n_must_pass} must-pass questions were found"
    if run.lacking:
        return Status.BROKEN, f"{said}; missed: {_some(run.lacking)}", float(n_found)
    if run.unanswered:
        return Status.UNCOVERED, f"{said}; without a result: {_some(run.unanswered)}", float(n_found)
    return Status.KEPT, said, float(n_found)


def _coverage(rule: Rule, run: Figures) -> _Found:
    least = 1.0 if rule.limit is None else rule.limit
    if not run.n_questions:
        return Status.UNCOVERED, "no question was asked", None
    n = run.n_questions - run.n_without_result
    said = f"{n:,} of {run.n_questions:,} questions have a result"
    if n >= least * run.n_questions - 1e-9:
        return Status.KEPT, said, n / run.n_questions
    because = f". {run.reason}" if run.reason else ""
    return Status.UNCOVERED, f"{said}, at least {least:.4g} of them are asked for{because}", n / run.n_questions


def _latency(rule: Rule, run: Figures) -> _Found:
    most, found = rule.limit or 0.0, run.latency_ms.get(rule.percentile)
    if found is None:
        return Status.UNCHECKED, "no latency was measured", None
    said = f"{rule.percentile} of the latency is {found:,.0f} ms, at most {most:,.0f} ms"
    return (Status.KEPT if found <= most else Status.BROKEN), f"{said} are allowed{_measured_then(run)}", found


def _measured_then(run: Figures) -> str:
    """What is to be known where a latency was not measured in this run."""
    if run.is_rescored:
        return "; it was measured in the run that this one was scored from"
    if not run.n_reused:
        return ""
    whose = "its results" if run.n_reused >= run.n_questions else f"{run.n_reused:,} of {run.n_questions:,} results"
    return (
        f"; {whose} were taken over from an earlier run, with the latency measured then"
        " (evaluate with --no-cache, `cache: false`, to measure it now)"
    )


def _spend(rule: Rule, run: Figures) -> _Found:
    most = rule.limit or 0.0
    if run.spent is None:
        return Status.UNCHECKED, "what it cost is not known: a price is missing (TOUCHSTONE_PRICES)", None
    said = f"it cost {f'{run.spent:.4f} {run.currency}'.strip()}, at most {most:g} is allowed"
    return (Status.KEPT if run.spent <= most + 1e-12 else Status.BROKEN), said, run.spent


_CHECKS: Mapping[RuleKind, Callable[[Rule, Figures], _Found]] = {
    RuleKind.FLOOR: _floor,
    RuleKind.DROP: _drop,
    RuleKind.SIGNIFICANT_DROP: _significant_drop,
    RuleKind.MUST_PASS: _must_pass,
    RuleKind.COVERAGE: _coverage,
    RuleKind.LATENCY: _latency,
    RuleKind.SPEND: _spend,
}


def _without_baseline(run: Figures) -> _Found | None:
    """What is said where there is nothing to compare with."""
    if run.against is None:
        return Status.UNCHECKED, "no baseline was approved for it: approve a run, or name one", None
    if run.against.why_not:
        said = f"cannot be compared with {run.against.name}: {'; '.join(run.against.why_not)}"
        if run.against.asks_approval:
            said += ". Approve a run of the new labels as the baseline"
        return Status.BROKEN, said, None
    return None


def _baseline(run: Figures) -> Against:
    if run.against is None:
        raise ValueError("a rule that needs a baseline was checked without one")
    return run.against


def _shown(mean: float, least: float) -> str:
    """Rounded, unless that would show the value as if the rule were kept."""
    shown = f"{mean:.3f}"
    return shown if (float(shown) < least) == (mean < least) else repr(mean)


def _some(keys: Sequence[str], *, most: int = 10) -> str:
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(keys[:most]) + more


def _fault(message: str, field_name: str) -> Fault:
    return Fault(code=ErrorCode.VALIDATION, message=message, field=field_name)
