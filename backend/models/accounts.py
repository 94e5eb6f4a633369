"""Who owns what: workspaces, their members and tokens, and the answers kept for repeated requests."""

from enum import StrEnum

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from backend.models.base import choices, new_id, one_of


class Role(StrEnum):
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class Scope(StrEnum):
    READ = "knowledge-bases:read"
    WRITE = "knowledge-bases:write"
    EVALUATE = "knowledge-bases:evaluate"
    SCHEDULES = "schedules:write"
    ADMIN = "workspace:admin"


SCOPES_OF: dict[Role, frozenset[Scope]] = {
    Role.VIEWER: frozenset({Scope.READ}),
    Role.EDITOR: frozenset({Scope.READ, Scope.WRITE, Scope.EVALUATE, Scope.SCHEDULES}),
    Role.ADMIN: frozenset(Scope),
}


class Workspace(models.Model):
    """Owns everything. Every query goes through one; another's ids are "not found"."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=200)
    limits = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="workspace_name_is_unique")]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=choices(Role), default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_per_user_and_workspace"),
            one_of("role", Role, name="membership_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"


class Token(models.Model):
    """A bearer token: shown once, kept as a hash. `hint` is its beginning, for people to tell tokens apart."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tokens")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens", null=True, blank=True
    )
    name = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    hint = models.CharField(max_length=16)
    scopes = ArrayField(models.CharField(max_length=40, choices=choices(Scope)))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["digest"], name="token_digest_is_unique")]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class LoginLink(models.Model):
    """A link that logs its user in once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="login_links")
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["digest"], name="login_link_digest_is_unique")]

    def __str__(self) -> str:
        return f"login of {self.user_id}"


class IdempotencyRecord(models.Model):
    """The first answer to a POST with an Idempotency-Key, given again for 24 h. `status` 0: still being answered."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    caller = models.CharField(max_length=80)
    route = models.CharField(max_length=300)
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    location = models.CharField(max_length=500, blank=True)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "caller", "route", "key"], name="one_answer_per_idempotency_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"
