"""Gates: all of them, one with what it said and would have said, made and changed."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.models import Gate, Scope
from backend.queries import gates as queries
from backend.queries import schedules as schedule_queries
from backend.services import gates
from console import confirming, faults, paging
from console.access import PageRequest, page
from console.confirming import Asking

_MOST, N_PAST = 200, 10
_FIRST_RULES = [
    {"rule": "floor", "metric": "mrr@10", "least": 0.7},
    {"rule": "significant_drop"},
    {"rule": "coverage", "least": 1.0},
]


@page()
def every(request: PageRequest) -> HttpResponse:
    rows = paging.cut(request, queries.of(request.workspace))
    return render(request, "gates/list.html", {"rows": rows, "gates": queries.rows(rows.rows)})


@page()
def one(request: PageRequest, gate_id: str) -> HttpResponse:
    """With `past=1` also what it would have said of past evaluations."""
    found = queries.get_gate(request.workspace, gate_id)
    rows = paging.cut(request, queries.checks_of(found))
    past = gates.dry_run(found, limit=N_PAST) if request.GET.get("past") == "1" else None
    return render(
        request,
        "gates/one.html",
        {
            "gate": queries.rows([found])[0],
            "rows": rows,
            "checks": [queries.check_row(each) for each in rows.rows],
            "past": past,
        },
    )


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def new(request: PageRequest) -> HttpResponse:
    return _take(request, None)


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def change(request: PageRequest, gate_id: str) -> HttpResponse:
    return _take(request, queries.get_gate(request.workspace, gate_id))


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def delete(request: PageRequest, gate_id: str) -> HttpResponse:
    found = queries.get_gate(request.workspace, gate_id)
    asking = Asking(
        title=f"Delete the gate {found.name}?",
        sentence="What it said goes with it, and its open alerts are closed.",
        verb="Delete the gate",
        done=f"The gate {found.name} is gone.",
        crumbs=[("Gates", "gates", ()), (found.name, "gate", (found.id,))],
        then=("gates", ()),
    )
    return confirming.asked(request, asking, lambda: gates.delete(found, now=timezone.now()))


def _take(request: PageRequest, found: Gate | None) -> HttpResponse:
    form: dict[str, Any] = {
        "name": found.name if found else "",
        "schedule": str(found.schedule_id or "") if found else request.GET.get("schedule", ""),
        "rules": json.dumps(found.rules if found else _FIRST_RULES, indent=2),
        "enabled": found.enabled if found else True,
    }
    fault, status = None, 200
    if request.method == "POST":
        form = {name: request.POST.get(name, "").strip() for name in ("name", "schedule", "rules")}
        form["enabled"] = "enabled" in request.POST
        try:
            saved = _save(request, found, form)
        except faults.EXPECTED as error:
            fault, status = faults.shown(error), faults.status_of(error)
        else:
            messages.success(request, f"{saved.name} is saved.")
            return redirect("gate", saved.id)
    return render(
        request,
        "gates/form.html",
        {
            "gate": found,
            "form": form,
            "fault": fault,
            "schedules": list(schedule_queries.of(request.workspace)[:_MOST]),
        },
        status=status,
    )


def _save(request: PageRequest, found: Gate | None, form: dict[str, Any]) -> Gate:
    if not 0 < len(form["name"]) <= gates.MAX_NAME:
        raise _invalid(f"A gate has a name of at most {gates.MAX_NAME} characters.", "name")
    try:
        rules = json.loads(form["rules"])
    except (ValueError, RecursionError):
        raise _invalid("The rules are a JSON list, such as the one that was here.", "rules") from None
    schedule = schedule_queries.get_schedule(request.workspace, form["schedule"]) if form["schedule"] else None
    values = {"name": form["name"], "rules": rules, "schedule": schedule, "enabled": form["enabled"]}
    return gates.create(request.workspace, **values) if found is None else gates.update(found, changes=values)


def _invalid(message: str, field: str) -> ValidationError:
    return ValidationError(
        message, field=field, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=field)]
    )
