"""`gate` jobs: an evaluation of a schedule has ended. Its gates are checked, and what broke or recovered is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from backend.core import alerts as core
from backend.core.alerts import AlertKind, Cause, LabelChange, Measured
from backend.core.configs import fingerprint
from backend.core.gates import Outcome, Report, RuleResult, Status
from backend.core.states import TERMINAL, EvaluationState, FiringState, RunState
from backend.models import Evaluation, Firing, Gate, GateCheck, Job, Question, Run
from backend.services import alerts, corpus_snapshots, gates, jobs
from backend.services.alerts import Told
from backend.services.gates import Checked
from backend.services.slices import Lease

# The worst first.
_ORDER = (Status.BROKEN, Status.UNCHECKED, Status.UNCOVERED, Status.KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Since:
    """What changed since the schedule's evaluations were last well, and which questions were lost since."""

    because: tuple[str, ...] = ()
    causes: Mapping[str, Any] | None = None
    lost: tuple[str, ...] = ()


def run(lease: Lease, job: Job) -> Mapping[str, Any] | None:
    """Once for each closing, however often it is asked for."""
    firing = (
        Firing.objects.select_related("schedule__workspace", "evaluation")
        .filter(evaluation=job.payload["evaluation"], state=FiringState.STARTED)
        .first()
    )
    if firing is None or firing.evaluation is None or firing.evaluation.state not in TERMINAL:
        return {}
    evaluation = firing.evaluation
    if firing.checked_revision >= evaluation.revision:
        return {}
    now = timezone.now()
    # The documents may still be those that were searched.
    corpus_snapshots.keep_for(evaluation, now=now)
    watching = list(Gate.objects.filter(schedule=firing.schedule, enabled=True).order_by("name"))
    checked = [(gate, _check(evaluation, gate)) for gate in watching]
    since = _since(firing, evaluation) if evaluation.state == EvaluationState.COMPLETED else _Since()
    lease.check()
    with jobs.finishing(lease) as result:
        mine = Firing.objects.filter(id=firing.id, checked_revision__lt=evaluation.revision)
        if not mine.update(checked_revision=evaluation.revision):
            return None
        GateCheck.objects.bulk_create(
            [
                GateCheck(
                    workspace_id=evaluation.workspace_id,
                    gate=gate,
                    evaluation=evaluation,
                    revision=evaluation.revision,
                    outcome=told.report.outcome,
                    report=gates.report_json(told.report),
                )
                for gate, told in checked
            ],
            ignore_conflicts=True,
        )
        for gate, told in checked:
            _tell_gate(firing, gate, told.report, since, now=now)
        _tell_running(firing, evaluation, now=now)
        _tell_providers(firing, evaluation, now=now)
        result["outcomes"] = {gate.name: told.report.outcome.value for gate, told in checked}
    return None


def _check(evaluation: Evaluation, gate: Gate) -> Checked:
    runs = gates.find(evaluation.workspace, evaluation=str(evaluation.id))
    return gates.check(evaluation.workspace, runs, gates.rules_of(gate))


def _tell_gate(firing: Firing, gate: Gate, report: Report, since: _Since, *, now: datetime) -> None:
    """One alert a rule, whatever runs it broke on. What a gate does not say any more has recovered."""
    workspace = firing.schedule.workspace
    by_key: dict[str, list[RuleResult]] = {}
    for one in report.results:
        key = f"gate:{gate.id}:{firing.schedule_id}:{fingerprint(one.rule.to_json())[:16]}"
        by_key.setdefault(key, []).append(one)
    version = firing.evaluation.question_set_version_id if firing.evaluation else None
    was_open = alerts.open_keys(workspace, gate=gate, schedule=firing.schedule)
    standing: set[str] = set()
    for base, found in sorted(by_key.items()):
        results = sorted(found, key=lambda one: _ORDER.index(one.status))
        if results[0].status is Status.KEPT:
            continue
        # What could not be checked, or lacked results, and now broke is another state, and is told; the other way round
        # the rule has not recovered.
        key, lesser = f"{base}:broken", f"{base}:open"
        if results[0].status is not Status.BROKEN and key not in was_open:
            key = lesser
        elif results[0].status is Status.BROKEN:
            alerts.supersede(workspace, lesser, now=now)
        standing |= {key, lesser}
        told = Told(
            title=f"{gate.name}: {_named(results[0])} {_said(results[0].status)} ({firing.schedule.name})",
            sentences=[one.sentence for one in results if one.status is not Status.KEPT],
            because=since.because,
            causes=since.causes or {},
            lost=since.lost,
            version_id=version,
        )
        alerts.open_(
            workspace,
            kind=AlertKind.GATE,
            key=key,
            told=told,
            now=now,
            schedule=firing.schedule,
            gate=gate,
            evaluation_id=firing.evaluation_id,
        )
    for key in sorted(was_open - standing):
        results = by_key.get(key.rpartition(":")[0], [])
        name = _named(results[0]) if results else "a rule that is gone"
        told = Told(
            title=f"{gate.name}: {name} is kept again ({firing.schedule.name})",
            sentences=[one.sentence for one in results],
            because=since.because,
            causes=since.causes or {},
        )
        alerts.resolve(workspace, key, told=told, now=now)


