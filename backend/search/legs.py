"""The legs: one question, one Index, one way of searching, read to a depth.

Filters act inside the query, before its cut. Equal scores are ordered by path, source, ordinal, id (columns whose
collation is "C", so byte order); scores of 0 are never returned as fillers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from uuid import UUID

from django.db import connection

from backend.core.configs import RetrievalConfig
from backend.core.errors import ErrorCode, TouchstoneError
from backend.search import ann, bm25, lexemes
from backend.search.snapshot import Snapshot
from backend.search.types import MEANING, WORDS, IndexRef, SearchScope

SEMANTIC, BM25 = "semantic", "bm25"
FTS_AND, FTS_OR = "fts(and)", "fts(or)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegKey:
    """What makes two readings the same one. `ef_search` None: exact (semantic), or it does not apply."""

    kind: str
    index_id: UUID
    depth: int
    ef_search: int | None = None

    @property
    def stage(self) -> str:
        return MEANING if self.kind == SEMANTIC else WORDS

    def same_but_depth(self, other: "LegKey") -> bool:
        return self == replace(other, depth=self.depth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage by its id, with the leg's score (cosine similarity, BM25, ts_rank_cd)."""

    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What one reading gave, best first. `more`: the depth cut it, so a deeper reading would give more."""

    stage: str
    hits: tuple[Hit, ...]
    more: bool
    ms: float


def keys_of(config: RetrievalConfig, *, index: IndexRef, depth: int) -> list[LegKey]:
    """The legs of a configuration, in the order of its fusion weights (semantic, keyword)."""
    keys = []
    if "semantic" in config.legs:
        ef_search = None if config.exact else config.ef_search
        keys.append(LegKey(kind=SEMANTIC, index_id=index.id, depth=depth, ef_search=ef_search))
    if "keyword" in config.legs:
        keys.append(LegKey(kind=config.keyword_leg, index_id=index.id, depth=depth))
    return keys


def read(
    key: LegKey,
    *,
    question: str,
    vector: Sequence[float] | None,
    index: IndexRef,
    scope: SearchScope,
    snapshot: Snapshot,
) -> Leg:
    """Reads one leg. Raises TouchstoneError where it cannot be read as asked, DatabaseError or OSError."""
    started = perf_counter()
    if key.kind == SEMANTIC:
        if vector is None:
            raise TouchstoneError(ErrorCode.INTERNAL, "A semantic leg needs the question's vector.")
        hits = _semantic(key, vector=vector, index=index, scope=scope)
    elif key.kind == BM25:
        hits = _bm25(key, question=question, index=index, scope=scope, snapshot=snapshot)
    else:
        hits = _fts(key, question=question, index=index, scope=scope, snapshot=snapshot)
    return Leg(stage=key.stage, hits=hits, more=len(hits) == key.depth, ms=(perf_counter() - started) * 1000)


def _semantic(key: LegKey, *, vector: Sequence[float], index: IndexRef, scope: SearchScope) -> tuple[Hit, ...]:
    if key.ef_search is not None:
        return _approximate(key, vector=vector, index=index, scope=scope)
    clause, params = _filters(index, scope)
    # Adding 0 makes the distance an expression that no index is ordered by: exact whatever the planner is told.
    return _rows(
        f"""
        SELECT id::text, 1 - distance FROM (
          SELECT id, path, source_name, ordinal, (embedding <=> %s::vector) + 0 AS distance
          FROM backend_chunk WHERE {clause} AND embedding IS NOT NULL
        ) AS measured
        ORDER BY distance, path, source_name, ordinal, id LIMIT %s
        """,  # noqa: S608  the clause is built here, values are parameters
        [as_vector(vector), *params, key.depth],
    )


def _approximate(key: LegKey, *, vector: Sequence[float], index: IndexRef, scope: SearchScope) -> tuple[Hit, ...]:
    """Through the Index's HNSW graph. Relaxed order finds more; the outer query puts what it found in order."""
    column = ann.expression(index)
    if not ann.is_ready(index.id):
        raise TouchstoneError(
            ErrorCode.KB_NOT_READY,
            "This Index has no graph for approximate search yet. Search it exactly, or wait until the graph is built.",
        )
    clause, params = _filters(index, scope)
    # Materialized, and the distance plus 0: else PostgreSQL takes the inner, relaxed order for sorted already.
    with ann.settings(ef_search=key.ef_search or 40):
        return _rows(
            f"""
            WITH near AS MATERIALIZED (
              SELECT id, path, source_name, ordinal, {column} <=> %s::{ann.type_of(index)} AS distance
              FROM backend_chunk WHERE {clause}
              ORDER BY {column} <=> %s::{ann.type_of(index)} LIMIT %s
            )
            SELECT id::text, 1 - distance FROM near ORDER BY distance + 0, path, source_name, ordinal, id
            """,  # noqa: S608  as above
            [as_vector(vector), *params, as_vector(vector), key.depth],
        )


def _fts(key: LegKey, *, question: str, index: IndexRef, scope: SearchScope, snapshot: Snapshot) -> tuple[Hit, ...]:
    config = lexemes.configuration(index.language)
    if key.kind == FTS_OR:
        words = dict.fromkeys(snapshot.lexemes_of(question, language=index.language))
        if not words:
            return ()
        query, query_params = "%s::tsquery", [" | ".join(_quoted(word) for word in words)]
    else:
        query = "websearch_to_tsquery(%s::regconfig, %s)"
        query_params = [config, lexemes.sendable(question)]
    clause, params = _filters(index, scope)
    return _rows(
        f"""
        SELECT id::text, score FROM (
          SELECT id, path, source_name, ordinal, ts_rank_cd(lexemes, {query}) AS score
          FROM backend_chunk WHERE {clause} AND lexemes @@ {query}
        ) AS matched WHERE score > 0
        ORDER BY score DESC, path, source_name, ordinal, id LIMIT %s
        """,  # noqa: S608  as above
        [*query_params, *params, *query_params, key.depth],
    )


def _bm25(key: LegKey, *, question: str, index: IndexRef, scope: SearchScope, snapshot: Snapshot) -> tuple[Hit, ...]:
    generation = snapshot.generations.get(index.id)
    if generation is None:
        raise TouchstoneError(ErrorCode.KB_NOT_READY, "The Index that this search reads is gone.")
    words = snapshot.lexemes_of(question, language=index.language)
    if not words:
        return ()
    opened = bm25.open_words(index.id, generation, older=snapshot.older_words)
    found = opened.best(
        words, depth=key.depth, documents=scope.documents, source=scope.source, collection=scope.collection
    )
    return tuple(Hit(id=chunk, score=score) for chunk, score in found)


def _filters(index: IndexRef, scope: SearchScope) -> tuple[str, list[Any]]:
    clauses: list[str] = ["index_id = %s"]
    params: list[Any] = [index.id]
    if scope.documents is not None:
        clauses.append("document_id = ANY(%s)")
        params.append(list(scope.documents))
    if scope.source:
        clauses.append("source_name = %s")
        params.append(scope.source)
    if scope.collection:
        clauses.append("collection = %s")
        params.append(scope.collection)
    return " AND ".join(clauses), params


def _rows(sql: str, params: Sequence[Any]) -> tuple[Hit, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return tuple(Hit(id=key, score=float(score)) for key, score in cursor.fetchall())


def as_vector(vector: Sequence[float]) -> str:
    """pgvector's text form. Nine digits hold every 32-bit float exactly."""
    return "[" + ",".join(f"{float(value):.9g}" for value in vector) + "]"


def _quoted(lexeme: str) -> str:
    """A lexeme as a tsquery operand, whatever stands in it."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
