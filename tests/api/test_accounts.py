"""Tokens, members, workspaces, provider keys and the audit log, over HTTP."""

from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from backend.models import AuditEvent, KnowledgeBase, Membership, ProviderKey, Role, Scope, Token, Workspace
from backend.models.runs import ProviderState
from backend.providers import sealing
from backend.providers.base import ProviderError
from backend.search import providers
from backend.services import provider_keys, rate_limits, tokens
from tests.api.conftest import API, World, bearer, client_of

pytestmark = pytest.mark.django_db
KEY = "sk-a-key-of-ours-0123456789"


def person(workspace: Workspace, role: Role, name: str = "") -> tuple[User, APIClient]:
    user = User.objects.create(username=name or f"{role.value}-of-{workspace.name}")
    Membership.objects.create(workspace=workspace, user=user, role=role)
    client = APIClient()
    client.force_login(user)
    return user, client


@pytest.fixture
def sealed(settings: Any) -> Any:
    settings.SECRET_KEYS = [Fernet.generate_key().decode()]
    providers.forget()
    yield settings
    providers.forget()


# ---- tokens


def test_a_token_is_shown_once_and_opens_what_it_says(world: World) -> None:
    _, client = person(world.workspace, Role.EDITOR)
    made = client.post(f"{API}/tokens", {"name": "nightly", "scopes": ["knowledge-bases:read"]})
    assert made.status_code == 201
    plain = made.json()["token"]
    assert plain.startswith("ts_")
    assert made.headers["Cache-Control"] == "no-store"
    assert not Token.objects.filter(digest__contains=plain).exists()
    listed = client.get(f"{API}/tokens")
    assert plain not in listed.content.decode()
    assert plain not in client.get(made.headers["Location"]).content.decode()
    holder = bearer(plain)
    assert holder.get(f"{API}/runs").status_code == 200
    assert holder.post(f"{API}/question-sets", {}).status_code == 403
    assert client.get(f"{API}/tokens").json()["results"][0]["last_used_at"] is not None


def test_nobody_gives_what_they_do_not_have(world: World) -> None:
    for role in (Role.VIEWER, Role.EDITOR):
        _, client = person(world.workspace, role)
        answer = client.post(f"{API}/tokens", {"name": "more", "scopes": [scope.value for scope in Scope]})
        assert answer.status_code == 422
        assert answer.json()["field"] == "scopes"
        assert client.post(f"{API}/tokens", {"name": "s", "scopes": [Scope.READ], "service": True}).status_code == 403
    assert Token.objects.filter(name="more").count() == 0


def test_a_token_that_is_found_cannot_outlive_its_end_through_another(world: World) -> None:
    user, _ = person(world.workspace, Role.EDITOR)
    _, plain = tokens.create(world.workspace, name="ci", scopes=[Scope.READ, Scope.WRITE], user=user)
    answer = bearer(plain).post(f"{API}/tokens", {"name": "heir", "scopes": [Scope.READ]})
    assert answer.status_code == 403
    assert world.client.post(f"{API}/tokens", {"name": "by an admin", "scopes": [Scope.READ]}).status_code == 201


def test_a_revoked_token_opens_nothing_and_stays_listed(world: World) -> None:
    user, client = person(world.workspace, Role.EDITOR)
    token, plain = tokens.create(world.workspace, name="old", scopes=[Scope.READ], user=user)
    assert bearer(plain).get(f"{API}/runs").status_code == 200
    assert client.delete(f"{API}/tokens/{token.id}").status_code == 204
    assert bearer(plain).get(f"{API}/runs").status_code == 401
    assert client.get(f"{API}/tokens/{token.id}").json()["revoked_at"] is not None


