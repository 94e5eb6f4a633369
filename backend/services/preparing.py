"""A document made ready for an Index: read in a limited child, cut into passages, embedded."""

import atexit
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from backend.core.chunking import ChunkMode, ChunkSettings, chunk
from backend.core.errors import DocumentError, ErrorCode
from backend.core.types import ChunkSpan, ExtractedText, Mark
from backend.models import Blob, Document, Purpose
from backend.readers.parent import ReaderChild
from backend.readers.reading import READER_VERSION
from backend.search import embedding, providers
from backend.search.ledger import PaidFor
from backend.services import base_settings


class DocumentGoneError(Exception):
    """The document was removed or changed since it was looked up: a later slice has what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A document cut into passages. `fresh`: it was read just now, so its text is still to be stored."""

    document: Document
    extracted: ExtractedText
    spans: Sequence[ChunkSpan]
    fresh: bool

    @property
    def texts(self) -> list[str]:
        return [self.extracted.text[span.start : span.end] for span in self.spans]


_child: tuple[UUID, ReaderChild] | None = None
# Two threads that start one at once would leave one of the two running with nobody to end it.
_starting = threading.Lock()


def _child_of(workspace_id: UUID) -> ReaderChild:
    """The process's reading child, kept from slice to slice (a start costs as much as a hundred small documents), but
    never from one workspace to the next: a document that took it over would read what comes after it."""
    global _child  # noqa: PLW0603  one for the process
    with _starting:
        if _child is None or _child[0] != workspace_id:
            stop_reading()
            _child = workspace_id, ReaderChild()
        return _child[1]


@atexit.register
def stop_reading() -> None:
    """End the reading child; the next document starts another."""
    if _child is not None:
        _child[1].close()


class Preparer:
    """Reads and embeds for one Index."""

    def __init__(
        self, index_settings: Mapping[str, Any], *, workspace_id: UUID, ingestion_id: UUID | None = None
    ) -> None:
        self._workspace_id = workspace_id
        self._paid_for = PaidFor(purpose=Purpose.INGESTION, owner=ingestion_id)
        self._embedding: Mapping[str, Any] = index_settings["embedding"]
        self._spec = base_settings.embedder_of(index_settings)
        self._chunking = index_settings["chunking"]
        self._cut: tuple[ChunkSettings, Callable[[str], Sequence[int] | None] | None] | None = None

    def draft(self, document: Document) -> Draft:
        """Raises DocumentError when it cannot be read, DocumentGoneError, and ProviderError when the model's tokenizer
        cannot be had."""
        fresh = document.text_hash != document.bytes_hash or document.reader != READER_VERSION
        extracted = self._read(document) if fresh else stored_text(document)
        chunking, token_offsets = self._cutting()
        spans = chunk(extracted, chunking, token_offsets)
        if not spans:
            raise DocumentError(ErrorCode.DOCUMENT_NO_TEXT, "No text was found in the file.")
        return Draft(document=document, extracted=extracted, spans=spans, fresh=fresh)

    def embed(self, texts: Sequence[str], *, before_call: Callable[[], None]) -> Sequence[Sequence[float]] | None:
        """The texts' vectors, or None where the base has no embedder. Raises ProviderError, and what `before_call`
        raises ahead of a call; each call's vectors are cached, so that a document of any length gets on, try by try.
        """
        if not self._spec:
            return None
        return embedding.embed_passages(
            self._workspace_id,
            self._spec,
            texts,
            query_prefix=self._embedding.get("query_prefix"),
            document_prefix=self._embedding.get("document_prefix"),
            # A model in this process may take its slice's time: the rest is a server's.
            timeout=settings.SLICE_DEADLINE_SECONDS if self._is_local() else None,
            before_call=before_call,
            paid_for=self._paid_for,
        ).vectors

    def _is_local(self) -> bool:
        return providers.describe_embedder(self._spec, workspace_id=self._workspace_id).local

    def _read(self, document: Document) -> ExtractedText:
        blob = Blob.objects.filter(id=document.blob_id).first()
        if blob is None:
            raise DocumentGoneError
        if blob.sha256 != document.bytes_hash:
            raise DocumentError(ErrorCode.DOCUMENT_TOO_LARGE, document.reason or "The file is too large.")
        return _child_of(self._workspace_id).read(bytes(blob.data), path=document.path)

    def _cutting(self) -> tuple[ChunkSettings, Callable[[str], Sequence[int] | None] | None]:
        if self._cut is None:
            window, offsets = None, None
            if self._spec:
                embedder = providers.embedder(
                    self._spec,
                    workspace_id=self._workspace_id,
                    query_prefix=self._embedding.get("query_prefix"),
                    document_prefix=self._embedding.get("document_prefix"),
                )
                if embedder.info.max_tokens is not None:
                    window = embedder.info.max_tokens - embedder.info.reserved_tokens
                offsets = embedder.token_offsets
            chunking = ChunkSettings(
                size=self._chunking["size"],
                overlap=self._chunking["overlap"],
                mode=ChunkMode(self._chunking["mode"]),
                max_tokens=window,
            )
            self._cut = chunking, offsets
        return self._cut


def stored_text(document: Document) -> ExtractedText:
    return ExtractedText(
        text=document.text,
        marks=tuple(Mark(start=start, heading=tuple(heading), page=page) for start, heading, page in document.marks),
        reader=document.reader,
    )


def marks_as_json(extracted: ExtractedText) -> list[list[Any]]:
    """What `Document.marks` holds: [start, headings, page] of each mark."""
    return [[mark.start, list(mark.heading), mark.page] for mark in extracted.marks]
