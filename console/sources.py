"""A base's sources: upload areas, and folders of the server that are read again."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from backend.models import Scope, SourceKind
from backend.queries import knowledge, questions
from backend.services import sources
from console import bases, confirming, faults, paging
from console.access import PageRequest, page
from console.confirming import Asking

_FIELDS = ("name", "kind", "folder", "collection")


@page(post=Scope.WRITE)
def every(request: PageRequest, base_id: str) -> HttpResponse:
    """Lists them, and takes a new one."""
    base = knowledge.get_base(request.workspace, base_id)
    form = {name: request.POST.get(name, "").strip() for name in _FIELDS}
    fault = None
    status = 200
    if request.method == "POST":
        try:
            made = sources.create(base, **{**form, "kind": form["kind"] or SourceKind.UPLOAD})
        except faults.EXPECTED as error:
            fault, status = faults.shown(error), faults.status_of(error)
        else:
            messages.success(request, f"The source {made.name} is there.")
            return redirect("base-sources", base.id)
    rows = paging.cut(request, knowledge.sources_of(base), order=("name",))
    ids = [source.id for source in rows.rows]
    return render(
        request,
        "bases/sources.html",
        {
            **bases.head(base),
            "rows": rows,
            "set_files": list(questions.set_files_of(base).filter(source__in=ids)[:100]),
            "form": form,
            "fault": fault,
        },
        status=status,
    )


@page(None, post=Scope.WRITE)
def sync(request: PageRequest, base_id: str, source_id: str) -> HttpResponse:
    base = knowledge.get_base(request.workspace, base_id)
    source = knowledge.get_source(base, source_id)
    try:
        started = sources.sync(source)
    except faults.EXPECTED as error:
        messages.error(request, error.message)
        return redirect("base-sources", base.id)
    messages.success(
        request,
        f"{source.name} was read: {started.n_documents} new or changed, {started.n_unchanged} unchanged, "
        f"{started.n_removed} removed.",
    )
    return redirect("base", base.id)


@page(Scope.WRITE, post=Scope.WRITE)
def delete(request: PageRequest, base_id: str, source_id: str) -> HttpResponse:
    base = knowledge.get_base(request.workspace, base_id)
    source = knowledge.get_source(base, source_id)
    n_documents: int = source.documents.count()
    asking = Asking(
        title=f"Delete the source {source.name}?",
        sentence=f"All its documents ({n_documents:,}), their passages and its question-set files go with it.",
        note="The folder on the server stays as it is." if source.kind == SourceKind.FOLDER else "",
        verb="Delete the source",
        done=f"The source {source.name} is gone, with its documents.",
        crumbs=[
            ("Knowledge bases", "bases", ()),
            (base.name, "base", (base.id,)),
            ("Sources", "base-sources", (base.id,)),
        ],
        then=("base-sources", (base.id,)),
    )
    return confirming.asked(request, asking, lambda: sources.delete(source))
