"""Baselines: those in force, those that were; a run approved, a baseline retired."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from backend.models import Scope
from backend.queries import baselines as queries
from backend.queries.lookups import as_uuid
from backend.services import baselines
from console import confirming, faults, paging
from console.access import PageRequest, page
from console.confirming import Asking


@page()
def every(request: PageRequest) -> HttpResponse:
    retired = request.GET.get("retired") == "1"
    rows = paging.cut(request, queries.of(request.workspace, retired=retired))
    shown = {"rows": rows, "baselines": queries.rows(rows.rows), "retired": retired}
    return render(request, "baselines/list.html", shown)


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def approve(request: PageRequest, run_id: str) -> HttpResponse:
    """A person says so, on a page of its own: it is what all later runs are held to."""
    run = queries.get_run(request.workspace, run_id)
    fault, status = None, 200
    if request.method == "POST":
        try:
            made = baselines.approve(
                request.workspace,
                as_uuid(run_id, what="run"),
                approved_by=request.user.get_username(),
                now=timezone.now(),
                label=request.POST.get("label", "").strip(),
            )
        except faults.EXPECTED as error:
            fault, status = faults.shown(error), faults.status_of(error)
        else:
            messages.success(request, f"{made.name} on {made.set_name} is the baseline now.")
            return redirect("baselines")
    known = baselines.in_force(request.workspace, [run]).get(run.id)
    return render(
        request,
        "baselines/approve.html",
        {"run": run, "known": known, "why_not": baselines.why_not(run), "fault": fault},
        status=status,
    )


@page(Scope.SCHEDULES, post=Scope.SCHEDULES)
def retire(request: PageRequest, baseline_id: str) -> HttpResponse:
    found = queries.get_baseline(request.workspace, baseline_id)
    asking = Asking(
        title=f"Retire the baseline {found.name}?",
        sentence=f"Gates that compare with it ({found.set_name}) fail until another run is approved.",
        note="Its run stays, and may be retried and deleted again.",
        verb="Retire it",
        done=f"{found.name} on {found.set_name} is no baseline any more.",
        crumbs=[("Baselines", "baselines", ())],
        then=("baselines", ()),
    )
    return confirming.asked(request, asking, lambda: baselines.retire(request.workspace, found.id, now=timezone.now()))
