"""What runs by itself: schedules and what came of each of their slots; baselines, gates, alerts and who is told."""

from django.db import models
from django.db.models import Q

from backend.core.alerts import AlertKind, AlertState, DeliveryState, TargetKind
from backend.core.gates import Outcome
from backend.core.states import FiringState
from backend.models.accounts import Workspace
from backend.models.base import choices, new_id, one_of
from backend.models.knowledge import KnowledgeBase
from backend.models.questions import QuestionSet
from backend.models.runs import Evaluation, Run


class Schedule(models.Model):
    """A request for an evaluation with the times it is made at. `request` is the body of `POST evaluations`; its set
    and base are also kept as references, so that neither is deleted by mistake. `revision` rises with each edit, and
    firings keep the request that they ran with: an edit rewrites no history."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="schedules", db_index=False)
    name = models.CharField(max_length=200)
    request = models.JSONField()
    question_set = models.ForeignKey(QuestionSet, on_delete=models.SET_NULL, null=True, related_name="schedules")
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.SET_NULL, null=True, related_name="schedules")
    cron = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=60)
    enabled = models.BooleanField(default=True)
    grace_seconds = models.PositiveIntegerField()
    revision = models.PositiveIntegerField(default=1)
    next_run_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="schedule_name_is_unique_in_workspace")
        ]
        indexes = [
            models.Index(fields=["next_run_at"], name="schedule_due", condition=Q(enabled=True)),
        ]

    def __str__(self) -> str:
        return self.name


class Firing(models.Model):
    """One slot of a schedule, or one run asked for by a person (`manual`), and what came of it. `n_slots`: a row for
    missed slots stands for all from `slot_at` on. `checked_revision` is the closing of its evaluation that gates and
    alerts have dealt with."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="firings", db_index=False)
    slot_at = models.DateTimeField()
    manual = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=choices(FiringState))
    caught_up = models.BooleanField(default=False)
    n_slots = models.PositiveIntegerField(default=1)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    evaluation = models.ForeignKey(Evaluation, on_delete=models.SET_NULL, null=True, related_name="firings")
    request = models.JSONField(default=dict)
    revision = models.PositiveIntegerField(default=1)
    checked_revision = models.IntegerField(default=-1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schedule", "slot_at"], name="one_firing_per_schedule_and_slot"),
            one_of("state", FiringState, name="firing_state_is_known"),
        ]
        indexes = [models.Index(fields=["schedule", "-slot_at"], name="firing_by_schedule")]

    def __str__(self) -> str:
        return f"{self.slot_at:%Y-%m-%dT%H:%MZ} {self.state}"


class CorpusSnapshot(models.Model):
    """Which documents a corpus fingerprint stands for, 16 bytes each, so that a later night can say how many came,
    went and changed. Holds hashes only."""

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    fingerprint = models.CharField(max_length=64)
    data = models.BinaryField()
    used_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "fingerprint"], name="one_snapshot_per_corpus_fingerprint")
        ]

    def __str__(self) -> str:
        return self.fingerprint[:12]


class Baseline(models.Model):
    """A run that a person approved to compare others with. One is in force for each subject (set, scope,
    configuration name); approving another one retires it, nothing else does. What it stood for is kept beside the
    run's own record."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="baselines")
    run = models.ForeignKey(Run, on_delete=models.RESTRICT, related_name="baselines")
    question_set = models.ForeignKey(QuestionSet, on_delete=models.SET_NULL, null=True, related_name="baselines")
    subject = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    label = models.CharField(max_length=200, blank=True)
    set_name = models.CharField(max_length=220)
    set_hash = models.CharField(max_length=64)
    metric_definitions = models.CharField(max_length=20)
    code_version = models.CharField(max_length=60)
    primary_metric = models.CharField(max_length=60)
    approved_by = models.CharField(max_length=200)
    approved_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "subject"],
                name="one_baseline_in_force_per_subject",
                condition=Q(retired_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.set_name}"


class Gate(models.Model):
    """Rules that a run has to keep (core/gates.py). With a schedule, each of its evaluations is checked as it ends."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="gates", db_index=False)
    schedule = models.ForeignKey(Schedule, on_delete=models.SET_NULL, null=True, blank=True, related_name="gates")
    name = models.CharField(max_length=200)
    rules = models.JSONField()
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="gate_name_is_unique_in_workspace")]

    def __str__(self) -> str:
        return self.name


class GateCheck(models.Model):
    """What a gate said of one closing (`revision`) of an evaluation. Not written for a dry run."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="gate_checks")
    gate = models.ForeignKey(Gate, on_delete=models.CASCADE, related_name="checks", db_index=False)
    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="gate_checks")
    revision = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=choices(Outcome))
    report = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["gate", "evaluation", "revision"], name="one_check_per_gate_and_closing"),
            one_of("outcome", Outcome, name="gate_check_outcome_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.gate_id} {self.outcome}"


class Alert(models.Model):
    """Something that people have to know, until it is over. `key` says what it is about: of each there is one open at
    most, so a rule that stays broken every night is told once, and told again when it has recovered."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    kind = models.CharField(max_length=20, choices=choices(AlertKind))
    key = models.CharField(max_length=500)
    state = models.CharField(max_length=10, choices=choices(AlertState), default=AlertState.OPEN)
    title = models.CharField(max_length=300)
    detail = models.JSONField(default=dict)
    recovery = models.JSONField(default=dict)
    schedule = models.ForeignKey(Schedule, on_delete=models.SET_NULL, null=True, related_name="alerts")
    gate = models.ForeignKey(Gate, on_delete=models.SET_NULL, null=True, related_name="alerts")
    evaluation = models.ForeignKey(Evaluation, on_delete=models.SET_NULL, null=True, related_name="alerts")
    opened_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "key"], name="one_open_alert_per_key", condition=Q(state="open")
            ),
            one_of("kind", AlertKind, name="alert_kind_is_known"),
            one_of("state", AlertState, name="alert_state_is_known"),
        ]
        indexes = [models.Index(fields=["workspace", "-opened_at"], name="alert_by_workspace")]

    def __str__(self) -> str:
        return self.title


class AlertTarget(models.Model):
    """Who is told: an e-mail address or a webhook. `with_texts`: the owner allows that questions leave in words, not by
    id alone. A webhook's secret is derived, never stored (services/webhooks.py); `secret_number` rises to change it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="alert_targets", db_index=False)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=choices(TargetKind))
    address = models.CharField(max_length=1000)
    with_texts = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)
    secret_number = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="alert_target_name_is_unique_in_workspace"),
            one_of("kind", TargetKind, name="alert_target_kind_is_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """One message to one target. Its id is the same on every attempt, and there is one per (alert, target, event):
    delivered at least once, and never anew for the same state. `alert` null: a test that a person asked for."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    target = models.ForeignKey(AlertTarget, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, null=True, related_name="deliveries")
    event = models.CharField(max_length=10)
    body = models.JSONField()
    state = models.CharField(max_length=10, choices=choices(DeliveryState), default=DeliveryState.PENDING)
    n_attempts = models.PositiveIntegerField(default=0)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "target", "event"],
                name="one_delivery_per_alert_target_and_event",
                condition=Q(alert__isnull=False),
            ),
            one_of("state", DeliveryState, name="delivery_state_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.target_id}: {self.state}"
