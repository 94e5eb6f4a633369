"""Members, tokens, provider keys, the audit log, and one's own password."""

from typing import Any

from django.contrib.auth import password_validation, update_session_auth_hash
from django.core.exceptions import ValidationError as PasswordError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import make_aware

from backend.core.errors import ErrorCode, Fault, TouchstoneError, ValidationError
from backend.models import Role, Scope
from backend.queries import access
from backend.queries.lookups import get
from backend.services import audit, login_limits, members, provider_keys, tokens
from backend.services.provider_keys import Given
from console import faults, paging
from console.access import PageRequest, page
from console.client_address import client_address


@page(post=Scope.READ)
def token_list(request: PageRequest) -> HttpResponse:
    """One's own, an admin's all. POST makes one, and shows its text here only."""
    context: dict[str, Any] = {"scopes": [one for one in Scope if one in request.scopes]}
    status = 200
    if request.method == "POST":
        try:
            made, plain = tokens.create(
                request.workspace,
                name=request.POST.get("name", ""),
                scopes=_own(request),
                user=request.user,
                expires_at=_end(request.POST.get("expires_at", "")),
            )
            _record(request, "page token made", str(made.id))
            context |= {"made": made, "plain": plain}
        except TouchstoneError as error:
            context |= {"fault": faults.shown(error), "given": request.POST}
            status = 422
    everybody = Scope.ADMIN in request.scopes
    rows = access.tokens_of(request.workspace, user=None if everybody else request.user)
    return render(request, "accounts/tokens.html", {**context, "rows": paging.cut(request, rows)}, status=status)


@page(None, post=Scope.READ)
def token_revoke(request: PageRequest, token_id: str) -> HttpResponse:
    everybody = Scope.ADMIN in request.scopes
    token = get(access.tokens_of(request.workspace, user=None if everybody else request.user), token_id, what="token")
    tokens.revoke(token, timezone.now())
    _record(request, "page token revoked", str(token.id))
    return redirect("tokens")


@page(Scope.ADMIN, post=Scope.ADMIN)
def member_list(request: PageRequest) -> HttpResponse:
    """POST adds somebody; the link for a new account is shown here only."""
    context: dict[str, Any] = {"roles": list(Role)}
    status = 200
    if request.method == "POST":
        try:
            added = members.add(
                request.workspace,
                name=request.POST.get("name", "").strip(),
                role=request.POST.get("role", ""),
                now=timezone.now(),
            )
            context |= {"added": added.member, "link": _absolute(request, added.login_path)}
        except TouchstoneError as error:
            context |= {"fault": faults.shown(error), "given": request.POST}
            status = faults.status_of(error)
    rows = access.members_of(request.workspace)
    shown = {**context, "rows": paging.cut(request, rows, order=("id",))}
    return render(request, "accounts/members.html", shown, status=status)


@page(None, post=Scope.ADMIN)
def member_change(request: PageRequest, member_id: str) -> HttpResponse:
    """`press` is `role`, `link` or `remove`."""
    member = get(access.members_of(request.workspace), member_id, what="member")
    press = request.POST.get("press", "")
    if press == "remove":
        members.remove(member, now=timezone.now())
    elif press == "link":
        link = _absolute(request, members.login_link(member, now=timezone.now()))
        rows = paging.cut(request, access.members_of(request.workspace), order=("id",))
        return render(
            request, "accounts/members.html", {"roles": list(Role), "added": member, "link": link, "rows": rows}
        )
    else:
        members.change(member, role=request.POST.get("role", ""))
    return redirect("members")


