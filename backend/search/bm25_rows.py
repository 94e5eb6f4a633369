"""Which chunk each row of a BM25 file is, and what filters need to know of it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

_NAMES = "names.json"
_ARRAYS = ("chunks", "documents", "sources", "collections")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Ids as 16 bytes each (`V16`); sources and collections as numbers into `names`."""

    chunks: NDArray[np.void]
    documents: NDArray[np.void]
    sources: NDArray[np.int32]
    collections: NDArray[np.int32]
    names: dict[str, int]

    @classmethod
    def of(cls, rows: Iterable[tuple[UUID, UUID, str, str]]) -> "Rows":
        """From (chunk, document, source name, collection)."""
        chunks, documents = bytearray(), bytearray()
        sources: list[int] = []
        collections: list[int] = []
        names: dict[str, int] = {}
        for chunk, document, source, collection in rows:
            chunks += chunk.bytes
            documents += document.bytes
            sources.append(names.setdefault(source, len(names)))
            collections.append(names.setdefault(collection, len(names)))
        return cls(
            chunks=np.frombuffer(bytes(chunks), dtype="V16"),
            documents=np.frombuffer(bytes(documents), dtype="V16"),
            sources=np.array(sources, dtype=np.int32),
            collections=np.array(collections, dtype=np.int32),
            names=names,
        )

    def save(self, folder: Path) -> None:
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        (folder / _NAMES).write_text(json.dumps(self.names), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Rows":
        chunks, documents, sources, collections = (
            # Read, not mapped: 40 bytes a chunk, and a memory map is slow to index.
            np.load(folder / f"{name}.npy", allow_pickle=False)
            for name in _ARRAYS
        )
        names = json.loads((folder / _NAMES).read_text(encoding="utf-8"))
        return cls(chunks=chunks, documents=documents, sources=sources, collections=collections, names=names)

    def chunk_ids(self, rows: NDArray[np.intp]) -> list[str]:
        """The chunks' ids as texts. By hand: a hundred UUID objects a question would cost more than the scoring."""
        digits = self.chunks[rows].tobytes().hex()
        ids = (digits[start : start + 32] for start in range(0, len(digits), 32))
        return [f"{each[:8]}-{each[8:12]}-{each[12:16]}-{each[16:20]}-{each[20:]}" for each in ids]

    def mask(self, *, documents: frozenset[UUID] | None, source: str, collection: str) -> NDArray[np.bool_]:
        """Which rows pass the filters."""
        passing = np.ones(len(self.chunks), dtype=bool)
        if documents is not None:
            wanted = np.array([key.bytes for key in documents], dtype="V16")
            passing &= np.isin(self.documents, wanted)
        if source:
            passing &= self.sources == self.names.get(source, -1)
        if collection:
            passing &= self.collections == self.names.get(collection, -1)
        return passing
