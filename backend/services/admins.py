"""What the operator does at the shell: the first admin, and a way in for whoever lost theirs."""

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from backend.core.errors import NotFoundError
from backend.models import Membership, Role, Workspace
from backend.services import audit, members, workspaces


def make(name: str, *, workspace: str, now: datetime) -> str:
    """Make somebody an admin of the workspace, both made where missing. Returns the path of a link that logs them in
    once. Raises ValidationError for a name that cannot be one."""
    with transaction.atomic():
        place = Workspace.objects.filter(name=workspace).first() or workspaces.make_empty(workspace)
        member = Membership.objects.filter(workspace=place, user__username__iexact=name).first()
        if member is None:
            member = members.add(place, name=name, role=Role.ADMIN, now=now).member
        else:
            member = members.change(member, role=Role.ADMIN)
        path = workspaces.login_link(member.user, now, life=workspaces.INVITATION_LIFE)
    audit.record(place, audit.Actor(id=audit.COMMAND), "create_admin", now=now, target=name)
    return path


def login_link(name: str, *, now: datetime) -> str:
    """Raises NotFoundError."""
    user = User.objects.filter(username__iexact=name, is_active=True).first()
    if user is None:
        raise NotFoundError("account", name[:60])
    for member in Membership.objects.filter(user=user).select_related("workspace"):
        audit.record(member.workspace, audit.Actor(id=audit.COMMAND), "login_link", now=now, target=name)
    return workspaces.login_link(user, now, life=workspaces.INVITATION_LIFE)
