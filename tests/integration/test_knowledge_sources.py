"""Folders of the server, read again at each sync."""

import os
from pathlib import Path

import pytest
from django.db import connections

from backend.core.errors import ConflictError, ValidationError
from backend.models import Blob, Document, Ingestion, SourceSetFile
from backend.queries import questions
from backend.services import documents, sources
from tests.integration.ingest_work import folder_source, new_base, states, upload, work

pytestmark = pytest.mark.django_db(transaction=True)


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def counts(ingestion: Ingestion) -> tuple[int, int, int]:
    return ingestion.n_documents, ingestion.n_unchanged, ingestion.n_removed


def test_a_folder_with_subfolders_is_one_sync_and_hidden_ones_are_never_read(tmp_path: Path) -> None:
    write(tmp_path, {"b.txt": "b", "a/deep/c.txt": "c", ".git/x.txt": "x", "a/.cache/y.txt": "y", "a/.z.txt": "z"})
    base = new_base()
    ingestion = sources.sync(folder_source(base, tmp_path))
    work()

    assert counts(ingestion) == (2, 0, 0)
    assert states(base) == {"b.txt": ("indexed", ""), "a/deep/c.txt": ("indexed", "")}


def test_a_second_sync_opens_only_what_changed_and_removes_what_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"same.txt": "same", "changed.txt": "old", "gone.txt": "gone"})
    base = new_base()
    source = folder_source(base, tmp_path)
    sources.sync(source)
    work()
    write(tmp_path, {"changed.txt": "newer", "new.txt": "new"})
    (tmp_path / "gone.txt").unlink()
    opened: list[str] = []
    read = Path.read_bytes

    def read_and_tell(place: Path) -> bytes:
        opened.append(place.name)
        return read(place)

    monkeypatch.setattr(Path, "read_bytes", read_and_tell)
    ingestion = sources.sync(source)
    work()

    assert sorted(opened) == ["changed.txt", "new.txt"]
    assert counts(ingestion) == (2, 1, 1)
    assert sorted(states(base)) == ["changed.txt", "new.txt", "same.txt"]
    assert {bytes(one.data) for one in Blob.objects.all()} == {b"same", b"newer", b"new"}


def test_a_touched_file_with_the_same_bytes_is_unchanged_and_not_opened_the_next_time(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "same"})
    base = new_base()
    source = folder_source(base, tmp_path)
    sources.sync(source)
    work()
    os.utime(tmp_path / "a.txt", ns=(1, 1))

    assert counts(sources.sync(source)) == (0, 1, 0)
    assert Document.objects.get().modified_ns == 1


def test_a_sync_that_finds_nothing_to_do_is_over_at_once(tmp_path: Path) -> None:
    ingestion = sources.sync(folder_source(new_base(), tmp_path))

    assert (ingestion.state, counts(ingestion)) == ("completed", (0, 0, 0))


def test_links_that_leave_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.txt": "secret"})
    root = write(tmp_path / "root", {"a.txt": "a"})
    (root / "file.txt").symlink_to(outside / "secret.txt")
    (root / "folder").symlink_to(outside)
    (root / "inside.txt").symlink_to(root / "a.txt")
    (root / "broken.txt").symlink_to(root / "nothing")
    (root / ".touchstone").mkdir()
    (root / ".touchstone" / "q.jsonl").symlink_to(outside / "secret.txt")
    base = new_base()
    sources.sync(folder_source(base, root))

    assert sorted(states(base)) == ["a.txt", "inside.txt"]
    assert not SourceSetFile.objects.exists()


def test_a_folder_that_went_away_does_not_empty_the_base(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"a.txt": "a"})
    base = new_base()
    source = folder_source(base, root)
    sources.sync(source)
    root.rename(tmp_path / "elsewhere")

    with pytest.raises(ConflictError):
        sources.sync(source)
    assert Document.objects.count() == 1


def test_a_name_that_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "a"})
    (tmp_path / os.fsdecode(b"b\xff.txt")).write_text("b")
    base = new_base()
    sources.sync(folder_source(base, tmp_path))
    assert sorted(states(base)) == ["a.txt"]


def test_a_large_file_is_a_failed_document_and_is_not_hashed_at_every_sync(tmp_path: Path, settings: object) -> None:
    settings.MAX_DOCUMENT_BYTES = 3  # type: ignore[attr-defined]
    write(tmp_path, {"big.txt": "large", "a.txt": "a"})
    base = new_base()
    source = folder_source(base, tmp_path)
    sources.sync(source)
    work()
    assert states(base)["big.txt"] == ("failed", "DOCUMENT_TOO_LARGE")
    assert counts(sources.sync(source)) == (0, 2, 0)


def test_question_sets_in_hidden_folders_are_found_with_their_number_or_their_fault(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.txt": "a",
            ".touchstone/good.jsonl": '# comment\n{"question": "Where?", "expected": ["a.txt"]}\n',
            ".metis/cases.json": '{"cases": [{"query": "q", "expect": {"document": "a"}}]}',
            ".touchstone/bad.jsonl": '{"question": ""}\n{nothing\n',
            ".touchstone/notes.txt": "no set",
            "sub/.touchstone/other.jsonl": "{}",
        },
    )
    base = new_base()
    source = folder_source(base, tmp_path)
    sources.sync(source)

    found = {one.path: (one.n_questions, one.code) for one in questions.set_files_of(base)}
    assert found[".touchstone/good.jsonl"] == (1, "")
    assert found[".metis/cases.json"] == (1, "")
    assert found[".touchstone/bad.jsonl"][0] is None
    assert len(found) == 3
    assert "line 2" in SourceSetFile.objects.get(path=".touchstone/bad.jsonl").reason

    (tmp_path / ".touchstone/bad.jsonl").unlink()
    sources.sync(source)
    assert SourceSetFile.objects.count() == 2


