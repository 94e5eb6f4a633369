"""Uploads, removals, syncs, changed settings and workers at the same time: nothing deadlocks, every count is right."""

import random
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection

from backend.core.errors import ConflictError
from backend.models import Blob, Chunk, Document, Index, IndexedDocument, Slice
from backend.services import blobs, documents, ingestion, knowledge_bases, pump, slices, sources
from backend.services.documents import UploadedFile
from tests.integration.ingest_work import folder_source, new_base, states, work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SECONDS = 8.0


def test_everything_at_once_ends_consistent(tmp_path: Path) -> None:
    base = new_base()
    area = sources.upload_area(base)
    root = tmp_path / "folder"
    root.mkdir()
    folder = folder_source(base, root)
    end = time.monotonic() + SECONDS
    failures: list[str] = []

    def upload(chance: random.Random) -> None:
        documents.add_many(
            area,
            [
                UploadedFile(
                    path=f"{chance.randrange(60)}.txt",
                    data=f"text {chance.randrange(50)}".encode(),
                    collection=chance.choice(["a", "b"]),
                )
                for _ in range(20)
            ],
        )

    def remove(chance: random.Random) -> None:
        ids = list(Document.objects.filter(source=area).values_list("id", flat=True))
        documents.remove_many(chance.sample(ids, min(8, len(ids))))
        time.sleep(0.05)

    def change(chance: random.Random) -> None:
        knowledge_bases.patch(base, settings={"chunking": {"size": chance.choice([200, 300, 400]), "overlap": 0}})
        time.sleep(0.2)

    def sync(chance: random.Random) -> None:
        for _ in range(5):
            aside = tmp_path / str(chance.random())
            aside.write_text(f"text {chance.randrange(50)}")
            aside.rename(root / f"{chance.randrange(20)}.txt")
        sources.sync(folder)
        time.sleep(0.05)

    def run_slices(chance: random.Random) -> None:
        pump.run()
        for waiting in Slice.objects.filter(state="queued", kind="ingest").order_by("?")[:3]:
            lease = slices.claim(waiting.id, delivery=waiting.delivery)
            if lease is not None and lease.ingestion_id is not None:
                ingestion.run(lease)
                ingestion.finish_if_done(lease.ingestion_id)
                return
        time.sleep(0.02)

    def repeat(step: Callable[[random.Random], None], seed: int) -> None:
        chance = random.Random(seed)
        try:
            while time.monotonic() < end:
                try:
                    step(chance)
                except (ConflictError, slices.LeaseLostError):
                    continue  # what callers are told to expect
        except Exception:  # noqa: BLE001  reported by the test
            failures.append(traceback.format_exc())
        finally:
            connection.close()

    steps = (upload, upload, remove, change, sync, sync, run_slices, run_slices, run_slices)
    threads = [threading.Thread(target=repeat, args=(step, seed)) for seed, step in enumerate(steps)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

    work()
    ingestion.finish_stale()
    base.refresh_from_db()
    assert base.live_index is not None
    assert base.live_index.n_documents == Document.objects.count()
    assert set(states(base).values()) == {("indexed", "")}
    for index in Index.objects.all():
        assert index.n_documents == IndexedDocument.objects.filter(index=index).count()
        assert index.n_chunks == Chunk.objects.filter(index=index).count()
    for chunk in Chunk.objects.filter(index=base.live_index).select_related("document"):
        assert (chunk.text, chunk.collection) == (chunk.document.text, chunk.document.collection)
    # An upload that was told to send again has left bytes behind: the sweeper's part.
    blobs.sweep(datetime.now(UTC) + timedelta(days=2))
    assert set(Blob.objects.values_list("id")) == set(Document.objects.values_list("blob_id"))
