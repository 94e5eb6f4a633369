"""One submission (Evaluation), its record per configuration (Run), per question (Result), and the work (Slice)."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from backend.core.states import EvaluationState, Lane, RunKind, RunState, SliceKind, SliceState
from backend.core.types import Level, Outcome
from backend.models.accounts import Workspace
from backend.models.base import choices, new_id, one_of
from backend.models.jobs import Job
from backend.models.knowledge import Ingestion, KnowledgeBase
from backend.models.questions import QuestionSetVersion


class Evaluation(models.Model):
    """A set version x a scope x configurations, with its frozen `plan`. `epoch` rises with retry, `revision` with
    each closing. Progress is summed from rows, never counted here: one counter would be waited for by every worker."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="evaluations", db_index=False)
    question_set_version = models.ForeignKey(
        QuestionSetVersion, on_delete=models.SET_NULL, null=True, related_name="evaluations"
    )
    set_name = models.CharField(max_length=220)
    n_questions = models.PositiveIntegerField()
    scope = models.JSONField()
    plan = models.JSONField()
    state = models.CharField(max_length=12, choices=choices(EvaluationState), default=EvaluationState.QUEUED)
    epoch = models.PositiveIntegerField(default=1)
    revision = models.PositiveIntegerField(default=0)
    label = models.CharField(max_length=200, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    use_cache = models.BooleanField(default=True)
    wait_for_index = models.BooleanField(default=False)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    deadline_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [one_of("state", EvaluationState, name="evaluation_state_is_known")]
        indexes = [
            models.Index(fields=["workspace", "-created_at"], name="evaluation_by_workspace"),
            # The tick and the sweeper look only at these.
            models.Index(
                fields=["state"],
                name="evaluation_open",
                condition=~Q(state__in=["completed", "failed", "cancelled"]),
            ),
        ]

    def __str__(self) -> str:
        return f"evaluation {self.id} {self.state}"


class Run(models.Model):
    """One configuration's record: settings, fingerprints, metrics, counts, timings, cost. Outlives its base and set
    by name and fingerprint. `stop_code` is set when no further question of it can succeed.

    `kind` says how its rankings came to be, `origin` the particulars of what was not searched here: of a re-scored run
    the run it came from (also `derived_from`, as long as that is there) and how much of its rankings was kept, of an
    imported one the file and what reading it told. Of a searched run `asked_with` is a fingerprint of its providers,
    and `reused_from` the run whose results it took over (services/reuse.py, queries/reused.py).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="runs", db_index=False)
    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="runs", db_index=False)
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.SET_NULL, null=True, blank=True, related_name="runs"
    )
    knowledge_base_name = models.CharField(max_length=200, blank=True)
    ordinal = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200)
    mode = models.CharField(max_length=30)
    kind = models.CharField(max_length=10, choices=choices(RunKind), default=RunKind.SEARCHED)
    derived_from = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="derived")
    origin = models.JSONField(default=dict, blank=True)
    config = models.JSONField()
    config_fingerprint = models.CharField(max_length=64)
    set_hash = models.CharField(max_length=64)
    corpus_fingerprint = models.CharField(max_length=64, blank=True)
    generations = models.JSONField(default=dict, blank=True)
    corpus_changed = models.BooleanField(default=False)
    code_version = models.CharField(max_length=60)
    metric_definitions = models.CharField(max_length=20)
    level = models.CharField(max_length=10, choices=choices(Level))
    threshold = models.FloatField(default=1.0)
    top_k = models.PositiveIntegerField()
    primary_metric = models.CharField(max_length=60)
    state = models.CharField(max_length=12, choices=choices(RunState), default=RunState.PENDING)
    stop_code = models.CharField(max_length=40, blank=True)
    stop_reason = models.TextField(blank=True)
    metrics = models.JSONField(default=dict, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    timings = models.JSONField(default=dict, blank=True)
    cost = models.JSONField(default=dict, blank=True)
    # Figures of judged answers (docs/answers.md): apart from `metrics`, which are retrieval's alone.
    answers = models.JSONField(default=dict, blank=True, db_default={})
    label = models.CharField(max_length=200, blank=True)
    pinned = models.BooleanField(default=False)
    # Its rankings and snippets are gone (services/retention.py); its numbers, and those of each question, are not.
    pruned_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "name"], name="run_name_is_unique_in_evaluation"),
            one_of("state", RunState, name="run_state_is_known"),
            one_of("kind", RunKind, name="run_kind_is_known"),
        ]
        indexes = [models.Index(fields=["workspace", "-created_at"], name="run_by_workspace")]

    def __str__(self) -> str:
        return f"{self.name} {self.state}"


class Result(models.Model):
    """One question in one run. A row is replaced only if it is not good, and only by a higher epoch.

    `judged` is the stored judged list (core/judging.py); every metric is computed from it. `ranking` lists what was
    returned with the rank and score of each stage; its shape is described in docs/architecture.md.
    """

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="results", db_index=False)
    ordinal = models.PositiveIntegerField()
    question_key = models.CharField(max_length=300)
    epoch = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=choices(Outcome))
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    first_rank = models.PositiveIntegerField(null=True, blank=True)
    judged = models.JSONField(null=True)
    ranking = models.JSONField(default=list)
    # What a score floor cut and an expectation is satisfied by: in no list and no figure, but the cause of a loss.
    cut = models.JSONField(default=list, db_default=[])
    # Of a sample: how much of the exact leg's first results the approximate one had.
    ann_recall = models.FloatField(null=True)
    depth = models.PositiveIntegerField(default=0)
    timings = models.JSONField(default=dict)
    units = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "ordinal"], name="one_result_per_run_and_question"),
            one_of("outcome", Outcome, name="result_outcome_is_known"),
        ]
        indexes = [models.Index(fields=["run", "outcome"], name="result_by_outcome")]

    def __str__(self) -> str:
        return f"{self.run_id} #{self.ordinal} {self.outcome}"


class ProgressEntry(models.Model):
    """How many results of one ending a commit wrote. An open evaluation's progress is the sum of these: to count its
    results themselves at each poll takes the longer the more there are. Dropped some time after its end."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="progress")
    epoch = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=choices(Outcome))
    n = models.PositiveIntegerField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.run_id} {self.outcome} {self.n}"


