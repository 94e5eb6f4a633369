"""Approximate search: one partial HNSW index per Index, over the column cast to that Index's size."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import sleep
from uuid import UUID

from django.conf import settings as configured
from django.db import connection

from backend.core.errors import ErrorCode, TouchstoneError
from backend.models.knowledge import Index
from backend.search.types import IndexRef

# What pgvector can build a graph over: `vector` up to the first, `halfvec` (16-bit floats) up to the second.
_VECTOR_LIMIT, _HALFVEC_LIMIT = 2000, 4000

# While it is read, nothing but the graph may answer: on a small table the planner would sort everything instead.
_ONLY_THE_GRAPH = ("enable_seqscan", "enable_bitmapscan", "enable_sort")


def name_of(index_id: UUID) -> str:
    return f"hnsw_{index_id.hex}"


def type_of(index: IndexRef | Index) -> str:
    """The SQL type the graph is built over. Raises where there can be none."""
    if index.dimensions is None:
        raise TouchstoneError(ErrorCode.KB_NOT_READY, "This Index holds no vectors, so it cannot be searched by them.")
    if index.dimensions > _HALFVEC_LIMIT:
        raise TouchstoneError(
            ErrorCode.VALIDATION,
            f"Approximate search takes up to {_HALFVEC_LIMIT} dimensions; this Index has {index.dimensions}.",
        )
    kind = "vector" if index.dimensions <= _VECTOR_LIMIT else "halfvec"
    return f"{kind}({index.dimensions})"


def expression(index: IndexRef | Index) -> str:
    """The column as the graph holds it: a query must say the very same to be answered by it."""
    return f"(embedding::{type_of(index)})"


def pays(indexes: Iterable[IndexRef]) -> bool:
    """Whether one of these is so large that its graph answers where nobody says how (docs/measured.md, Scale)."""
    ids = [index.id for index in indexes]
    return Index.objects.filter(id__in=ids, n_chunks__gt=configured.EXACT_UP_TO).exists()


def ensure_ann_index(index: IndexRef | Index) -> bool:
    """Builds the graph unless it stands; True when it was built now.

    Builds without locking out writers, so it must not be called inside a transaction. A half-built graph of an
    earlier try (the worker died) is dropped first. Minutes for 100,000 chunks.
    """
    if is_ready(index.id):
        return False
    opclass = f"{type_of(index).partition('(')[0]}_cosine_ops"
    name = name_of(index.id)
    with connection.cursor() as cursor, _sole_builder(name):
        if is_ready(index.id):
            return False
        # Building waits for the transactions that began before it, which may take longer than the usual lock timeout.
        cursor.execute("SET lock_timeout = 0")
        try:
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            cursor.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON backend_chunk USING hnsw ({expression(index)} {opclass})"
                f" WHERE index_id = '{index.id}'"
            )
        finally:
            cursor.execute("RESET lock_timeout")
    return True


@contextmanager
def _sole_builder(name: str) -> Iterator[None]:
    """One builder at a time. Asked for again and again rather than waited for inside PostgreSQL: a waiting statement
    is a transaction, which the builder would wait for in its turn."""
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
            row = cursor.fetchone()
            if row and row[0]:
                break
            sleep(0.5)
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])


def drop_ann_index(index_id: UUID) -> None:
    """With its Index goes its graph. Not inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name_of(index_id)}")


def is_ready(index_id: UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name_of(index_id)])
        row = cursor.fetchone()
    return bool(row and row[0])


@contextmanager
def settings(*, ef_search: int) -> Iterator[None]:
    """Session settings of one approximate reading, put back afterwards: the other legs share the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true), "
            f"{_switched('off')}",
            [str(ef_search)],
        )
        yield
        # Not in a `finally`: after an error the savepoint around the leg undoes them.
        cursor.execute(f"SELECT {_switched('on')}")


def _switched(value: str) -> str:
    return ", ".join(f"set_config('{name}', '{value}', true)" for name in _ONLY_THE_GRAPH)
