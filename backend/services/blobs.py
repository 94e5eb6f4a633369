"""The bytes of files, kept once per workspace and content."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from backend.models import Blob, Document, Workspace

EMPTY = hashlib.sha256(b"").hexdigest()
# A blob is stored before the document that names it: a young one may be about to be used.
_UNUSED_AFTER = timedelta(days=1)


def store(workspace: Workspace, contents: Mapping[str, bytes]) -> None:
    """Keep these bytes, by their SHA-256. Those that are there already are not sent again."""
    there = set(Blob.objects.filter(workspace=workspace, sha256__in=list(contents)).values_list("sha256", flat=True))
    # Sorted, so that two uploads of the same files wait for each other instead of deadlocking.
    Blob.objects.bulk_create(
        [
            Blob(workspace=workspace, sha256=sha256, size=len(contents[sha256]), data=contents[sha256])
            for sha256 in sorted(set(contents) - there)
        ],
        ignore_conflicts=True,
    )


def hold(workspace: Workspace, hashes: Collection[str]) -> dict[str, UUID]:
    """The ids of stored blobs, which cannot be deleted until the transaction ends. Missing ones are left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT sha256, id FROM backend_blob WHERE workspace_id = %s AND sha256 = ANY(%s)
            ORDER BY id FOR KEY SHARE
            """,
            [workspace.id, sorted(hashes)],
        )
        return dict(cursor.fetchall())


def ids_of(workspace: Workspace, hashes: Collection[str]) -> set[UUID]:
    if not hashes:
        return set()
    return set(Blob.objects.filter(workspace=workspace, sha256__in=hashes).values_list("id", flat=True))


def delete_unused(ids: Iterable[UUID]) -> int:
    """Delete those of these blobs that no document uses. After the transaction that let go of them, not in it. What a
    crash leaves behind in between, `sweep` finds."""
    wanted = sorted(set(ids))
    if not wanted:
        return 0
    n_deleted = _delete(wanted, locking="FOR UPDATE SKIP LOCKED")
    # Those that somebody held, one by one: who waits for a blob must not hold another (deadlocks: seen).
    left = Blob.objects.filter(id__in=wanted).exclude(Exists(Document.objects.filter(blob=OuterRef("id"))))
    for blob_id in list(left.values_list("id", flat=True)):
        n_deleted += _delete([blob_id], locking="FOR UPDATE")
    return n_deleted


def _delete(ids: list[UUID], *, locking: str) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM backend_blob WHERE id = ANY(%s) {locking}", [ids])  # noqa: S608  constants
        locked = [row[0] for row in cursor.fetchall()]
        # A second statement looks again, after whoever held a blob for a new document has committed.
        cursor.execute(
            """
            DELETE FROM backend_blob b
            WHERE b.id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM backend_document d WHERE d.blob_id = b.id)
            """,
            [locked],
        )
        return int(cursor.rowcount)


def sweep(now: datetime) -> int:
    """Delete what an upload stored that died before its documents were: for the sweeper, once in a while."""
    unused = Blob.objects.filter(created_at__lt=now - _UNUSED_AFTER).exclude(
        Exists(Document.objects.filter(blob=OuterRef("id")))
    )
    return delete_unused(unused.values_list("id", flat=True)[:1000])
