from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from backend.models import Document, KnowledgeBase
from tests.api.conftest import API, World
from tests.api.test_errors import is_problem

pytestmark = pytest.mark.django_db
BASES = f"{API}/knowledge-bases"


@pytest.fixture
def empty(world: World) -> str:
    made = world.client.post(BASES, {"name": "New", "settings": {"embedding": {"embedder": "none"}}})
    assert made.status_code == 201, made.json()
    return str(made.json()["id"])


def upload(client: APIClient, base: str, files: dict[str, bytes], **more: Any) -> Any:
    parts = [SimpleUploadedFile(Path(path).name, data) for path, data in files.items()]
    return client.post(f"{BASES}/{base}/documents", {"file": parts, "path": list(files), **more}, format="multipart")


def test_a_base_is_made_read_changed_and_deleted(world: World) -> None:
    made = world.client.post(BASES, {"name": "New", "settings": {"embedding": {"embedder": "none"}}})
    assert made.status_code == 201
    assert made["Location"] == f"http://testserver{BASES}/{made.json()['id']}"
    path = f"{BASES}/{made.json()['id']}"
    read = world.client.get(path).json()
    assert read == made.json()
    assert (read["state"], read["n_documents"], read["quality"]) == ("empty", 0, None)
    assert read["settings"]["chunking"] == {"mode": "structure", "size": 1200, "overlap": 150}
    changed = world.client.patch(path, {"name": "Newer", "settings": {"keyword": {"language": "english"}}})
    assert changed.status_code == 200
    assert (changed.json()["name"], changed.json()["settings"]["keyword"]) == ("Newer", {"language": "english"})
    assert world.client.delete(path).status_code == 204
    is_problem(world.client.get(path), 404, "NOT_FOUND")


def test_all_faults_of_a_base_are_told_together(world: World) -> None:
    body = is_problem(
        world.client.post(
            BASES, {"name": "", "settings": {"chunking": {"size": 1}, "keyword": {"language": "klingon"}}}
        ),
        422,
        "VALIDATION",
    )
    assert {fault["field"] for fault in body["errors"]} == {
        "name",
        "settings.chunking.size",
        "settings.keyword.language",
    }
    assert body["n_errors"] == 3


def test_an_unknown_field_of_a_base_is_refused(world: World) -> None:
    body = is_problem(world.client.post(BASES, {"nmae": "x"}), 422, "VALIDATION")
    assert "Did you mean name?" in body["detail"]


def test_a_name_is_taken_once(world: World) -> None:
    is_problem(world.client.post(BASES, {"name": "Handbook"}), 409, "CONFLICT")


def test_bases_are_found_by_name(world: World, empty: str) -> None:
    assert [one["id"] for one in world.client.get(BASES, {"name": "New"}).json()["results"]] == [empty]
    assert len(world.client.get(BASES).json()["results"]) == 2


def test_a_base_in_use_is_deleted_only_by_force(world: World, evaluation: Any) -> None:
    path = f"{BASES}/{world.base.knowledge_base.id}"
    is_problem(world.client.delete(path), 409, "CONFLICT")
    is_problem(world.client.delete(f"{path}?force=perhaps"), 422, "VALIDATION")
    assert world.client.delete(f"{path}?force=true").status_code == 204
    run = world.client.get(f"{API}/runs").json()["results"][0]
    assert run["knowledge_base"] == {"id": None, "name": "Handbook"}


def test_documents_are_taken_in_many_at_once(world: World, empty: str) -> None:
    answer = upload(
        world.client,
        empty,
        {
            "a/leave.md": b"# Leave\n\nThirty days.",
            "b.txt": b"text",
            ".touchstone/q.jsonl": b'{"question": "x"}',
            ".git/x": b"1",
        },
        collection="first",
    )
    assert answer.status_code == 202, answer.json()
    body = answer.json()
    assert [(one["path"], one["source"], one["collection"], one["state"]) for one in body["documents"]] == [
        ("a/leave.md", "uploads", "first", "pending"),
        ("b.txt", "uploads", "first", "pending"),
    ]
    assert body["ingestion"]["state"] == "queued"
    assert body["ingestion"]["n_pending"] == 2
    assert answer["Location"].endswith(f"/ingestions/{body['ingestion']['id']}")
    assert [one["path"] for one in body["skipped"]] == [".git/x"]
    assert body["set_files"][0]["file"] == "uploads:.touchstone/q.jsonl"
    assert body["set_files"][0]["code"] == "EVAL_CASE_INVALID"
    listed = world.client.get(f"{BASES}/{empty}/set-files").json()["results"]
    assert listed == body["set_files"]
    assert world.client.get(f"{BASES}/{empty}").json()["state"] == "indexing"
    assert world.client.get(answer["Location"]).json()["n_documents"] == 2
    rounds = world.client.get(f"{BASES}/{empty}/ingestions").json()["results"]
    assert [one["id"] for one in rounds] == [body["ingestion"]["id"]]


