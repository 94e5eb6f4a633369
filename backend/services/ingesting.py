"""The work of one ingest slice: its documents read, cut, embedded and put into the Index, batch by batch."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.utils import timezone

from backend import logs
from backend.core.errors import DocumentError, ErrorCode
from backend.core.states import DocumentState, IndexState, IngestionState
from backend.models import Document, Index, IndexedDocument, Ingestion, KnowledgeBase, Slice
from backend.providers.base import ProviderError, ProviderFault
from backend.readers.reading import READER_VERSION
from backend.search import providers
from backend.search.pacing import PacedError
from backend.services import base_settings, indexes, preparing, provider_states, pump, slices
from backend.services.indexes import Entry
from backend.services.preparing import DocumentGoneError, Draft, Preparer
from backend.services.slices import Lease, LeaseLostError

_BATCH_DOCUMENTS, _BATCH_SECONDS = 500, 10.0
# Texts that are embedded together: enough that the embedder can sort them by length.
_TEXTS_TOGETHER = 256
# A slice that is nearly out of time hands the rest on rather than being taken for dead.
_SPARE_SECONDS = 60.0
# Each pass embeds for minutes: a document that is not done after so many is too large for this model.
_MOST_PASSES = 50
_log = logs.get("ingestion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A document that cannot be indexed, as it was when that was found out."""

    document: Document
    code: str
    reason: str


class _OutOfTimeError(Exception):
    """The slice's time is nearly up."""


@dataclass(slots=True)
class _Round:
    """What is done of a slice and not yet committed."""

    lease: Lease
    index: Index
    drafts: list[Draft] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    read: list[Draft] = field(default_factory=list)
    faults: list[Failed] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        """Raises LeaseLostError, or _OutOfTimeError."""
        self.lease.check()
        if self.lease.seconds_left < _SPARE_SECONDS:
            raise _OutOfTimeError

    def before_call(self) -> None:
        """Also raises ProviderError while the provider is held, or when it stayed away."""
        self.look()
        spec = base_settings.embedder_of(self.index.settings)
        if providers.describe_embedder(spec, workspace_id=self.lease.workspace_id).local:
            return
        standing = provider_states.check(self.lease, spec)
        if standing.gave_up:
            raise ProviderError(ProviderFault.SERVER, provider_states.gave_up_on(spec, standing))

    def fail(self, document: Document, code: str, reason: str) -> None:
        self.faults.append(Failed(document=document, code=code, reason=reason))

    @property
    def done(self) -> set[UUID]:
        return {entry.document.id for entry in self.entries} | {one.document.id for one in self.faults}

    @property
    def is_due(self) -> bool:
        n_done = len(self.entries) + len(self.faults)
        return n_done >= _BATCH_DOCUMENTS or (n_done > 0 and time.monotonic() - self.since > _BATCH_SECONDS)

    def commit(self, *, finish: bool = False, hand_on: Sequence[UUID] = (), n_passes: int = 0) -> None:
        with slices.commit(self.lease, finish=finish):
            write(self.index.id, entries=self.entries, read=self.read, faults=self.faults)
            if hand_on:
                _hand_on(self.lease, hand_on, n_passes=n_passes)
        self.entries, self.read, self.faults = [], [], []
        self.since = time.monotonic()


def run(lease: Lease) -> None:
    """Index the slice's documents. Committed work stays when it is interrupted, and is not done again.

    Raises ProviderError when trying again can help (the slice goes back), LeaseLostError when it is not ours any more.
    """
    ingestion = Ingestion.objects.select_related("index").filter(slices=lease.slice_id).first()
    if ingestion is None:
        raise LeaseLostError(str(lease.slice_id))  # the base was deleted
    Ingestion.objects.filter(id=ingestion.id, state=IngestionState.QUEUED).update(state=IngestionState.RUNNING)
    index = ingestion.index
    work = _Round(lease, index)
    todo = _open(index, [UUID(one) for one in lease.payload.get("documents", ())])
    n_passes = int(lease.payload.get("passes", 0))
    n_chunks = 0
    preparer = Preparer(index.settings, workspace_id=lease.workspace_id, ingestion_id=ingestion.id)
    try:
        for position, document_id in enumerate(todo):
            work.look()
            is_last_try = n_passes >= _MOST_PASSES and position == 0
            n_chunks += _read(work, preparer, document_id, is_last_try=is_last_try)
            if n_chunks >= _TEXTS_TOGETHER or len(work.drafts) >= _BATCH_DOCUMENTS:
                _embed(work, preparer)
                n_chunks = 0
            if work.is_due and not work.drafts:
                work.commit()
        _embed(work, preparer)
    except _OutOfTimeError:
        left = [one for one in _open(index, todo) if one not in work.done]
        work.commit(finish=True, hand_on=left, n_passes=n_passes + 1)
        pump.ring_later()
        return
    except ProviderError as error:
        if not isinstance(error, PacedError):
            provider_states.failed(lease.workspace_id, base_settings.embedder_of(index.settings), error)
        if error.retryable:
            work.commit()
            raise
        _fail_rest(work, todo, error)
    work.commit(finish=True)


