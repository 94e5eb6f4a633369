"""Documents: taken in, told apart from what is there already, removed."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from backend.core import paths
from backend.core.errors import ConflictError, ErrorCode
from backend.core.states import DocumentState
from backend.models import Blob, Chunk, Document, Ingestion, KnowledgeBase, Source, SourceSetFile
from backend.services import blobs, indexes, ingestion, set_files

# Bytes that go to the database in one statement.
_BATCH_BYTES = 16 * 1024 * 1024
_BATCH_FILES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """`collection` empty: that of the source."""

    path: str
    data: bytes
    collection: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file that was not taken, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """`documents` are all that were named, also the unchanged. No `ingestion`: nothing had to be read."""

    documents: tuple[Document, ...]
    ingestion: Ingestion | None
    set_files: tuple[SourceSetFile, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A file whose bytes are stored (`blob_hash`; that of nothing for one that is too large)."""

    path: str
    bytes_hash: str
    blob_hash: str
    size: int
    collection: str = ""
    modified_ns: int | None = None


@dataclass(slots=True)
class Intake:
    """Stores bytes batch by batch, so that a folder of any size passes through; documents come at the end."""

    source: Source
    incoming: dict[str, Incoming] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    _waiting: dict[str, bytes] = field(default_factory=dict)
    _n_bytes: int = 0

    def take(self, path: str, data: bytes, *, collection: str = "", modified_ns: int | None = None) -> None:
        if len(data) > settings.MAX_DOCUMENT_BYTES:
            self.take_oversized(path, hashlib.sha256(data).hexdigest(), size=len(data), collection=collection)
            return
        digest = hashlib.sha256(data).hexdigest()
        self._keep(path, digest, digest, size=len(data), collection=collection, modified_ns=modified_ns)
        if digest not in self._waiting:
            self._waiting[digest] = data
            self._n_bytes += len(data)
        if self._n_bytes >= _BATCH_BYTES or len(self._waiting) >= _BATCH_FILES:
            self.flush()

    def take_oversized(
        self, path: str, bytes_hash: str, *, size: int, collection: str = "", modified_ns: int | None = None
    ) -> None:
        """A file above the limit: it becomes a failed document, its bytes are not kept."""
        self._waiting.setdefault(blobs.EMPTY, b"")
        self._keep(path, bytes_hash, blobs.EMPTY, size=size, collection=collection, modified_ns=modified_ns)

    def _keep(
        self, path: str, bytes_hash: str, blob_hash: str, *, size: int, collection: str, modified_ns: int | None
    ) -> None:
        self.incoming[path] = Incoming(
            path=path,
            bytes_hash=bytes_hash,
            blob_hash=blob_hash,
            size=size,
            collection=collection or self.source.collection,
            modified_ns=modified_ns,
        )

    def flush(self) -> None:
        blobs.store(self.source.knowledge_base.workspace, self._waiting)
        self.stored.update(self._waiting)
        self._waiting.clear()
        self._n_bytes = 0


def add_many(source: Source, files: Iterable[UploadedFile]) -> Added:
    """Take uploaded files. Those whose bytes are there already are left alone, one that is too large becomes a failed
    document, hidden ones are skipped and told, and the question sets among them are read as such."""
    intake, skipped, found = Intake(source), list[Skipped](), list[SourceSetFile]()
    for file in files:
        try:
            path = paths.clean(file.path)
        except paths.PathError as error:
            skipped.append(Skipped(path=_printable(file.path), reason=str(error)))
            continue
        if paths.is_set_file(path):
            found.append(set_files.record(source, path, file.data))
        elif paths.is_hidden(path):
            skipped.append(Skipped(path=path, reason="Hidden files and folders are not indexed."))
        else:
            intake.take(path, file.data, collection=file.collection)
    documents, started = store(intake)
    return Added(documents=documents, ingestion=started, set_files=tuple(found), skipped=tuple(skipped))


def store_sync(intake: Intake, *, n_unchanged: int, n_removed: int) -> Ingestion:
    """As `store`, for a sync: it is always a round, which tells what was unchanged and what was removed."""
    intake.flush()
    _regroup(intake)
    with transaction.atomic():
        stored = _store(intake)
        started = ingestion.start(
            intake.source.knowledge_base,
            stored.fresh,
            source=intake.source,
            n_unchanged=stored.n_same + n_unchanged,
            n_removed=n_removed,
        )
    _let_go(intake, stored)
    return started


def store(intake: Intake) -> tuple[tuple[Document, ...], Ingestion | None]:
    """Make documents of what was taken in, and start reading those that are new or changed, in one transaction."""
    intake.flush()
    _regroup(intake)
    base, source = intake.source.knowledge_base, intake.source
    with transaction.atomic():
        stored = _store(intake)
        started = None
        if stored.fresh:
            started = ingestion.start(base, stored.fresh, source=source, n_unchanged=stored.n_same)
    _let_go(intake, stored)
    return tuple(sorted(stored.named, key=lambda one: one.path)), started


