"""What grows without end is cut: caches, idempotency records, files and Indexes that nobody reads. Once a day."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection

from backend import logs
from backend.models import Evaluation, Index
from backend.search import ann, bm25_files, ledger
from backend.services import (
    alerts,
    audit,
    blobs,
    corpus_snapshots,
    idempotency,
    jobs,
    labels,
    login_limits,
    results,
    retention,
)

_log = logs.get("housekeeping")
_BATCH = 10_000
RETIRED_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    n_vectors: int
    n_scores: int
    n_replies: int
    n_answers: int
    n_audit_events: int
    n_login_failures: int
    n_blobs: int
    n_resolutions: int
    n_jobs: int
    n_indexes: int
    n_word_files: int
    n_spend_entries: int
    n_pruned_runs: int
    n_messages: int
    n_snapshots: int
    n_progress_entries: int


def clean(*, now: datetime) -> Cleaned:
    """Each step in batches of its own, so that none holds locks for long."""
    cleaned = Cleaned(
        n_vectors=_trim("backend_cachedembedding"),
        n_scores=_trim("backend_cachedscore"),
        n_replies=_trim("backend_cachedreply"),
        n_answers=idempotency.forget(now=now),
        n_audit_events=audit.forget(now=now),
        n_login_failures=login_limits.forget(now=now),
        n_blobs=blobs.sweep(now),
        n_resolutions=labels.forget(now=now),
        n_jobs=jobs.forget(),
        n_indexes=_drop_retired(),
        n_word_files=bm25_files.remove_unknown(),
        n_spend_entries=ledger.fold(),
        n_pruned_runs=retention.prune(now=now),
        n_messages=alerts.forget(now=now),
        n_snapshots=corpus_snapshots.forget(now=now),
        n_progress_entries=results.forget_progress(),
    )
    _log.info("cleaned", **{name: getattr(cleaned, name) for name in cleaned.__slots__})
    return cleaned


def _trim(table: str) -> int:
    """The least recently used rows beyond what a workspace may keep."""
    n: int = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                DELETE FROM {table} WHERE id IN (
                    SELECT id FROM (
                        SELECT id, row_number() OVER (PARTITION BY workspace_id ORDER BY used_at DESC, id DESC) AS place
                        FROM {table}) ranked
                    WHERE place > %s LIMIT %s)
                """,  # noqa: S608  the table names above
                [settings.CACHE_ROWS, _BATCH],
            )
            removed = int(cursor.rowcount)
            n += removed
            if removed < _BATCH:
                return n


def _drop_retired() -> int:
    """Indexes whose successor has been live for a while, and that no open evaluation reads."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT i.id FROM backend_index i
            JOIN backend_knowledgebase b ON b.id = i.knowledge_base_id
            LEFT JOIN backend_index l ON l.id = b.live_index_id
            WHERE i.state = 'retired'
              AND COALESCE(l.ready_at, i.ready_at, i.created_at) < now() - make_interval(days => %s)
            """,
            [RETIRED_DAYS],
        )
        ids = [row[0] for row in cursor.fetchall()]
    open_plans = Evaluation.objects.exclude(state__in=["completed", "failed", "cancelled"])
    read = {
        index["id"]
        for plan in open_plans.values_list("plan", flat=True)
        for index in (*plan["scope"]["indexes"], *plan["scope"]["alternatives"])
    }
    n = 0
    for index_id in ids:
        if str(index_id) not in read:
            ann.drop_ann_index(index_id)
            Index.objects.filter(id=index_id).delete()
            bm25_files.remove(index_id)
            n += 1
    return n
