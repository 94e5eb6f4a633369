from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from backend.models import QuestionSet
from tests.api.conftest import API, QUESTIONS, World
from tests.api.test_errors import is_problem

pytestmark = pytest.mark.django_db
SETS = f"{API}/question-sets"


def upload(client: APIClient, data: bytes, *, to: str = SETS, filename: str = "my.jsonl", **more: Any) -> Any:
    return client.post(to, {"file": SimpleUploadedFile(filename, data), **more}, format="multipart")


def test_a_file_becomes_a_set(world: World) -> None:
    made = upload(world.client, b'# mine\n{"question": "a?", "expected": ["x.md"]}\n', name="mine")
    assert made.status_code == 201, made.json()
    body = made.json()
    assert (body["name"], body["n_questions"], body["version"]["number"]) == ("mine", 1, 1)
    assert (body["version"]["format"], body["version"]["filename"], body["version"]["level"]) == (
        "jsonl",
        "my.jsonl",
        "document",
    )
    assert world.client.get(made["Location"]).json() == body
    unnamed = upload(world.client, b'{"question": "a?", "expected": ["x.md"]}\n', filename="nightly.jsonl")
    assert unnamed.json()["name"] == "nightly"


def test_a_cases_file_can_be_sent_as_the_body(world: World) -> None:
    cases = [{"query": "a?", "expect": {"document": "x.md"}}]
    assert world.client.post(SETS, {"name": "cases", "cases": cases}).status_code == 201


def test_every_fault_of_a_file_is_told_by_line(world: World) -> None:
    data = b'{"question": ""}\n{"question": "a?"}\nno json\n'
    body = is_problem(upload(world.client, data, name="bad", format="jsonl"), 422, "EVAL_CASE_INVALID")
    assert [fault["line"] for fault in body["errors"]] == [1, 1, 2, 3]
    assert body["errors"][3]["code"] == "EVAL_FILE"
    assert body["line"] == 1
    assert not QuestionSet.objects.filter(name="bad").exists()


def test_the_first_hundred_faults_are_shown_and_all_counted(world: World) -> None:
    body = is_problem(
        world.client.post(SETS, {"name": "bad", "questions": [{"question": ""}] * 150}), 422, "EVAL_CASE_INVALID"
    )
    assert len(body["errors"]) == 100
    assert body["n_errors"] >= 100


