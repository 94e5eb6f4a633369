"""What providers have computed before, by content, per workspace. Least recently used entries go first, elsewhere."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from backend.models.knowledge import CachedEmbedding, CachedScore

# `used_at` orders what goes first; a day's precision spares a write at almost every hit.
FRESH = timedelta(days=1)
_AT_ONCE = 1000


def key(*parts: object) -> bytes:
    """SHA-256 over the parts as JSON, so that no two lists of parts run into one text."""
    data = json.dumps(parts, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(data.encode()).digest()


def vectors(workspace_id: UUID, keys: Collection[bytes]) -> dict[bytes, bytes]:
    """Those that are cached, as bytes of little-endian 32-bit floats."""
    found: dict[bytes, bytes] = {}
    stale: list[int] = []
    limit = timezone.now() - FRESH
    for some in _slices(keys):
        rows = CachedEmbedding.objects.filter(workspace_id=workspace_id, key__in=some)
        for pk, stored, vector, used_at in rows.values_list("id", "key", "vector", "used_at"):
            found[bytes(stored)] = bytes(vector)
            if used_at < limit:
                stale.append(pk)
    if stale:
        CachedEmbedding.objects.filter(id__in=stale).update(used_at=timezone.now())
    return found


def keep_vectors(workspace_id: UUID, by_key: Mapping[bytes, bytes]) -> None:
    # In the order of the keys: two workers that keep the same texts must not wait for each other in a circle.
    CachedEmbedding.objects.bulk_create(
        [CachedEmbedding(workspace_id=workspace_id, key=each, vector=by_key[each]) for each in sorted(by_key)],
        ignore_conflicts=True,
        batch_size=_AT_ONCE,
    )


def scores(workspace_id: UUID, keys: Collection[bytes]) -> dict[bytes, float]:
    found: dict[bytes, float] = {}
    stale: list[int] = []
    limit = timezone.now() - FRESH
    for some in _slices(keys):
        rows = CachedScore.objects.filter(workspace_id=workspace_id, key__in=some)
        for pk, stored, score, used_at in rows.values_list("id", "key", "score", "used_at"):
            found[bytes(stored)] = score
            if used_at < limit:
                stale.append(pk)
    if stale:
        CachedScore.objects.filter(id__in=stale).update(used_at=timezone.now())
    return found


def keep_scores(workspace_id: UUID, by_key: Mapping[bytes, float]) -> None:
    CachedScore.objects.bulk_create(
        [CachedScore(workspace_id=workspace_id, key=each, score=by_key[each]) for each in sorted(by_key)],
        ignore_conflicts=True,
        batch_size=_AT_ONCE,
    )


def _slices(keys: Collection[bytes]) -> Iterable[list[bytes]]:
    distinct = list(dict.fromkeys(keys))
    for start in range(0, len(distinct), _AT_ONCE):
        yield distinct[start : start + _AT_ONCE]
