"""Rounds of reading and indexing: begun, worked on slice by slice, closed.

Locks are taken in one order everywhere: slice, ingestion, Indexes, base, documents, blobs; several rows of a kind in
the order of their ids.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, OuterRef
from django.utils import timezone

from backend.core import configs
from backend.core.errors import ConflictError, ErrorCode
from backend.core.states import (
    OPEN_INGESTIONS,
    OPEN_SLICES,
    DocumentState,
    IndexState,
    IngestionState,
    Lane,
    SliceKind,
    SliceState,
)
from backend.models import Document, Index, IndexedDocument, Ingestion, KnowledgeBase, Slice, Source
from backend.services import base_settings, indexes, ingesting, pump, slices

# So that progress is fine-grained and a lost slice costs little.
_SLICE_DOCUMENTS, _SLICE_BYTES = 32, 2 * 1024 * 1024

run = ingesting.run


def start(
    base: KnowledgeBase,
    documents: Iterable[Document],
    *,
    source: Source | None = None,
    n_unchanged: int = 0,
    n_removed: int = 0,
) -> Ingestion:
    """Index these documents, in the live Index and in one being built; in a new one, with all that the base holds,
    where there is neither. Returns the round of the live Index, else of the one being built."""
    with transaction.atomic():
        base = KnowledgeBase.objects.select_for_update(no_key=True).get(id=base.id)
        rounds: dict[UUID, Ingestion] = {}
        for index in _targets(base):
            rounds[index.id] = _begin(
                index, documents, source=source, n_unchanged=n_unchanged, n_removed=n_removed, base=base
            )
        if not rounds:
            index = _new_index(base)
            rounds[index.id] = _begin(
                index, _all(base), source=source, n_unchanged=n_unchanged, n_removed=n_removed, base=base, is_new=True
            )
        pump.ring_later()
        return rounds.get(base.live_index_id) or next(iter(rounds.values()))  # type: ignore[arg-type]  # None: no key


def build_index(base: KnowledgeBase) -> Ingestion | None:
    """Make the Index fit the base's settings: build one beside the live one, which goes on serving until the new one
    is ready. None when the live one fits already, or there is nothing to index yet."""
    with transaction.atomic():
        base = lock_base(base)
        wanted = configs.fingerprint(base_settings.of_index(base.settings))
        building = list(Index.objects.filter(knowledge_base=base, state=IndexState.BUILDING).order_by("id"))
        for index in building:
            if index.fingerprint != wanted:
                _retire(index)
        if base.live_index is not None and base.live_index.fingerprint == wanted:
            for index in building:
                _retire(index)
            return None
        for index in building:
            if index.fingerprint == wanted:
                return Ingestion.objects.filter(index=index).order_by("id").first()
        documents = list(_all(base))
        if base.live_index is None and not documents:
            return None
        index = _new_index(base)
        started = _begin(index, documents, base=base, is_new=True)
        pump.ring_later()
        return started


def lock_base(base: KnowledgeBase) -> KnowledgeBase:
    """The base, locked together with its live Index and those being built, Indexes first. Inside a transaction."""
    there = Index.objects.filter(knowledge_base=base, state__in=[IndexState.BUILDING, IndexState.READY])
    for _ in range(5):
        before = transaction.savepoint()
        held = set(there.select_for_update(no_key=True).order_by("id").values_list("id", flat=True))
        fresh = KnowledgeBase.objects.select_for_update(no_key=True).get(id=base.id)
        if set(there.values_list("id", flat=True)) <= held:
            return fresh
        # One was begun in between: let go and lock in order again.
        transaction.savepoint_rollback(before)
    raise ConflictError(f"{base.name} is being changed by many at once. Try again.")


def retry_failed(base: KnowledgeBase) -> Ingestion | None:
    """Try the documents again that failed because of a provider. None when there are none."""
    with transaction.atomic():
        KnowledgeBase.objects.select_for_update(no_key=True).get(id=base.id)
        failed = list(
            indexes.locked(Document.objects.filter(knowledge_base=base, state=DocumentState.FAILED))
            .exclude(code__startswith="DOCUMENT_")
            .only("id", "size", "path")
        )
        if not failed:
            return None
        Document.objects.filter(id__in=[one.id for one in failed]).update(
            state=DocumentState.PENDING, code="", reason="", updated_at=timezone.now()
        )
        return start(base, failed)


def finish_if_done(ingestion_id: UUID) -> bool:
    """Close a round that has no open slice. Called after each slice's own commit, and by the sweeper: two last
    slices that look before they commit would each miss the other."""
    with transaction.atomic():
        ingestion = (
            Ingestion.objects.select_for_update(no_key=True).filter(id=ingestion_id, state__in=OPEN_INGESTIONS).first()
        )
        if ingestion is None or Slice.objects.filter(ingestion=ingestion, state__in=OPEN_SLICES).exists():
            return False
        _complete(ingestion)
    return True


def finish_stale() -> int:
    """Close every round that nobody closed: for the sweeper."""
    open_slices = Slice.objects.filter(ingestion=OuterRef("id"), state__in=OPEN_SLICES)
    stale = Ingestion.objects.filter(~Exists(open_slices), state__in=OPEN_INGESTIONS).order_by("id")
    return sum(finish_if_done(ingestion_id) for ingestion_id in stale.values_list("id", flat=True)[:1000])


def give_up(slice_: Slice, code: str, reason: str) -> None:
    """Fail the documents of a slice that are not done; inside the transaction that closes it, before it is closed."""
    ids = [UUID(one) for one in (slice_.payload or {}).get("documents", ())]
    ingestion = Ingestion.objects.select_related("index").filter(slices=slice_.id).first()
    if ingestion is None or not ids:
        return
    done = IndexedDocument.objects.filter(
        index=ingestion.index_id, document=OuterRef("id"), bytes_hash=OuterRef("bytes_hash")
    )
    open_ = Document.objects.filter(~Exists(done), id__in=ids).only("id", "bytes_hash")
    ingesting.write(
        ingestion.index_id,
        faults=[ingesting.Failed(document=one, code=code, reason=reason) for one in open_],
    )


def on_slice_gone(slice_: Slice, code: str) -> list[Slice]:
    """A slice that keeps killing its workers: each document goes into a slice of its own, in quarantine; one that
    was alone already is given up as unreadable. Inside the transaction that closes the slice, before it is closed.
    Returns the new slices."""
    ids = (slice_.payload or {}).get("documents", ())
    if len(ids) <= 1:
        give_up(
            slice_,
            ErrorCode.DOCUMENT_UNREADABLE,
            f"Reading or embedding this file ended the worker again and again ({code}).",
        )
        return []
    return Slice.objects.bulk_create(
        [_slice(slice_.workspace_id, slice_.ingestion_id, [one], quarantined=True) for one in ids]  # type: ignore[arg-type]
    )


def cancel_all(base: KnowledgeBase) -> None:
    """Stop what is being read for a base that goes."""
    for index in Index.objects.filter(knowledge_base=base, ingestions__state__in=OPEN_INGESTIONS).distinct():
        _cancel_rounds(index)


def _targets(base: KnowledgeBase) -> list[Index]:
    building = Index.objects.filter(knowledge_base=base, state=IndexState.BUILDING)
    live = Index.objects.filter(id=base.live_index_id) if base.live_index_id else Index.objects.none()
    return [*live, *building.order_by("id")]


def _all(base: KnowledgeBase) -> Iterator[Document]:
    return Document.objects.filter(knowledge_base=base).only("id", "size", "path").iterator(chunk_size=2000)


def _new_index(base: KnowledgeBase) -> Index:
    wanted = base_settings.of_index(base.settings)
    return Index.objects.create(knowledge_base=base, settings=wanted, fingerprint=configs.fingerprint(wanted))


def _begin(
    index: Index,
    documents: Iterable[Document],
    *,
    base: KnowledgeBase,
    source: Source | None = None,
    n_unchanged: int = 0,
    n_removed: int = 0,
    is_new: bool = False,
) -> Ingestion:
    ordered = sorted(documents, key=lambda one: one.path)
    ingestion = Ingestion.objects.create(
        workspace_id=base.workspace_id,
        knowledge_base=base,
        index=index,
        source=source,
        n_documents=len(ordered),
        n_unchanged=n_unchanged,
        n_removed=n_removed,
    )
    groups = _groups(ordered)
    Slice.objects.bulk_create(
        [_slice(base.workspace_id, ingestion.id, [str(one.id) for one in group]) for group in groups], batch_size=500
    )
    if not groups:
        if is_new:
            _complete(ingestion)
        else:
            # No need to look at the Index, which must not be locked after the base.
            _end(ingestion, IngestionState.COMPLETED)
        ingestion.refresh_from_db()
    return ingestion


def _slice(workspace_id: UUID, ingestion_id: UUID, documents: Sequence[str], *, quarantined: bool = False) -> Slice:
    return Slice(
        workspace_id=workspace_id,
        ingestion_id=ingestion_id,
        kind=SliceKind.INGEST,
        lane=Lane.SEARCH,
        quarantined=quarantined,
        payload={"documents": list(documents)},
    )


def _groups(documents: Sequence[Document]) -> list[list[Document]]:
    """Small enough that a small upload uses every worker slot, and none much above the limits."""
    most = min(_SLICE_DOCUMENTS, max(4, math.ceil(len(documents) / (2 * settings.SEARCH_SLOTS))))
    groups: list[list[Document]] = []
    n_bytes = 0
    for document in documents:
        if not groups or len(groups[-1]) >= most or n_bytes + document.size > _SLICE_BYTES:
            groups.append([])
            n_bytes = 0
        groups[-1].append(document)
        n_bytes += document.size
    return groups


def _complete(ingestion: Ingestion) -> None:
    """Close a round; it is locked, or nobody else knows of it."""
    # All that a switch changes, in the order of ids.
    open_indexes = Index.objects.filter(
        knowledge_base=ingestion.knowledge_base_id, state__in=[IndexState.BUILDING, IndexState.READY]
    )
    list(open_indexes.select_for_update(no_key=True).order_by("id").values_list("id"))
    index = Index.objects.get(id=ingestion.index_id)
    others = Ingestion.objects.filter(index=index, state__in=OPEN_INGESTIONS).exclude(id=ingestion.id)
    # What an Index began with decides when it is ready; what came later is added to it in place.
    if index.state == IndexState.BUILDING and not others.filter(id__lt=ingestion.id).exists():
        _settle(index, others_open=others.exists())
        index.refresh_from_db()
    if index.state == IndexState.FAILED:
        _end(ingestion, IngestionState.FAILED, code=index.code, reason=index.reason)
    else:
        _end(ingestion, IngestionState.COMPLETED)


def _end(ingestion: Ingestion, state: IngestionState, *, code: str = "", reason: str = "") -> None:
    Ingestion.objects.filter(id=ingestion.id).update(state=state, code=code, reason=reason, finished_at=timezone.now())


def _settle(index: Index, *, others_open: bool) -> None:
    """The Index is all there: it goes live, or failed."""
    base = KnowledgeBase.objects.select_for_update(no_key=True).get(id=index.knowledge_base_id)
    if base.live_index_id is None:
        code, reason = ("", "") if index.n_documents else _why_nothing(base)
        if code and others_open:
            return
    else:
        code, reason = index.code, index.reason
    if code:
        Index.objects.filter(id=index.id).update(state=IndexState.FAILED, code=code, reason=reason)
        return
    Index.objects.filter(id=index.id).update(state=IndexState.READY, code="", reason="", ready_at=timezone.now())
    old = base.live_index_id
    KnowledgeBase.objects.filter(id=base.id).update(live_index=index, updated_at=timezone.now())
    if old is not None:
        Index.objects.filter(id=old).update(state=IndexState.RETIRED)
        _show(index, others_open=others_open)


def _why_nothing(base: KnowledgeBase) -> tuple[str, str]:
    """Why a first Index holds no document: what befell most of them; nothing when there are none."""
    failed = Document.objects.filter(knowledge_base=base, state=DocumentState.FAILED)
    most = failed.values("code").annotate(n=Count("id")).order_by("-n", "code").first()
    if most is None:
        return "", ""
    example = failed.filter(code=most["code"]).order_by("id").values_list("reason", flat=True)[0]
    return most["code"], f"None of the {failed.count():,} documents could be indexed: {example}"


def _show(index: Index, *, others_open: bool) -> None:
    """After a switch: the documents' states become those of the new Index."""
    there = IndexedDocument.objects.filter(index=index, document=OuterRef("id"), bytes_hash=OuterRef("bytes_hash"))
    documents = Document.objects.filter(knowledge_base=index.knowledge_base_id)
    list(indexes.locked(documents).values_list("id"))
    documents.filter(Exists(there)).update(state=DocumentState.INDEXED, code="", reason="")
    lost = documents.filter(~Exists(there), state=DocumentState.INDEXED)
    if others_open:
        lost.update(state=DocumentState.PENDING)
        return
    lost.filter(code="").update(code=ErrorCode.DOCUMENT_UNREADABLE, reason="The document is not in the new Index.")
    lost.update(state=DocumentState.FAILED)


def _retire(index: Index) -> None:
    """An Index that was being built and is not wanted any more. From now on it takes nothing; its rounds are
    cancelled after the transaction, since slices and rounds are locked before Indexes."""
    Index.objects.filter(id=index.id).update(
        state=IndexState.RETIRED, reason="The settings were changed before it was ready."
    )

    def cancel() -> None:
        with transaction.atomic():
            _cancel_rounds(index)

    transaction.on_commit(cancel, robust=True)


def _cancel_rounds(index: Index) -> None:
    rounds = Ingestion.objects.filter(index=index, state__in=OPEN_INGESTIONS)
    ids = list(rounds.values_list("id", flat=True))
    rounds.update(state=IngestionState.CANCELLED, finished_at=timezone.now())
    open_slices = Slice.objects.filter(ingestion__in=ids, state__in=OPEN_SLICES)
    slices.close(list(open_slices.values_list("id", flat=True)), SliceState.CANCELLED)
