"""Knowledge bases: all of them, a new one, the sample, a base's settings and Indexes, its end."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from backend.models import KnowledgeBase, Scope
from backend.queries import knowledge
from backend.queries.knowledge import BaseRow
from backend.services import base_changes, base_settings, knowledge_bases, samples
from backend.services.base_changes import Preview
from console import faults, paging, settings_form
from console.access import PageRequest, page

N_BASES = 24


@page()
def every(request: PageRequest) -> HttpResponse:
    rows = paging.cut(request, knowledge.bases_of(request.workspace), limit=N_BASES)
    return render(
        request,
        "bases/list.html",
        {"rows": rows, "bases": knowledge.base_rows(rows.rows), "has_sample": samples.is_there()},
    )


@page(Scope.WRITE, post=Scope.WRITE)
def new(request: PageRequest) -> HttpResponse:
    context: dict[str, Any] = {"form": settings_form.filled({}), "languages": base_settings.languages(), "name": ""}
    if request.method == "POST":
        context |= {"form": settings_form.typed(request.POST), "name": request.POST.get("name", "")}
        try:
            made = knowledge_bases.create(
                request.workspace, name=context["name"], settings=settings_form.read(request.POST)
            )
        except faults.EXPECTED as error:
            context["fault"] = faults.shown(error)
            return render(request, "bases/new.html", context, status=faults.status_of(error))
        messages.success(request, f"{made.name} is there. Give it documents.")
        return redirect("base", made.id)
    return render(request, "bases/new.html", context)


@page(None, post=Scope.WRITE)
def sample(request: PageRequest) -> HttpResponse:
    """Load the sample handbook, and go to its base."""
    ingestion = samples.load(request.workspace)
    messages.success(request, "The sample handbook is being read. It brings two question sets to ask.")
    return redirect("base", ingestion.knowledge_base_id)


@page(post=Scope.WRITE)
def settings(request: PageRequest, base_id: str) -> HttpResponse:
    """A change says what it will rebuild, and is made when that is confirmed; one that rebuilds nothing is made at
    once."""
    base = knowledge.get_base(request.workspace, base_id)
    context: dict[str, Any] = {
        "form": settings_form.filled(base.settings),
        "name": base.name,
        "languages": base_settings.languages(),
    }
    if request.method != "POST":
        return _shown(request, base, context)
    context |= {"form": settings_form.typed(request.POST), "name": request.POST.get("name", "")}
    given = settings_form.read(request.POST)
    try:
        preview = base_changes.preview(base, given)
        if _needs_asking(request, preview):
            return _shown(request, base, {**context, "preview": preview})
        changed = knowledge_bases.patch(base, name=context["name"], settings=given)
    except faults.EXPECTED as error:
        return _shown(request, base, {**context, "fault": faults.shown(error)}, status=faults.status_of(error))
    messages.success(
        request,
        "Saved. A new Index is being built; the live one serves until it is ready." if changed.ingestion else "Saved.",
    )
    return redirect("base", base.id)


@page()
def indexes(request: PageRequest, base_id: str) -> HttpResponse:
    base = knowledge.get_base(request.workspace, base_id)
    rows = paging.cut(request, knowledge.indexes_of(base), limit=20)
    return render(request, "bases/indexes.html", {**head(base), "rows": rows, "live_id": base.live_index_id})


@page(Scope.WRITE, post=Scope.WRITE)
def delete(request: PageRequest, base_id: str) -> HttpResponse:
    """Asks first, saying what goes and what stays."""
    base = knowledge.get_base(request.workspace, base_id)
    context = {**head(base), "n_open": knowledge_bases.open_evaluations(base).count()}
    if request.method == "POST":
        try:
            knowledge_bases.delete(base, force=bool(request.POST.get("force")))
        except faults.EXPECTED as error:
            context["fault"] = faults.shown(error)
            return render(request, "bases/delete.html", context, status=faults.status_of(error))
        messages.success(request, f"{base.name} is gone. Its runs stay in the history.")
        return redirect("bases")
    return render(request, "bases/delete.html", context)


def head(base: KnowledgeBase) -> dict[str, Any]:
    """What the head of each of a base's pages shows: five queries."""
    row: BaseRow = knowledge.base_row(base)
    return {"base": base, "row": row, "is_working": _is_working(row)}


def _is_working(row: BaseRow) -> bool:
    return row.is_rebuilding or row.n_pending > 0


def _needs_asking(request: HttpRequest, preview: Preview) -> bool:
    return preview.rebuilds and request.POST.get("agreed") != "yes"


def _shown(request: HttpRequest, base: KnowledgeBase, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return render(request, "bases/settings.html", {**head(base), **context}, status=status)
