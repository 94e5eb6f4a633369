"""The BM25 files: where they lie, how one is built, and which go."""

import fcntl
import json
import logging
import os
import shutil
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction

from backend.models.knowledge import Index
from backend.search.bm25_rows import Rows

# In the path: files of another layout are left alone, not misread.
_LAYOUT = "1"
_KEPT_GENERATIONS = 2
_FETCHED_AT_ONCE = 500
_SEPARATOR = "\x1f"
_DONE = "done.json"

_LEXEMES = """
SELECT c.id, c.document_id, c.source_name, c.collection, w.words, w.counts
FROM backend_chunk AS c,
     LATERAL (SELECT string_agg(lexeme, E'\\x1f'), array_agg(coalesce(cardinality(positions), 1))
              FROM unnest(c.lexemes)) AS w(words, counts)
WHERE c.index_id = %s AND c.lexemes IS NOT NULL
ORDER BY c.path, c.source_name, c.ordinal, c.id
"""

T = TypeVar("T")


def exists(index_id: UUID, generation: int) -> bool:
    return (_folder(index_id) / str(generation)).is_dir()


def newest(index_id: UUID, *, below: int) -> int | None:
    """The newest generation under this one whose file stands."""
    return max((number for number in _generations(index_id) if number < below), default=None)


def opened(index_id: UUID, generation: int, load: Callable[[Path], T]) -> T:
    """`load` of the folder, which is built where it is missing. Builders in other processes are waited for."""
    target = _folder(index_id) / str(generation)
    # A folder may be cleared away between two files of it: then it is built again. More than once is no accident.
    for _ in range(3):
        try:
            return load(target)
        except FileNotFoundError:
            with _sole_builder(index_id):
                if not target.is_dir():
                    _build(index_id, target)
    return load(target)


def load_scorer(folder: Path) -> Any:
    """The library's memory-mapped scorer; None where no chunk holds any word."""
    if json.loads((folder / _DONE).read_text())["n_words"] == 0:
        return None
    return _library().BM25.load(folder, mmap=True, show_progress=False)


def _library() -> Any:
    # Heavy, and only searches need it.
    import bm25s

    # It sets its own logger to DEBUG when it is imported.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


def remove(index_id: UUID) -> None:
    """With its Index go its files. Processes that have one open keep it until they close it."""
    shutil.rmtree(_folder(index_id), ignore_errors=True)


def remove_unknown() -> int:
    """Removes the files of Indexes that are gone (deleted by another machine, or with their base); how many."""
    root = _root()
    folders = {entry.name: entry for entry in root.iterdir() if entry.is_dir()} if root.is_dir() else {}
    known = {str(key) for key in Index.objects.filter(id__in=list(folders)).values_list("id", flat=True)}
    for name in folders.keys() - known:
        shutil.rmtree(folders[name], ignore_errors=True)
    return len(folders.keys() - known)


def _root() -> Path:
    return Path(settings.CACHE_DIR) / "bm25" / _LAYOUT


def _folder(index_id: UUID) -> Path:
    return _root() / str(index_id)


def _generations(index_id: UUID) -> list[int]:
    folder = _folder(index_id)
    return [int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()] if folder.is_dir() else []


@contextmanager
def _sole_builder(index_id: UUID) -> Iterator[None]:
    """One builder per Index; the lock is the kernel's, so a killed builder leaves none behind."""
    folder = _folder(index_id)
    folder.mkdir(parents=True, exist_ok=True)
    with transaction.atomic(), connection.cursor() as cursor, (folder / "lock").open("w") as lock:
        # Waiting and computing look like idleness to PostgreSQL, which would end the snapshot.
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                sleep(0.05)
        yield


def _build(index_id: UUID, target: Path) -> None:
    aside = target.parent / f".{target.name}-{uuid4().hex}"
    aside.mkdir()
    try:
        _write(index_id, aside)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    _clear(target.parent, keep=target.name)


def _write(index_id: UUID, folder: Path) -> None:
    vocabulary: dict[str, int] = {}
    texts: list[array[int]] = []
    rows = Rows.of(_read(index_id, vocabulary=vocabulary, texts=texts))
    rows.save(folder)
    if vocabulary:
        scorer = _library().BM25(k1=1.2, b=0.75, method="lucene", dtype="float64", csc_backend="scipy")
        scorer.index((texts, vocabulary), create_empty_token=False, show_progress=False)
        scorer.save(folder, show_progress=False)
    (folder / _DONE).write_text(json.dumps({"n_words": len(vocabulary), "n_chunks": len(texts)}))
    for entry in os.scandir(folder):
        descriptor = os.open(entry.path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _read(
    index_id: UUID, *, vocabulary: dict[str, int], texts: "list[array[int]]"
) -> Iterator[tuple[UUID, UUID, str, str]]:
    """Streams the Index through a server-side cursor; fills the vocabulary and each chunk's word numbers."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_LEXEMES, [index_id])
        while fetched := cursor.fetchmany(_FETCHED_AT_ONCE):
            for chunk, document, source, collection, words, counts in fetched:
                numbers = array("i")
                if words is not None:
                    for word, count in zip(words.split(_SEPARATOR), counts, strict=True):
                        number = vocabulary.setdefault(word, len(vocabulary))
                        numbers.extend([number] * count)
                texts.append(numbers)
                yield chunk, document, source, collection


def _clear(folder: Path, *, keep: str) -> None:
    """Of the finished generations the newest stay, and the one just built; abandoned builds go."""
    numbers = sorted((int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()), reverse=True)
    kept = {keep, "lock", *(str(number) for number in numbers[:_KEPT_GENERATIONS])}
    for entry in folder.iterdir():
        if entry.name not in kept:
            # Renamed first, so that nobody opens a folder half gone. This runs under the builder's lock.
            gone = entry if entry.name.startswith(".") else entry.rename(folder / f".gone-{uuid4().hex}")
            shutil.rmtree(gone, ignore_errors=True)
