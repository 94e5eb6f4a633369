"""A base's documents: listed with state and reason, uploaded, removed. The first page of a base."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import RequestDataTooBig, TooManyFilesSent
from django.core.files.uploadedfile import UploadedFile as Part
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from backend.core.errors import ErrorCode, TouchstoneError, ValidationError
from backend.core.states import OPEN_INGESTIONS, DocumentState
from backend.models import Ingestion, KnowledgeBase, Scope, Source, SourceKind
from backend.queries import knowledge, questions
from backend.services import documents, sources
from backend.services.documents import Added, UploadedFile
from console import bases, confirming, faults, paging
from console.access import PageRequest, page
from console.confirming import Asking

N_DOCUMENTS = 100
_MOST_TOLD = 5
# The script sends files in batches, and wants to know of each what came of it.
_BATCH = "X-Upload"


@page()
def every(request: PageRequest, base_id: str) -> HttpResponse:
    """Filtered by `state`, `source`, `collection` and a part of the `path`."""
    base = knowledge.get_base(request.workspace, base_id)
    wanted = {name: request.GET.get(name, "") for name in ("state", "source", "collection", "path")}
    if wanted["state"] and wanted["state"] not in set(DocumentState):
        raise ValidationError(f"state is one of {', '.join(DocumentState)}, not {wanted['state']!r}.", field="state")
    found = knowledge.documents_of(
        base,
        state=wanted["state"],
        source=wanted["source"] or None,
        collection=wanted["collection"],
        path=wanted["path"],
    )
    return render(
        request,
        "bases/documents.html",
        {
            **bases.head(base),
            "rows": paging.cut(request, found, order=("path", "id"), limit=N_DOCUMENTS),
            "wanted": wanted,
            "is_filtered": any(wanted.values()),
            "sources": list(knowledge.sources_of(base)[:50]),
            "set_files": list(questions.set_files_of(base)[:20]),
            "rounds": _open_rounds(base),
            "most_bytes": settings.MAX_DOCUMENT_BYTES,
        },
    )


@page()
def progress(request: PageRequest, base_id: str) -> HttpResponse:
    """How far the reading is: asked again by itself as long as it goes on."""
    base = knowledge.get_base(request.workspace, base_id)
    rounds = _open_rounds(base)
    answer = render(request, "bases/progress.html", {"base": base, "rounds": rounds, "was_open": True})
    if not rounds:
        # The lists behind it changed: the page is asked for anew.
        answer.headers["HX-Refresh"] = "true"
    return answer


@page(None, post=Scope.WRITE)
def upload(request: PageRequest, base_id: str) -> HttpResponse:
    base = knowledge.get_base(request.workspace, base_id)
    is_batch = _BATCH in request.headers
    try:
        area = sources.upload_area(base, name=request.POST.get("source", "").strip() or "uploads")
        added = documents.add_many(area, _files(request))
    except (*faults.EXPECTED, RequestDataTooBig, TooManyFilesSent) as error:
        message = getattr(error, "message", "") or "These are too many files, or too large, for one go: send fewer."
        if is_batch:
            return JsonResponse({"error": message}, status=422)
        messages.error(request, message)
        return redirect("base", base.id)
    for kind, text in _told(added):
        messages.add_message(request, kind, text)
    return JsonResponse({"n": len(added.documents)}) if is_batch else redirect("base", base.id)


@page(Scope.WRITE, post=Scope.WRITE)
def delete(request: PageRequest, base_id: str, document_id: str) -> HttpResponse:
    base = knowledge.get_base(request.workspace, base_id)
    document = knowledge.get_document(base, document_id)
    asking = Asking(
        title=f"Remove {document.path}?",
        sentence="Its passages go from every Index, and questions that expect it will miss.",
        note="" if document.source.kind == SourceKind.UPLOAD else _COMES_BACK,
        verb="Remove the document",
        done=f"{document.path} is gone, with its passages.",
        crumbs=[("Knowledge bases", "bases", ()), (base.name, "base", (base.id,))],
        then=("base", (base.id,)),
    )
    return confirming.asked(request, asking, lambda: documents.remove(document))


_COMES_BACK = "It lies in a folder that is synced: unless it is deleted there, the next sync brings it back."


def _files(request: PageRequest) -> Iterator[UploadedFile]:
    """Each file with its path: the script sends the one inside the dropped folder, a plain form only the name."""
    parts: list[Part[Any]] = request.FILES.getlist("file")
    if not parts:
        raise ValidationError("Choose at least one file.", field="file")
    paths = request.POST.getlist("path")
    if len(paths) != len(parts):
        paths = [str(part.name) for part in parts]
    collection = request.POST.get("collection", "").strip()
    if len(collection) > 200:
        raise TouchstoneError(ErrorCode.VALIDATION, "A collection is a text of at most 200 characters.")
    for part, path in zip(parts, paths, strict=True):
        yield UploadedFile(path=path, data=part.read(), collection=collection)


def _told(added: Added) -> Iterator[tuple[int, str]]:
    n_read = added.ingestion.n_documents if added.ingestion is not None else 0
    n_same = len(added.documents) - n_read
    if n_read:
        yield messages.SUCCESS, f"{n_read} document{_s(n_read)} taken in. Reading goes on in the background."
    if n_same:
        yield messages.INFO, f"{n_same} of the files were there already, unchanged."
    for file in added.set_files:
        said = f"{file.n_questions} questions" if not file.code else f"{file.reason} ({file.code})"
        yield (messages.ERROR if file.code else messages.SUCCESS), f"The question set {file.path}: {said}"
    for one in added.skipped[:_MOST_TOLD]:
        yield messages.WARNING, f"{one.path} was not taken: {one.reason}"
    if len(added.skipped) > _MOST_TOLD:
        yield messages.WARNING, f"{len(added.skipped) - _MOST_TOLD} more files were not taken."


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _open_rounds(base: KnowledgeBase) -> list[dict[str, Any]]:
    """The rounds of reading that are not over, with how far they are."""
    found: list[dict[str, Any]] = []
    for one in knowledge.ingestions_of(base).filter(state__in=OPEN_INGESTIONS)[:3]:
        told = knowledge.ingestion_progress(one)
        found.append({"name": _name(one), "told": told, "n_done": told.n_documents - told.n_pending})
    return found


def _name(ingestion: Ingestion) -> str:
    source: Source | None = ingestion.source
    return f"Reading {source.name}" if source is not None else "Building a new Index"
