"""Every error is a problem, with a code, a sentence and the request's id."""

import base64
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError
from django.test import Client
from django.test.client import FakePayload
from django.utils import timezone
from rest_framework.test import APIClient

from api import auth, errors, urls
from api.base import Endpoint
from api.documents import DocumentsView
from api.search import SearchView
from backend.core.errors import ErrorCode
from backend.models import KnowledgeBase, Membership, Role, Scope, Token, Workspace
from backend.services import knowledge_bases, tokens
from tests.api.conftest import API, World, bearer, client_of

pytestmark = pytest.mark.django_db


def is_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["code"] == code
    assert body["type"] == f"urn:touchstone:error:{code}"
    assert body["title"]
    assert body["detail"].endswith((".", "?", ")"))
    assert body["request_id"] == response["X-Request-Id"] != ""
    return body


def test_every_code_has_a_status() -> None:
    assert set(errors.STATUS) == set(ErrorCode)
    assert all(400 <= status < 600 for status in errors.STATUS.values())


def test_a_stored_code_never_becomes_a_500() -> None:
    fives = {code for code, status in errors.STATUS.items() if status == 500}
    assert fives == {ErrorCode.INTERNAL}


def test_without_a_token_nothing_is_told() -> None:
    answer = APIClient().get(f"{API}/runs")
    told = is_problem(answer, 401, "UNAUTHENTICATED")["detail"]
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert told.startswith("This needs a token. Send `Authorization: Bearer ts_…`. `touchstone up` puts a token into")


@pytest.mark.parametrize("plain", ["ts_wrong", "wrong", "", "ts_" + "a" * 5000])
def test_a_wrong_token_is_told_as_such(plain: str) -> None:
    told = is_problem(bearer(plain).get(f"{API}/runs"), 401, "UNAUTHENTICATED")["detail"]
    assert "Send `Authorization: Bearer ts_…`" in told
    assert "POST /api/v1/tokens" in told


def test_a_revoked_token_opens_nothing(world: World) -> None:
    tokens.revoke(Token.objects.get(workspace=world.workspace), timezone.now())
    is_problem(world.client.get(f"{API}/runs"), 401, "UNAUTHENTICATED")


def test_a_token_without_the_scope_is_told_which_it_lacks(world: World) -> None:
    reader = client_of(world.workspace, Scope.READ)
    assert reader.get(f"{API}/knowledge-bases").status_code == 200
    body = is_problem(reader.post(f"{API}/knowledge-bases", {"name": "x"}), 403, "FORBIDDEN")
    assert "knowledge-bases:write" in body["detail"]
    is_problem(reader.post(f"{API}/evaluations", {}), 403, "FORBIDDEN")


def test_a_token_keeps_no_scope_that_its_user_lost(world: World, django_user_model: Any) -> None:
    user = django_user_model.objects.create(username="once-editor")
    member = Membership.objects.create(workspace=world.workspace, user=user, role=Role.EDITOR)
    _, plain = tokens.create(world.workspace, name="mine", scopes=[Scope.READ, Scope.WRITE], user=user)
    member.role = Role.VIEWER
    member.save(update_fields=["role"])
    client = bearer(plain)
    assert client.get(f"{API}/runs").status_code == 200
    is_problem(client.post(f"{API}/knowledge-bases", {"name": "x"}), 403, "FORBIDDEN")
    member.delete()
    is_problem(client.get(f"{API}/runs"), 403, "FORBIDDEN")


def test_a_session_is_checked_for_csrf_and_scope(world: World, django_user_model: Any) -> None:
    user = django_user_model.objects.create(username="viewer")
    Membership.objects.create(workspace=world.workspace, user=user, role=Role.VIEWER)
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(user)
    assert client.get(f"{API}/knowledge-bases").json()["results"][0]["name"] == "Handbook"
    is_problem(client.post(f"{API}/search", {}), 403, "FORBIDDEN")
    other = Workspace.objects.create(name="not mine")
    is_problem(client.get(f"{API}/runs", headers={auth.WORKSPACE_HEADER: str(other.id)}), 403, "FORBIDDEN")


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/nothing", "/api/v1/runs/"])
def test_an_address_that_is_not_there(world: World, path: str) -> None:
    is_problem(world.client.get(path), 404, "NOT_FOUND")


def test_a_page_that_is_not_there_is_a_page() -> None:
    answer = Client().get("/nothing")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


def test_a_method_that_is_not_there(world: World) -> None:
    for method in ("put", "delete", "options"):
        is_problem(getattr(world.client, method)(f"{API}/evaluations"), 405, "VALIDATION")


def test_a_media_type_that_is_not_taken(world: World) -> None:
    answer = world.client.post(f"{API}/evaluations", "hello", content_type="text/plain")
    is_problem(answer, 415, "VALIDATION")


@pytest.mark.parametrize("body", ["{", "[1", '{"a": NaN}', "\ufeff{"])
def test_a_body_that_is_no_json(world: World, body: str) -> None:
    is_problem(world.client.post(f"{API}/evaluations", body, content_type="application/json"), 400, "VALIDATION")


