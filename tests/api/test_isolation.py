"""A second workspace sees nothing of the first, at any address there is: those of later addresses too."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from rest_framework.test import APIClient

from backend.models import (
    AlertTarget,
    Document,
    Evaluation,
    Gate,
    KnowledgeBase,
    Membership,
    Question,
    QuestionSet,
    Role,
    Run,
    Schedule,
    Workspace,
)
from console.plots import of_comparison, of_history, of_run
from tests.api.access_matrix import OPEN, ROWS
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


def test_no_page_shows_what_a_query_or_form_names_of_another_workspace(world: World, theirs: World) -> None:
    """Ids in a page's query and in what its form sends, as an attacker would put them there."""
    ours, own = ids_of(world), ids_of(theirs)
    _mark_ours(world)
    attacker = Client()
    user = User.objects.create(username="attacker")
    Membership.objects.create(workspace=theirs.workspace, user=user, role=Role.ADMIN)
    attacker.force_login(user)
    names = {
        **dict.fromkeys(("base", "knowledge_base", "bases", "scope"), ours["base_id"]),
        **dict.fromkeys(("set", "question_set", "version"), ours["set_id"]),
        **dict.fromkeys(("run", "baseline", "candidate", "from", "to"), ours["run_id"]),
        **{name: ours[f"{name}_id"] for name in ("evaluation", "schedule", "gate", "draft", "source", "index", "target")
           if f"{name}_id" in ours},
        **{name: str(world.workspace.id) for name in ("workspace", "workspace_id")},
    }  # fmt: skip
    # All at once; and each kind alone, since a wrong one of another kind may end the page before it is looked at.
    alone = ("base_id", "set_id", "run_id")
    queries = [names, *({name: value for name, value in names.items() if value == ours[kind]} for kind in alone)]
    for route in routes():
        if route.startswith("api/") or ROWS[route].get("get", OPEN) == OPEN:
            continue
        for query in queries if not parts(route) or "plots" in route else queries[:1]:
            answer = attacker.get(filled(route, own), query)
            assert answer.status_code < 500, (route, query)
            assert b"marked-as-ours" not in answer.getvalue(), (route, query)
    before = _counts()
    for route in routes():
        if route.startswith("api/") or ROWS[route].get("post", OPEN) == OPEN or "delete" in route:
            continue
        with transaction.atomic():
            form = {**names, "name": "x", "mode": "keyword", "modes": ["keyword"], "cron": "0 2 * * *", "question": "x"}
            answer = attacker.post(filled(route, own), form)
            assert answer.status_code < 500, route
            assert b"marked-as-ours" not in answer.getvalue(), route
            assert _counts() == before, route
            transaction.set_rollback(True)


def test_no_plot_is_drawn_of_another_workspaces_runs(world: World, theirs: World) -> None:
    ours, own = ids_of(world), ids_of(theirs)
    attacker = Client()
    user = User.objects.create(username="attacker")
    Membership.objects.create(workspace=theirs.workspace, user=user, role=Role.ADMIN)
    attacker.force_login(user)
    never = str(uuid4())
    for name in of_comparison.NAMES:
        for baseline, candidate in ((ours, own), (own, ours), (ours, ours)):
            query = {"baseline": baseline["run_id"], "candidate": candidate["run_id"]}
            assert attacker.get(f"/compare/plots/{name}.svg", query).status_code == 404, name
    for name in of_history.NAMES:
        drawn = []
        for base, question_set in ((ours["base_id"], ours["set_id"]), (never, never)):
            answer = attacker.get(f"/plots/{name}.svg", {"knowledge_base": base, "question_set": question_set})
            drawn.append((answer.status_code, answer.content if answer.status_code == 200 else b""))
        assert drawn[0] == drawn[1], name
    for name in (*of_run.OF_RECORD, *of_run.OF_SURVEY):
        assert attacker.get(f"/runs/{ours['run_id']}/plots/{name}.svg").status_code == 404, name


def _mark_ours(world: World) -> None:
    where = {"workspace": world.workspace}
    for model in (KnowledgeBase, QuestionSet, Schedule, Gate, AlertTarget):
        model.objects.filter(**where).update(name="marked-as-ours")
    Run.objects.filter(**where).update(
        label="marked-as-ours", name="marked-as-ours", knowledge_base_name="marked-as-ours"
    )
    Document.objects.filter(knowledge_base__workspace=world.workspace).update(collection="marked-as-ours")
    Question.objects.filter(version__question_set__workspace=world.workspace).update(text="marked-as-ours")
    Workspace.objects.filter(id=world.workspace.id).update(name="marked-as-ours")


def _counts() -> list[int]:
    """What of ours there is: nobody else makes more of it, or less."""
    where = {"workspace__name": "marked-as-ours"}
    return [model.objects.filter(**where).count() for model in (KnowledgeBase, QuestionSet, Evaluation, Run, Schedule)]