def test_a_source_is_synced_by_one_at_a_time(tmp_path: Path) -> None:
    source = folder_source(new_base(), tmp_path)
    key = int.from_bytes(source.id.bytes[8:], "big", signed=True)
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [key])
            with pytest.raises(ConflictError, match="already"):
                sources.sync(source)
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
        sources.sync(source)
    finally:
        other.close()


def test_all_faults_of_a_source_are_told_together(tmp_path: Path, settings: object) -> None:
    with pytest.raises(ValidationError) as refused:
        sources.create(new_base(), name=" ", kind="folder", folder="relative/path")
    assert [fault.field for fault in refused.value.faults] == ["name", "folder"]
    write(tmp_path, {"file": "x"})
    for folder in (str(tmp_path / "file"), str(tmp_path / "missing"), "", "/a\x00b"):
        with pytest.raises(ValidationError):
            sources.create(
                new_base(name=f"base of {len(folder)} {folder[-7:]!r}"), name="s", kind="folder", folder=folder
            )


def test_only_folders_below_the_allowed_roots_can_be_sources(tmp_path: Path, settings: object) -> None:
    (tmp_path / "allowed" / "docs").mkdir(parents=True)
    (tmp_path / "allowed" / "out").symlink_to(tmp_path)
    settings.FOLDER_ROOTS = [str(tmp_path / "allowed")]  # type: ignore[attr-defined]
    base = new_base()

    folder_source(base, tmp_path / "allowed" / "docs")
    for folder in (tmp_path, tmp_path / "allowed" / ".." / "x", tmp_path / "allowed" / "out"):
        with pytest.raises(ValidationError):
            folder_source(base, folder, name=str(folder)[-20:])


def test_a_folder_outside_the_roots_is_refused_in_the_same_words_whether_it_is_there_or_not(
    tmp_path: Path, settings: object
) -> None:
    settings.FOLDER_ROOTS = [str(tmp_path / "allowed")]  # type: ignore[attr-defined]
    base, said = new_base(), set()
    (tmp_path / "there").mkdir()
    for name in ("there", "nowhere"):
        with pytest.raises(ValidationError) as refused:
            folder_source(base, tmp_path / name, name=name)
        said.add(refused.value.message.replace(name, "x"))
    assert len(said) == 1


def test_a_service_for_others_reads_no_folder_that_its_operator_did_not_name(tmp_path: Path, settings: object) -> None:
    settings.SECURE_SSL_REDIRECT = True  # type: ignore[attr-defined]
    base = new_base()
    with pytest.raises(ValidationError, match="TOUCHSTONE_FOLDER_ROOTS"):
        folder_source(base, tmp_path)
    settings.FOLDER_ROOTS = [str(tmp_path)]  # type: ignore[attr-defined]
    folder_source(base, tmp_path)


def test_the_services_own_files_are_no_documents(tmp_path: Path, settings: object) -> None:
    """Its home holds the keys, and a folder above it would hold them too."""
    home = tmp_path / "service"
    home.mkdir()
    (home / "secret.txt").write_text("a key")
    (tmp_path / "a.txt").write_text("A document.")
    settings.HOME = home  # type: ignore[attr-defined]
    base = new_base()
    for folder in (home, Path("/proc/self"), Path("/dev")):
        with pytest.raises(ValidationError):
            folder_source(base, folder, name=folder.name)
    sources.sync(folder_source(base, tmp_path))
    assert [one.path for one in Document.objects.all()] == ["a.txt"]


def test_an_upload_area_is_not_synced_and_a_folder_is_not_uploaded_to(tmp_path: Path) -> None:
    base = new_base()
    with pytest.raises(ConflictError):
        sources.sync(sources.upload_area(base))
    folder_source(base, tmp_path, name="docs")
    with pytest.raises(ConflictError):
        sources.upload_area(base, name="docs")
    with pytest.raises(ConflictError):
        folder_source(base, tmp_path, name="docs")


def test_a_deleted_source_takes_its_documents_along(tmp_path: Path) -> None:
    base = new_base()
    write(tmp_path, {"a.txt": "a"})
    source = folder_source(base, tmp_path)
    sources.sync(source)
    upload(base, {"b.txt": "b"})
    work()
    sources.delete(source)
    base.refresh_from_db()

    assert sorted(states(base)) == ["b.txt"]
    assert base.live_index is not None
    assert (base.live_index.n_documents, base.live_index.n_chunks) == (1, 1)


def test_a_file_that_vanishes_between_listing_and_reading_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a.txt": "a"})

    def vanish(place: Path) -> bytes:
        raise FileNotFoundError(place)

    monkeypatch.setattr(Path, "read_bytes", vanish)
    assert sources.sync(folder_source(new_base(), tmp_path)).n_documents == 0
    assert documents.remove_many([]) == 0
