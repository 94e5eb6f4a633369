"""The content of Indexes: passages put in and taken out, counts and generations kept right.

Everything here runs inside a transaction that has locked the Index row: one writer at a time, each batch one
generation, and a search's snapshot sees a generation whole.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import Coalesce

from backend.core.types import ChunkSpan
from backend.models import Chunk, Document, Index, IndexedDocument
from backend.models.base import new_id

# A tsvector holds 1 MB at most; a passage longer than this is found by its first words only, and counts as truncated.
MAX_LEXEME_CHARACTERS = 200_000
_ROWS = 400
_INSERT = """
INSERT INTO backend_chunk (id, index_id, document_id, ordinal, start, "end", text, heading, page, truncated, path,
                           source_name, collection, embedding, lexemes)
SELECT c.id, %(index)s, c.document, c.ordinal, c.first, c.past, c.body, c.heading, c.page, c.truncated, c.path,
       c.source, c.collection, c.vector::vector, to_tsvector(%(language)s::regconfig, left(c.body, %(longest)s))
FROM unnest(%(id)s::uuid[], %(document)s::uuid[], %(ordinal)s::int[], %(first)s::int[], %(past)s::int[],
            %(body)s::text[], %(heading)s::text[], %(page)s::int[], %(truncated)s::bool[], %(path)s::text[],
            %(source)s::text[], %(collection)s::text[], %(vector)s::text[])
  AS c(id, document, ordinal, first, past, body, heading, page, truncated, path, source, collection, vector)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A document as it enters an Index. `vectors` None: it is searched by words only."""

    document: Document
    text: str
    spans: Sequence[ChunkSpan]
    vectors: Sequence[Sequence[float]] | None

    @property
    def n_truncated(self) -> int:
        return sum(is_truncated(span) for span in self.spans)


def is_truncated(span: ChunkSpan) -> bool:
    return span.truncated or span.end - span.start > MAX_LEXEME_CHARACTERS


def lock(index_id: UUID) -> Index | None:
    return Index.objects.select_for_update(no_key=True).filter(id=index_id).first()


def hold(documents: Collection[UUID]) -> list[Index]:
    """Lock documents, and before them the Indexes that hold any of them, which are returned."""
    holders = IndexedDocument.objects.filter(document__in=documents).values("index")
    there = Index.objects.filter(id__in=holders)
    while True:
        before = transaction.savepoint()
        held = list(there.select_for_update(no_key=True).order_by("id"))
        list(locked(Document.objects.filter(id__in=documents)).values_list("id"))
        if set(there.values_list("id", flat=True)) <= {index.id for index in held}:
            return held
        # One was put into a further Index in between: let go and lock in order again.
        transaction.savepoint_rollback(before)


def locked(documents: QuerySet[Document]) -> QuerySet[Document]:
    """The documents, locked in the order of their ids: everybody who changes several does it so."""
    return documents.select_for_update(no_key=True, of=("self",)).order_by("id")


def next_generation(index: Index) -> int:
    Index.objects.filter(id=index.id).update(generation=F("generation") + 1)
    index.generation += 1
    return index.generation


def take_out(index: Index, documents: Collection[UUID]) -> int:
    """Take documents out, as one generation. Returns how many were in."""
    n_held = _take_out(index, documents)
    if n_held:
        next_generation(index)
    return n_held


def put_in(index: Index, entries: Sequence[Entry], *, instead_of: Collection[UUID] = ()) -> None:
    """Put documents in, each in place of its older self, as one generation. `instead_of`: others to take out."""
    gone = _take_out(index, [*(entry.document.id for entry in entries), *instead_of])
    if not entries and not gone:
        return
    generation = next_generation(index)
    language = f"ts_{index.settings['keyword']['language']}"
    with connection.cursor() as cursor:
        for rows in _batches(row for entry in entries for row in _rows(entry)):
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            cursor.execute(
                _INSERT, {**columns, "index": index.id, "language": language, "longest": MAX_LEXEME_CHARACTERS}
            )
    IndexedDocument.objects.bulk_create(
        [
            IndexedDocument(
                index=index,
                document=entry.document,
                bytes_hash=entry.document.bytes_hash,
                generation=generation,
                n_chunks=len(entry.spans),
                n_chunks_truncated=entry.n_truncated,
            )
            for entry in entries
        ],
        batch_size=500,
    )
    Index.objects.filter(id=index.id).update(
        n_documents=F("n_documents") + len(entries),
        n_chunks=F("n_chunks") + sum(len(entry.spans) for entry in entries),
        n_chunks_truncated=F("n_chunks_truncated") + sum(entry.n_truncated for entry in entries),
    )
    _set_dimensions(index, entries)


def _take_out(index: Index, documents: Collection[UUID]) -> int:
    held = IndexedDocument.objects.filter(index=index, document__in=documents)
    sums = held.aggregate(
        n_documents=Count("id"),
        n_chunks=Coalesce(Sum("n_chunks"), 0),
        n_chunks_truncated=Coalesce(Sum("n_chunks_truncated"), 0),
    )
    if not sums["n_documents"]:
        return 0
    Chunk.objects.filter(index=index, document__in=documents).delete()
    held.delete()
    Index.objects.filter(id=index.id).update(**{name: F(name) - n for name, n in sums.items()})
    return int(sums["n_documents"])


def _set_dimensions(index: Index, entries: Sequence[Entry]) -> None:
    if index.dimensions is not None:
        return
    for entry in entries:
        if entry.vectors:
            index.dimensions = len(entry.vectors[0])
            Index.objects.filter(id=index.id).update(dimensions=index.dimensions)
            return


def _rows(entry: Entry) -> Iterable[dict[str, Any]]:
    document = entry.document
    for ordinal, span in enumerate(entry.spans):
        yield {
            "id": new_id(),
            "document": document.id,
            "ordinal": ordinal,
            "first": span.start,
            "past": span.end,
            "body": entry.text[span.start : span.end],
            "heading": " > ".join(span.heading),
            "page": span.page,
            "truncated": is_truncated(span),
            "path": document.path,
            "source": document.source.name,
            "collection": document.collection,
            "vector": _literal(entry.vectors[ordinal]) if entry.vectors is not None else None,
        }


def _literal(vector: Sequence[float]) -> str:
    return "[" + ",".join(map(repr, map(float, vector))) + "]"


def _batches(rows: Iterable[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
