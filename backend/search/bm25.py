"""BM25 over the stored lexemes: k1 1.2, b 0.75, Lucene's idf, in a memory-mapped file per (Index, generation).

The file is built by whoever needs it first, from what its snapshot sees, written aside and renamed. Its rows stand in
the order of the tie rule (path, source, ordinal, id), so that equal scores need no further sorting. The statistics
are those of the whole Index; filters leave them alone.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from backend.search import bm25_files
from backend.search.bm25_rows import Rows

# Opened files kept by a process: memory-mapped, but each vocabulary is a dictionary in memory.
_KEPT_OPEN = 8

_opened: "OrderedDict[tuple[UUID, int], OpenedWords]" = OrderedDict()
_lock = threading.Lock()


class OpenedWords:
    """The words of one Index at one generation, ready to be asked. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self.scorer = bm25_files.load_scorer(folder)
        self.rows = Rows.load(folder)
        self._mask = lru_cache(maxsize=16)(self.rows.mask)

    def best(
        self,
        words: Sequence[str],
        *,
        depth: int,
        documents: frozenset[UUID] | None = None,
        source: str = "",
        collection: str = "",
    ) -> list[tuple[str, float]]:
        """The ids and scores of the `depth` best chunks that hold any of the words, inside the filters.

        `words` are lexemes; one that comes twice counts twice. Never a score of 0: fewer come back instead.
        """
        if self.scorer is None:
            return []
        known = self.scorer.get_tokens_ids(list(words))
        if not known:
            return []
        scores = self.scorer.get_scores_from_ids(known)
        if documents is not None or source or collection:
            scores = np.where(self._mask(documents=documents, source=source, collection=collection), scores, 0)
        rows = _best_rows(scores, depth=depth)
        return list(zip(self.rows.chunk_ids(rows), scores[rows].tolist(), strict=True))


def open_words(index_id: UUID, generation: int, *, older: bool = False) -> OpenedWords:
    """The file of this generation, built first where it is missing (seconds for 5,000 chunks; call it in a snapshot).

    `older`: the newest earlier one will do rather than a build. Files of older generations go when a new one is built.
    """
    key = (index_id, generation)
    found = _recall(key)
    if found is not None:
        return found
    if older and not bm25_files.exists(index_id, generation):
        earlier = bm25_files.newest(index_id, below=generation)
        if earlier is not None:
            return open_words(index_id, earlier)
    opened = bm25_files.opened(index_id, generation, OpenedWords)
    with _lock:
        _opened[key] = opened
        _opened.move_to_end(key)
        while len(_opened) > _KEPT_OPEN:
            _opened.popitem(last=False)
    return opened


def forget(index_ids: Collection[UUID] | None = None) -> None:
    """Closes the opened files of these Indexes, or all."""
    with _lock:
        for key in [key for key in _opened if index_ids is None or key[0] in index_ids]:
            del _opened[key]


def _recall(key: tuple[UUID, int]) -> OpenedWords | None:
    with _lock:
        found = _opened.get(key)
        if found is not None:
            _opened.move_to_end(key)
        return found


def _best_rows(scores: NDArray[np.float64], *, depth: int) -> NDArray[np.intp]:
    """The rows of the `depth` highest scores above 0, best first, equal ones in the order of the rows."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > depth:
        limit = np.partition(scores[rows], len(rows) - depth)[len(rows) - depth]
        above, level = rows[scores[rows] > limit], rows[scores[rows] == limit]
        rows = np.sort(np.concatenate([above, level[: depth - len(above)]]))
    return rows[np.argsort(-scores[rows], kind="stable")]
