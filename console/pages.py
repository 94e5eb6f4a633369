"""The start page, and the ways in and out."""

from typing import Any

from django.contrib import auth
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backend.core.errors import TouchstoneError
from backend.models import Membership, Scope
from backend.queries import evaluations, knowledge, overview, questions
from backend.services import audit, login_limits, samples, workspaces
from console import access
from console.access import PageRequest, page
from console.client_address import client_address

N_EVALUATIONS, N_BASES, N_ALERTS = 6, 5, 5
_BACKEND = "django.contrib.auth.backends.ModelBackend"


@page()
def home(request: PageRequest) -> HttpResponse:
    """What the workspace measures and how it stands; where nothing has been measured yet, the way to it."""
    workspace = request.workspace
    now = timezone.now()
    courses = overview.of(workspace)
    latest = [evaluations.row(one, now=now) for one in evaluations.of(workspace)[:N_EVALUATIONS]]
    context: dict[str, Any] = {
        "courses": courses,
        "evaluations": latest,
        "alerts": list(overview.open_alerts(workspace)[:N_ALERTS]),
    }
    if not courses:
        context |= {
            "bases": knowledge.base_rows(knowledge.bases_of(workspace)[:N_BASES]),
            "sets": list(questions.sets_of(workspace)[:N_BASES]),
            "files": list(questions.set_files_in(workspace)[:N_BASES]),
            "has_sample": samples.is_there(),
        }
    return render(request, "home.html", context)


@page(None, post=Scope.READ)
def workspace(request: PageRequest) -> HttpResponse:
    """Go to another of one's workspaces."""
    access.choose(request, request.POST.get("workspace", ""))
    return redirect("home")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def login(request: HttpRequest) -> HttpResponse:
    """For those who have a password; the page says how to get a link. A name that is not known takes as long as a
    wrong password: Django hashes what was typed all the same."""
    form = AuthenticationForm(request, data=request.POST or None)
    context = {"form": form, "next": request.GET.get("next", "")}
    if request.method == "POST":
        name, address, now = request.POST.get("username", "")[:150], client_address(request), timezone.now()
        try:
            login_limits.count(name, address, now=now)
        except TouchstoneError as error:
            form = AuthenticationForm(request)
            return render(request, "login.html", {**context, "form": form, "refused": error.message}, status=429)
        if form.is_valid():
            login_limits.succeeded(name, address)
            auth.login(request, form.get_user())
            _record(request, "login")
            return HttpResponseRedirect(_next(request))
    return render(request, "login.html", context, status=_status(request))


@require_safe
@never_cache
def login_link(request: HttpRequest, secret: str) -> HttpResponse:
    """The one-time link that `touchstone up` prints."""
    if request.method == "HEAD":
        return HttpResponse()  # a preview must not use the link up
    try:
        user = workspaces.use_login_link(secret, timezone.now())
    except TouchstoneError as error:
        context = {"form": AuthenticationForm(request), "refused": error.message}
        return render(request, "login.html", context, status=403)
    auth.login(request, user, backend=_BACKEND)
    _record(request, "login by link")
    return redirect("home")


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    auth.logout(request)
    return redirect("login")


def _record(request: HttpRequest, action: str) -> None:
    """In the log of each workspace that this opens."""
    user = request.user
    if not isinstance(user, User):
        return
    for member in Membership.objects.filter(user=user).select_related("workspace"):
        audit.record(
            member.workspace,
            audit.Actor(id=f"user:{user.pk}", name=user.get_username(), user=user),
            action,
            now=timezone.now(),
            request_id=request.META.get("touchstone.request_id", ""),
        )


def _next(request: HttpRequest) -> str:
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and safe else "/"


def _status(request: HttpRequest) -> int:
    return 422 if request.method == "POST" else 200
