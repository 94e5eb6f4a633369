"""Questions made from documents, kept as drafts until a person has decided."""

from django.db import models

from backend.core.generation.kinds import DraftState, LeakageBand, QuestionKind
from backend.models.accounts import Workspace
from backend.models.base import choices, new_id, one_of
from backend.models.jobs import Job
from backend.models.knowledge import KnowledgeBase
from backend.models.questions import QuestionSet


class Generation(models.Model):
    """One asking for questions. `settings` is the request as it was understood; `skipped` counts, by reason, the
    passages that were drawn and not asked about. `job` is the latest one: a retry makes another."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="generations", db_index=False)
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.SET_NULL, null=True, blank=True, related_name="generations"
    )
    knowledge_base_name = models.CharField(max_length=200, blank=True)
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="generations")
    question_set = models.ForeignKey(
        QuestionSet, on_delete=models.SET_NULL, null=True, blank=True, related_name="generations"
    )
    llm = models.CharField(max_length=400)
    prompt_version = models.CharField(max_length=40)
    settings = models.JSONField(default=dict)
    skipped = models.JSONField(default=dict)
    drawn_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="generation_by_workspace")]

    def __str__(self) -> str:
        return f"generation {self.id}"


class Draft(models.Model):
    """One question that was asked for, whatever came of it.

    `passages` are what it was made from: where each lies in its document, its text then, and the snippet that its label
    names. `alternatives` are near-twins of them elsewhere. `verdicts` are the filters', in their order. `reply` and
    `checks` are what the model wrote, as it wrote it. `question_key` is set once it is in a question set.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="drafts", db_index=False)
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, choices=choices(QuestionKind))
    state = models.CharField(max_length=8, choices=choices(DraftState), default=DraftState.OPEN)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    question = models.TextField(blank=True)
    original = models.TextField(blank=True)
    answer = models.TextField(blank=True)
    passages = models.JSONField(default=list)
    alternatives = models.JSONField(default=list)
    verdicts = models.JSONField(default=list)
    leakage_run = models.PositiveIntegerField(null=True)
    leakage_copied = models.FloatField(null=True)
    leakage_band = models.CharField(max_length=6, choices=choices(LeakageBand), blank=True)
    model = models.CharField(max_length=200, blank=True)
    rung = models.CharField(max_length=12, blank=True)
    how = models.CharField(max_length=10, blank=True)
    reply = models.TextField(blank=True)
    checks = models.JSONField(default=dict)
    units = models.JSONField(default=dict)
    tries = models.PositiveSmallIntegerField(default=0)
    reviewed_by = models.CharField(max_length=100, blank=True)
    reviewed_at = models.DateTimeField(null=True, blank=True)
    question_key = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["generation", "ordinal"], name="draft_ordinal_is_unique_in_generation"),
            one_of("state", DraftState, name="draft_state_is_known"),
            one_of("kind", QuestionKind, name="draft_kind_is_known"),
        ]
        indexes = [models.Index(fields=["generation", "state"], name="draft_by_state")]

    def __str__(self) -> str:
        return f"{self.state} {self.question[:60]}"
