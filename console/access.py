"""Who looks at a page, in which workspace, and what they may do there: the one way into every page."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, cast

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django_htmx.http import HttpResponseClientRedirect

from backend.core.errors import ErrorCode, NotFoundError
from backend.models import SCOPES_OF, Membership, Role, Scope, Workspace
from backend.queries import memberships
from backend.services import audit
from console import faults

# PostgreSQL keeps neither, and no text of a person's holds them.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_P = ParamSpec("_P")


class PageRequest(HttpRequest):
    """What a page made by `page` is given. Never built: the decorator adds these to Django's own request."""

    user: User
    workspace: Workspace
    membership: Membership
    memberships: list[Membership]
    scopes: frozenset[Scope]


class Page(Protocol[_P]):
    """A page as the addresses know it. `required_scopes`: what each method that it answers needs."""

    required_scopes: dict[str, Scope]

    def __call__(self, request: HttpRequest, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponse: ...


View = Callable[Concatenate[PageRequest, _P], HttpResponse]


def page(get: Scope | None = Scope.READ, *, post: Scope | None = None) -> Callable[[View[_P]], Page[_P]]:
    """A view for those who are logged in, inside the workspace they chose.

    `get` and `post` are the scopes that these methods need; a method without one is not answered. What the view raises
    is shown as a page with its sentence: NotFoundError as 404, with the same words for another workspace's things as
    for what was never there. A form shows its faults in place instead (console/faults.py).
    """
    required = {name: scope for name, scope in (("GET", get), ("POST", post)) if scope is not None}

    def decorate(view: View[_P]) -> Page[_P]:
        @wraps(view)
        def asked(request: HttpRequest, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponse:
            response = _answer(request, required, lambda one: view(one, *args, **kwargs), kwargs)
            add_never_cache_headers(response)
            return response

        made = cast("Page[_P]", asked)
        made.required_scopes = required
        return made

    return decorate


def choose(request: PageRequest, workspace_id: str) -> None:
    """Go to another workspace of the user's. Raises NotFoundError for one that they are no member of."""
    found = next((one for one in request.memberships if str(one.workspace_id) == workspace_id), None)
    if found is None:
        raise NotFoundError("workspace", workspace_id[:60])
    request.session[memberships.CHOSEN] = str(found.workspace_id)


def _answer(
    request: HttpRequest,
    required: dict[str, Scope],
    view: Callable[[PageRequest], HttpResponse],
    parts: dict[str, object],
) -> HttpResponse:
    method = "GET" if request.method == "HEAD" else request.method or ""
    if method not in required:
        return HttpResponseNotAllowed([*required, *(["HEAD"] if "GET" in required else [])])
    if not isinstance(request.user, User):
        return _login(request)
    there = memberships.of(request.user)
    if not there:
        return render(request, "no_workspace.html", status=200 if request.path == "/" else 404)
    member = memberships.current(there, request.session.get(memberships.CHOSEN))
    asked = cast("PageRequest", request)
    asked.workspace, asked.membership, asked.memberships = member.workspace, member, there
    asked.scopes = SCOPES_OF[Role(member.role)]
    if required[method] not in asked.scopes:
        message = f"This needs the scope {required[method].value}, which a {member.role} of this workspace has not."
        return faults.page(request, status=403, code=ErrorCode.FORBIDDEN, message=message)
    if _is_unusable(request, parts):
        message = "This text holds characters that no text can have."
        return faults.page(request, status=422, code=ErrorCode.VALIDATION, message=message)
    try:
        return _recorded(asked, view(asked), required[method])
    except faults.EXPECTED as error:
        return faults.page_of(request, error)


def _recorded(request: PageRequest, response: HttpResponse, needed: Scope) -> HttpResponse:
    """The log's line for a change that went through: what a form changes, it then redirects from."""
    if request.method == "POST" and needed is not Scope.READ and response.status_code < 400:
        match = request.resolver_match
        audit.record(
            request.workspace,
            audit.Actor(id=f"user:{request.user.pk}", name=request.user.get_username(), user=request.user),
            f"page {match.url_name if match else ''}",
            now=timezone.now(),
            target=request.path,
            fields=[name for name in request.POST if name != "csrfmiddlewaretoken"],
            request_id=request.META.get("touchstone.request_id", ""),
        )
    return response


def _login(request: HttpRequest) -> HttpResponse:
    answer = redirect_to_login(request.get_full_path())
    # A fragment that is swapped in must not become the login page: the whole window goes there.
    return HttpResponseClientRedirect(answer.url) if getattr(request, "htmx", False) else answer


def _is_unusable(request: HttpRequest, parts: dict[str, object]) -> bool:
    given = [value for form in (request.GET, request.POST) for _, values in form.lists() for value in values]
    return any(_UNUSABLE.search(str(value)) for value in (*given, *parts.values()))
