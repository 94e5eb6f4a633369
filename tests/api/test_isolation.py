"""A second workspace sees nothing of the first, at any address there is: those of later addresses too."""

from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from tests.api.addresses import body_for, filled, ids_of, parts, routes
from tests.api.conftest import API, World, make_world

pytestmark = pytest.mark.django_db
METHODS = ("get", "post", "patch", "delete")


@pytest.fixture
def theirs(world: World) -> World:
    return make_world("theirs")


def with_ids() -> list[str]:
    return [route for route in routes() if route.startswith("api/") and parts(route)]


def test_every_address_with_an_id_is_not_found_for_a_stranger(world: World, theirs: World) -> None:
    ours = ids_of(world)
    for route in with_ids():
        path = filled(route, ours)
        allowed = 0
        for method in METHODS:
            answer = getattr(theirs.client, method)(path, body_for(path, theirs) if method != "get" else None)
            if answer.status_code == 405:
                continue
            allowed += 1
            if answer.status_code == 415:  # it takes files: send one
                answer = theirs.client.post(path, {"file": []}, format="multipart")
            assert answer.status_code == 404, (method, path, answer.status_code)
        assert allowed, path


def test_what_lies_in_a_base_or_set_is_not_found_through_another(world: World, theirs: World) -> None:
    """The outer id is the stranger's own, the inner one is not."""
    ours = ids_of(world)
    own = ids_of(theirs)
    for route in with_ids():
        named = parts(route)
        inner = named[-1]
        if len(named) < 2 or inner in {"number", "question_key", "question"}:
            continue
        path = filled(route, {**own, inner: ours[inner]})
        assert theirs.client.get(path).status_code in {404, 405}, path
        assert theirs.client.delete(path).status_code in {404, 405}, path
        assert theirs.client.post(path, {}).status_code in {404, 405}, path


def test_ids_in_bodies_and_filters_are_not_found_either(world: World, theirs: World) -> None:
    ours, own = ids_of(world), ids_of(theirs)
    foreign: list[dict[str, Any]] = [
        {"knowledge_base": ours["base_id"]},
        {"workspace": str(world.workspace.id)},
        {"documents": [ours["document_id"]]},
        {"documents": [own["document_id"], ours["document_id"]]},
    ]
    for scope in foreign:
        for path, body in (
            ("search", {"query": "leave", "mode": "keyword"}),
            ("evaluations", {"question_set": own["set_id"], "modes": ["keyword"]}),
            (f"question-sets/{own['set_id']}/preflight", {}),
        ):
            answer = theirs.client.post(f"{API}/{path}", {**body, "scope": scope})
            assert answer.status_code == 404, (path, scope, answer.status_code)
    answer = theirs.client.post(f"{API}/evaluations", {"question_set": ours["set_id"], "scope": theirs.scope})
    assert answer.status_code == 404
    configuration = {"mode": "keyword", "index": str(world.base.knowledge_base.live_index_id)}
    wanted = {"question_set": own["set_id"], "scope": theirs.scope, "configurations": [configuration]}
    assert theirs.client.post(f"{API}/evaluations", wanted).status_code == 404
    for baseline, candidate in ((ours["run_id"], own["run_id"]), (own["run_id"], ours["run_id"])):
        answer = theirs.client.post(f"{API}/comparisons", {"baseline": baseline, "candidates": [candidate]})
        assert answer.status_code == 404


def test_lists_hold_nothing_of_another_workspace(world: World, theirs: World) -> None:
    ours = ids_of(world)
    for path in ("knowledge-bases", "question-sets", "evaluations", "runs"):
        text = theirs.client.get(f"{API}/{path}").content.decode()
        assert not any(value in text for name, value in ours.items() if name.endswith("_id")), path
    for name, value in (("knowledge_base", ours["base_id"]), ("question_set", ours["set_id"])):
        answer = theirs.client.get(f"{API}/runs", {name: value})
        assert answer.status_code == 404 or answer.json()["results"] == []


def test_a_foreign_id_is_told_like_one_that_never_was(world: World, theirs: World) -> None:
    ours = ids_of(world)
    theirs_client: APIClient = theirs.client
    for route, name in (("knowledge-bases", "base_id"), ("runs", "run_id"), ("evaluations", "evaluation_id")):
        told = theirs_client.get(f"{API}/{route}/{ours[name]}").json()
        never = str(uuid4())
        other = theirs_client.get(f"{API}/{route}/{never}").json()
        assert told["detail"].replace(ours[name], never) == other["detail"]