def is_unchanged(document: Document, bytes_hash: str) -> bool:
    """Whether there is nothing to read again: the same bytes, and no failure that another try could mend."""
    if document.bytes_hash != bytes_hash:
        return False
    if document.code == ErrorCode.DOCUMENT_TOO_LARGE and document.size <= settings.MAX_DOCUMENT_BYTES:
        return Blob.objects.filter(documents=document.id, sha256=bytes_hash).exists()  # else the limit was raised
    return document.state != DocumentState.FAILED or document.code.startswith("DOCUMENT_")


def remove(document: Document) -> None:
    """Remove a document, its passages in every Index, and its bytes when no other document has the same."""
    remove_many([document.id])


def remove_many(ids: Collection[UUID]) -> int:
    """Remove documents by id; each Index that held one gets a new generation. Returns how many there were."""
    n_removed = 0
    ordered = sorted(set(ids))
    for start in range(0, len(ordered), 500):
        part = ordered[start : start + 500]
        with transaction.atomic():
            for index in indexes.hold(part):
                indexes.take_out(index, part)
            blob_ids = list(Document.objects.filter(id__in=part).values_list("blob_id", flat=True))
            Chunk.objects.filter(document__in=part).delete()
            n_removed += Document.objects.filter(id__in=part).only("id").delete()[1].get("backend.Document", 0)
        blobs.delete_unused(blob_ids)
    return n_removed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The documents to read, the number of those that need it not, all that were named, and the blobs let go of."""

    fresh: list[Document]
    n_same: int
    named: list[Document]
    replaced: set[UUID]


def _store(intake: Intake) -> _Stored:
    source, incoming = intake.source, intake.incoming
    base = source.knowledge_base
    # One at a time per base: two uploads of one path would both find it missing.
    KnowledgeBase.objects.select_for_update(no_key=True).get(id=base.id)
    held = blobs.hold(base.workspace, {one.blob_hash for one in incoming.values()})
    there = Document.objects.filter(source=source, path__in=list(incoming))
    existing = {one.path: one for one in indexes.locked(there).defer("text", "marks")}
    new: list[Document] = []
    changed: list[Document] = []
    replaced = {one.blob_id for one in existing.values()}
    n_same = 0
    for path, one in sorted(incoming.items()):
        blob_id = held.get(one.blob_hash)
        if blob_id is None:
            raise ConflictError(f"{path} was removed elsewhere while it was being added. Send it again.")
        document = existing.get(path)
        if document is not None and is_unchanged(document, one.bytes_hash):
            n_same += 1
            if document.modified_ns != one.modified_ns:
                Document.objects.filter(id=document.id).update(modified_ns=one.modified_ns)
            continue
        if document is None:
            document = Document(source=source, knowledge_base=base, path=path, collection=one.collection)
            new.append(document)
        else:
            changed.append(document)
        _fill(document, one, blob_id)
    Document.objects.bulk_create(new, batch_size=500)
    Document.objects.bulk_update(
        sorted(changed, key=lambda one: one.id),
        ["blob", "bytes_hash", "size", "modified_ns", "state", "code", "reason", "updated_at"],
        batch_size=200,
    )
    return _Stored(
        fresh=[*new, *changed],
        n_same=n_same,
        named=[*existing.values(), *new],
        replaced=replaced if changed else set(),
    )


def _let_go(intake: Intake, stored: _Stored) -> None:
    """Delete what no document needs: what was replaced, and the bytes of a path that came twice."""
    unused = intake.stored - {one.blob_hash for one in intake.incoming.values()}
    blobs.delete_unused(stored.replaced | blobs.ids_of(intake.source.knowledge_base.workspace, unused))


def _regroup(intake: Intake) -> None:
    """Documents whose collection is another now: it is copied on their passages, which every search filters by. Ahead
    of the transaction that locks documents: here the Indexes are locked first."""
    incoming = intake.incoming
    there = Document.objects.filter(source=intake.source, path__in=list(incoming)).only("id", "path", "collection")
    by_collection: dict[str, list[UUID]] = {}
    for document in there:
        wanted = incoming[document.path].collection
        if wanted != document.collection:
            by_collection.setdefault(wanted, []).append(document.id)
    for collection, ids in by_collection.items():
        with transaction.atomic():
            held = indexes.hold(ids)
            Chunk.objects.filter(document__in=ids).update(collection=collection)
            Document.objects.filter(id__in=ids).update(collection=collection)
            for index in held:
                indexes.next_generation(index)


def _fill(document: Document, one: Incoming, blob_id: UUID) -> None:
    document.blob_id = blob_id
    document.bytes_hash, document.size, document.modified_ns = one.bytes_hash, one.size, one.modified_ns
    document.state, document.code, document.reason = DocumentState.PENDING, "", ""
    document.updated_at = timezone.now()
    if one.blob_hash != one.bytes_hash:
        limit = settings.MAX_DOCUMENT_BYTES / (1024 * 1024)
        document.state, document.code = DocumentState.FAILED, ErrorCode.DOCUMENT_TOO_LARGE
        document.reason = f"The file has {one.size:,} bytes; the limit is {limit:,.6g} MiB."


def _printable(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")[:300]
