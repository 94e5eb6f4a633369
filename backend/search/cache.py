"""What providers have computed before, by content, per workspace. Least recently used entries go first, elsewhere."""

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from backend.models.knowledge import CachedEmbedding, CachedScore

# `used_at` orders what goes first; a day's precision spares a write at almost every hit.
FRESH = timedelta(days=1)
_AT_ONCE = 1000
# A pool of 50 is looked up and kept for every question: keys and values travel as arrays, not as 50 objects.
_TABLES = {CachedEmbedding: "backend_cachedembedding", CachedScore: "backend_cachedscore"}
_FIND = "SELECT id, key, {value}, used_at FROM {table} WHERE workspace_id = %s AND key = ANY(%s::bytea[])"
_KEEP = """
INSERT INTO {table} (workspace_id, key, {value}, used_at)
SELECT %s, key, value, now() FROM unnest(%s::bytea[], %s::{type}[]) AS given (key, value)
ON CONFLICT DO NOTHING
"""


def key(*parts: object) -> bytes:
    """SHA-256 over the parts as JSON, so that no two lists of parts run into one text."""
    data = json.dumps(parts, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(data.encode()).digest()


def vectors(workspace_id: UUID, keys: Collection[bytes]) -> dict[bytes, bytes]:
    """Those that are cached, as bytes of little-endian 32-bit floats."""
    return {each: bytes(vector) for each, vector in _find(CachedEmbedding, "vector", workspace_id, keys).items()}


def keep_vectors(workspace_id: UUID, by_key: Mapping[bytes, bytes]) -> None:
    _keep(CachedEmbedding, "vector", "bytea", workspace_id, by_key)


def scores(workspace_id: UUID, keys: Collection[bytes]) -> dict[bytes, float]:
    return {each: float(score) for each, score in _find(CachedScore, "score", workspace_id, keys).items()}


def keep_scores(workspace_id: UUID, by_key: Mapping[bytes, float]) -> None:
    _keep(CachedScore, "score", "float8", workspace_id, by_key)


def _find(
    model: type[CachedEmbedding | CachedScore], value: str, workspace_id: UUID, keys: Collection[bytes]
) -> dict[bytes, Any]:
    found: dict[bytes, Any] = {}
    stale: list[int] = []
    limit = timezone.now() - FRESH
    statement = _FIND.format(table=_TABLES[model], value=value)
    distinct = list(dict.fromkeys(keys))
    with connection.cursor() as cursor:
        for start in range(0, len(distinct), _AT_ONCE):
            cursor.execute(statement, [workspace_id, distinct[start : start + _AT_ONCE]])
            for pk, stored, kept, used_at in cursor.fetchall():
                found[bytes(stored)] = kept
                if used_at < limit:
                    stale.append(pk)
    if stale:
        model.objects.filter(id__in=stale).update(used_at=timezone.now())
    return found


def _keep(
    model: type[CachedEmbedding | CachedScore],
    value: str,
    sql_type: str,
    workspace_id: UUID,
    by_key: Mapping[bytes, Any],
) -> None:
    statement = _KEEP.format(table=_TABLES[model], value=value, type=sql_type)
    # In the order of the keys: two workers that keep the same texts must not wait for each other in a circle.
    keys = sorted(by_key)
    with connection.cursor() as cursor:
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            cursor.execute(statement, [workspace_id, some, [by_key[each] for each in some]])