def test_an_empty_set_and_one_too_large_are_told_as_such(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    is_problem(upload(world.client, b"# nothing\n", name="empty"), 422, "EVAL_SET_EMPTY")
    is_problem(world.client.post(SETS, {"name": "x", "questions": []}), 422, "EVAL_SET_EMPTY")
    monkeypatch.setattr(settings, "MAX_SET_BYTES", 10)
    is_problem(upload(world.client, b'{"question": "a?", "expected": ["x"]}', name="big"), 413, "EVAL_TOO_LARGE")


def test_a_body_that_is_no_set_is_refused(world: World) -> None:
    is_problem(world.client.post(SETS, {"name": "x"}), 422, "VALIDATION")
    is_problem(world.client.post(SETS, {"name": "x", "questions": {}}), 422, "VALIDATION")
    is_problem(world.client.post(SETS, {"name": "x", "questions": [], "qestions": []}), 422, "VALIDATION")
    is_problem(world.client.post(SETS, {"questions": QUESTIONS}), 422, "VALIDATION")
    is_problem(world.client.post(SETS, {"name": "golden", "questions": QUESTIONS}), 409, "CONFLICT")
    is_problem(world.client.post(SETS, {"name": "x"}, format="multipart"), 422, "VALIDATION")


def test_versions_are_kept_and_the_same_content_makes_none(world: World) -> None:
    path = f"{SETS}/{world.set_id}"
    same = world.client.post(f"{path}/versions", {"questions": QUESTIONS})
    assert (same.status_code, same.json()["number"]) == (201, 1)
    second = world.client.post(f"{path}/versions", {"questions": QUESTIONS[:2]})
    assert (second.status_code, second.json()["number"], second.json()["n_questions"]) == (201, 2, 2)
    assert [one["number"] for one in world.client.get(f"{path}/versions").json()["results"]] == [2, 1]
    first = world.client.get(f"{path}/versions/1/questions", {"limit": 3}).json()
    assert [one["id"] for one in first["results"]] == ["q1", "q2", "q3"]
    assert [one["id"] for one in world.client.get(first["next"]).json()["results"]] == ["q4"]
    assert [one["id"] for one in world.client.get(second["Location"]).json()["results"]] == ["q1", "q2"]
    for number in ("3", "0", "x"):
        is_problem(world.client.get(f"{path}/versions/{number}/questions"), 404, "NOT_FOUND")
    file = upload(world.client, b'{"question": "b?", "expected": ["x"]}', to=f"{path}/versions")
    assert (file.status_code, file.json()["number"]) == (201, 3)
    listed = world.client.get(SETS, {"name": "golden"}).json()["results"]
    assert [(one["latest_version"], one["n_questions"]) for one in listed] == [(3, 1)]


def test_single_questions_are_edited_by_new_versions(world: World) -> None:
    path = f"{SETS}/{world.set_id}/questions"
    added = world.client.post(path, {"id": "a/b c", "question": "Where?", "expected": ["x.md"], "source": "drive"})
    assert added.status_code == 201, added.json()
    assert added.json()["version"]["number"] == 2
    assert added.json()["questions"][0]["id"] == "a/b c"
    assert world.client.get(added["Location"]).json()["question"] == "Where?"
    several = world.client.post(
        path, {"questions": [{"question": "1?", "expected": ["x"]}, {"question": "2?", "expected": ["x"]}]}
    )
    assert [one["question"] for one in several.json()["questions"]] == ["1?", "2?"]
    counted = world.client.get(f"{path}/count").json()
    assert counted == {
        "version": 3,
        "count": 7,
        "by_source": {"": 6, "drive": 1},
        "by_collection": {"": 7},
    }
    assert world.client.get(f"{path}/count", {"source": "drive"}).json()["count"] == 1
    assert [one["id"] for one in world.client.get(path, {"tag": "leave"}).json()["results"]] == ["q1"]
    is_problem(world.client.post(path, {"id": "q1", "question": "x?", "expected": ["x"]}), 422, "EVAL_CASE_INVALID")
    is_problem(world.client.post(path, {"questions": "x"}), 422, "VALIDATION")
    assert world.client.delete(f"{path}/q1").status_code == 204
    is_problem(world.client.get(f"{path}/q1"), 404, "NOT_FOUND")
    is_problem(world.client.delete(f"{path}/q1"), 404, "NOT_FOUND")
    assert world.client.get(f"{SETS}/{world.set_id}/versions/1/questions").json()["results"][0]["id"] == "q1"


def test_a_set_in_use_is_deleted_only_by_force(world: World, evaluation: Any) -> None:
    path = f"{SETS}/{world.set_id}"
    is_problem(world.client.delete(path), 409, "CONFLICT")
    assert world.client.delete(f"{path}?force=true").status_code == 204
    run = world.client.get(f"{API}/runs").json()["results"][0]
    assert (run["question_set"]["id"], run["question_set"]["name"]) == (None, "golden@1")


def test_nothing_of_a_set_is_another_workspaces(world: World, stranger: APIClient) -> None:
    path = f"{SETS}/{world.set_id}"
    assert stranger.get(SETS).json()["results"] == []
    for call in (
        stranger.get(path),
        stranger.delete(f"{path}?force=true"),
        stranger.get(f"{path}/versions"),
        stranger.post(f"{path}/versions", {"questions": QUESTIONS}),
        stranger.get(f"{path}/versions/1/questions"),
        stranger.get(f"{path}/questions"),
        stranger.post(f"{path}/questions", {"question": "x?", "expected": ["x"]}),
        stranger.get(f"{path}/questions/q1"),
        stranger.delete(f"{path}/questions/q1"),
        stranger.get(f"{path}/questions/count"),
        stranger.get(f"{SETS}/no-id"),
    ):
        is_problem(call, 404, "NOT_FOUND")
    assert QuestionSet.objects.filter(id=world.set_id).exists()
