"""Who may call what: every address there is, by everybody who might try. The expected answers: access_matrix.py."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from rest_framework.test import APIClient

from backend.models import SCOPES_OF, Membership, Role, Run, Scope, Token, Workspace
from backend.services import tokens
from tests.api.access_matrix import LOGIN, OPEN, ROWS
from tests.api.addresses import body_for, filled, ids_of, parts, routes
from tests.api.conftest import World, bearer, make_world

pytestmark = pytest.mark.django_db
METHODS = ("get", "post", "patch", "put", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One method of one address of our workspace, and the scope it needs."""

    route: str
    path: str
    method: str
    needs: str

    @property
    def is_api(self) -> bool:
        return self.route.startswith("api/")

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


def cases(ids: dict[str, str]) -> Iterator[Case]:
    for route in routes():
        for method, needs in ROWS.get(route, {}).items():
            yield Case(route=route, path=filled(route, ids), method=method, needs=needs)


def ask(client: APIClient, case: Case, world: World, *, method: str = "") -> Any:
    """The answer, and everything as it was before. A refusal of the media type is a first answer only."""
    method = method or case.method
    body = None if method == "get" else body_for(case.path, world)
    with transaction.atomic():
        # A page takes what a form sends.
        answer = getattr(client, method)(case.path, body, format="json" if case.is_api else "multipart")
        if answer.status_code == 415:
            answer = getattr(client, method)(case.path, {"file": []}, format="multipart")
        transaction.set_rollback(True)
    if answer.streaming:
        answer.close()
    return answer


def leads_to_login(answer: Any) -> bool:
    return bool(answer.status_code == 302 and urlsplit(answer.headers["Location"]).path == "/login")


def member(workspace: Workspace, role: Role) -> APIClient:
    user = User.objects.create(username=f"{role.value}@{workspace.name}")
    Membership.objects.create(workspace=workspace, user=user, role=role)
    client = APIClient()
    client.force_login(user)
    return client


@pytest.fixture
def ids(world: World, write: Callable[..., Any]) -> dict[str, str]:
    """With the first question answered."""
    found = ids_of(world)
    write(Run.objects.get(id=found["run_id"]), 0, ["policies/leave.md"])
    return found


def test_every_address_has_its_row_and_no_row_is_left_over() -> None:
    found = set(routes())
    missing, left = sorted(found - set(ROWS)), sorted(set(ROWS) - found)
    if missing:
        pytest.fail(f"say in tests/api/access_matrix.py who may call {missing}", pytrace=False)
    if left:
        pytest.fail(f"take the rows of these out of tests/api/access_matrix.py, they are gone: {left}", pytrace=False)


def test_nobody_is_let_in_without_a_name(world: World, ids: dict[str, str]) -> None:
    for case in cases(ids):
        answer = ask(APIClient(), case, world)
        if case.needs == OPEN:
            assert answer.status_code not in {401, 403, 404, 405} or case.path.startswith("/login"), str(case)
        elif case.is_api:
            assert answer.status_code == 401, str(case)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), str(case)
        else:
            assert leads_to_login(answer), (str(case), answer.status_code)


@pytest.mark.parametrize("role", list(Role))
def test_a_role_opens_what_its_scopes_open_and_nothing_else(role: Role, world: World, ids: dict[str, str]) -> None:
    client = member(world.workspace, role)
    user = User.objects.get(username=f"{role.value}@{world.workspace.name}")
    own, _ = tokens.create(world.workspace, name="own", scopes=[Scope.READ], user=user)
    wrong = []
    for case in cases({**ids, "token_id": str(own.id)}):
        if case.needs == OPEN:
            continue
        status = ask(client, case, world).status_code
        if case.needs != LOGIN and Scope(case.needs) not in SCOPES_OF[role]:
            fits = status == 403
        elif "plots/" in case.route:
            fits = status in {200, 404}  # a run that is not over has no plot yet
        else:
            fits = status not in {401, 403, 404, 405} and status < 500
        if not fits:
            wrong.append((str(case), status))
    assert not wrong


def test_a_token_of_the_wrong_scope_opens_nothing(world: World, ids: dict[str, str]) -> None:
    clients: dict[str, APIClient] = {}
    for case in cases(ids):
        if not case.is_api or case.needs in {OPEN, LOGIN}:
            continue
        if case.needs not in clients:
            others = [scope for scope in Scope if scope.value != case.needs]
            clients[case.needs] = bearer(tokens.create(world.workspace, name="wrong", scopes=others)[1])
        answer = ask(clients[case.needs], case, world)
        assert answer.status_code == 403, (str(case), answer.status_code)
        assert Scope(case.needs).value in answer.json()["detail"], str(case)


def _expired(token: Token) -> None:
    Token.objects.filter(id=token.id).update(expires_at=timezone.now() - timedelta(seconds=1))


def _revoked(token: Token) -> None:
    tokens.revoke(token, timezone.now())


@pytest.mark.parametrize("spoil", [_expired, _revoked])
def test_a_token_that_has_ended_opens_nothing(
    spoil: Callable[[Token], None], world: World, ids: dict[str, str]
) -> None:
    token, plain = tokens.create(world.workspace, name="old", scopes=list(Scope))
    spoil(token)
    client = bearer(plain)
    for case in cases(ids):
        if case.needs == OPEN:
            continue
        answer = ask(client, case, world)
        assert answer.status_code == 401 if case.is_api else leads_to_login(answer), (str(case), answer.status_code)


def test_a_token_opens_no_page(world: World, ids: dict[str, str]) -> None:
    client = bearer(tokens.create(world.workspace, name="any", scopes=list(Scope))[1])
    for case in cases(ids):
        if not case.is_api and case.needs != OPEN:
            assert leads_to_login(ask(client, case, world)), str(case)


def test_an_outsider_who_may_do_everything_at_home_finds_nothing_here(world: World, ids: dict[str, str]) -> None:
    theirs = make_world("theirs")
    callers = (theirs.client, member(theirs.workspace, Role.ADMIN))
    for case in cases(ids):
        if case.needs == OPEN or not parts(case.route):
            continue
        for client in callers if case.is_api else callers[1:]:
            answer = ask(client, case, theirs)
            assert answer.status_code == 404, (str(case), answer.status_code)


def test_a_method_without_an_entry_is_no_method(world: World, ids: dict[str, str]) -> None:
    client = member(world.workspace, Role.ADMIN)
    for route, row in ROWS.items():
        assert "put" not in row, "no address takes PUT"
        for method in METHODS:
            if method not in row:
                case = Case(route=route, path=filled(route, ids), method=method, needs="")
                assert ask(client, case, world).status_code == 405, str(case)
