"""Documents on their way into an Index: read, cut, embedded, counted, failed, tried again."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection, transaction

from backend.core.states import IndexState, SliceState
from backend.models import Blob, Chunk, Document, Index, IndexedDocument, Ingestion, KnowledgeBase, Slice, Workspace
from backend.providers.base import ProviderError
from backend.queries import knowledge
from backend.readers.parent import ReaderChild
from backend.search import providers
from backend.services import documents, ingesting, ingestion, knowledge_bases, preparing, slices
from backend.services.documents import UploadedFile
from backend.services.indexes import Entry
from tests.integration.ingest_work import claim_next, ingest, new_base, states, upload, work
from tests.standins import Fault, Script, Standin

pytestmark = pytest.mark.django_db(transaction=True)

HOSTED = {"embedding": {"embedder": "openai:standin"}}


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with Standin() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        providers.forget()
        yield server
    providers.forget()


def live(base: KnowledgeBase) -> Index:
    base.refresh_from_db()
    if base.live_index is None:
        raise AssertionError("no Index is live")
    return base.live_index


def counted(index: Index) -> tuple[int, int]:
    """What the rows say: documents and passages."""
    return IndexedDocument.objects.filter(index=index).count(), Chunk.objects.filter(index=index).count()


def test_a_document_becomes_passages_with_exact_offsets_headings_and_lexemes() -> None:
    base = new_base({"embedding": {"embedder": "none"}, "keyword": {"language": "english"}})
    ingest(base, {"policies/leave.md": "# Leave\n\nEveryone has 25 days of *paid* leave.\n\n## Sickness\n\nCall in.\n"})
    document = Document.objects.get()

    chunks = list(Chunk.objects.order_by("ordinal"))
    assert chunks
    for chunk in chunks:
        assert document.text[chunk.start : chunk.end] == chunk.text
        assert (chunk.path, chunk.source_name) == ("policies/leave.md", "uploads")
        assert chunk.embedding is None
    assert chunks[0].heading == "Leave"
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM backend_chunk WHERE lexemes @@ to_tsquery('ts_english', 'days & leave')")
        assert cursor.fetchone()[0] == 1
    assert (document.state, document.text_hash) == ("indexed", document.bytes_hash)
    assert counted(live(base)) == (live(base).n_documents, live(base).n_chunks)


def test_the_bundled_model_gives_every_passage_a_vector_and_fits_passages_to_its_window() -> None:
    base = new_base({})
    ingest(base, {"a.txt": "The printer in room 4 shows error E-1042. " * 200})
    index = live(base)

    assert index.dimensions == 384
    assert not Chunk.objects.filter(embedding__isnull=True).exists()
    assert index.n_chunks > len("The printer in room 4 shows error E-1042. " * 200) / 1200
    assert index.n_chunks_truncated == 0


def test_a_failed_document_says_why_and_the_others_are_indexed() -> None:
    base = new_base()
    ingest(base, {"good.txt": "words", "empty.txt": "", "old.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600})

    assert states(base) == {
        "good.txt": ("indexed", ""),
        "empty.txt": ("failed", "DOCUMENT_NO_TEXT"),
        "old.doc": ("failed", "DOCUMENT_TYPE"),
    }
    assert all(Document.objects.filter(state="failed").exclude(reason="").values_list("reason", flat=True))
    assert live(base).n_documents == 1


def test_a_file_above_the_limit_is_a_failed_document_whose_bytes_are_not_kept(settings: object) -> None:
    settings.MAX_DOCUMENT_BYTES = 10  # type: ignore[attr-defined]
    base = new_base()
    ingest(base, {"big.txt": "x" * 11, "small.txt": "small"})

    assert states(base)["big.txt"] == ("failed", "DOCUMENT_TOO_LARGE")
    assert "11 bytes" in Document.objects.get(path="big.txt").reason
    assert {bytes(one.data) for one in Blob.objects.all()} == {b"", b"small"}

    settings.MAX_DOCUMENT_BYTES = 100  # type: ignore[attr-defined]
    ingest(base, {"big.txt": "x" * 11})
    assert states(base)["big.txt"] == ("indexed", "")


def test_a_document_that_grows_too_large_is_not_found_by_its_old_text(settings: object) -> None:
    base = new_base()
    ingest(base, {"a.txt": "short", "b.txt": "other"})
    settings.MAX_DOCUMENT_BYTES = 10  # type: ignore[attr-defined]
    ingest(base, {"a.txt": "no longer short"})

    assert not Chunk.objects.filter(path="a.txt").exists()
    assert counted(live(base)) == (1, 1) == (live(base).n_documents, live(base).n_chunks)


def test_the_same_bytes_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    base = new_base()
    ingest(base, {"a.txt": "one", "b.txt": "two"})
    generation = live(base).generation
    again = upload(base, {"a.txt": "one", "b.txt": "two"})

    assert again.ingestion is None
    assert [one.path for one in again.documents] == ["a.txt", "b.txt"]
    assert claim_next() is None
    assert live(base).generation == generation


def test_a_new_index_reads_no_file_again(monkeypatch: pytest.MonkeyPatch) -> None:
    base = new_base()
    ingest(base, {"a.md": "# One\n\ntext", "b.txt": "two"})
    base.settings = {**base.settings, "chunking": {"mode": "document", "size": 1200, "overlap": 0}}
    base.save(update_fields=["settings"])
    preparing.stop_reading()

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a file was read again")

    monkeypatch.setattr(ReaderChild, "read", refuse)
    assert ingestion.build_index(base) is not None
    work()
    assert live(base).n_documents == 2
    assert Chunk.objects.filter(index=live(base), heading="One").exists()


def test_changed_bytes_replace_the_old_passages_and_raise_the_generation() -> None:
    base = new_base()
    ingest(base, {"a.txt": "first " * 600, "b.txt": "two"})
    before = live(base)
    added = ingest(base, {"a.txt": "second", "b.txt": "two"})
    after = live(base)

    assert added.ingestion is not None
    assert (added.ingestion.n_documents, added.ingestion.n_unchanged) == (1, 1)
    assert Chunk.objects.get(path="a.txt").text == "second"
    assert after.id == before.id
    assert after.generation > before.generation
    assert counted(after) == (2, 2) == (after.n_documents, after.n_chunks)
    assert Blob.objects.count() == 2


def test_equal_files_share_their_bytes_until_the_last_one_goes() -> None:
    base = new_base()
    added = ingest(base, {"a.txt": "same", "b/a.txt": "same"})
    assert Blob.objects.count() == 1
    documents.remove(added.documents[0])
    assert Blob.objects.count() == 1
    documents.remove(added.documents[1])
    assert not Blob.objects.exists()


def test_removing_documents_raises_the_generation_and_keeps_the_counts_right() -> None:
    base = new_base()
    added = ingest(base, {"a.txt": "one", "b.txt": "two", "c.txt": "three"})
    before = live(base)
    assert documents.remove_many([added.documents[0].id, added.documents[2].id]) == 2
    after = live(base)

    assert after.generation == before.generation + 1
    assert counted(after) == (1, 1) == (after.n_documents, after.n_chunks)


def test_a_new_collection_moves_the_passages_without_reading_them_again() -> None:
    base = new_base()
    ingest(base, {"a.txt": "one"}, collection="old")
    generation = live(base).generation
    again = upload(base, {"a.txt": "one"}, collection="new")

    assert again.ingestion is None
    assert Chunk.objects.get().collection == "new" == Document.objects.get().collection
    assert live(base).generation == generation + 1


@pytest.mark.parametrize(
    "path", ["../a.txt", "/etc/passwd", "C:\\a.txt", "a/../../b.txt", "", "a\x00b", "./", "x" * 1001]
)
def test_a_path_that_leaves_its_source_is_skipped_and_told(path: str) -> None:
    added = upload(new_base(), {path: "x"})

    assert not added.documents
    assert len(added.skipped) == 1
    assert added.skipped[0].reason


def test_paths_are_kept_in_one_spelling() -> None:
    added = upload(new_base(), {"a\\b//./Stra\u0308ße.txt": "x"})
    assert [one.path for one in added.documents] == ["a/b/Sträße.txt"]


def test_hidden_files_are_skipped_and_question_sets_are_read_as_such() -> None:
    base = new_base()
    added = upload(
        base,
        {
            ".git/config": "x",
            "a/.env": "x",
            ".touchstone/q.jsonl": '{"question": "Where?", "expected": ["a.txt"]}\n',
            ".metis/bad.json": "{",
            ".touchstone/deep/q.jsonl": "{}",
        },
    )
    assert [one.path for one in added.skipped] == [".git/config", "a/.env", ".touchstone/deep/q.jsonl"]
    assert [(one.path, one.n_questions, one.code) for one in added.set_files] == [
        (".touchstone/q.jsonl", 1, ""),
        (".metis/bad.json", None, "EVAL_FILE"),
    ]
    assert not Document.objects.exists()


def test_a_large_upload_is_many_slices_and_its_progress_is_counted() -> None:
    base = new_base()
    added = upload(base, {f"{n:03}.txt": f"document {n}" for n in range(100)} | {"bad.txt": ""})
    assert added.ingestion is not None
    assert Slice.objects.count() >= 4
    lease = claim_next()
    assert lease is not None
    ingestion.run(lease)
    part = knowledge.ingestion_progress(added.ingestion)
    assert 0 < part.n_indexed < 101
    assert part.n_indexed + part.n_pending + part.n_failed == 101

    work()
    done = knowledge.ingestion_progress(added.ingestion)
    assert (done.state, done.n_documents, done.n_indexed, done.n_failed, done.n_pending) == (
        "completed",
        101,
        100,
        1,
        0,
    )
    assert done.documents_per_second is not None


def test_a_zombies_commit_is_refused_and_the_next_holder_does_the_work_once() -> None:
    base = new_base()
    upload(base, {"a.txt": "one"})
    zombie = claim_next()
    assert zombie is not None
    slices.release(zombie)
    heir = claim_next()
    assert heir is not None
    with pytest.raises(slices.LeaseLostError):
        ingestion.run(zombie)
    assert not Chunk.objects.exists()
    ingestion.run(heir)
    assert ingestion.finish_if_done(Ingestion.objects.get().id)
    assert counted(live(base)) == (1, 1)


def test_a_slice_that_is_run_again_does_no_work_again() -> None:
    base = new_base()
    upload(base, {"a.txt": "one"})
    lease = claim_next()
    assert lease is not None
    ingestion.run(lease)
    Slice.objects.update(state="leased", token=lease.token, lease_until="2100-01-01T00:00Z")
    generation = Index.objects.get().generation
    ingestion.run(lease)
    assert Index.objects.get().generation == generation


def test_a_document_that_changes_while_it_is_read_is_left_to_the_later_slice() -> None:
    base = new_base()
    first = upload(base, {"a.txt": "old"})
    lease = claim_next()
    assert lease is not None
    document = Document.objects.select_related("source").get()
    draft = preparing.Preparer(Index.objects.get().settings, workspace_id=base.workspace_id).draft(document)
    second = upload(base, {"a.txt": "new"})
    entry = Entry(document=document, text="old", spans=draft.spans, vectors=None)
    with slices.commit(lease, finish=True):
        ingesting.write(Index.objects.get().id, entries=[entry], read=[draft])
    assert not Chunk.objects.exists()
    work()

    assert first.ingestion is not None
    ingestion.finish_if_done(first.ingestion.id)
    assert second.ingestion is not None
    assert Chunk.objects.get().text == "new"
    assert states(base) == {"a.txt": ("indexed", "")}


def test_a_document_that_moves_to_another_collection_while_it_is_read_is_found_there() -> None:
    base = new_base()
    upload(base, {"a.txt": "one"}, collection="old")
    lease = claim_next()
    assert lease is not None
    document = Document.objects.select_related("source").get()
    draft = preparing.Preparer(Index.objects.get().settings, workspace_id=base.workspace_id).draft(document)
    upload(base, {"a.txt": "one"}, collection="new")
    with slices.commit(lease, finish=True):
        entry = Entry(document=document, text="one", spans=draft.spans, vectors=None)
        ingesting.write(Index.objects.get().id, entries=[entry], read=[draft])

    assert Chunk.objects.get().collection == "new" == Document.objects.get().collection


def test_a_document_removed_before_its_slice_runs_is_no_error() -> None:
    base = new_base()
    added = upload(base, {"a.txt": "one", "b.txt": "two"})
    documents.remove(added.documents[0])
    work()
    assert states(base) == {"b.txt": ("indexed", "")}


def test_a_provider_that_may_answer_later_gives_the_slice_back_and_nothing_is_failed(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    upload(base, {"a.txt": "one"})
    standin.set_script(Script(fault=Fault.STATUS, status=503))
    lease = claim_next()
    assert lease is not None
    with pytest.raises(ProviderError) as failed:
        ingestion.run(lease)
    assert failed.value.retryable
    assert states(base) == {"a.txt": ("pending", "")}
    assert Document.objects.get().text == "one"  # what was read needs no second reading

    slices.release(lease, used_try=True)
    standin.set_script(Script())
    work()
    assert states(base) == {"a.txt": ("indexed", "")}


def test_a_refused_key_fails_what_is_left_with_its_code_and_a_retry_mends_it(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    standin.set_script(Script(key="another"))
    ingest(base, {"a.txt": "one", "b.txt": "two", "empty.txt": ""})
    assert states(base)["a.txt"] == ("failed", "PROVIDER_AUTH") == states(base)["b.txt"]
    row = knowledge.base_row(base)
    assert (row.state, row.code) == ("failed", "PROVIDER_AUTH")

    standin.set_script(Script())
    assert ingestion.retry_failed(base) is not None
    work()
    assert states(base) == {
        "a.txt": ("indexed", ""),
        "b.txt": ("indexed", ""),
        "empty.txt": ("failed", "DOCUMENT_NO_TEXT"),
    }


def test_uploading_a_document_again_tries_it_again_after_a_providers_failure(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    standin.set_script(Script(key="another"))
    ingest(base, {"a.txt": "one"})
    standin.set_script(Script())
    ingest(base, {"a.txt": "one"})
    assert states(base) == {"a.txt": ("indexed", "")}


def test_a_slice_given_up_fails_its_documents_with_the_providers_code(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    added = upload(base, {"a.txt": "one"})
    lease = claim_next()
    assert lease is not None
    with slices.commit(lease):
        ingestion.give_up(Slice.objects.get(), "PROVIDER_UNAVAILABLE", "It did not answer.")
        slices.end(lease, SliceState.GIVEN_UP, code="PROVIDER_UNAVAILABLE")
    assert added.ingestion is not None
    assert ingestion.finish_if_done(added.ingestion.id)
    assert states(base) == {"a.txt": ("failed", "PROVIDER_UNAVAILABLE")}
    assert Index.objects.get().state == IndexState.FAILED
    assert Ingestion.objects.get().state == "failed"


def test_a_rebuild_that_fails_leaves_the_live_index_and_its_documents_alone(standin: Standin) -> None:
    base = new_base()
    ingest(base, {"a.txt": "one", "b.txt": "two"})
    before = live(base)
    base.settings = {**base.settings, **HOSTED}
    base.save(update_fields=["settings"])
    standin.set_script(Script(key="another"))
    started = ingestion.build_index(base)
    work()

    assert started is not None
    assert live(base).id == before.id
    assert Index.objects.get(id=started.index_id).state == IndexState.FAILED
    assert states(base)["a.txt"][0] == "indexed"
    row = knowledge.base_row(base)
    assert (row.state, row.code) == ("ready", "PROVIDER_AUTH")


def test_a_slice_that_keeps_dying_is_split_and_the_guilty_document_alone_fails() -> None:
    base = new_base()
    added = upload(base, {"bad.txt": "one", "good.txt": "two"})
    whole = Slice.objects.get()
    with transaction.atomic():
        halves = ingestion.on_slice_gone(whole, "WORKER_LOST")
        slices.close([whole.id], SliceState.SPLIT)
    assert len(halves) == 2
    assert all(one.quarantined for one in halves)

    bad = next(one for one in halves if one.payload == {"documents": [str(added.documents[0].id)]})
    with transaction.atomic():
        assert ingestion.on_slice_gone(bad, "WORKER_LOST") == []
        slices.close([bad.id], SliceState.GIVEN_UP)
    work()
    assert states(base) == {"bad.txt": ("failed", "DOCUMENT_UNREADABLE"), "good.txt": ("indexed", "")}
    assert live(base).n_documents == 1


def test_a_slice_short_of_time_hands_the_rest_on() -> None:
    base = new_base()
    upload(base, {"a.txt": "one", "b.txt": "two"})
    lease = claim_next()
    assert lease is not None
    lease.deadline = time.monotonic() + 30
    ingestion.run(lease)
    assert Slice.objects.get(id=lease.slice_id).state == SliceState.DONE
    assert not Chunk.objects.exists()
    rest = Slice.objects.exclude(id=lease.slice_id).get()
    assert rest.payload is not None
    assert rest.payload["passes"] == 1
    work()
    assert live(base).n_documents == 2


def test_a_document_that_is_never_done_in_time_ends_too_large() -> None:
    base = new_base()
    upload(base, {"a.txt": "one"})
    Slice.objects.update(payload={"documents": [str(Document.objects.get().id)], "passes": 50})
    work()
    assert states(base) == {"a.txt": ("failed", "DOCUMENT_TOO_LARGE")}


def test_a_document_as_one_passage_longer_than_a_tsvector_is_indexed_and_counted_as_truncated() -> None:
    base = new_base({"embedding": {"embedder": "none"}, "chunking": {"mode": "document"}})
    text = " ".join(f"word{n}" for n in range(200_000))
    ingest(base, {"long.txt": text, "short.txt": "short"})

    assert states(base)["long.txt"] == ("indexed", "")
    assert (live(base).n_chunks, live(base).n_chunks_truncated) == (2, 1)


def test_an_index_given_up_takes_nothing_any_more() -> None:
    base = new_base()
    upload(base, {"a.txt": "one"})
    Index.objects.update(state=IndexState.RETIRED)
    work()
    assert not Chunk.objects.exists()


def test_the_sweeper_closes_a_round_that_nobody_closed() -> None:
    base = new_base()
    upload(base, {"a.txt": "one"})
    lease = claim_next()
    assert lease is not None
    ingestion.run(lease)
    assert base.live_index_id is None
    assert ingestion.finish_stale() == 1
    assert ingestion.finish_stale() == 0
    assert live(base).state == IndexState.READY


def test_ten_files_of_equal_name_in_one_upload_end_as_the_last_one() -> None:
    base = new_base()
    added = documents.add_many(
        upload(base, {"x.txt": "x"}).documents[0].source,
        [UploadedFile(path="a.txt", data=str(n).encode()) for n in range(10)],
    )
    work()
    assert [one.path for one in added.documents] == ["a.txt"]
    assert Document.objects.get(path="a.txt").text == "9"
    assert {bytes(one.data) for one in Blob.objects.all()} == {b"x", b"9"}


def test_documents_of_two_workspaces_with_equal_bytes_share_nothing(tmp_path: Path) -> None:
    ingest(new_base(), {"a.txt": "same"})

    other = knowledge_bases.create(
        Workspace.objects.create(name="other"), name="b", settings={"embedding": {"embedder": "none"}}
    )
    ingest(other, {"a.txt": "same"})
    assert Blob.objects.count() == 2


def test_threads_that_read_their_first_document_at_once_start_one_child(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Slow:
        def __init__(self) -> None:
            started.append(self)
            time.sleep(0.1)

    monkeypatch.setattr(preparing, "ReaderChild", Slow)
    monkeypatch.setattr(preparing, "_child", None)
    workspace = uuid4()
    threads = [threading.Thread(target=preparing._child_of, args=(workspace,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 1
