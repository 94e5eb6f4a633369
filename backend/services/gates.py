"""Gates: kept, and checked against runs. The rules themselves are in backend/core/gates.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from backend.core import alerts, gates
from backend.core.comparison import Decision, Paired, Verdict
from backend.core.errors import ConflictError, NotFoundError, TouchstoneError
from backend.core.gates import Against, Figure, Figures, Report, Rule, RuleKind
from backend.core.metric_keys import MetricKey
from backend.core.states import TERMINAL, EvaluationState, RunKind, RunState
from backend.core.types import GOOD_OUTCOMES
from backend.models import Baseline, Evaluation, Gate, Question, Result, Run, Schedule, SpendEntry, Workspace
from backend.queries import comparisons, reused
from backend.queries.lookups import as_uuid, get
from backend.queries.runs import question_set_of
from backend.services import alerts as alert_service
from backend.services import baselines

MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A question found in the baseline's first k, and not in the run's. `question` None: the set is gone."""

    id: str
    question: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun:
    """`baseline` is the run it was compared with, `k` where found and lost part."""

    run: Run
    baseline: Run | None
    k: int
    lost: tuple[Lost, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    evaluation: Evaluation
    report: Report
    runs: tuple[CheckedRun, ...]


def create(
    workspace: Workspace, *, name: str, rules: Any, schedule: Schedule | None = None, enabled: bool = True
) -> Gate:
    """Raises ValidationError for rules that cannot be read, ConflictError for a name that is taken."""
    parsed = gates.parse(rules)
    try:
        with transaction.atomic():
            return Gate.objects.create(
                workspace=workspace,
                name=name,
                rules=[rule.to_json() for rule in parsed],
                schedule=schedule,
                enabled=enabled,
            )
    except IntegrityError as error:
        raise ConflictError(f"There is a gate {name!r} already.") from error


def update(gate: Gate, *, changes: Mapping[str, Any]) -> Gate:
    """`name`, `rules`, `schedule` (None: none), `enabled`: what is given. Earlier checks keep what they said."""
    values = dict(changes)
    if "rules" in values:
        values["rules"] = [rule.to_json() for rule in gates.parse(values["rules"])]
    try:
        with transaction.atomic():
            Gate.objects.filter(id=gate.id).update(**values)
    except IntegrityError as error:
        raise ConflictError(f"There is a gate {values.get('name')!r} already.") from error
    gate.refresh_from_db()
    return gate


def delete(gate: Gate, *, now: datetime) -> None:
    """With what it said; what is open because of it is closed."""
    with transaction.atomic():
        alert_service.drop(gate.workspace, reason=f"The gate {gate.name} was deleted", now=now, gate=gate)
        gate.delete()


def rules_of(gate: Gate) -> tuple[Rule, ...]:
    return gates.parse(gate.rules)


def find(workspace: Workspace, *, run: str = "", evaluation: str = "") -> list[Run]:
    """A run, or all of an evaluation. Raises NotFoundError."""
    rows = Run.objects.filter(workspace=workspace).select_related("evaluation__question_set_version")
    if run:
        return [get(rows, run, what="run")]
    found = list(rows.filter(evaluation=as_uuid(evaluation, what="evaluation")).order_by("ordinal"))
    if not found:
        raise NotFoundError("evaluation", evaluation)
    return found


def check(workspace: Workspace, runs: Sequence[Run], rules: Sequence[Rule], *, baseline: str = "") -> Checked:
    """Check runs of one evaluation; nothing is written. `baseline` names a baseline, a run or an evaluation to compare
    with instead of what was approved. Reads the judged lists of both sides where a rule compares."""
    chosen = _baselines(workspace, runs, named=baseline)
    evaluation = runs[0].evaluation
    figures, checked = [], []
    for run in runs:
        about = [rule for rule in rules if rule.run in {"", run.name}]
        other = chosen.get(run.id)
        against = None
        if other is not None and any(rule.needs_baseline for rule in about):
            against = _against(workspace, run, other, about)
        figures.append(_figures(run, against=against))
        k = MetricKey.parse(run.primary_metric).k
        checked.append(
            CheckedRun(run=run, baseline=other, k=k, lost=() if other is None else lost_between(other, run, k=k))
        )
    return Checked(evaluation=evaluation, report=gates.check(rules, figures), runs=tuple(checked))


def dry_run(gate: Gate, *, limit: int, question_set: UUID | None = None) -> list[Checked]:
    """What it would have said of past evaluations, newest first: those of its schedule, or of a set, else all."""
    found = Evaluation.objects.filter(workspace=gate.workspace_id, state__in=TERMINAL)
    if question_set is not None:
        found = found.filter(question_set_version__question_set=question_set)
    elif gate.schedule_id is not None:
        found = found.filter(firings__schedule=gate.schedule_id)
    rules, checked = rules_of(gate), []
    for evaluation_id in found.order_by("-created_at").values_list("id", flat=True)[:limit]:
        runs = find(gate.workspace, evaluation=str(evaluation_id))
        checked.append(check(gate.workspace, runs, rules))
    return checked


def parse(rules: Any) -> tuple[Rule, ...]:
    """Raises ValidationError with every fault."""
    return gates.parse(rules)


def report_json(report: Report) -> dict[str, Any]:
    return {
        "outcome": report.outcome.value,
        "results": [
            {
                "run": one.run,
                "rule": one.rule.to_json(),
                "status": one.status.value,
                "sentence": one.sentence,
                "value": one.value,
            }
            for one in report.results
        ],
    }


def lost_between(before: Run, after: Run, *, k: int) -> tuple[Lost, ...]:
    """The questions found at k in one run and not in the other; both have to have a result."""
    keys = alerts.lost(_first_ranks(before), _first_ranks(after), k=k)
    version = after.evaluation.question_set_version_id
    texts = dict(Question.objects.filter(version=version, key__in=keys).values_list("key", "text")) if keys else {}
    return tuple(Lost(id=key, question=texts.get(key)) for key in keys)


def _first_ranks(run: Run) -> dict[str, int | None]:
    rows = Result.objects.filter(run=run, outcome__in=[one.value for one in GOOD_OUTCOMES])
    return dict(rows.order_by("ordinal").values_list("question_key", "first_rank"))


def _baselines(workspace: Workspace, runs: Sequence[Run], *, named: str) -> dict[UUID, Run]:
    """By the run's id, the run to compare it with."""
    if not named:
        return {run_id: found.run for run_id, found in baselines.in_force(workspace, runs).items()}
    key = as_uuid(named, what="baseline")
    rows = Run.objects.filter(workspace=workspace).select_related("evaluation__question_set_version")
    of_evaluation = {run.name: run for run in rows.filter(evaluation=key)}
    if of_evaluation:
        return {run.id: of_evaluation[run.name] for run in runs if run.name in of_evaluation}
    approved = Baseline.objects.filter(workspace=workspace, id=key).values_list("run_id", flat=True).first()
    one = rows.filter(id=approved or key).first()
    if one is None:
        raise NotFoundError("baseline", named)
    return {run.id: one for run in runs}


def _against(workspace: Workspace, run: Run, other: Run, rules: Sequence[Rule]) -> Against:
    """One comparison for each metric that a test is asked for; the others come with it."""
    name = f"{other.name} ({other.label or f'…{str(other.id)[-6:]}'})"
    if other.id == run.id:
        return _itself(run, name)
    why_not, asks = _differences(other, run)
    if why_not:
        return Against(name=name, why_not=why_not, asks_approval=asks)
    tested = {rule.metric or run.primary_metric for rule in rules if rule.kind is RuleKind.SIGNIFICANT_DROP}
    paired: dict[str, Paired] = {}
    decisions: dict[str, Decision] = {}
    for metric in sorted(tested) or [other.primary_metric]:
        try:
            made = comparisons.compare(workspace, baseline=other.id, candidates=[run.id], primary_metric=metric)
        except TouchstoneError:
            # Not measured in both: the rule says so.
            continue
        one = made.comparison.candidates[0]
        paired |= {each.metric: each for each in (*([one.primary] if one.primary else []), *one.others)}
        if metric in tested:
            decisions[metric] = one.decision
    return Against(name=name, paired=paired, decisions=decisions)


def _itself(run: Run, name: str) -> Against:
    """A run beside itself, as in a dry run over a baseline's own evaluation: nothing has changed."""
    paired = {
        key: Paired(
            metric=key,
            n=value["n"],
            n_dropped=value["n_total"] - value["n"],
            baseline_mean=value["mean"],
            candidate_mean=value["mean"],
            mean_delta=0.0 if value["mean"] is not None else None,
            low=0.0,
            high=0.0,
        )
        for key, value in run.metrics.items()
    }
    same = Decision(verdict=Verdict.NO_DIFFERENCE_SHOWN, sentence="it is the baseline itself")
    return Against(name=name, paired=paired, decisions=dict.fromkeys(paired, same))


def _differences(before: Run, after: Run) -> tuple[tuple[str, ...], bool]:
    reasons = []
    is_one_set = question_set_of(before) == question_set_of(after)
    if before.set_hash != after.set_hash and is_one_set:
        reasons.append("the labels have changed since it was approved")
    if before.metric_definitions != after.metric_definitions:
        reasons.append("the metrics are defined differently since")
    asks = bool(reasons)
    if before.set_hash != after.set_hash and not is_one_set:
        reasons.append("they asked different question sets")
    if (before.level, before.threshold) != (after.level, after.threshold):
        reasons.append("they count results at different levels or thresholds")
    return tuple(reasons), asks


def _figures(run: Run, *, against: Against | None) -> Figures:
    counts = run.counts
    ended = run.state in {RunState.SCORED, RunState.UNAVAILABLE} and run.evaluation.state in {
        EvaluationState.COMPLETED,
        EvaluationState.FAILED,
    }
    lacking, unanswered, n_must_pass = _must_pass(run)
    latency = run.timings.get("latency_ms") or {}
    spent, currency = _spent(run)
    return Figures(
        name=run.name,
        has_ended=ended,
        reason=_reason(run, ended=ended),
        primary_metric=run.primary_metric,
        metrics={
            key: Figure(mean=value["mean"], n=value["n"], n_total=value["n_total"])
            for key, value in run.metrics.items()
        },
        n_questions=counts.get("n_total", run.evaluation.n_questions),
        n_without_result=sum(counts.get(name, 0) for name in ("n_error", "n_not_run", "n_cancelled")),
        n_must_pass=n_must_pass,
        lacking=lacking,
        unanswered=unanswered,
        latency_ms={name: float(value) for name, value in latency.items() if name != "n"},
        n_reused=reused.n_reused(run),
        is_rescored=run.kind == RunKind.RESCORED,
        spent=spent,
        currency=currency,
        against=against,
    )


def _reason(run: Run, *, ended: bool) -> str:
    evaluation = run.evaluation
    code, reason = run.stop_code or evaluation.code, run.stop_reason or evaluation.reason
    if code or reason:
        return f"{reason} ({code})".strip() if code else reason
    errors = run.counts.get("errors") or {}
    if errors:
        return ", ".join(f"{n} {code}" for code, n in errors.items())
    return "" if ended else f"It is {run.state}, its evaluation {evaluation.state}."


def _must_pass(run: Run) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """The must-pass questions missed at the primary metric's k, those without a result, and how many there are."""
    version = run.evaluation.question_set_version_id
    keys = list(
        Question.objects.filter(version=version, must_pass=True).order_by("ordinal").values_list("key", flat=True)
    )
    if not keys:
        return (), (), 0
    k = MetricKey.parse(run.primary_metric).k
    rows = {
        key: (outcome, rank)
        for key, outcome, rank in Result.objects.filter(run=run, question_key__in=keys).values_list(
            "question_key", "outcome", "first_rank"
        )
    }
    lacking, unanswered = [], []
    for key in keys:
        outcome, rank = rows.get(key, ("not_run", None))
        if outcome not in {one.value for one in GOOD_OUTCOMES}:
            unanswered.append(key)
        elif rank is None or rank > k:
            lacking.append(key)
    return tuple(lacking), tuple(unanswered), len(keys)


def _spent(run: Run) -> tuple[float | None, str]:
    """What the run's whole evaluation was billed: calls are shared by its runs. None where a price is missing. What was
    taken over or cached cost nothing."""
    rows = list(SpendEntry.objects.filter(owner=run.evaluation_id).values_list("amount", "currency"))
    called = any(amount for name, amount in run.cost.items() if name != reused.REUSED and not name.endswith("_cached"))
    if any(amount is None for amount, _ in rows) or (not rows and called):
        return None, ""
    return float(sum(amount for amount, _ in rows if amount is not None)), rows[0][1] if rows else ""