@page(Scope.ADMIN, post=Scope.ADMIN)
def key_list(request: PageRequest) -> HttpResponse:
    """What was given is not shown again, not in a refused form either."""
    context: dict[str, Any] = {}
    status = 200
    if request.method == "POST":
        try:
            names = ("provider", "key", "base_url", "shape", "model")
            given = Given(**{name: request.POST.get(name, "").strip() for name in names})
            provider_keys.keep(request.workspace, given, now=timezone.now())
            return redirect("provider-keys")
        except TouchstoneError as error:
            kept = {name: value for name, value in request.POST.items() if name != "key"}
            context, status = {"fault": faults.shown(error), "given": kept}, faults.status_of(error)
    rows = access.keys_of(request.workspace)
    shown = {**context, "rows": paging.cut(request, rows, order=("id",))}
    return render(request, "accounts/provider_keys.html", shown, status=status)


@page(None, post=Scope.ADMIN)
def key_remove(request: PageRequest, provider: str) -> HttpResponse:
    provider_keys.remove(request.workspace, provider)
    return redirect("provider-keys")


@page(Scope.ADMIN)
def audit_log(request: PageRequest) -> HttpResponse:
    caller, action = request.GET.get("caller", ""), request.GET.get("action", "")
    rows = access.events_of(request.workspace, caller=caller, action=action)
    wanted = {"caller": caller, "action": action}
    return render(request, "accounts/audit.html", {"rows": paging.cut(request, rows), "wanted": wanted})


@page(post=Scope.READ)
def password(request: PageRequest) -> HttpResponse:
    """Set one's own. Whoever came by a link has none yet; whoever has one says it first."""
    context: dict[str, Any] = {"has_one": request.user.has_usable_password()}
    status = 200
    if request.method == "POST":
        try:
            _set_password(request)
            return redirect("home")
        except TouchstoneError as error:
            context, status = {**context, "fault": faults.shown(error)}, faults.status_of(error)
    return render(request, "accounts/password.html", context, status=status)


def _set_password(request: PageRequest) -> None:
    user, wanted = request.user, request.POST.get("new", "")
    if user.has_usable_password():
        # Whoever sits down at an open session has no more tries than at the login.
        name, address = user.get_username(), client_address(request)
        login_limits.count(name, address, now=timezone.now())
        if not user.check_password(request.POST.get("old", "")):
            raise _invalid("This is not your password.", "old")
        login_limits.succeeded(name, address)
    if wanted != request.POST.get("again", ""):
        raise _invalid("The two are not the same.", "again")
    try:
        password_validation.validate_password(wanted, user)
    except PasswordError as error:
        raise _invalid(" ".join(error.messages), "new") from None
    user.set_password(wanted)
    user.save(update_fields=["password"])
    # Every other login of this account ends; this one goes on.
    update_session_auth_hash(request, user)
    _record(request, "page password set", "")


def _own(request: PageRequest) -> list[str]:
    """What was asked for; a scope that is not one's own is refused, as the owner's role is looked at besides."""
    wanted = request.POST.getlist("scopes")
    beyond = [one for one in wanted if one in set(Scope) and Scope(one) not in request.scopes]
    if beyond:
        raise _invalid(f"You cannot give what you do not have: {', '.join(beyond)}.", "scopes")
    return wanted


def _end(text: str) -> Any:
    if not text:
        return None
    try:
        day, moment = parse_date(text), parse_datetime(text)
    except ValueError:
        day = moment = None
    if moment is None and day is None:
        raise _invalid("The end is a day such as 2027-01-31.", "expires_at")
    found = moment or parse_datetime(f"{day}T23:59:59")
    return found if found is None or found.tzinfo else make_aware(found)


def _absolute(request: PageRequest, path: str) -> str:
    return request.build_absolute_uri(path) if path else ""


def _record(request: PageRequest, action: str, target: str) -> None:
    """For what needs no more than to read, which the log's own hook leaves out."""
    user = request.user
    audit.record(
        request.workspace,
        audit.Actor(id=f"user:{user.pk}", name=user.get_username(), user=user),
        action,
        now=timezone.now(),
        target=target,
        request_id=request.META.get("touchstone.request_id", ""),
    )


def _invalid(message: str, field: str) -> ValidationError:
    return ValidationError(
        message, field=field, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=field)]
    )
