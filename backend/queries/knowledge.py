"""Knowledge bases, sources and documents as API, console and commands show them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q, QuerySet

from backend.core.states import OPEN_INGESTIONS, DocumentState, IndexState, RunState
from backend.models import Document, Index, Ingestion, KnowledgeBase, Run, Source, Workspace
from backend.queries.lookups import get


class BaseState(StrEnum):
    """`ready` while a live Index exists, also while a newer one is being built."""

    EMPTY = "empty"
    INDEXING = "indexing"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The latest figure: of the last scored run over the base, by its primary metric. `set_name` is the set asked, as
    `name@number`. `value` None: nothing scored."""

    run_id: UUID
    set_name: str
    mode: str
    metric: str
    value: float | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRow:
    """A base with what is known of it. `code` and `reason` say why it failed, or why its newer Index did."""

    base: KnowledgeBase
    state: BaseState
    n_documents: int
    n_pending: int
    n_indexed: int
    n_failed: int
    n_chunks: int
    n_chunks_truncated: int
    generation: int
    is_rebuilding: bool
    code: str
    reason: str
    quality: Quality | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a round is. `documents_per_second` over the whole round; None before anything is done."""

    state: str
    n_documents: int
    n_pending: int
    n_indexed: int
    n_failed: int
    n_unchanged: int
    n_removed: int
    documents_per_second: float | None


def bases_of(workspace: Workspace) -> QuerySet[KnowledgeBase]:
    """A workspace's bases, newest first."""
    return KnowledgeBase.objects.filter(workspace=workspace).select_related("live_index").order_by("-id")


def get_base(workspace: Workspace, key: object) -> KnowledgeBase:
    """Raises NotFoundError."""
    return get(bases_of(workspace), key, what="knowledge base")


def base_row(base: KnowledgeBase) -> BaseRow:
    return base_rows([base])[0]


def base_rows(bases: Iterable[KnowledgeBase]) -> list[BaseRow]:
    """In the order of the bases; five queries however many they are."""
    bases = list(bases)
    ids = [base.id for base in bases]
    by_state: dict[UUID, dict[str, int]] = {}
    counted = Document.objects.filter(knowledge_base__in=ids).values_list("knowledge_base", "state")
    for base_id, state, n in counted.annotate(n=Count("id")).order_by():
        by_state.setdefault(base_id, {})[state] = n
    live = Index.objects.in_bulk([base.live_index_id for base in bases if base.live_index_id])
    latest = {
        one.knowledge_base_id: one
        for one in Index.objects.filter(knowledge_base__in=ids)
        .exclude(state=IndexState.RETIRED)
        .order_by("knowledge_base", "-id")
        .distinct("knowledge_base")
    }
    working = set(
        Ingestion.objects.filter(knowledge_base__in=ids, state__in=OPEN_INGESTIONS).values_list(
            "knowledge_base", flat=True
        )
    )
    quality = _latest_quality(ids)
    return [
        _row(
            base,
            counts=by_state.get(base.id, {}),
            live=live.get(base.live_index_id) if base.live_index_id else None,
            latest=latest.get(base.id),
            is_working=base.id in working,
            quality=quality.get(base.id),
        )
        for base in bases
    ]


def sources_of(base: KnowledgeBase) -> QuerySet[Source]:
    """A base's sources by name, each with `n_documents`, `n_indexed`, `n_failed`, `n_pending`."""
    return (
        Source.objects.filter(knowledge_base=base)
        .annotate(
            n_documents=Count("documents"),
            **{
                f"n_{state.value}": Count("documents", filter=Q(documents__state=state.value))
                for state in DocumentState
            },
        )
        .order_by("name")
    )


def get_source(base: KnowledgeBase, key: object) -> Source:
    """Raises NotFoundError."""
    return get(sources_of(base), key, what="source")


def documents_of(
    base: KnowledgeBase, *, state: str = "", source: object = None, collection: str = "", path: str = ""
) -> QuerySet[Document]:
    """A base's documents by path, their text left out. `source` is a source's id; `path` a part of the path. Show
    `code` and `reason` of those that failed only: on others they may speak of an Index that is being built."""
    documents = Document.objects.filter(knowledge_base=base).select_related("source").defer("text", "marks")
    if state:
        documents = documents.filter(state=state)
    if source:
        documents = documents.filter(source=get_source(base, source))
    if collection:
        documents = documents.filter(collection=collection)
    if path:
        documents = documents.filter(path__contains=path.replace("\x00", ""))
    return documents.order_by("path", "id")


def get_document(base: KnowledgeBase, key: object) -> Document:
    """Raises NotFoundError."""
    return get(documents_of(base), key, what="document")


