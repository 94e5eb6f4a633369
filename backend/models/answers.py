"""Answers that were asked for and judged, one a question and run; and what chat models said before, by content."""

from django.db import models

from backend.core.answers.kinds import AnswerOutcome
from backend.models.accounts import Workspace
from backend.models.base import choices, one_of
from backend.models.runs import Run


class Answer(models.Model):
    """What was answered from the first passages of a stored ranking, and how it was judged. Scores are in 0..1, null
    where there is nothing to score. `replies` are what the models wrote, as they wrote it, each with what it was asked
    by. A row is replaced only by a higher epoch, and never once it is judged."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="answers_given", db_index=False)
    ordinal = models.PositiveIntegerField()
    question_key = models.CharField(max_length=300)
    epoch = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=choices(AnswerOutcome))
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    text = models.TextField(blank=True)
    abstained = models.BooleanField(default=False)
    faithfulness = models.FloatField(null=True)
    relevance = models.FloatField(null=True)
    correctness = models.FloatField(null=True)
    n_repeats = models.PositiveSmallIntegerField(default=0)
    claims = models.JSONField(default=list)
    passages = models.JSONField(default=list)
    replies = models.JSONField(default=list)
    units = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "ordinal"], name="one_answer_per_run_and_question"),
            one_of("outcome", AnswerOutcome, name="answer_outcome_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} #{self.ordinal} {self.outcome}"


class CachedReply(models.Model):
    """A chat model's reply by content: `key` hashes model, address, messages, schema, temperature and repeat."""

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.BinaryField(max_length=32)
    reply = models.JSONField()
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="reply_is_cached_once")]
        indexes = [models.Index(fields=["used_at"], name="cached_reply_by_use")]

    def __str__(self) -> str:
        return f"reply {bytes(self.key).hex()[:12]}"