def write(
    index_id: UUID,
    *,
    entries: Iterable[Entry] = (),
    read: Iterable[Draft] = (),
    faults: Iterable[Failed] = (),
) -> None:
    """Put what is done into the Index and on the documents; inside a transaction.

    Documents that were removed or changed meanwhile are left out: a later slice has them. An Index that is not
    wanted any more takes nothing.
    """
    index = indexes.lock(index_id)
    if index is None or index.state not in {IndexState.BUILDING, IndexState.READY}:
        return
    entries, faults, read = list(entries), list(faults), list(read)
    live = KnowledgeBase.objects.filter(id=index.knowledge_base_id).values_list("live_index", flat=True).get()
    shown = live in {None, index.id}
    ids = {
        *(entry.document.id for entry in entries),
        *(one.document.id for one in faults),
        *(draft.document.id for draft in read),
    }
    there = indexes.locked(Document.objects.filter(id__in=ids)).only("id", "bytes_hash", "collection")
    now_there = {one.id: one for one in there}

    def is_current(document: Document) -> bool:
        now = now_there.get(document.id)
        return now is not None and now.bytes_hash == document.bytes_hash

    entries = [entry for entry in entries if is_current(entry.document)]
    for entry in entries:
        # It may have moved to another collection since it was read, and its passages have a copy.
        entry.document.collection = now_there[entry.document.id].collection
    faults = [one for one in faults if is_current(one.document)]
    indexes.put_in(index, entries, instead_of=[one.document.id for one in faults])
    for draft in read:
        if is_current(draft.document):
            _store_text(draft)
    if shown:
        Document.objects.filter(id__in=[entry.document.id for entry in entries]).update(
            state=DocumentState.INDEXED, code="", reason="", updated_at=timezone.now()
        )
    for one in faults:
        # While another Index is live its states are shown; the code waits for the switch (services/ingestion).
        state = {"state": DocumentState.FAILED} if shown else {}
        Document.objects.filter(id=one.document.id).update(
            **state, code=one.code, reason=one.reason, updated_at=timezone.now()
        )
        if not shown and not one.code.startswith("DOCUMENT_"):
            Index.objects.filter(id=index.id).update(code=one.code, reason=one.reason)


def _open(index: Index, ids: Sequence[UUID]) -> list[UUID]:
    """Those of the documents that the Index does not hold as they are now."""
    held = dict(IndexedDocument.objects.filter(index=index, document__in=ids).values_list("document", "bytes_hash"))
    done = {
        one.id
        for one in Document.objects.filter(id__in=list(held)).only("id", "bytes_hash")
        if held[one.id] == one.bytes_hash
    }
    return [one for one in ids if one not in done]


def _read(work: _Round, preparer: Preparer, document_id: UUID, *, is_last_try: bool) -> int:
    """Read and cut a document, if it is still there. Returns the number of its passages."""
    document = Document.objects.select_related("source").defer("text", "marks").filter(id=document_id).first()
    if document is None:
        return 0
    if is_last_try:
        reason = f"The document could not be embedded in {_MOST_PASSES} passes."
        work.fail(document, ErrorCode.DOCUMENT_TOO_LARGE, reason)
        return 0
    try:
        draft = preparer.draft(document)
    except DocumentGoneError:
        return 0
    except DocumentError as error:
        work.fail(document, error.code, error.message)
        return 0
    if draft.fresh:
        work.read.append(draft)
    work.drafts.append(draft)
    return len(draft.spans)


def _embed(work: _Round, preparer: Preparer) -> None:
    drafts = work.drafts
    if not drafts:
        return
    try:
        _embed_together(work, preparer, drafts)
    except ProviderError as error:
        if error.retryable or error.fatal:
            raise
        # One text may be what the provider refuses: the others shall not fail with it.
        for draft in drafts:
            try:
                _embed_together(work, preparer, [draft])
            except ProviderError as alone:
                if alone.retryable or alone.fatal:
                    raise
                work.fail(draft.document, alone.code, alone.message)
    work.drafts = []


def _embed_together(work: _Round, preparer: Preparer, drafts: Sequence[Draft]) -> None:
    vectors = preparer.embed([text for draft in drafts for text in draft.texts], before_call=work.before_call)
    if vectors and work.index.dimensions is not None and len(vectors[0]) != work.index.dimensions:
        raise ProviderError(
            ProviderFault.SHAPE,
            f"The model now gives {len(vectors[0])} dimensions, this Index has {work.index.dimensions}.",
        )
    if vectors:
        provider_states.succeeded(work.lease.workspace_id, base_settings.embedder_of(work.index.settings))
    start = 0
    for draft in drafts:
        end = start + len(draft.spans)
        work.entries.append(
            Entry(
                document=draft.document,
                text=draft.extracted.text,
                spans=draft.spans,
                vectors=None if vectors is None else vectors[start:end],
            )
        )
        start = end


def _fail_rest(work: _Round, todo: Sequence[UUID], error: ProviderError) -> None:
    """A fault that no other document can escape: what is not done ends with it, untried."""
    still_open = [one for one in _open(work.index, todo) if one not in work.done]
    for document in Document.objects.filter(id__in=still_open).only("id", "bytes_hash"):
        work.fail(document, error.code, error.message)
    _log.warning("ingestion_stopped", ingestion=str(work.lease.ingestion_id), code=error.code, n_failed=len(still_open))


def _store_text(draft: Draft) -> None:
    Document.objects.filter(id=draft.document.id).update(
        text=draft.extracted.text,
        text_hash=draft.document.bytes_hash,
        marks=preparing.marks_as_json(draft.extracted),
        reader=READER_VERSION,
    )


def _hand_on(lease: Lease, documents: Sequence[UUID], *, n_passes: int) -> None:
    Slice.objects.create(
        workspace_id=lease.workspace_id,
        ingestion_id=lease.ingestion_id,
        kind=lease.kind,
        lane=lease.lane,
        quarantined=lease.quarantined,
        payload={"documents": [str(one) for one in documents], "passes": n_passes},
    )
