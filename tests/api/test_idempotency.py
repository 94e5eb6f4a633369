from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone

from backend.models import Document, Evaluation, IdempotencyRecord, KnowledgeBase, Scope
from backend.services import idempotency, tokens
from tests.api.conftest import API, World, bearer, client_of
from tests.api.test_errors import is_problem

BASES = f"{API}/knowledge-bases"
NEW = {"name": "New", "settings": {"embedding": {"embedder": "none"}}}


@pytest.mark.django_db
def test_the_same_request_again_gets_the_first_answer(world: World) -> None:
    first = world.client.post(BASES, NEW, headers={"Idempotency-Key": "k"})
    again = world.client.post(BASES, NEW, headers={"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first["Location"] == again["Location"]
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert KnowledgeBase.objects.filter(name="New").count() == 1


@pytest.mark.django_db
def test_another_body_under_the_same_key_is_a_conflict(world: World) -> None:
    world.client.post(BASES, NEW, headers={"Idempotency-Key": "k"})
    is_problem(world.client.post(BASES, {**NEW, "name": "Other"}, headers={"Idempotency-Key": "k"}), 409, "CONFLICT")
    assert not KnowledgeBase.objects.filter(name="Other").exists()


@pytest.mark.django_db
def test_a_key_belongs_to_its_caller_and_its_address(world: World) -> None:
    world.client.post(BASES, NEW, headers={"Idempotency-Key": "k"})
    other = client_of(world.workspace)
    answer = other.post(BASES, {**NEW, "name": "Other"}, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 201
    questions = [{"question": "a?", "expected": ["x"]}]
    sets = world.client.post(
        f"{API}/question-sets", {"name": "s", "questions": questions}, headers={"Idempotency-Key": "k"}
    )
    assert sets.status_code == 201


@pytest.mark.django_db
def test_an_error_leaves_the_key_free(world: World) -> None:
    is_problem(world.client.post(BASES, {"name": ""}, headers={"Idempotency-Key": "k"}), 422, "VALIDATION")
    assert not IdempotencyRecord.objects.exists()
    assert world.client.post(BASES, NEW, headers={"Idempotency-Key": "k"}).status_code == 201


@pytest.mark.django_db
def test_after_a_day_the_key_is_free_again(world: World) -> None:
    world.client.post(BASES, NEW, headers={"Idempotency-Key": "k"})
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=25))
    answer = world.client.post(BASES, {**NEW, "name": "Later"}, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 201
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert idempotency.forget(now=timezone.now()) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a\x01"])
def test_a_key_that_is_none_is_refused(world: World, key: str) -> None:
    is_problem(world.client.post(BASES, NEW, headers={"Idempotency-Key": key}), 422, "VALIDATION")


@pytest.mark.django_db
def test_files_are_part_of_what_was_sent(world: World) -> None:
    path = f"{BASES}/{world.base.knowledge_base.id}/documents"

    def send(data: bytes) -> Any:
        parts = {"file": SimpleUploadedFile("new.md", data)}
        return world.client.post(path, parts, format="multipart", headers={"Idempotency-Key": "k"})

    first, again, other = send(b"one"), send(b"one"), send(b"two")
    assert first.status_code == 202
    assert first.json() == again.json()
    is_problem(other, 409, "CONFLICT")
    assert Document.objects.filter(path="new.md").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_evaluation_is_made(world: World) -> None:
    body = {"question_set": world.set_id, "scope": world.scope, "modes": ["keyword"]}
    _, plain = tokens.create(world.workspace, name="nightly", scopes=list(Scope))

    def submit(_: int) -> tuple[int, str]:
        try:
            answer = bearer(plain).post(f"{API}/evaluations", body, headers={"Idempotency-Key": "nightly"})
            return answer.status_code, answer.json()["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(submit, range(6)))
    assert {status for status, _ in answers} == {202}
    assert len({evaluation for _, evaluation in answers}) == 1
    assert Evaluation.objects.count() == 1
