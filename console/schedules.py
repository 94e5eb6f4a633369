"""Schedules: all of them, one with what came of its slots, made and changed, run by hand, switched off."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from backend.core.configs import DEFAULT_MODES, MODES
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.models import Gate, Schedule, Scope
from backend.queries import knowledge, questions
from backend.queries import schedules as queries
from backend.services import schedules
from backend.services.schedules import Settings
from console import confirming, faults, paging
from console.access import PageRequest, page
from console.confirming import Asking

_MOST = 200
_FIRST = {
    "cron": "0 2 * * *",
    "time_zone": "UTC",
    "grace_hours": "6",
    "enabled": True,
    "modes": list(DEFAULT_MODES),
    "cache": True,
}
_ZONES = ("UTC", "Europe/Berlin", "Europe/London", "Europe/Istanbul", "America/New_York", "Asia/Tokyo")


@page()
def every(request: PageRequest) -> HttpResponse:
    rows = paging.cut(request, queries.of(request.workspace))
    return render(request, "schedules/list.html", {"rows": rows, "schedules": queries.rows(rows.rows)})


@page()
def one(request: PageRequest, schedule_id: str) -> HttpResponse:
    found = queries.get_schedule(request.workspace, schedule_id)
    rows = paging.cut(request, queries.history_of(found))
    return render(
        request,
        "schedules/one.html",
        {
            "schedule": queries.rows([found])[0],
            "gates": list(Gate.objects.filter(schedule=found).order_by("name")),
            "rows": rows,
            "firings": [queries.firing_row(each) for each in rows.rows],
        },
    )


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def new(request: PageRequest) -> HttpResponse:
    return _take(request, None)


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def change(request: PageRequest, schedule_id: str) -> HttpResponse:
    return _take(request, queries.get_schedule(request.workspace, schedule_id))


@page(None, post=Scope.SCHEDULES)
def run_now(request: PageRequest, schedule_id: str) -> HttpResponse:
    found = queries.get_schedule(request.workspace, schedule_id)
    try:
        firing = schedules.run_now(found, now=timezone.now())
    except faults.EXPECTED as error:
        messages.error(request, error.message)
        return redirect("schedule", found.id)
    return redirect("evaluation", firing.evaluation_id)


@page(None, post=Scope.SCHEDULES)
def switch(request: PageRequest, schedule_id: str) -> HttpResponse:
    """On or off."""
    found = queries.get_schedule(request.workspace, schedule_id)
    try:
        changed = schedules.update(found, changes={"enabled": not found.enabled}, now=timezone.now())
    except faults.EXPECTED as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"{changed.name} is {'on' if changed.enabled else 'off'}.")
    return redirect("schedule", found.id)


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def delete(request: PageRequest, schedule_id: str) -> HttpResponse:
    found = queries.get_schedule(request.workspace, schedule_id)
    asking = Asking(
        title=f"Delete the schedule {found.name}?",
        sentence="Its history goes with it. The evaluations that it started stay.",
        verb="Delete the schedule",
        done=f"The schedule {found.name} is gone.",
        crumbs=[("Schedules", "schedules", ()), (found.name, "schedule", (found.id,))],
        then=("schedules", ()),
    )
    return confirming.asked(request, asking, lambda: schedules.delete(found, now=timezone.now()))


def _take(request: PageRequest, found: Schedule | None) -> HttpResponse:
    """The form, filled in or sent."""
    form = _form(found)
    fault, status = None, 200
    if request.method == "POST":
        form = {name: request.POST.get(name, "").strip() for name in ("name", "set", "base", "cron", "time_zone")}
        form |= {"grace_hours": request.POST.get("grace_hours", "").strip(), "top_k": request.POST.get("top_k", "")}
        form |= {"enabled": "enabled" in request.POST, "modes": request.POST.getlist("modes")}
        form["cache"] = "cache" in request.POST
        try:
            saved = _save(request, found, form)
        except faults.EXPECTED as error:
            fault, status = faults.shown(error), faults.status_of(error)
        else:
            messages.success(request, f"{saved.name} is saved.")
            return redirect("schedule", saved.id)
    bases = [row.base for row in knowledge.base_rows(knowledge.bases_of(request.workspace)[:_MOST])]
    return render(
        request,
        "schedules/form.html",
        {
            "schedule": found,
            "form": form,
            "fault": fault,
            "sets": list(questions.sets_of(request.workspace)[:_MOST]),
            "bases": bases,
            "modes": MODES,
            "zones": _ZONES,
            # What the form cannot show is kept as it is.
            "is_plain": found is None or _is_plain(found.request),
        },
        status=status,
    )


def _save(request: PageRequest, found: Schedule | None, form: dict[str, Any]) -> Schedule:
    try:
        grace = round(float(form["grace_hours"]) * 3600)
    except (ValueError, OverflowError):
        message = "The grace is a number of hours."
        raise ValidationError(
            message,
            field="grace_seconds",
            faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="grace_seconds")],
        ) from None
    values = {
        "name": form["name"],
        "cron": form["cron"],
        "time_zone": form["time_zone"],
        "enabled": form["enabled"],
        "grace_seconds": grace,
    }
    if found is None or _is_plain(found.request):
        body: dict[str, Any] = {"question_set": form["set"], "scope": {"knowledge_base": form["base"]}}
        if form["modes"]:
            body["modes"] = form["modes"]
        if form["top_k"].isdigit():
            body["top_k"] = int(form["top_k"])
        if not form["cache"]:
            body["cache"] = False
        values["request"] = body
    if found is None:
        return schedules.create(request.workspace, Settings(**values), now=timezone.now())
    return schedules.update(found, changes=values, now=timezone.now())


def _form(found: Schedule | None) -> dict[str, Any]:
    if found is None:
        return dict(_FIRST)
    body = found.request
    return {
        "name": found.name,
        "set": str(body.get("question_set", "")),
        "base": str((body.get("scope") or {}).get("knowledge_base", "")),
        "cron": found.cron,
        "time_zone": found.time_zone,
        "grace_hours": f"{found.grace_seconds / 3600:g}",
        "enabled": found.enabled,
        "modes": body.get("modes") or list(DEFAULT_MODES),
        "top_k": body.get("top_k", ""),
        "cache": body.get("cache", True),
    }


def _is_plain(body: dict[str, Any]) -> bool:
    shown = {"question_set", "scope", "modes", "top_k", "cache"}
    return set(body) <= shown and set(body.get("scope", {})) == {"knowledge_base"}
