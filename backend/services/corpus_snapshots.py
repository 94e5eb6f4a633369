"""Which documents a corpus fingerprint stood for, so that a later night can count what came, went and changed."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from backend.core.comparison import CorpusChange
from backend.models import Baseline, CorpusSnapshot, Evaluation, Run
from backend.queries import corpora
from backend.search.types import SearchScope

KEPT_DAYS = 120
_PART = 8
_ROWS = 5000


def keep(workspace_id: UUID, index_ids: Sequence[UUID], *, now: datetime) -> None:
    """One pass over the documents, and only where this state of them is not known yet. A corpus that changes meanwhile
    is not kept: its fingerprint would stand for something else."""
    _, fingerprint = corpora.describe(sorted(index_ids))
    if not fingerprint:
        return
    if CorpusSnapshot.objects.filter(workspace=workspace_id, fingerprint=fingerprint).update(used_at=now):
        return
    data = b"".join(sorted(_entries(index_ids)))
    if corpora.describe(sorted(index_ids))[1] != fingerprint:
        return
    CorpusSnapshot.objects.bulk_create(
        [CorpusSnapshot(workspace_id=workspace_id, fingerprint=fingerprint, data=data, used_at=now)],
        ignore_conflicts=True,
    )


def keep_for(evaluation: Evaluation, *, now: datetime) -> None:
    """The documents as they are now, of every list of Indexes that the evaluation's runs read."""
    scope = SearchScope.from_json(evaluation.plan["scope"])
    wanted = {
        frozenset(index.id for index in scope.indexes_for(str(config.get("index", ""))))
        for config in Run.objects.filter(evaluation=evaluation).values_list("config", flat=True)
    }
    for ids in wanted:
        keep(evaluation.workspace_id, list(ids), now=now)


def change(workspace_id: UUID, before: str, after: str) -> CorpusChange | None:
    """From one fingerprint to another; None where nobody kept one of the two."""
    kept = dict(
        CorpusSnapshot.objects.filter(workspace=workspace_id, fingerprint__in=[before, after]).values_list(
            "fingerprint", "data"
        )
    )
    if before not in kept or after not in kept:
        return None
    old, new = _read(bytes(kept[before])), _read(bytes(kept[after]))
    return CorpusChange(
        n_added=len(new.keys() - old.keys()),
        n_removed=len(old.keys() - new.keys()),
        n_changed=sum(new[key] != old[key] for key in new.keys() & old.keys()),
    )


def forget(*, now: datetime) -> int:
    """Those that no schedule has seen for long, and no baseline in force stands on."""
    used = Baseline.objects.filter(retired_at__isnull=True).values("run__corpus_fingerprint")
    old = CorpusSnapshot.objects.filter(used_at__lt=now - timedelta(days=KEPT_DAYS)).exclude(fingerprint__in=used)
    return old.delete()[0]


def _entries(index_ids: Iterable[UUID]) -> Iterator[bytes]:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT s.name, d.path, x.bytes_hash FROM backend_indexeddocument x
            JOIN backend_document d ON d.id = x.document_id JOIN backend_source s ON s.id = d.source_id
            WHERE x.index_id = ANY(%s)
            """,
            [list(index_ids)],
        )
        while rows := cursor.fetchmany(_ROWS):
            for source, path, bytes_hash in rows:
                yield _hash(f"{source}\x1f{path}") + _hash(bytes_hash)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:_PART]


def _read(data: bytes) -> dict[bytes, bytes]:
    return {data[at : at + _PART]: data[at + _PART : at + 2 * _PART] for at in range(0, len(data), 2 * _PART)}