class Slice(models.Model):
    """The unit of dispatch: one message, one or several per-question tasks of an evaluation, an ingestion, or a job.

    `delivery` rises with each hand-out and the doorbell carries it; `token` fences every write of its holder.
    `items` are question ordinals (evaluation) or unused (ingestion, whose documents are in the payload; job).
    `payload` is what the parent handed over, kept until the slice ends.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, null=True, related_name="slices")
    ingestion = models.ForeignKey(Ingestion, on_delete=models.CASCADE, null=True, related_name="slices")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, null=True, related_name="slices")
    epoch = models.PositiveIntegerField(default=1)
    kind = models.CharField(max_length=10, choices=choices(SliceKind))
    lane = models.CharField(max_length=10, choices=choices(Lane))
    root = models.BooleanField(default=False)
    items = ArrayField(models.PositiveIntegerField(), default=list)
    first = models.PositiveIntegerField(default=0)
    last = models.PositiveIntegerField(default=0)
    reranker = models.CharField(max_length=300, blank=True)
    pool = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=10, choices=choices(SliceState), default=SliceState.PENDING)
    delivery = models.PositiveIntegerField(default=0)
    token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    deaths = models.PositiveSmallIntegerField(default=0)
    tries = models.PositiveSmallIntegerField(default=0)
    n_rings = models.PositiveIntegerField(default=0)
    quarantined = models.BooleanField(default=False)
    not_before = models.DateTimeField(null=True)
    queued_at = models.DateTimeField(null=True)
    payload = models.JSONField(null=True)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["evaluation", "epoch", "kind", "first", "last", "reranker", "pool"],
                name="slice_is_inserted_once",
                condition=Q(evaluation__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["job"],
                name="job_has_one_open_slice",
                condition=Q(job__isnull=False, state__in=["pending", "queued", "leased"]),
            ),
            models.CheckConstraint(
                condition=Q(evaluation__isnull=False, ingestion__isnull=True, job__isnull=True)
                | Q(evaluation__isnull=True, ingestion__isnull=False, job__isnull=True)
                | Q(evaluation__isnull=True, ingestion__isnull=True, job__isnull=False),
                name="slice_has_one_owner",
            ),
            one_of("state", SliceState, name="slice_state_is_known"),
            models.CheckConstraint(
                condition=~Q(state="leased") | (Q(token__isnull=False) & Q(lease_until__isnull=False)),
                name="leased_slice_has_token_and_lease",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lane", "evaluation", "created_at"],
                name="slice_pending",
                condition=Q(state="pending"),
            ),
            models.Index(
                fields=["state", "lane", "lease_until"],
                name="slice_in_flight",
                condition=Q(state__in=["queued", "leased"]),
            ),
            models.Index(
                fields=["evaluation", "kind"],
                name="slice_open_of_evaluation",
                condition=Q(state__in=["pending", "queued", "leased"]),
            ),
            models.Index(
                fields=["ingestion"],
                name="slice_open_of_ingestion",
                condition=Q(state__in=["pending", "queued", "leased"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id} {self.state}"


class ProviderState(models.Model):
    """What all workers know of a provider: a hold asked for by it, and whether it is stalled. In PostgreSQL, since a
    flushed broker must not release a hold."""

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    provider = models.CharField(max_length=400)
    n_failures = models.PositiveIntegerField(default=0)
    stalled_at = models.DateTimeField(null=True)
    probe_at = models.DateTimeField(null=True)
    held_at = models.DateTimeField(null=True)
    hold_until = models.DateTimeField(null=True)
    # With a default of the database's: workers of the release before write none.
    code = models.CharField(max_length=40, blank=True, default="", db_default="")
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "provider"], name="one_state_per_provider")]

    def __str__(self) -> str:
        return self.provider


class Pulse(models.Model):
    """When something last showed life: ticks, sweeps, workers with their slots."""

    name = models.CharField(max_length=200, primary_key=True)
    at = models.DateTimeField()
    lane = models.CharField(max_length=10, blank=True)
    slots = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return self.name
