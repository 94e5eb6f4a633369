"""Bases, Indexes and chunks inserted as rows, for searching them without ingestion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import F

from backend.core.states import DocumentState, IndexState
from backend.models.accounts import Workspace
from backend.models.base import new_id
from backend.models.knowledge import Blob, Chunk, Document, Index, KnowledgeBase, Source
from backend.search.types import IndexRef, SearchScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One chunk. `vector` None: it has no embedding."""

    path: str
    text: str
    vector: Sequence[float] | None = (1.0, 0.0, 0.0)
    source: str = "files"
    collection: str = ""
    ordinal: int = 0


@dataclass(slots=True, kw_only=True)
class Base:
    """A base with one Index that holds the rows."""

    workspace: Workspace
    knowledge_base: KnowledgeBase
    index: Index
    language: str
    documents: dict[str, Document] = field(default_factory=dict)

    @property
    def ref(self) -> IndexRef:
        return IndexRef(
            id=self.index.id,
            knowledge_base_id=self.knowledge_base.id,
            embedder=self.index.settings["embedding"]["embedder"],
            language=self.language,
            dimensions=self.index.dimensions,
            settings=self.index.settings,
        )

    def scope(self, **filters: Any) -> SearchScope:
        return SearchScope(indexes=(self.ref,), **filters)

    def add(self, *rows: Row) -> None:
        """One batch: the generation rises by one."""
        for row in rows:
            if row.path not in self.documents:
                self._document(row)
        Chunk.objects.bulk_create(
            Chunk(
                index=self.index,
                document=self.documents[row.path],
                ordinal=row.ordinal,
                start=0,
                end=max(1, len(row.text)),
                text=row.text,
                path=row.path,
                source_name=row.source,
                collection=row.collection,
                embedding=None if row.vector is None else list(row.vector),
            )
            for row in rows
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE backend_chunk SET lexemes = to_tsvector(%s::regconfig, text)"
                " WHERE index_id = %s AND lexemes IS NULL",
                [f"ts_{self.language}", self.index.id],
            )
        Index.objects.filter(id=self.index.id).update(
            generation=F("generation") + 1, n_chunks=F("n_chunks") + len(rows)
        )
        self.index.refresh_from_db()

    def _document(self, row: Row) -> None:
        source, _ = Source.objects.get_or_create(knowledge_base=self.knowledge_base, name=row.source)
        blob, _ = Blob.objects.get_or_create(
            workspace=self.workspace, sha256="0" * 64, defaults={"size": 1, "data": b"x"}
        )
        self.documents[row.path] = Document.objects.create(
            source=source,
            knowledge_base=self.knowledge_base,
            path=row.path,
            collection=row.collection,
            blob=blob,
            bytes_hash="0" * 64,
            size=1,
            state=DocumentState.INDEXED,
        )


def make_base(
    *rows: Row,
    workspace: Workspace | None = None,
    name: str = "base",
    language: str = "simple",
    embedder: str = "local",
    dimensions: int | None = 3,
    embedding: Mapping[str, Any] | None = None,
) -> Base:
    workspace = workspace or Workspace.objects.create(name=f"workspace {new_id()}")
    base = KnowledgeBase.objects.create(workspace=workspace, name=name)
    index = Index.objects.create(
        knowledge_base=base,
        settings={
            "chunking": {"mode": "structure", "size": 1200, "overlap": 150},
            "embedding": {"embedder": embedder, **(embedding or {})},
            "keyword": {"language": language},
            "reader": "1",
        },
        fingerprint="f",
        state=IndexState.READY,
        dimensions=dimensions,
    )
    base.live_index = index
    base.save(update_fields=["live_index"])
    made = Base(workspace=workspace, knowledge_base=base, index=index, language=language)
    if rows:
        made.add(*rows)
    return made
