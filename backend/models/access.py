"""Who did what, which keys a workspace brought, and how often a login failed."""

from django.conf import settings
from django.db import models

from backend.models.accounts import Workspace
from backend.models.base import new_id


class AuditEvent(models.Model):
    """One change, by whom. Names are kept as they were: what is told outlives who did it, and the workspace too.
    No values: bodies may hold questions and secrets. `fields` names what was sent."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.SET_NULL, related_name="audit_events", null=True, db_index=False
    )
    workspace_name = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(db_index=True)
    # `token:ID`, `user:ID` or `command`.
    caller = models.CharField(max_length=80)
    caller_name = models.CharField(max_length=200, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="audit_events", null=True
    )
    action = models.CharField(max_length=200)
    target = models.CharField(max_length=500, blank=True)
    fields = models.JSONField(default=list)
    request_id = models.CharField(max_length=100, blank=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="audit_by_workspace")]

    def __str__(self) -> str:
        return f"{self.caller_name} {self.action}"


class ProviderKey(models.Model):
    """A key that a workspace brought for a provider, used in place of the installation's. `sealed` can be opened only
    with the keys of the environment (services/provider_keys.py)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="provider_keys", db_index=False)
    # `openai`, `cohere` or `http:NAME`.
    provider = models.CharField(max_length=80)
    sealed = models.TextField()
    # Tells keys apart without telling them: a hash over workspace and key.
    fingerprint = models.CharField(max_length=16)
    # Given by the workspace, so checked at every connection; empty: the installation's.
    base_url = models.CharField(max_length=500, blank=True)
    # Of an `http:NAME` reranker.
    shape = models.CharField(max_length=20, blank=True)
    model = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "provider"], name="one_key_per_workspace_and_provider")
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.fingerprint}"


class LoginFailures(models.Model):
    """Failed logins of late, for one name or one address (as a hash: what people mistype may be a password)."""

    id = models.BigAutoField(primary_key=True)
    subject = models.CharField(max_length=64)
    n_failed = models.PositiveIntegerField(default=0)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subject"], name="login_failures_of_a_subject_are_one_row")]

    def __str__(self) -> str:
        return f"{self.n_failed} since {self.first_at}"
