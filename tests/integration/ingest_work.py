"""Ingest slices worked on in the test's own process: claimed, run and closed as a worker does it."""

from collections.abc import Mapping

from backend.core.states import OPEN_SLICES, SliceKind
from backend.models import Document, KnowledgeBase, Slice, Source, Workspace
from backend.services import documents, ingestion, knowledge_bases, pump, slices, sources
from backend.services.documents import Added, UploadedFile
from backend.services.slices import Lease

WORDS_ONLY = {"embedding": {"embedder": "none"}}


def new_base(settings: dict[str, object] | None = None, *, name: str = "handbook") -> KnowledgeBase:
    workspace, _ = Workspace.objects.get_or_create(name="test")
    return knowledge_bases.create(workspace, name=name, settings=WORDS_ONLY if settings is None else settings)


def upload(base: KnowledgeBase, files: Mapping[str, str | bytes], *, collection: str = "") -> Added:
    return documents.add_many(
        sources.upload_area(base),
        [
            UploadedFile(path=path, data=data.encode() if isinstance(data, str) else data, collection=collection)
            for path, data in files.items()
        ],
    )


def claim_next() -> Lease | None:
    """The next slice that can be handed out, whatever the broker did with its doorbell."""
    pump.run()
    for waiting in Slice.objects.filter(state="queued", kind=SliceKind.INGEST).order_by("id"):
        lease = slices.claim(waiting.id, delivery=waiting.delivery)
        if lease is not None:
            return lease
    return None


def work() -> int:
    """Run every open ingest slice to its end. Returns how many there were."""
    n_slices = 0
    while (lease := claim_next()) is not None:
        ingestion.run(lease)
        if lease.ingestion_id is not None:
            ingestion.finish_if_done(lease.ingestion_id)
        n_slices += 1
    if Slice.objects.filter(kind=SliceKind.INGEST, state__in=OPEN_SLICES).exists():
        raise AssertionError("slices are left over")
    return n_slices


def ingest(base: KnowledgeBase, files: Mapping[str, str | bytes], *, collection: str = "") -> Added:
    added = upload(base, files, collection=collection)
    work()
    base.refresh_from_db()
    return added


def states(base: KnowledgeBase) -> dict[str, tuple[str, str]]:
    rows = Document.objects.filter(knowledge_base=base).values_list("path", "state", "code")
    return {path: (state, code) for path, state, code in rows}


def folder_source(base: KnowledgeBase, folder: object, *, name: str = "docs") -> Source:
    return sources.create(base, name=name, kind="folder", folder=str(folder))
