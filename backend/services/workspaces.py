"""Workspaces and the first way into one."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from backend.core.errors import ConflictError, ErrorCode, Fault, TouchstoneError, ValidationError
from backend.core.states import OPEN_EVALUATIONS
from backend.models import (
    Evaluation,
    KnowledgeBase,
    LoginLink,
    Membership,
    QuestionSet,
    Role,
    Run,
    Scope,
    Workspace,
)
from backend.services import deadlocks, in_use, knowledge_bases, tokens

FIRST_WORKSPACE, FIRST_USER, LOCAL_TOKEN = "default", "admin", "local"
LOGIN_LINK_LIFE = timedelta(hours=1)
INVITATION_LIFE = timedelta(days=3)
MOST_CHARACTERS = 200
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


def create(name: str, *, owner: User) -> Workspace:
    """A workspace with its first admin. Raises ValidationError, ConflictError when the name is taken."""
    with transaction.atomic():
        workspace = make_empty(name)
        Membership.objects.create(workspace=workspace, user=owner, role=Role.ADMIN)
    return workspace


def make_empty(name: str) -> Workspace:
    """For whoever gives it members next. Raises as `create`."""
    checked = _checked_name(name)
    try:
        with transaction.atomic():
            return Workspace.objects.create(name=checked)
    except IntegrityError as error:
        raise _name_is_taken(checked) from error


def rename(workspace: Workspace, name: str) -> Workspace:
    """Raises ValidationError, ConflictError when the name is taken."""
    checked = _checked_name(name)
    try:
        with transaction.atomic():
            Workspace.objects.filter(id=workspace.id).update(name=checked)
    except IntegrityError as error:
        raise _name_is_taken(checked) from error
    workspace.name = checked
    return workspace


def delete(workspace: Workspace, *, force: bool = False) -> None:
    """Delete a workspace and all that is in it; the audit log outlives it. Raises ConflictError while it holds bases,
    question sets, runs or open evaluations, unless by `force`."""
    if not force:
        held = [
            f"{n} {what}"
            for what, n in (
                ("knowledge bases", KnowledgeBase.objects.filter(workspace=workspace).count()),
                ("question sets", QuestionSet.objects.filter(workspace=workspace).count()),
                ("runs", Run.objects.filter(workspace=workspace).count()),
            )
            if n
        ]
        if held:
            raise ConflictError(f"The workspace holds {', '.join(held)}. Delete them first, or delete with force.")
    open_ones = Evaluation.objects.filter(workspace=workspace, state__in=OPEN_EVALUATIONS)
    with transaction.atomic():
        in_use.free(workspace.name, open_ones, force=force)
    for base in KnowledgeBase.objects.filter(workspace=workspace):
        # Each with its files and passages, in steps of its own: a cascade in Python would load the ids of them all.
        knowledge_bases.delete(base, force=force)
    deadlocks.again(lambda: _delete(workspace))


def _delete(workspace: Workspace) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM backend_workspace WHERE id = %s FOR UPDATE", [workspace.id])
        # What there may be very many of goes set by set.
        cursor.execute(
            "DELETE FROM backend_result WHERE run_id IN (SELECT id FROM backend_run WHERE workspace_id = %s)",
            [workspace.id],
        )
        for table in ("slice", "cachedembedding", "cachedscore"):
            cursor.execute(f"DELETE FROM backend_{table} WHERE workspace_id = %s", [workspace.id])  # noqa: S608  constants
        Workspace.objects.filter(id=workspace.id).delete()


def _checked_name(name: Any) -> str:
    text = name.strip() if isinstance(name, str) else ""
    if not text or len(text) > MOST_CHARACTERS or not text.isprintable():
        message = f"name is a text of 1 to {MOST_CHARACTERS} characters."
        raise ValidationError(
            message, field="name", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="name")]
        )
    return text


def _name_is_taken(name: str) -> ConflictError:
    # Names are the installation's: two teams could not tell theirs apart in a list.
    return ConflictError(f"There is a workspace named {name!r} already.")


def login_link(user: User, now: datetime, *, life: timedelta = LOGIN_LINK_LIFE) -> str:
    """The path of a link that logs its user in once, within the hour unless said otherwise."""
    LoginLink.objects.filter(expires_at__lt=now).delete()
    secret = secrets.token_urlsafe(32)
    LoginLink.objects.create(user=user, digest=tokens.digest(secret), expires_at=now + life)
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
                "This login link has been used or is too old. Ask an admin of your workspace for a new one; on a "
                "machine of your own, start `touchstone up` again.",
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
