"""Reads of tokens, members, workspaces, provider keys and the audit log: always one workspace's."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from backend.core.errors import NotFoundError
from backend.models import AuditEvent, Membership, ProviderKey, Token, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRow:
    id: UUID
    name: str
    created_at: datetime
    role: str


def tokens_of(workspace: Workspace, *, user: User | None) -> QuerySet[Token]:
    """Those of a user; None: everybody's."""
    found = Token.objects.filter(workspace=workspace).select_related("user")
    return found if user is None else found.filter(user=user)


def members_of(workspace: Workspace) -> QuerySet[Membership]:
    return Membership.objects.filter(workspace=workspace).select_related("user")


def keys_of(workspace: Workspace) -> QuerySet[ProviderKey]:
    return ProviderKey.objects.filter(workspace=workspace).defer("sealed")


def key_of(workspace: Workspace, provider: str) -> ProviderKey:
    """Raises NotFoundError."""
    found = keys_of(workspace).filter(provider=provider).first()
    if found is None:
        raise NotFoundError("provider key", provider[:60])
    return found


def events_of(workspace: Workspace, *, caller: str = "", action: str = "") -> QuerySet[AuditEvent]:
    """`caller` is an id or a name, `action` a part of one."""
    found = AuditEvent.objects.filter(workspace=workspace)
    if caller:
        found = found.filter(Q(caller=caller) | Q(caller_name=caller))
    return found.filter(action__icontains=action) if action else found


def role_of(workspace: Workspace, user: User) -> str | None:
    return Membership.objects.filter(workspace=workspace, user=user).values_list("role", flat=True).first()


def workspaces_of(user: User) -> list[WorkspaceRow]:
    return [
        WorkspaceRow(
            id=member.workspace_id,
            name=member.workspace.name,
            created_at=member.workspace.created_at,
            role=member.role,
        )
        for member in Membership.objects.filter(user=user).select_related("workspace").order_by("created_at", "id")
    ]