def _tell_running(firing: Firing, evaluation: Evaluation, *, now: datetime) -> None:
    """Whether the night ran at all: an evaluation that failed or was cancelled measured nothing whole."""
    schedule = firing.schedule
    key = f"not_run:{schedule.id}"
    if evaluation.state == EvaluationState.COMPLETED:
        told = Told(title=f"{schedule.name} runs again")
        alerts.resolve(schedule.workspace, key, told=told, now=now)
        return
    said = f"{evaluation.reason} ({evaluation.code})" if evaluation.code else evaluation.reason
    alerts.open_(
        schedule.workspace,
        kind=AlertKind.NOT_RUN,
        key=key,
        told=Told(title=f"{schedule.name}: the evaluation {evaluation.state}", sentences=[said] if said else []),
        now=now,
        schedule=schedule,
        evaluation_id=evaluation.id,
    )


def _tell_providers(firing: Firing, evaluation: Evaluation, *, now: datetime) -> None:
    """A provider that cost questions their result: by what the runs' questions ended with."""
    schedule, key = firing.schedule, f"provider-of:{firing.schedule_id}"
    sentences = []
    for run_ in Run.objects.filter(evaluation=evaluation).order_by("ordinal"):
        n = sum(n for code, n in (run_.counts.get("errors") or {}).items() if code.startswith("PROVIDER_"))
        if n or run_.stop_code.startswith("PROVIDER_"):
            said = f": {run_.stop_reason} ({run_.stop_code})" if run_.stop_code else ""
            sentences.append(f"{run_.name}: {n:,} questions have no result{said}")
    if sentences:
        told = Told(title=f"A provider failed in {schedule.name}", sentences=sentences)
        alerts.open_(
            schedule.workspace,
            kind=AlertKind.PROVIDER,
            key=key,
            told=told,
            now=now,
            schedule=schedule,
            evaluation_id=evaluation.id,
        )
    elif evaluation.state == EvaluationState.COMPLETED:
        told = Told(title=f"Every question of {schedule.name} has a result again")
        alerts.resolve(schedule.workspace, key, told=told, now=now)


def _since(firing: Firing, evaluation: Evaluation) -> _Since:
    """Against the last evaluation of the schedule that its gates passed, else the last that was completed."""
    earlier = (
        Evaluation.objects.filter(
            firings__schedule=firing.schedule_id, state=EvaluationState.COMPLETED, created_at__lt=evaluation.created_at
        )
        .exclude(id=evaluation.id)
        .order_by("-created_at")
    )
    well = earlier.filter(gate_checks__outcome=Outcome.PASSED).exclude(
        gate_checks__outcome__in=[Outcome.BROKEN, Outcome.UNCHECKED, Outcome.UNCOVERED]
    )
    before = well.first() or earlier.first()
    if before is None:
        return _Since()
    old = {run_.name: run_ for run_ in _runs(before)}
    causes, because, lost = {}, [], []
    for run_ in _runs(evaluation):
        other = old.get(run_.name)
        if other is None or RunState.SCORED not in {other.state, run_.state}:
            continue
        found = _cause(other, run_)
        causes[run_.name] = found.to_json()
        because += [one for one in found.sentences if one not in because]
        k = core_k(run_)
        lost += [one.id for one in gates.lost_between(other, run_, k=k) if one.id not in lost]
    return _Since(because=tuple(because), causes=causes, lost=tuple(lost))


def core_k(run_: Run) -> int:
    return int(run_.primary_metric.rpartition("@")[2])


def _runs(evaluation: Evaluation) -> list[Run]:
    rows = Run.objects.filter(evaluation=evaluation).select_related("evaluation__question_set_version")
    return list(rows.order_by("ordinal"))


def _cause(before: Run, after: Run) -> Cause:
    documents = labels = None
    if before.corpus_fingerprint != after.corpus_fingerprint:
        documents = corpus_snapshots.change(after.workspace_id, before.corpus_fingerprint, after.corpus_fingerprint)
    if before.set_hash != after.set_hash:
        labels = _label_change(before, after)
    return core.cause(_measured(before), _measured(after), documents=documents, labels=labels)


def _measured(run_: Run) -> Measured:
    return Measured(
        corpus=run_.corpus_fingerprint,
        labels=run_.set_hash,
        config=run_.config,
        config_fingerprint=run_.config_fingerprint,
        definitions=run_.metric_definitions,
        code=run_.code_version,
    )


def _label_change(before: Run, after: Run) -> LabelChange | None:
    versions = [run_.evaluation.question_set_version_id for run_ in (before, after)]
    if None in versions:
        return None
    old, new = ({key: rest for key, *rest in _labels(version)} for version in versions)
    return LabelChange(
        n_added=len(new.keys() - old.keys()),
        n_removed=len(old.keys() - new.keys()),
        n_changed=sum(old[key] != new[key] for key in old.keys() & new.keys()),
    )


def _labels(version: Any) -> Sequence[tuple[Any, ...]]:
    rows = Question.objects.filter(version=version)
    return list(rows.values_list("key", "text", "expect", "must_pass", "unanswerable"))


def _named(one: RuleResult) -> str:
    rule = one.rule
    said = rule.kind.value.replace("_", " ")
    return f"{rule.metric} {said}" if rule.metric else said


def _said(status: Status) -> str:
    return {
        Status.BROKEN: "broke",
        Status.UNCHECKED: "could not be checked",
        Status.UNCOVERED: "lacks results",
        Status.KEPT: "is kept",
    }[status]