def indexes_of(base: KnowledgeBase) -> QuerySet[Index]:
    """Newest first."""
    return Index.objects.filter(knowledge_base=base).order_by("-id")


def ingestions_of(base: KnowledgeBase) -> QuerySet[Ingestion]:
    """Newest first."""
    return Ingestion.objects.filter(knowledge_base=base).select_related("source", "index").order_by("-id")


def get_ingestion(workspace: Workspace, key: object) -> Ingestion:
    """Raises NotFoundError."""
    return get(Ingestion.objects.filter(workspace=workspace).select_related("source"), key, what="ingestion")


def ingestion_progress(ingestion: Ingestion) -> Progress:
    """Counted from rows: what open slices still hold is pending, what failed since the round began has failed."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT i.state, i.n_documents, i.n_unchanged, i.n_removed,
                   (SELECT count(*) FROM backend_slice s, jsonb_array_elements_text(s.payload->'documents') AS d(id)
                    WHERE s.ingestion_id = i.id AND s.state IN ('pending', 'queued', 'leased')
                      AND NOT EXISTS (
                        SELECT 1 FROM backend_indexeddocument x JOIN backend_document o ON o.id = x.document_id
                        WHERE x.index_id = i.index_id AND x.document_id = d.id::uuid AND x.bytes_hash = o.bytes_hash)),
                   (SELECT count(*) FROM backend_document o
                    WHERE o.knowledge_base_id = i.knowledge_base_id AND o.state = 'failed'
                      AND (i.source_id IS NULL OR o.source_id = i.source_id)
                      AND o.updated_at >= i.created_at AND o.updated_at <= COALESCE(i.finished_at, now())),
                   extract(epoch FROM COALESCE(i.finished_at, now()) - i.created_at)
            FROM backend_ingestion i WHERE i.id = %s
            """,
            [ingestion.id],
        )
        state, n_documents, n_unchanged, n_removed, n_pending, n_failed, seconds = cursor.fetchone()
    n_pending = min(n_pending, n_documents)
    n_failed = min(n_failed, n_documents - n_pending)
    n_done = n_documents - n_pending
    return Progress(
        state=state,
        n_documents=n_documents,
        n_pending=n_pending,
        n_indexed=n_done - n_failed,
        n_failed=n_failed,
        n_unchanged=n_unchanged,
        n_removed=n_removed,
        documents_per_second=n_done / float(seconds) if n_done and seconds else None,
    )


def _row(
    base: KnowledgeBase,
    *,
    counts: Mapping[str, int],
    live: Index | None,
    latest: Index | None,
    is_working: bool,
    quality: Quality | None,
) -> BaseRow:
    n_documents = sum(counts.values())
    if live is not None and n_documents:
        state = BaseState.READY
    elif not n_documents:
        state = BaseState.EMPTY
    elif is_working or latest is None:
        state = BaseState.INDEXING
    else:
        state = BaseState.FAILED if latest.state == IndexState.FAILED else BaseState.INDEXING
    shown = live or latest
    has_failed = latest is not None and latest.state == IndexState.FAILED
    return BaseRow(
        base=base,
        state=state,
        n_documents=n_documents,
        n_pending=counts.get(DocumentState.PENDING, 0),
        n_indexed=counts.get(DocumentState.INDEXED, 0),
        n_failed=counts.get(DocumentState.FAILED, 0),
        n_chunks=shown.n_chunks if shown else 0,
        n_chunks_truncated=shown.n_chunks_truncated if shown else 0,
        generation=shown.generation if shown else 0,
        is_rebuilding=live is not None and latest is not None and latest.state == IndexState.BUILDING,
        code=latest.code if latest is not None and has_failed else "",
        reason=latest.reason if latest is not None and has_failed else "",
        quality=quality,
    )


def _latest_quality(base_ids: list[UUID]) -> dict[UUID, Quality]:
    runs = (
        Run.objects.filter(knowledge_base__in=base_ids, state=RunState.SCORED)
        .order_by("knowledge_base", "-finished_at", "ordinal", "id")
        .distinct("knowledge_base")
        .select_related("evaluation")
        .only("knowledge_base", "mode", "primary_metric", "metrics", "finished_at", "evaluation__set_name")
    )
    return {
        run.knowledge_base_id: Quality(
            run_id=run.id,
            set_name=run.evaluation.set_name,
            mode=run.mode,
            metric=run.primary_metric,
            value=_figure(run.metrics.get(run.primary_metric)),
            finished_at=run.finished_at,
        )
        for run in runs
        if run.knowledge_base_id is not None
    }


def _figure(stored: Any) -> float | None:
    value = stored.get("mean") if isinstance(stored, Mapping) else stored
    return float(value) if isinstance(value, int | float) else None
