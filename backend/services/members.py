"""Who belongs to a workspace, and as what. It always keeps an admin."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from backend.core.errors import ConflictError, ErrorCode, Fault, ValidationError
from backend.models import Membership, Role, Token, Workspace
from backend.services import workspaces

_NAME = re.compile(r"[\w.@+-]{1,150}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """`login_path` leads in once: shown only here, and only where nobody else's account could be entered by it."""

    member: Membership
    login_path: str = ""


def add(workspace: Workspace, *, name: str, role: str, now: datetime) -> Added:
    """Add somebody by name; whoever is not known yet gets an account and a link to log in with.

    Raises ValidationError, and ConflictError for a member that there is already.
    """
    faults = [*_role_faults(role)]
    if not _NAME.fullmatch(name):
        faults.insert(0, _fault("A name has 1 to 150 letters, digits and . @ + - _ only.", "name"))
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    try:
        with transaction.atomic():
            user = User.objects.filter(username__iexact=name).order_by("id").first()
            if user is None:
                user = User(username=name)
                user.set_unusable_password()
                user.save(force_insert=True)
            member = Membership.objects.create(workspace=workspace, user=user, role=role)
    except IntegrityError as error:
        raise ConflictError(f"{name} is a member already.") from error
    return Added(member=member, login_path=_login_path(member, now=now))


def change(member: Membership, *, role: str) -> Membership:
    """Another role; tokens of the member hold no more than it from now on. Raises ConflictError for the last admin."""
    faults = _role_faults(role)
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    with transaction.atomic():
        _lock(member)
        if role != Role.ADMIN:
            _keep_an_admin(member)
        Membership.objects.filter(id=member.id).update(role=role)
    member.role = role
    return member


def remove(member: Membership, *, now: datetime) -> None:
    """The member's tokens of this workspace end too. Raises ConflictError for the last admin."""
    with transaction.atomic():
        _lock(member)
        _keep_an_admin(member)
        Token.objects.filter(workspace=member.workspace_id, user=member.user_id, revoked_at__isnull=True).update(
            revoked_at=now
        )
        Membership.objects.filter(id=member.id).delete()


def login_link(member: Membership, *, now: datetime) -> str:
    """The path of a link that logs the member in once. Raises ConflictError for somebody who belongs to another
    workspace too: an admin here is not to enter there."""
    path = _login_path(member, now=now)
    if not path:
        raise ConflictError(
            f"{member.user.username} has a password or belongs to another workspace: only the operator makes links "
            "for them (`manage.py login_link`)."
        )
    return path


def _login_path(member: Membership, *, now: datetime) -> str:
    user: User = member.user
    elsewhere = Membership.objects.filter(user=user).exclude(workspace=member.workspace_id).exists()
    # An account with a password is its owner's alone, and one of staff opens more than this workspace.
    if elsewhere or user.has_usable_password() or user.is_staff or user.is_superuser or not user.is_active:
        return ""
    return workspaces.login_link(user, now, life=workspaces.INVITATION_LIFE)


def _lock(member: Membership) -> None:
    # Two admins who remove each other at once must not both succeed.
    Workspace.objects.select_for_update().get(id=member.workspace_id)


def _keep_an_admin(member: Membership) -> None:
    others = Membership.objects.filter(workspace=member.workspace_id, role=Role.ADMIN, user__is_active=True)
    if not others.exclude(id=member.id).exists():
        raise ConflictError("A workspace keeps at least one admin: make somebody else one first.")


def _role_faults(role: Any) -> list[Fault]:
    if role in set(Role):
        return []
    return [_fault(f"role is one of {', '.join(Role)}, not {str(role)[:40]!r}.", "role")]


def _fault(message: str, field: str) -> Fault:
    return Fault(code=ErrorCode.VALIDATION, message=message, field=field)
