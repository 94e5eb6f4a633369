"""Bootstrap, login links and tokens."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from backend.core.errors import ErrorCode, TouchstoneError, ValidationError
from backend.models import LoginLink, Membership, Role, Scope, Token, Workspace
from backend.services import tokens, workspaces

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_first_start_makes_a_workspace_an_admin_a_login_link_and_a_token() -> None:
    made = workspaces.bootstrap(now=NOW)

    assert made.workspace.name == "default"
    assert not made.user.has_usable_password()
    assert Membership.objects.get(workspace=made.workspace, user=made.user).role == Role.ADMIN
    token = tokens.authenticate(made.token, NOW)
    assert token is not None
    assert set(token.scopes) == {scope.value for scope in Scope}
    assert made.login_url_path.startswith("/login/")


def test_a_second_start_keeps_everything_and_gives_the_token_back() -> None:
    first = workspaces.bootstrap(now=NOW)
    second = workspaces.bootstrap(existing_token=first.token, now=NOW)

    assert second.token == first.token
    assert second.workspace == first.workspace
    assert (Workspace.objects.count(), User.objects.count(), Token.objects.count()) == (1, 1, 1)
    assert second.login_url_path != first.login_url_path


@pytest.mark.parametrize("held", ["ts_unknown", "garbage", ""])
def test_a_token_that_opens_nothing_is_replaced(held: str) -> None:
    workspaces.bootstrap(now=NOW)
    made = workspaces.bootstrap(existing_token=held, now=NOW)

    assert tokens.authenticate(made.token, NOW) is not None


def test_a_login_link_works_once_and_for_an_hour() -> None:
    secret = workspaces.bootstrap(now=NOW).login_url_path.rpartition("/")[2]
    late = workspaces.bootstrap(now=NOW).login_url_path.rpartition("/")[2]

    assert workspaces.use_login_link(secret, NOW).username == "admin"
    with pytest.raises(TouchstoneError) as used:
        workspaces.use_login_link(secret, NOW)
    assert used.value.code == ErrorCode.UNAUTHENTICATED
    with pytest.raises(TouchstoneError):
        workspaces.use_login_link(late, NOW + timedelta(hours=1, seconds=1))


def test_neither_a_token_nor_a_login_secret_is_stored() -> None:
    made = workspaces.bootstrap(now=NOW)
    stored = str(list(Token.objects.values())) + str(list(LoginLink.objects.values()))

    assert made.token not in stored
    assert made.login_url_path.rpartition("/")[2] not in stored


def test_an_expired_a_revoked_and_an_inactive_users_token_open_nothing() -> None:
    made = workspaces.bootstrap(now=NOW)
    _, short = tokens.create(
        made.workspace, name="ci", scopes=[Scope.READ], expires_at=NOW + timedelta(minutes=5), now=NOW
    )
    assert tokens.authenticate(short, NOW) is not None
    assert tokens.authenticate(short, NOW + timedelta(minutes=5)) is None

    token, plain = tokens.create(made.workspace, name="ci", scopes=[Scope.READ], now=NOW)
    assert tokens.revoke(token, NOW)
    assert not tokens.revoke(token, NOW)
    assert tokens.authenticate(plain, NOW) is None

    User.objects.update(is_active=False)
    assert tokens.authenticate(made.token, NOW) is None


def test_the_last_use_is_written_at_most_once_a_minute() -> None:
    plain = workspaces.bootstrap(now=NOW).token
    for seconds in (0, 30, 59):
        tokens.authenticate(plain, NOW + timedelta(seconds=seconds))
    assert Token.objects.get().last_used_at == NOW
    tokens.authenticate(plain, NOW + timedelta(seconds=61))
    assert Token.objects.get().last_used_at == NOW + timedelta(seconds=61)


def test_a_token_has_no_scope_that_its_user_lacks() -> None:
    workspace = Workspace.objects.create(name="w")
    viewer = User.objects.create(username="v")
    Membership.objects.create(workspace=workspace, user=viewer, role=Role.VIEWER)

    tokens.create(workspace, name="t", scopes=[Scope.READ], user=viewer)
    with pytest.raises(ValidationError) as refused:
        tokens.create(workspace, name="t", scopes=[Scope.READ, Scope.ADMIN], user=viewer)
    assert "workspace:admin" in refused.value.message


def test_all_faults_of_a_token_are_told_together() -> None:
    workspace = Workspace.objects.create(name="w")
    with pytest.raises(ValidationError) as refused:
        tokens.create(workspace, name=" ", scopes=["everything"], expires_at=NOW - timedelta(1), now=NOW)
    assert [fault.field for fault in refused.value.faults] == ["name", "scopes", "expires_at"]