def test_the_same_bytes_again_start_nothing(world: World, empty: str) -> None:
    upload(world.client, empty, {"a.md": b"one"})
    Document.objects.update(state="indexed")
    again = upload(world.client, empty, {"a.md": b"one"})
    assert again.status_code == 202
    assert again.json()["ingestion"] is None
    assert len(again.json()["documents"]) == 1


def test_a_document_that_is_too_large_is_told_on_it_alone(
    world: World, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MAX_DOCUMENT_BYTES", 10)
    answer = upload(world.client, empty, {"big.md": b"x" * 11, "small.md": b"x"})
    assert answer.status_code == 202
    listed = world.client.get(f"{BASES}/{empty}/documents").json()["results"]
    assert [(one["path"], one["state"], one["code"]) for one in listed] == [
        ("big.md", "failed", "DOCUMENT_TOO_LARGE"),
        ("small.md", "pending", ""),
    ]
    assert listed[0]["reason"]
    failed = world.client.get(f"{BASES}/{empty}/documents", {"state": "failed"}).json()["results"]
    assert [one["path"] for one in failed] == ["big.md"]


def test_an_upload_that_does_not_add_up_is_refused(world: World, empty: str) -> None:
    is_problem(world.client.post(f"{BASES}/{empty}/documents", {}, format="multipart"), 422, "VALIDATION")
    is_problem(upload(world.client, empty, {"a.md": b"x"}, colection="x"), 422, "VALIDATION")
    parts = [SimpleUploadedFile("a.md", b"x"), SimpleUploadedFile("b.md", b"x")]
    answer = world.client.post(f"{BASES}/{empty}/documents", {"file": parts, "path": ["a.md"]}, format="multipart")
    assert is_problem(answer, 422, "VALIDATION")["field"] == "path"
    is_problem(world.client.post(f"{BASES}/{empty}/documents", {"file": "x"}), 415, "VALIDATION")
    assert not Document.objects.filter(knowledge_base__id=empty).exists()


def test_documents_are_listed_by_page_and_filter_and_removed(world: World) -> None:
    path = f"{BASES}/{world.base.knowledge_base.id}/documents"
    first = world.client.get(path, {"limit": 2}).json()
    assert [one["path"] for one in first["results"]] == ["finance/travel.md", "policies/leave.md"]
    second = world.client.get(first["next"]).json()
    assert [one["path"] for one in second["results"]] == ["product/codes.md"]
    assert second["next"] is None
    assert [one["path"] for one in world.client.get(path, {"collection": "money"}).json()["results"]] == [
        "finance/travel.md"
    ]
    assert [one["path"] for one in world.client.get(path, {"path": "cod"}).json()["results"]] == ["product/codes.md"]
    is_problem(world.client.get(path, {"state": "lost"}), 422, "VALIDATION")
    one = second["results"][0]
    assert world.client.get(f"{path}/{one['id']}").json() == one
    assert world.client.delete(f"{path}/{one['id']}").status_code == 204
    is_problem(world.client.get(f"{path}/{one['id']}"), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "many"}, {"limit": "501"}, {"cursor": "x"}, {"cursor": "W10"}]
)
def test_a_page_that_cannot_be_is_refused(world: World, query: dict[str, str]) -> None:
    is_problem(world.client.get(BASES, query), 422, "VALIDATION")


def test_a_cursor_of_another_list_is_refused(world: World) -> None:
    documents = f"{BASES}/{world.base.knowledge_base.id}/documents"
    cursor = world.client.get(documents, {"limit": 1}).json()["next"].partition("cursor=")[2]
    is_problem(world.client.get(f"{BASES}?cursor={cursor}"), 422, "VALIDATION")


