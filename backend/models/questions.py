"""Golden sets: immutable versions of questions, and the set files found in sources."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from backend.core.types import Level
from backend.models.accounts import Workspace
from backend.models.base import choices, new_id
from backend.models.knowledge import Source


class QuestionSet(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="question_sets", db_index=False)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="question_set_name_is_unique_in_workspace")
        ]

    def __str__(self) -> str:
        return self.name


class QuestionSetVersion(models.Model):
    """Immutable. `content_hash` is over the questions, threshold and level: the same in any file format."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    content_hash = models.CharField(max_length=64)
    format = models.CharField(max_length=40)
    threshold = models.FloatField(default=1.0)
    level = models.CharField(max_length=10, choices=choices(Level))
    is_graded = models.BooleanField(default=False)
    n_questions = models.PositiveIntegerField()
    warnings = models.JSONField(default=list, blank=True)
    filename = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question_set", "number"], name="version_number_is_unique_in_set"),
        ]

    def __str__(self) -> str:
        return f"{self.question_set_id}@{self.number}"


class Question(models.Model):
    """`ordinal` counts from 0 in file order; runs name a question by (version, ordinal), history by `key`.
    `expect` is the full form's list (docs/question-sets.md)."""

    id = models.BigAutoField(primary_key=True)
    version = models.ForeignKey(QuestionSetVersion, on_delete=models.CASCADE, related_name="questions", db_index=False)
    ordinal = models.PositiveIntegerField()
    key = models.CharField(max_length=300)
    text = models.TextField()
    expect = models.JSONField(default=list)
    tags = ArrayField(models.CharField(max_length=200), default=list)
    note = models.TextField(blank=True)
    must_pass = models.BooleanField(default=False)
    unanswerable = models.BooleanField(default=False)
    reference_answer = models.TextField(blank=True)
    # What made it, where no person did: never lost, since absolute numbers on such questions mean less.
    # The default is the database's too: rows are written by COPY, by workers of the release before as well.
    generated = models.CharField(max_length=200, blank=True, default="", db_default="")
    source = models.CharField(max_length=200, blank=True)
    collection = models.CharField(max_length=200, blank=True)
    line = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "ordinal"], name="question_ordinal_is_unique_in_version"),
            models.UniqueConstraint(fields=["version", "key"], name="question_key_is_unique_in_version"),
        ]

    def __str__(self) -> str:
        return self.text[:60]


class SourceSetFile(models.Model):
    """A question-set file found in a source's hidden folder at sync: how many questions it has, or its fault."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="set_files", db_index=False)
    path = models.CharField(max_length=1000)
    data = models.BinaryField()
    bytes_hash = models.CharField(max_length=64)
    n_questions = models.PositiveIntegerField(null=True)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    found_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "path"], name="set_file_is_unique_in_source")]

    def __str__(self) -> str:
        return self.path
