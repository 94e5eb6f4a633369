"""Who is asking, in which workspace, and what they may do there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone
from rest_framework import authentication, exceptions, permissions
from rest_framework.request import Request

from backend.models import SCOPES_OF, Membership, Role, Scope, Token, Workspace
from backend.queries import memberships
from backend.services import tokens

if TYPE_CHECKING:
    # The framework imports this module while it makes that class.
    from rest_framework.views import APIView

WORKSPACE_HEADER = "X-Workspace"
_HOW = (
    "Send `Authorization: Bearer ts_…`. `touchstone up` puts a token into .touchstone/token; others are made on the "
    "page /tokens, or by `POST /api/v1/tokens`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`id` names the token or the user: what an idempotency key belongs to. `name` is for people; `token` is what
    it came with, None for a login."""

    id: str
    workspace: Workspace
    scopes: frozenset[Scope]
    user: User | None = None
    name: str = ""
    token: Token | None = None


def caller(request: Request) -> Caller:
    """The caller of an authenticated request."""
    if not isinstance(request.auth, Caller):
        raise exceptions.NotAuthenticated(f"This needs a token. {_HOW}")
    return request.auth


class TokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer ts_…`. A token opens one workspace."""

    def authenticate(self, request: Request) -> tuple[User | AnonymousUser, Caller] | None:
        kind, _, plain = request.headers.get("Authorization", "").partition(" ")
        if not kind:
            return None
        token = tokens.authenticate(plain.strip(), timezone.now()) if kind.lower() == "bearer" else None
        if token is None:
            raise exceptions.AuthenticationFailed(
                f"This token is not valid: it was revoked, has expired or was never given. {_HOW}"
            )
        scopes = frozenset(Scope(scope) for scope in token.scopes)
        if token.user is not None:
            # A member whose role went down keeps no more through an old token.
            scopes &= _scopes_of(token.user, token.workspace)
        who = Caller(
            id=f"token:{token.id}",
            workspace=token.workspace,
            scopes=scopes,
            user=token.user,
            name=token.name,
            token=token,
        )
        return token.user or AnonymousUser(), who

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002  the framework's signature
        return 'Bearer realm="touchstone"'


class SessionAuthentication(authentication.SessionAuthentication):
    """The console's login, with its CSRF check. The workspace is that of `X-Workspace`, else the one that
    the console's session looks at."""

    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        found = super().authenticate(request)
        if found is None:
            return None
        user = found[0]
        there = memberships.of(user)
        wanted = request.headers.get(WORKSPACE_HEADER)
        if wanted is not None:
            there = [one for one in there if str(one.workspace_id) == wanted]
        if not there:
            raise exceptions.PermissionDenied("You are not a member of this workspace.")
        member = memberships.current(there, request.session.get(memberships.CHOSEN))
        who = Caller(
            id=f"user:{user.pk}",
            workspace=member.workspace,
            scopes=SCOPES_OF[Role(member.role)],
            user=user,
            name=user.get_username(),
        )
        return user, who


class HasScope(permissions.BasePermission):
    """A view says in `required_scopes` which scope each method needs. Reading is the default for GET; any other
    method must be named, so that a forgotten one is closed and not open."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        who = caller(request)
        method = request.method or ""
        if method.lower() not in view.http_method_names or not hasattr(view, method.lower()):
            return True  # there is no such method: the framework answers 405
        needed = required_scope(view, method)
        if needed in who.scopes:
            return True
        raise exceptions.PermissionDenied(
            f"This needs the scope {needed.value}, which your {who.id.partition(':')[0]} does not have."
        )


def required_scope(view: "APIView", method: str) -> Scope:
    scopes: Mapping[str, Scope] = getattr(view, "required_scopes", {})
    if method in {"GET", "HEAD"}:
        return scopes.get("GET", Scope.READ)
    return scopes[method]


def _scopes_of(user: User, workspace: Workspace) -> frozenset[Scope]:
    role = Membership.objects.filter(user=user, workspace=workspace).values_list("role", flat=True).first()
    return SCOPES_OF[Role(role)] if role else frozenset()