def test_rows_that_come_meanwhile_shift_no_page(world: World) -> None:
    for n in range(4):
        world.client.post(BASES, {"name": f"b{n}", "settings": {"embedding": {"embedder": "none"}}})
    page = world.client.get(BASES, {"limit": 2}).json()
    names = [one["name"] for one in page["results"]]
    world.client.post(BASES, {"name": "later", "settings": {"embedding": {"embedder": "none"}}})
    while page["next"]:
        page = world.client.get(page["next"]).json()
        names += [one["name"] for one in page["results"]]
    assert names == ["b3", "b2", "b1", "b0", "Handbook"]


def test_a_folder_is_read_again(world: World, empty: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    sources = f"{BASES}/{empty}/sources"
    made = world.client.post(sources, {"name": "docs", "kind": "folder", "folder": str(tmp_path)})
    assert made.status_code == 201, made.json()
    assert (made.json()["kind"], made.json()["n_documents"]) == ("folder", 0)
    synced = world.client.post(f"{sources}/{made.json()['id']}/sync")
    assert synced.status_code == 202, synced.json()
    assert synced.json()["ingestion"]["n_documents"] == 1
    read = world.client.get(f"{sources}/{made.json()['id']}").json()
    assert (read["n_documents"], read["n_pending"]) == (1, 1)
    assert read["synced_at"] is not None
    assert [one["name"] for one in world.client.get(sources).json()["results"]] == ["docs"]
    assert world.client.delete(f"{sources}/{made.json()['id']}").status_code == 204
    assert not Document.objects.filter(knowledge_base__id=empty).exists()


def test_faults_of_a_source_are_told(world: World, empty: str) -> None:
    body = is_problem(
        world.client.post(f"{BASES}/{empty}/sources", {"kind": "folder", "folder": "relative"}), 422, "VALIDATION"
    )
    assert {fault["field"] for fault in body["errors"]} == {"name", "folder"}
    area = world.client.post(f"{BASES}/{empty}/sources", {"name": "area"}).json()
    is_problem(world.client.post(f"{BASES}/{empty}/sources/{area['id']}/sync"), 409, "CONFLICT")
    assert upload(world.client, empty, {"a.md": b"x"}, source=area["id"]).json()["documents"][0]["source"] == "area"


def test_nothing_of_a_base_is_another_workspaces(world: World, stranger: APIClient) -> None:
    base = world.base.knowledge_base
    document = next(iter(world.base.documents.values()))
    path = f"{BASES}/{base.id}"
    upload(world.client, str(base.id), {"new.md": b"x"})
    ingestion = world.client.get(f"{path}/ingestions").json()["results"][0]["id"]
    assert stranger.get(BASES).json() == {"results": [], "next": None}
    calls = [
        stranger.get(path),
        stranger.patch(path, {"name": "mine"}),
        stranger.delete(f"{path}?force=true"),
        stranger.get(f"{path}/sources"),
        stranger.post(f"{path}/sources", {"name": "x"}),
        stranger.get(f"{path}/sources/{document.source_id}"),
        stranger.delete(f"{path}/sources/{document.source_id}"),
        stranger.post(f"{path}/sources/{document.source_id}/sync"),
        stranger.get(f"{path}/set-files"),
        stranger.get(f"{path}/documents"),
        upload(stranger, str(base.id), {"a.md": b"x"}),
        stranger.get(f"{path}/documents/{document.id}"),
        stranger.delete(f"{path}/documents/{document.id}"),
        stranger.get(f"{path}/ingestions"),
        stranger.get(f"{path}/ingestions/{ingestion}"),
        stranger.post(f"{API}/search", {"query": "leave", "scope": world.scope}),
        stranger.post(f"{API}/search", {"query": "leave", "scope": {"documents": [str(document.id)]}}),
        stranger.post(f"{API}/search", {"query": "leave", "scope": {"workspace": str(world.workspace.id)}}),
    ]
    for call in calls:
        is_problem(call, 404, "NOT_FOUND")
    assert KnowledgeBase.objects.filter(id=base.id, name="Handbook").exists()
    # A base of one's own opens nothing of another's below it.
    mine = stranger.post(BASES, {"name": "mine", "settings": {"embedding": {"embedder": "none"}}}).json()["id"]
    is_problem(stranger.get(f"{BASES}/{mine}/documents/{document.id}"), 404, "NOT_FOUND")
    is_problem(stranger.get(f"{BASES}/{mine}/ingestions/{ingestion}"), 404, "NOT_FOUND")
