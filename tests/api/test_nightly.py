"""Schedules, baselines, gates and alerts over HTTP, and the pages that show them."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from backend.core.alerts import AlertKind
from backend.core.states import EvaluationState, RunState
from backend.core.types import Outcome
from backend.models import Alert, Evaluation, Membership, Result, Role, Run, Schedule
from backend.services import plans, run_numbers
from backend.services.run_numbers import Row
from tests.api.conftest import API, QUESTIONS, World

pytestmark = pytest.mark.django_db


def finish(run: Run) -> None:
    """Its numbers, of the rows there are."""
    rows = [
        Row(
            ordinal=one.ordinal,
            outcome=Outcome(one.outcome),
            judged=one.judged,
            timings=one.timings,
            unanswerable=bool(QUESTIONS[one.ordinal].get("unanswerable")),
            returned_something=bool(one.ranking),
        )
        for one in Result.objects.filter(run=run).order_by("ordinal")
    ]
    told = run_numbers.compute(plan=plans.load(run.evaluation_id), rows=rows)
    Run.objects.filter(id=run.id).update(
        state=told.state, metrics=told.metrics, counts=told.counts, timings=told.timings, finished_at=timezone.now()
    )
    Evaluation.objects.filter(id=run.evaluation_id).update(
        state=EvaluationState.COMPLETED, revision=1, finished_at=timezone.now()
    )
    run.refresh_from_db()


@pytest.fixture
def make_run(world: World, write: Callable[..., Any]) -> Callable[..., Run]:
    """An evaluation in one mode that has ended: what each question found."""

    def make(*found: list[str]) -> Run:
        run = Run.objects.get(evaluation_id=world.evaluate().json()["id"])
        for ordinal, paths in enumerate(found):
            write(run, ordinal, paths)
        finish(run)
        assert run.state == RunState.SCORED
        return run

    return make


WELL: tuple[list[str], ...] = (["policies/leave.md"], ["finance/travel.md"], ["product/codes.md"], [])
LOST: tuple[list[str], ...] = (["policies/leave.md"], ["product/codes.md"], ["finance/travel.md"], [])
FLOOR = [{"rule": "floor", "metric": "hit@10", "least": 0.9}]


def schedule_body(world: World, **more: Any) -> dict[str, Any]:
    evaluation = {"question_set": world.set_id, "scope": world.scope, "modes": ["keyword"]}
    return {"name": "nightly", "cron": "0 2 * * *", "time_zone": "Europe/Berlin", "evaluation": evaluation, **more}


def test_a_schedule_is_made_changed_run_and_deleted(world: World) -> None:
    made = world.client.post(f"{API}/schedules", schedule_body(world), headers={"Idempotency-Key": "one"})
    assert made.status_code == 201, made.json()
    assert (
        world.client.post(f"{API}/schedules", schedule_body(world), headers={"Idempotency-Key": "one"}).json()
        == made.json()
    )
    assert Schedule.objects.count() == 1
    address = f"{API}/schedules/{made.json()['id']}"
    assert made["Location"].endswith(address)
    assert len(made.json()["upcoming"]) == 3
    changed = world.client.patch(address, {"enabled": False, "cron": "30 4 * * 1-5"}).json()
    assert (changed["revision"], changed["next_run_at"], changed["upcoming"]) == (2, None, [])
    started = world.client.post(f"{address}/run-now")
    assert started.status_code == 202, started.json()
    assert world.client.post(f"{address}/run-now").status_code == 409
    history = world.client.get(f"{address}/history").json()["results"]
    assert [(one["manual"], one["state"], one["evaluation_state"]) for one in history] == [(True, "started", "queued")]
    assert world.client.get(f"{API}/schedules").json()["results"][0]["is_running"] is True
    assert world.client.delete(address).status_code == 204
    assert Evaluation.objects.filter(id=started.json()["evaluation"]).exists()


def test_a_schedule_asks_everything_each_time_where_it_is_told_to(world: World) -> None:
    body = schedule_body(world)
    body["evaluation"]["cache"] = False
    address = f"{API}/schedules/{world.client.post(f'{API}/schedules', body).json()['id']}"
    started = world.client.post(f"{address}/run-now").json()["evaluation"]
    assert Evaluation.objects.get(id=started).use_cache is False
    Evaluation.objects.update(state=EvaluationState.COMPLETED)
    body["evaluation"]["cache"] = True
    world.client.patch(address, {"evaluation": body["evaluation"]})
    started = world.client.post(f"{address}/run-now").json()["evaluation"]
    assert Evaluation.objects.get(id=started).use_cache is True
    body["evaluation"]["cache"] = "no"
    assert world.client.patch(address, {"evaluation": body["evaluation"]}).json()["field"] == "evaluation.cache"


def test_faults_of_a_schedule_name_their_fields(world: World) -> None:
    body = schedule_body(world, cron="0 25 * * *", time_zone="Mars", grace_seconds=5)
    body["evaluation"] = {"question_set": world.set_id, "scope": world.scope, "topk": 3}
    answer = world.client.post(f"{API}/schedules", body)
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == [
        "grace_seconds",
        "cron",
        "time_zone",
        "evaluation.topk",
    ]
    for wrong in ({}, {"name": 3}, {"name": "x", "cron": "0 2 * * *"}, {"enabled": "yes"}, {"grace_seconds": True}):
        assert world.client.post(f"{API}/schedules", wrong).status_code == 422


def test_a_run_is_approved_and_then_held_to(world: World, make_run: Callable[..., Run]) -> None:
    well = make_run(*WELL)
    made = world.client.post(f"{API}/baselines", {"run": str(well.id), "label": "first"})
    assert made.status_code == 201, made.json()
    assert (made.json()["state"], made.json()["label"], made.json()["approved_by"]) == ("in_force", "first", "test")
    assert made.json()["headline"]["mean"] == 1.0
    assert world.client.delete(f"{API}/runs/{well.id}").status_code == 409
    assert world.client.delete(f"{API}/question-sets/{world.set_id}").status_code == 409
    lost = make_run(*LOST)
    body = {"run": str(lost.id), "rules": [{"rule": "drop", "most": 0.1}], "include": ["junit", "markdown"]}
    told = world.client.post(f"{API}/gates/check", body).json()
    assert (told["outcome"], told["exit_code"]) == ("broken", 3)
    assert [one["id"] for one in told["runs"][0]["lost"]] == ["q2", "q3"]
    assert told["runs"][0]["baseline"] == str(well.id)
    suite = ET.fromstring(told["junit"]).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert "failed: a rule broke" in told["markdown"]
    world.client.post(f"{API}/question-sets/{world.set_id}/versions", {"questions": QUESTIONS[:2]})
    row = world.client.get(f"{API}/baselines").json()["results"][0]
    assert (row["state"], row["why"]) == ("outdated", "the set's labels have changed since")
    assert world.client.delete(f"{API}/baselines/{made.json()['id']}").status_code == 204
    assert world.client.get(f"{API}/baselines").json()["results"] == []
    assert world.client.get(f"{API}/baselines", {"retired": "true"}).json()["results"][0]["state"] == "retired"


def test_a_baseline_of_another_set_asks_for_no_approval_of_new_labels(
    world: World, make_run: Callable[..., Run]
) -> None:
    well = make_run(*WELL)
    other = world.client.post(f"{API}/question-sets", {"name": "other", "questions": QUESTIONS[:2]}).json()["id"]
    run = Run.objects.get(evaluation_id=world.evaluate(question_set=other).json()["id"])
    finish(run)
    body = {"run": str(run.id), "rules": [{"rule": "drop", "most": 0.1}], "baseline": str(well.id)}
    told = world.client.post(f"{API}/gates/check", body).json()["results"][0]
    assert told["status"] == "broken"
    assert told["sentence"].endswith("they asked different question sets")


def test_an_open_run_is_no_baseline_and_no_gate_lets_it_through(world: World) -> None:
    evaluation = world.evaluate().json()
    run = evaluation["runs"][0]["id"]
    assert world.client.post(f"{API}/baselines", {"run": run}).status_code == 409
    told = world.client.post(f"{API}/gates/check", {"evaluation": evaluation["id"], "rules": FLOOR}).json()
    assert (told["outcome"], told["exit_code"]) == ("unchecked", 1)


def test_a_gate_is_kept_asked_and_run_over_the_past(world: World, make_run: Callable[..., Run]) -> None:
    schedule = world.client.post(f"{API}/schedules", schedule_body(world)).json()["id"]
    made = world.client.post(f"{API}/gates", {"name": "merge", "rules": FLOOR, "schedule": schedule})
    assert made.status_code == 201, made.json()
    address = f"{API}/gates/{made.json()['id']}"
    assert world.client.post(f"{API}/gates", {"name": "merge", "rules": FLOOR}).status_code == 409
    assert world.client.patch(address, {"schedule": None}).json()["schedule"] is None
    well, lost = make_run(*WELL), make_run(*LOST)
    gate = made.json()["id"]
    outcomes = [
        world.client.post(f"{API}/gates/check", {"run": str(run.id), "gate": gate}).json()["outcome"]
        for run in (well, lost)
    ]
    assert outcomes == ["passed", "broken"]
    past = world.client.post(f"{address}/dry-run", {"limit": 5}).json()["checks"]
    assert [one["outcome"] for one in past] == ["broken", "passed"]
    assert world.client.get(f"{address}/checks").json()["results"] == [], "asking is not checking"
    assert world.client.delete(address).status_code == 204


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"rules": FLOOR},
        {"run": "x", "evaluation": "y", "rules": FLOOR},
        {"run": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"},
        {"run": 3, "rules": FLOOR},
        {"run": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11", "rules": []},
        {"run": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11", "rules": FLOOR, "include": ["html"]},
    ],
)
def test_a_check_that_makes_no_sense_is_refused(world: World, body: dict[str, Any]) -> None:
    assert world.client.post(f"{API}/gates/check", body).status_code == 422


def test_a_target_is_added_tested_and_its_secret_changes_when_asked(world: World) -> None:
    body = {"name": "chat", "kind": "webhook", "address": "https://hooks.example.org/x"}
    made = world.client.post(f"{API}/alert-targets", body)
    assert made.status_code == 201, made.json()
    address = f"{API}/alert-targets/{made.json()['id']}"
    first = world.client.post(f"{address}/secret", {}).json()["secret"]
    assert first == world.client.post(f"{address}/secret", {}).json()["secret"]
    assert first not in world.client.get(address).content.decode()
    assert world.client.post(f"{address}/secret", {"new": True}).json()["secret"] != first
    assert world.client.post(f"{address}/test").status_code == 202
    assert world.client.get(address).json()["last"]["state"] == "pending"
    assert world.client.patch(address, {"address": "http://169.254.169.254/latest"}).status_code == 422
    assert world.client.delete(address).status_code == 204


def test_a_schedule_tells_all_that_it_names_and_is_not_there(world: World) -> None:
    empty = world.client.post(f"{API}/knowledge-bases", {"name": "empty"}).json()["id"]
    for base, code in (("abc", "NOT_FOUND"), (empty, "KB_EMPTY")):
        evaluation = {"question_set": "abc", "scope": {"knowledge_base": base}}
        refused = world.client.post(f"{API}/schedules", schedule_body(world, evaluation=evaluation))
        assert [one["code"] for one in refused.json()["errors"]] == [code, "NOT_FOUND"]
    assert not Schedule.objects.exists()


def test_another_workspaces_schedule_run_and_gate_are_not_found(world: World, stranger: APIClient) -> None:
    schedule = world.client.post(f"{API}/schedules", schedule_body(world)).json()["id"]
    gate = world.client.post(f"{API}/gates", {"name": "merge", "rules": FLOOR}).json()["id"]
    run = world.evaluate().json()["runs"][0]["id"]
    assert stranger.post(f"{API}/schedules", schedule_body(world)).status_code == 404
    assert stranger.post(f"{API}/gates", {"name": "x", "rules": FLOOR, "schedule": schedule}).status_code == 404
    assert stranger.post(f"{API}/gates/check", {"run": run, "rules": FLOOR}).status_code == 404
    assert stranger.post(f"{API}/gates/check", {"run": run, "gate": gate}).status_code == 404
    assert stranger.post(f"{API}/baselines", {"run": run}).status_code == 404
    for path in ("schedules", "gates", "baselines", "alerts", "alert-targets"):
        assert stranger.get(f"{API}/{path}").json()["results"] == []


def test_the_pages_show_what_there_is_and_take_what_is_written(world: World, make_run: Callable[..., Run]) -> None:
    user = User.objects.create_user("somebody", password=None)
    Membership.objects.create(workspace=world.workspace, user=user, role=Role.EDITOR)
    person = Client()
    person.force_login(user)
    for path in ("/schedules", "/gates", "/baselines", "/alerts", "/alerts/targets", "/schedules/new", "/gates/new"):
        assert person.get(path).status_code == 200, path
    form = {"name": "nightly", "set": world.set_id, "base": world.scope["knowledge_base"], "cron": "0 2 * * *"}
    form |= {"time_zone": "UTC", "grace_hours": "6", "modes": "keyword", "enabled": "on"}
    refused = person.post("/schedules/new", {**form, "cron": "never"})
    assert refused.status_code == 422
    assert b"five fields" in refused.content
    made = person.post("/schedules/new", form)
    assert made.status_code == 302, made.content
    assert b"0 2 * * *" in person.get(made["Location"]).content
    box = b'name="cache"'
    assert Schedule.objects.get().request["cache"] is False
    assert box + b">" in person.get(f"{made['Location']}/change").content
    assert person.post(f"{made['Location']}/change", {**form, "cache": "on"}).status_code == 302
    assert "cache" not in Schedule.objects.get().request
    for path in (f"{made['Location']}/change", "/schedules/new"):
        assert box + b" checked" in person.get(path).content
    watched = {"name": "watching", "schedule": str(Schedule.objects.get().id), "enabled": "on"}
    gate = {"name": "merge", "schedule": "", "enabled": "on"}
    assert person.post("/gates/new", {**gate, "rules": "[{}]"}).status_code == 422
    assert person.post("/gates/new", {**gate, "rules": "no"}).status_code == 422
    rules = '[{"rule": "floor", "metric": "hit@10", "least": 0.9}]'
    kept = person.post("/gates/new", {**gate, "rules": rules})
    run = make_run(*LOST)
    assert b"hit@10 is 0.333" in person.get(f"{kept['Location']}?past=1").content
    for path in ("/bases", f"/bases/{world.base.knowledge_base.id}"):
        assert b", of <span>golden@1</span>" in person.get(path).content, path
    assert person.post("/gates/new", {**watched, "rules": rules}).status_code == 302
    assert b"nightly" in person.get("/gates").content
    assert person.get(f"/runs/{run.id}/approve").status_code == 200
    assert person.post(f"/runs/{run.id}/approve", {"label": "first"}).status_code == 302
    assert b"first" in person.get("/baselines").content
    alert = Alert.objects.create(
        workspace=world.workspace,
        kind=AlertKind.GATE,
        key="x",
        title="it <broke>",
        detail={"sentences": ["a & b"], "because": ["corpus same"], "lost": ["q1"]},
        opened_at=timezone.now(),
    )
    for path in ("/alerts", f"/alerts/{alert.id}"):
        shown = person.get(path).content
        assert b"it &lt;broke&gt;" in shown
    hook = {"name": "chat", "kind": "webhook", "address": "https://hooks.example.org/x"}
    assert person.post("/alerts/targets", hook).status_code == 302
    assert person.post("/alerts/targets", {**hook, "name": "two", "address": "http://10.0.0.1/"}).status_code == 422
    assert b"whsec_" in person.get("/alerts/targets").content