def test_tokens_of_others_are_there_for_admins_only(world: World) -> None:
    user, _ = person(world.workspace, Role.EDITOR, "somebody")
    token, _ = tokens.create(world.workspace, name="theirs", scopes=[Scope.READ], user=user)
    _, other = person(world.workspace, Role.EDITOR, "another")
    assert other.get(f"{API}/tokens/{token.id}").status_code == 404
    assert other.delete(f"{API}/tokens/{token.id}").status_code == 404
    assert other.get(f"{API}/tokens").json()["results"] == []
    assert world.client.delete(f"{API}/tokens/{token.id}").status_code == 204


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": ["knowledge-bases:read"]}, "name"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": "all"}, "scopes"),
        ({"name": "x", "scopes": ["root"]}, "scopes"),
        ({"name": "x", "scopes": ["knowledge-bases:read"], "expires_at": "soon"}, "expires_at"),
        ({"name": "x", "scopes": ["knowledge-bases:read"], "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"name": "x", "scopes": ["knowledge-bases:read"], "service": "yes"}, "service"),
        ({"name": "x", "scopes": ["knowledge-bases:read"], "user": 1}, "user"),
    ],
)
def test_a_token_that_cannot_be_made_says_why(world: World, body: dict[str, Any], field: str) -> None:
    answer = world.client.post(f"{API}/tokens", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


# ---- members and workspaces


def test_a_member_comes_changes_and_goes_and_their_tokens_with_them(world: World) -> None:
    _, admin = person(world.workspace, Role.ADMIN)
    added = admin.post(f"{API}/members", {"name": "amina", "role": "editor"})
    assert added.status_code == 201
    link = added.json()["login_url"]
    assert "/login/" in link
    user = User.objects.get(username="amina")
    _, plain = tokens.create(world.workspace, name="hers", scopes=[Scope.READ, Scope.WRITE], user=user)
    assert bearer(plain).post(f"{API}/question-sets", {}).status_code == 422
    place = added.headers["Location"]
    assert admin.patch(place, {"role": "viewer"}).json()["role"] == "viewer"
    assert bearer(plain).post(f"{API}/question-sets", {}).status_code == 403
    assert admin.delete(place).status_code == 204
    assert bearer(plain).get(f"{API}/runs").status_code == 401


def test_a_repeated_invitation_does_not_show_its_link_again(world: World) -> None:
    _, admin = person(world.workspace, Role.ADMIN)
    body = {"name": "amina", "role": "editor"}
    first, second = (admin.post(f"{API}/members", body, headers={"Idempotency-Key": "one"}) for _ in range(2))
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "login_url" in first.json()
    assert "login_url" not in second.json()
    assert AuditEvent.objects.filter(action="POST members").count() == 1


def test_a_workspace_keeps_its_last_admin(world: World) -> None:
    user, admin = person(world.workspace, Role.ADMIN)
    own = Membership.objects.get(user=user)
    assert admin.delete(f"{API}/members/{own.id}").status_code == 409
    assert admin.patch(f"{API}/members/{own.id}", {"role": "viewer"}).status_code == 409
    person(world.workspace, Role.ADMIN, "second")
    assert admin.delete(f"{API}/members/{own.id}").status_code == 204
    assert admin.get(f"{API}/members").status_code == 403


def test_an_admin_cannot_enter_the_account_of_somebody_from_elsewhere(world: World) -> None:
    """Adding a known name must give no way into that account."""
    elsewhere = Workspace.objects.create(name="elsewhere")
    person(elsewhere, Role.ADMIN, "boss")
    _, admin = person(world.workspace, Role.ADMIN)
    added = admin.post(f"{API}/members", {"name": "BOSS", "role": "viewer"})
    assert added.status_code == 201
    assert "login_url" not in added.json()
    assert admin.post(f"{added.headers['Location']}/login-link").status_code == 409
    owner = User.objects.create_user("owner", password="a long and good password")
    own = Membership.objects.create(workspace=world.workspace, user=owner, role=Role.VIEWER)
    assert admin.post(f"{API}/members/{own.id}/login-link").status_code == 409


def test_a_workspace_is_made_renamed_and_deleted_with_force_only(world: World) -> None:
    user, client = person(world.workspace, Role.ADMIN)
    made = client.post(f"{API}/workspaces", {"name": "Support"})
    assert made.status_code == 201
    assert client.post(f"{API}/workspaces", {"name": "Support"}).status_code == 409
    assert {one["name"] for one in client.get(f"{API}/workspaces").json()["results"]} == {"ours", "Support"}
    # One acts in one workspace at a time: the other is not there.
    assert client.delete(f"{API}/workspaces/{made.json()['id']}").status_code == 404
    inside = {"X-Workspace": made.json()["id"]}
    assert client.delete(f"{API}/workspaces/{made.json()['id']}", headers=inside).status_code == 204
    here = f"{API}/workspaces/{world.workspace.id}"
    assert client.patch(here, {"name": "Theirs"}).json()["name"] == "Theirs"
    world.evaluate()
    refused = client.delete(here)
    assert refused.status_code == 409
    assert "1 knowledge bases" in refused.json()["detail"]
    assert client.delete(here, {}, QUERY_STRING="force=true").status_code == 204
    assert not Workspace.objects.filter(id=world.workspace.id).exists()
    assert not KnowledgeBase.objects.exists()
    told = AuditEvent.objects.filter(action__startswith="DELETE workspaces", workspace__isnull=True)
    assert {event.workspace_name for event in told} == {"Support", "Theirs"}
    assert user.memberships.count() == 0


# ---- provider keys


def test_a_provider_key_is_kept_sealed_and_shown_to_nobody(world: World, sealed: Any) -> None:
    ProviderState.objects.create(workspace=world.workspace, provider="cohere:rerank-v4.0-pro", n_failures=3)
    made = world.client.post(f"{API}/provider-keys", {"provider": "cohere", "key": KEY})
    assert made.status_code == 201, made.json()
    row = ProviderKey.objects.get()
    assert KEY not in row.sealed
    for answer in (made, world.client.get(f"{API}/provider-keys"), world.client.get(f"{API}/provider-keys/cohere")):
        assert KEY not in answer.content.decode()
        assert row.sealed not in answer.content.decode()
    assert not ProviderState.objects.exists()  # what the old key was refused is not held against this one
    providers.forget()
    assert providers.settings(world.workspace.id).cohere_key == KEY
    other = Workspace.objects.create(name="theirs")
    assert providers.settings(other.id).cohere_key != KEY
    assert KEY not in repr(providers.settings(world.workspace.id))
    assert world.client.delete(f"{API}/provider-keys/cohere").status_code == 204
    providers.forget()
    assert providers.settings(world.workspace.id).cohere_key != KEY


def test_a_sealed_key_opens_in_no_other_row(world: World, sealed: Any) -> None:
    provider_keys.keep(world.workspace, provider_keys.Given(provider="openai", key=KEY), now=timezone.now())
    other = Workspace.objects.create(name="theirs")
    row = ProviderKey.objects.get()
    row.pk, row.workspace = None, other
    row.id = Workspace.objects.create(name="x").id
    row.save(force_insert=True)
    with pytest.raises(ProviderError, match="sealed for something else"):
        providers.settings(other.id)


def test_keys_are_sealed_anew_when_the_installations_key_changes(world: World, sealed: Any) -> None:
    provider_keys.keep(world.workspace, provider_keys.Given(provider="openai", key=KEY), now=timezone.now())
    before, old = ProviderKey.objects.get().sealed, sealed.SECRET_KEYS[0]
    new = sealing.new_key()
    sealed.SECRET_KEYS = [new, old]
    assert provider_keys.rotate() == (1, [])
    sealed.SECRET_KEYS = [new]
    providers.forget()
    assert providers.settings(world.workspace.id).openai_key == KEY
    assert ProviderKey.objects.get().sealed != before
    sealed.SECRET_KEYS = [sealing.new_key()]
    providers.forget()
    n, lost = provider_keys.rotate()
    assert (n, len(lost)) == (0, 1)
    with pytest.raises(ProviderError, match="cannot be used") as caught:
        providers.settings(world.workspace.id)
    assert KEY not in str(caught.value)


def test_an_installation_without_a_key_of_its_own_keeps_none(world: World, settings: Any) -> None:
    settings.SECRET_KEYS = []
    answer = world.client.post(f"{API}/provider-keys", {"provider": "cohere", "key": KEY})
    assert answer.status_code == 409
    assert KEY not in answer.content.decode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"provider": "somewhere", "key": KEY}, "provider"),
        ({"provider": "openai", "key": "short"}, "key"),
        ({"provider": "openai", "key": f"{KEY}\n{KEY}"}, "key"),
        ({"provider": "openai", "key": [KEY]}, "key"),
        ({"provider": "openai", "key": KEY, "base_url": "http://169.254.169.254/v1"}, "base_url"),
        ({"provider": "openai", "key": KEY, "base_url": "https://10.0.0.8/v1"}, "base_url"),
        ({"provider": "openai", "key": KEY, "base_url": f"https://u:{KEY}@example.com/v1"}, "base_url"),
        ({"provider": "openai", "key": KEY, "base_url": "https://example.com/v1?key=x"}, "base_url"),
        ({"provider": "http:near", "key": KEY}, "base_url"),
        ({"provider": "http:near", "key": KEY, "base_url": "https://example.com", "shape": "odd"}, "shape"),
    ],
)
def test_a_key_that_cannot_be_kept_is_refused_without_being_told(
    world: World, sealed: Any, body: dict[str, Any], field: str
) -> None:
    answer = world.client.post(f"{API}/provider-keys", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert KEY not in answer.content.decode()


# ---- the audit log, and limits


def test_every_change_is_told_with_who_made_it_and_without_what_was_said(world: World) -> None:
    user, client = person(world.workspace, Role.EDITOR)
    body = {"name": "secret plans", "questions": [{"question": "When do we merge?", "expected": ["a.md"]}]}
    made = client.post(f"{API}/question-sets", body)
    client.post(f"{API}/question-sets", {"name": ""})  # refused: no change
    client.post(f"{API}/search", {"query": "leave", "scope": world.scope, "mode": "keyword"})  # reads
    client.delete(f"{API}/question-sets/{made.json()['id']}")
    listed = world.client.get(f"{API}/audit", {"caller": user.username}).json()["results"]
    assert [one["action"] for one in listed] == ["DELETE question-sets/<str:set_id>", "POST question-sets"]
    first = listed[-1]
    assert first["target"].endswith(made.json()["id"])
    assert first["fields"] == ["name", "questions"]
    assert first["caller"] == f"user:{user.pk}"
    assert first["request_id"] == made.headers["X-Request-Id"]
    assert "merge" not in str(listed)
    assert client.get(f"{API}/audit").status_code == 403


def test_a_stranger_reads_no_other_log(world: World) -> None:
    client_of(Workspace.objects.create(name="theirs")).post(f"{API}/question-sets", {"name": "x"})
    other = client_of(Workspace.objects.create(name="third"))
    assert other.get(f"{API}/audit").json()["results"] == []


def test_one_token_that_asks_too_often_waits_and_no_other_does(world: World, settings: Any) -> None:
    settings.REQUESTS_PER_MINUTE = 8
    rate_limits.forget()
    one, other = client_of(world.workspace), client_of(world.workspace)
    statuses = [one.get(f"{API}/runs").status_code for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    refused = one.get(f"{API}/runs")
    assert refused.json()["code"] == "RATE_LIMITED"
    assert 1 <= int(refused.headers["Retry-After"]) <= 9
    assert other.get(f"{API}/runs").status_code == 200


def test_the_limit_holds_while_the_broker_is_away(world: World, settings: Any) -> None:
    settings.REQUESTS_PER_MINUTE, settings.REDIS_URL = 8, "redis://127.0.0.1:1/0"
    rate_limits.forget()
    try:
        client = client_of(world.workspace)
        assert [client.get(f"{API}/runs").status_code for _ in range(4)] == [200, 200, 429, 429]
    finally:
        rate_limits.forget()


def test_memory_is_bounded_by_callers_not_by_requests(settings: Any) -> None:
    settings.REQUESTS_PER_MINUTE, settings.REDIS_URL = 60, "redis://127.0.0.1:1/0"
    rate_limits.forget()
    try:
        for number in range(12_000):
            rate_limits.wait(f"token:{number}")
        assert len(rate_limits._limiter._here) == 10_000
    finally:
        rate_limits.forget()


def test_a_token_of_a_member_who_was_switched_off_opens_nothing(world: World) -> None:
    user, client = person(world.workspace, Role.ADMIN)
    _, plain = tokens.create(
        world.workspace, name="x", scopes=[Scope.READ], user=user, expires_at=timezone.now() + timedelta(days=1)
    )
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert bearer(plain).get(f"{API}/runs").status_code == 401
    assert client.get(f"{API}/runs").status_code == 401
