"""What the labels of a set version mean in a corpus, resolved once per corpus: preflight and causes of loss read it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from backend.core.resolving import LabelState
from backend.models.base import choices, new_id, one_of
from backend.models.questions import QuestionSetVersion


class LabelResolution(models.Model):
    """One resolving of a version. `scope_hash` is over the Indexes and filters, `corpus_hash` over their generations
    and the documents that are not indexed. Kept while the version is: it says what was true when a run was made."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    version = models.ForeignKey(
        QuestionSetVersion, on_delete=models.CASCADE, related_name="label_resolutions", db_index=False
    )
    scope_hash = models.CharField(max_length=64)
    corpus_hash = models.CharField(max_length=64)
    generations = models.JSONField(default=dict)
    n_expectations = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["version", "scope_hash", "corpus_hash"], name="labels_are_resolved_once_per_corpus"
            )
        ]

    def __str__(self) -> str:
        return f"labels of {self.version_id}"


class ResolvedLabel(models.Model):
    """An expectation that nothing satisfies, or that looks at content. A label that names a document which is there
    has no row: most sets would be nothing but such rows.

    `expectation` counts as in the judged list. `documents` are ids, as far as ResolvedExpectation tells them;
    `nearest` are names the label may have meant, `elsewhere` a document that holds the text though another is named.
    """

    id = models.BigAutoField(primary_key=True)
    resolution = models.ForeignKey(LabelResolution, on_delete=models.CASCADE, related_name="labels", db_index=False)
    ordinal = models.PositiveIntegerField()
    expectation = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=choices(LabelState))
    label = models.TextField()
    documents = ArrayField(models.UUIDField(), default=list)
    n_passages = models.PositiveIntegerField(default=0)
    nearest = ArrayField(models.TextField(), default=list)
    elsewhere = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["resolution", "ordinal", "expectation"], name="label_is_resolved_once"),
            one_of("state", LabelState, name="label_state_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.label[:60]} {self.state}"
