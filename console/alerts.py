"""Alerts: what is wrong and what was, and who is told."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from backend.core.alerts import AlertState, TargetKind
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.models import Scope
from backend.queries import alerts as queries
from backend.services import alert_targets, alerts, webhooks
from console import confirming, faults, paging
from console.access import PageRequest, page
from console.confirming import Asking


@page()
def every(request: PageRequest) -> HttpResponse:
    """Those that are open, or with `all=1` those that are over too."""
    every_one = request.GET.get("all") == "1"
    rows = paging.cut(request, queries.of(request.workspace, state="" if every_one else AlertState.OPEN.value))
    return render(
        request,
        "alerts/list.html",
        {"rows": rows, "alerts": [queries.row(each) for each in rows.rows], "every": every_one},
    )


@page()
def one(request: PageRequest, alert_id: str) -> HttpResponse:
    return render(request, "alerts/one.html", {"alert": queries.row(queries.get_alert(request.workspace, alert_id))})


@page(post=Scope.SCHEDULES)
def targets(request: PageRequest) -> HttpResponse:
    """Lists who is told, and takes a new one."""
    form: dict[str, Any] = {name: request.POST.get(name, "").strip() for name in ("name", "kind", "address")}
    form["with_texts"] = "with_texts" in request.POST
    fault, status = None, 200
    if request.method == "POST":
        try:
            made = alert_targets.create(request.workspace, **_checked(form))
        except faults.EXPECTED as error:
            fault, status = faults.shown(error), faults.status_of(error)
        else:
            messages.success(request, f"{made.name} is told from now on.")
            return redirect("alert-targets")
    found = list(queries.targets_of(request.workspace)[:200])
    # Who may change a target may read its secret.
    with_secrets = Scope.SCHEDULES in request.scopes
    secrets = {each.id: webhooks.secret_of(each) for each in found if with_secrets and each.kind == TargetKind.WEBHOOK}
    rows = [(row, secrets.get(row.id, "")) for row in queries.target_rows(found)]
    return render(request, "alerts/targets.html", {"targets": rows, "form": form, "fault": fault}, status=status)


@page(None, post=Scope.SCHEDULES)
def test(request: PageRequest, target_id: str) -> HttpResponse:
    target = queries.get_target(request.workspace, target_id)
    alerts.send_test(target, now=timezone.now())
    messages.success(request, f"A test is on its way to {target.name}; look here again in a moment.")
    return redirect("alert-targets")


@page(None, post=Scope.SCHEDULES)
def switch(request: PageRequest, target_id: str) -> HttpResponse:
    """On or off."""
    target = queries.get_target(request.workspace, target_id)
    changed = alert_targets.update(target, changes={"enabled": not target.enabled})
    messages.success(request, f"{changed.name} is {'told again' if changed.enabled else 'not told any more'}.")
    return redirect("alert-targets")


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def delete(request: PageRequest, target_id: str) -> HttpResponse:
    target = queries.get_target(request.workspace, target_id)
    asking = Asking(
        title=f"Delete {target.name}?",
        sentence="Messages to it that have not arrived are dropped.",
        verb="Delete it",
        done=f"{target.name} is not told any more.",
        crumbs=[("Alerts", "alerts", ()), ("Who is told", "alert-targets", ())],
        then=("alert-targets", ()),
    )
    return confirming.asked(request, asking, target.delete)


def _checked(form: dict[str, Any]) -> dict[str, Any]:
    if not 0 < len(form["name"]) <= 200:
        raise _invalid("name is a text of 1 to 200 characters.", "name")
    if form["kind"] not in set(TargetKind):
        raise _invalid("Choose a webhook or an e-mail address.", "kind")
    return {**form, "kind": TargetKind(form["kind"])}


def _invalid(message: str, field: str) -> ValidationError:
    return ValidationError(
        message, field=field, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=field)]
    )
