"""Workspaces and the first way into one."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from backend.core.errors import ErrorCode, TouchstoneError
from backend.models import LoginLink, Membership, Role, Scope, Workspace
from backend.services import tokens

FIRST_WORKSPACE, FIRST_USER, LOCAL_TOKEN = "default", "admin", "local"
LOGIN_LINK_LIFE = timedelta(hours=1)
_BOOTSTRAP_LOCK = 7_400_001


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """What a new installation starts with. `token` and the secret in `login_url_path` are shown here only."""

    workspace: Workspace
    user: User
    login_url_path: str
    token: str


def bootstrap(*, existing_token: str | None = None, now: datetime | None = None) -> Bootstrap:
    """The first workspace and its first admin, made where missing, with a fresh login link.

    `existing_token` comes back when it still opens this workspace; otherwise a new token is made. Older local tokens
    stay valid: another machine on the same database may hold one.
    """
    now = now or timezone.now()
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two first starts at once must not make two workspaces.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_BOOTSTRAP_LOCK])
        workspace = Workspace.objects.order_by("created_at", "id").first()
        if workspace is None:
            workspace = Workspace.objects.create(name=FIRST_WORKSPACE)
        user = _first_admin(workspace)
        path = login_link(user, now)
        held = tokens.authenticate(existing_token, now) if existing_token else None
        if existing_token and held is not None and held.workspace_id == workspace.id:
            plain = existing_token
        else:
            _, plain = tokens.create(workspace, name=LOCAL_TOKEN, scopes=list(Scope), user=user)
    return Bootstrap(workspace=workspace, user=user, login_url_path=path, token=plain)


def login_link(user: User, now: datetime) -> str:
    """The path of a link that logs its user in once, within the hour."""
    LoginLink.objects.filter(expires_at__lt=now).delete()
    secret = secrets.token_urlsafe(32)
    LoginLink.objects.create(user=user, digest=tokens.digest(secret), expires_at=now + LOGIN_LINK_LIFE)
    return f"/login/{secret}"


def use_login_link(secret: str, now: datetime) -> User:
    """The link's user, once. Raises UNAUTHENTICATED when it was used before, is too old or was never given."""
    with transaction.atomic():
        link = (
            LoginLink.objects.select_for_update(of=("self",))
            .select_related("user")
            .filter(digest=tokens.digest(secret), used_at__isnull=True, expires_at__gt=now, user__is_active=True)
            .first()
        )
        if link is None:
            raise TouchstoneError(
                ErrorCode.UNAUTHENTICATED,
                "This login link has been used or is too old. Start `touchstone up` again for a new one.",
            )
        LoginLink.objects.filter(id=link.id).update(used_at=now)
    return link.user


def _first_admin(workspace: Workspace) -> User:
    member = (
        Membership.objects.filter(workspace=workspace, role=Role.ADMIN, user__username=FIRST_USER)
        .select_related("user")
        .first()
    )
    if member is not None:
        return member.user
    user, created = User.objects.get_or_create(username=FIRST_USER)
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    Membership.objects.update_or_create(workspace=workspace, user=user, defaults={"role": Role.ADMIN})
    return user
