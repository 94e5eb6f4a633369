"""Bearer tokens: shown once, kept as a hash."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.models import SCOPES_OF, Membership, Role, Scope, Token, Workspace

PREFIX = "ts_"
_USE_IS_TOLD_EVERY = timedelta(minutes=1)


def create(
    workspace: Workspace,
    *,
    name: str,
    scopes: Iterable[str],
    user: User | None = None,
    expires_at: datetime | None = None,
    now: datetime | None = None,
) -> tuple[Token, str]:
    """A new token and its plain text, which is nowhere kept. A user's token holds no scope that its user lacks.

    Raises ValidationError with all faults.
    """
    wanted = sorted(set(scopes))
    faults = _faults(workspace, name=name, scopes=wanted, user=user, expires_at=expires_at, now=now or timezone.now())
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    plain = PREFIX + secrets.token_urlsafe(32)
    token = Token.objects.create(
        workspace=workspace,
        user=user,
        name=name.strip(),
        digest=digest(plain),
        hint=plain[:8],
        scopes=wanted,
        expires_at=expires_at,
    )
    return token, plain


def authenticate(plain: str, now: datetime) -> Token | None:
    """The valid token of this text, its workspace and user loaded; None for any other. Writes `last_used_at` at most
    once a minute."""
    if not plain.startswith(PREFIX):
        return None
    token = (
        Token.objects.filter(digest=digest(plain), revoked_at__isnull=True)
        .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))
        .filter(Q(user__isnull=True) | Q(user__is_active=True))
        .select_related("workspace", "user")
        .first()
    )
    if token is None:
        return None
    if token.last_used_at is None or now - token.last_used_at >= _USE_IS_TOLD_EVERY:
        Token.objects.filter(id=token.id).update(last_used_at=now)
        token.last_used_at = now
    return token


def revoke(token: Token, now: datetime) -> bool:
    """From now on the token is none. False when it was revoked before."""
    return Token.objects.filter(id=token.id, revoked_at__isnull=True).update(revoked_at=now) == 1


def digest(plain: str) -> str:
    """A plain hash is enough: the text has 256 random bits, nothing to guess."""
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()


def _faults(
    workspace: Workspace,
    *,
    name: str,
    scopes: list[str],
    user: User | None,
    expires_at: datetime | None,
    now: datetime,
) -> list[Fault]:
    def fault(message: str, field: str) -> Fault:
        return Fault(code=ErrorCode.VALIDATION, message=message, field=field)

    faults = []
    if not name.strip() or len(name) > 200:
        faults.append(fault("A token needs a name of at most 200 characters.", "name"))
    known = {scope.value for scope in Scope}
    unknown = [scope for scope in scopes if scope not in known]
    if unknown:
        faults.append(
            fault(f"There is no scope {', '.join(unknown)}. There are: {', '.join(sorted(known))}.", "scopes")
        )
    elif not scopes:
        faults.append(fault("A token needs at least one scope.", "scopes"))
    elif user is not None:
        role = Membership.objects.filter(workspace=workspace, user=user).values_list("role", flat=True).first()
        allowed = SCOPES_OF[Role(role)] if role else frozenset[Scope]()
        beyond = [scope for scope in scopes if scope not in allowed]
        if beyond:
            faults.append(fault(f"The token's owner may not {', '.join(beyond)} in this workspace.", "scopes"))
    if expires_at is not None and expires_at <= now:
        faults.append(fault("The token would have expired already.", "expires_at"))
    return faults