@pytest.mark.parametrize("path", ["evaluations", "search", "knowledge-bases", "question-sets", "comparisons"])
def test_a_body_that_is_nested_too_deeply(world: World, path: str) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        for depth in (60, 2_000, 100_000):
            body = opening * depth + "1" + closing * depth
            is_problem(world.client.post(f"{API}/{path}", body, content_type="application/json"), 422, "VALIDATION")


def test_values_of_another_type_are_refused_and_no_500(world: World) -> None:
    sources = f"knowledge-bases/{world.base.knowledge_base.id}/sources"
    for path, good, names in (
        (
            "search",
            {"query": "leave", "scope": world.scope},
            "query scope mode modes configurations top_k level reranker",
        ),
        (sources, {"name": "area"}, "name kind folder collection"),
    ):
        for name in names.split():
            for value in ({"a": 1}, ["x"], [["x"]]):
                is_problem(world.client.post(f"{API}/{path}", {**good, name: value}), 422, "VALIDATION")


def test_a_made_up_cursor_is_refused_or_answered(world: World) -> None:
    made_up = ["[1e999]", "[-1e999]", "[NaN]", '["x"]', "[" * 1500, "[" + "9" * 500 + "]", '["\\ud800"]', "[[1]]"]
    for path, order in (("questions", '["ordinal"]'), ("versions", '["-number"]')):
        for values in made_up:
            cursor = base64.urlsafe_b64encode(f"[{order},{values}]".encode()).decode()
            answer = world.client.get(f"{API}/question-sets/{world.set_id}/{path}", {"cursor": cursor})
            assert answer.status_code in {200, 422}, (values, answer.content)


@pytest.mark.parametrize("error", [IntegrityError("a key"), KnowledgeBase.DoesNotExist("gone")])
def test_what_goes_away_while_it_is_used_is_a_conflict(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(knowledge_bases, "patch", fail)
    path = f"{API}/knowledge-bases/{world.base.knowledge_base.id}"
    is_problem(world.client.patch(path, {"name": "x"}), 409, "CONFLICT")


def test_the_rest_of_a_refused_body_is_read() -> None:
    """Or the client would see a reset connection in place of the answer."""
    payload = FakePayload(b"x" * 3_000_000)
    environ: dict[str, Any] = {"wsgi.input": payload, "CONTENT_LENGTH": "3000000", "CONTENT_TYPE": "text/plain"}
    answer = Client().generic("POST", f"{API}/evaluations", b"", **environ)
    assert answer.status_code in {401, 413}
    assert payload.read() == b""


@pytest.mark.parametrize("body", ["[]", "1", '"text"', "null"])
def test_a_body_that_is_no_object(world: World, body: str) -> None:
    is_problem(world.client.post(f"{API}/evaluations", body, content_type="application/json"), 422, "VALIDATION")


def test_a_body_that_is_too_large(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchView, "max_body_bytes", 100)
    is_problem(world.client.post(f"{API}/search", {"query": "x" * 200, "scope": world.scope}), 413, "VALIDATION")


def test_too_many_files_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DATA_UPLOAD_MAX_NUMBER_FILES", 2)
    files = [SimpleUploadedFile(f"{n}.md", b"x") for n in range(3)]
    path = f"{API}/knowledge-bases/{world.base.knowledge_base.id}/documents"
    is_problem(world.client.post(path, {"file": files}, format="multipart"), 413, "VALIDATION")


def test_characters_that_no_text_can_have_are_refused_and_no_500(world: World) -> None:
    nul = chr(0)
    is_problem(world.client.get(f"{API}/knowledge-bases", {"name": nul}), 422, "VALIDATION")
    is_problem(world.client.get(f"{API}/runs/%00"), 404, "NOT_FOUND")
    for escaped in ("\\u0000", "\\ud800"):
        sent = f'{{"name": "x", "settings": {{"reranker": ["{escaped}"]}}}}'
        answer = world.client.post(f"{API}/knowledge-bases", sent, content_type="application/json")
        assert is_problem(answer, 422, "VALIDATION")["field"] == "settings.reranker[0]"


def test_a_fault_of_ours_is_a_500_that_tells_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("backend.queries.runs.of", fail)
    body = is_problem(world.client.get(f"{API}/runs"), 500, "INTERNAL")
    assert "secret" not in str(body)


def test_a_request_id_is_kept_where_it_is_harmless(world: World) -> None:
    answer = world.client.get(f"{API}/runs", headers={"X-Request-Id": "mine-1"})
    assert answer["X-Request-Id"] == "mine-1"
    answer = world.client.get(f"{API}/runs", headers={"X-Request-Id": "bad\tone"})
    assert answer["X-Request-Id"] not in {"", "bad\tone"}


def test_every_method_of_every_view_names_its_scope() -> None:
    views = [one.callback.view_class for one in urls.api if hasattr(one.callback, "view_class")]  # type: ignore[union-attr]
    ours = [view for view in views if issubclass(view, Endpoint)]
    assert len(ours) >= 25
    for view in ours:
        writing = {"POST", "PUT", "PATCH", "DELETE"} & {
            method.upper() for method in view.http_method_names if hasattr(view, method)
        }
        assert writing == set(view.required_scopes) - {"GET"}, view


def test_the_largest_upload_is_bounded() -> None:
    assert DocumentsView.max_body_bytes < 2**31
