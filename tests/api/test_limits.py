"""Limits and spending over HTTP; and what an evaluation says it waits for."""

import io
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from backend.core.states import EvaluationState, Lane, SliceKind
from backend.models import Evaluation, ProgressEntry, ProviderState, Scope, Slice
from backend.search import providers
from backend.services import spending
from backend.services.results import ResultRow
from backend.services.spending import PaidFor, Purpose
from tests.api.conftest import API, World, client_of
from tests.api.test_errors import is_problem

Write = Callable[..., ResultRow]
EVALUATIONS = f"{API}/evaluations"
NEAR = "http:near"


@pytest.fixture
def priced(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.PRICES = {"currency": "EUR", NEAR: {"rerank_calls": 0.5}}
    monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_URL", "http://127.0.0.1:9")
    providers.forget()
    yield
    providers.forget()


def test_limits_are_the_installations_until_the_workspace_has_its_own(world: World, settings: Settings) -> None:
    told = world.client.get(f"{API}/limits").json()
    assert told == {
        "spend_per_month": None,
        "open_evaluations": settings.OPEN_EVALUATIONS,
        "questions_in_flight": settings.WORKSPACE_WINDOW,
        "own": [],
    }
    changed = world.client.patch(f"{API}/limits", {"spend_per_month": "49.90", "open_evaluations": 3}).json()
    assert (changed["spend_per_month"], changed["open_evaluations"]) == ("49.9", 3)
    assert changed["own"] == ["spend_per_month", "open_evaluations"]
    back = world.client.patch(f"{API}/limits", {"spend_per_month": None}).json()
    assert (back["spend_per_month"], back["own"]) == (None, ["open_evaluations"])


def test_only_an_admin_may_change_limits_and_all_faults_are_told(world: World) -> None:
    editor = client_of(world.workspace, Scope.READ, Scope.WRITE, Scope.EVALUATE)
    is_problem(editor.patch(f"{API}/limits", {"open_evaluations": 3}), 403, "FORBIDDEN")
    body = is_problem(world.client.patch(f"{API}/limits", {"open_evaluations": 0, "wishes": 3}), 422, "VALIDATION")
    assert [fault["field"] for fault in body["errors"]] == ["open_evaluations", "wishes"]


def test_a_months_spending_is_told_by_provider_and_purpose(world: World, stranger: APIClient, priced: None) -> None:
    paid_for = PaidFor(purpose=Purpose.EVALUATION)
    for _ in range(2):
        spending.record(world.workspace.id, NEAR, units={"rerank_calls": 1}, paid_for=paid_for)
    spending.record(world.workspace.id, "openai:m", units={"embed_calls": 1, "input_tokens": 7})
    told = world.client.get(f"{API}/spending").json()
    assert (told["spent"], told["currency"], told["month"]) == ("1", "EUR", f"{timezone.now():%Y-%m}")
    assert told["lines"] == [
        {
            "provider": NEAR,
            "purpose": "evaluation",
            "n_calls": 2,
            "n_estimated": 0,
            "units": {"rerank_calls": 2.0},
            "amount": "1",
        },
        {
            "provider": "openai:m",
            "purpose": "search",
            "n_calls": 1,
            "n_estimated": 0,
            "units": {"embed_calls": 1.0, "input_tokens": 7.0},
            "amount": None,
        },
    ]
    assert stranger.get(f"{API}/spending").json()["lines"] == []
    assert world.client.get(f"{API}/spending", {"month": "2020-01"}).json()["lines"] == []
    is_problem(world.client.get(f"{API}/spending", {"month": "2020-13"}), 422, "VALIDATION")


def test_a_submission_over_the_spend_limit_is_409_with_the_figures(world: World, priced: None) -> None:
    world.client.patch(f"{API}/limits", {"spend_per_month": "1.99"})
    body = is_problem(world.evaluate(modes=["keyword_rerank"], reranker=NEAR), 409, "SPEND_LIMIT")
    assert "up to 2.00 EUR" in body["detail"]
    assert "1.99" in body["detail"]
    assert world.evaluate().status_code == 202


def test_an_evaluation_beyond_the_open_ones_is_409_and_says_what_to_do(world: World) -> None:
    world.client.patch(f"{API}/limits", {"open_evaluations": 1})
    first = world.evaluate().json()["id"]
    body = is_problem(world.evaluate(), 409, "CONFLICT")
    assert "cancel one, or raise" in body["detail"]
    Evaluation.objects.filter(id=first).update(state=EvaluationState.COMPLETED)
    assert world.evaluate().status_code == 202
    is_problem(world.client.post(f"{EVALUATIONS}/{first}/retry"), 409, "CONFLICT")


def test_the_command_shows_and_changes_limits(world: World, priced: None) -> None:
    said = io.StringIO()
    call_command("limits", "--spend-per-month", "20", "--open-evaluations", "7", stdout=said)
    assert "spend_per_month: 20\n" in said.getvalue()
    assert "questions_in_flight: 1600 (the installation's)" in said.getvalue()
    assert "0.00 EUR" in said.getvalue()
    call_command("limits", "--workspace", str(world.workspace.id), "--spend-per-month", "none", stdout=said)
    assert world.client.get(f"{API}/limits").json()["own"] == ["open_evaluations"]
    with pytest.raises(CommandError, match="whole number"):
        call_command("limits", "--open-evaluations", "many")


def waiting_rerank(evaluation: Evaluation) -> None:
    Slice.objects.create(
        workspace_id=evaluation.workspace_id,
        evaluation=evaluation,
        kind=SliceKind.RERANK,
        lane=Lane.PROVIDER,
        reranker=NEAR,
        items=[0],
    )
    Evaluation.objects.filter(id=evaluation.id).update(state=EvaluationState.RUNNING, started_at=timezone.now())


def test_a_stalled_provider_is_told_with_when_it_is_asked_again(
    world: World, evaluation: Evaluation, settings: Settings
) -> None:
    now = timezone.now()
    state = ProviderState.objects.create(
        workspace=world.workspace,
        provider=NEAR,
        n_failures=20,
        stalled_at=now - timedelta(hours=3),
        probe_at=now + timedelta(seconds=8),
        code="PROVIDER_TIMEOUT",
        reason="It did not answer.",
    )
    before = world.client.get(f"{EVALUATIONS}/{evaluation.id}")
    assert before.json()["waiting_for"] == [], "nothing of this evaluation waits for it yet"
    waiting_rerank(evaluation)
    after = world.client.get(f"{EVALUATIONS}/{evaluation.id}")
    (told,) = after.json()["waiting_for"]
    assert (told["provider"], told["state"], told["code"]) == (NEAR, "stalled", "PROVIDER_TIMEOUT")
    assert after.headers["ETag"] != before.headers["ETag"]
    started = Evaluation.objects.get(id=evaluation.id).started_at
    assert started is not None
    # An old stall is probed anew for this evaluation: it is given up a while after the evaluation's start.
    gives_up = started + timedelta(seconds=settings.PROVIDER_STALL_SECONDS)
    assert told["gives_up_at"] == gives_up.isoformat().replace("+00:00", "Z")
    ProviderState.objects.filter(id=state.id).update(stalled_at=None, probe_at=None)
    well = world.client.get(f"{EVALUATIONS}/{evaluation.id}", headers={"If-None-Match": after.headers["ETag"]})
    assert (well.status_code, well.json()["waiting_for"]) == (200, [])


def test_a_provider_that_asked_for_a_pause_is_held_and_there_is_no_eta_meanwhile(
    world: World, evaluation: Evaluation, write: Write
) -> None:
    waiting_rerank(evaluation)
    Evaluation.objects.update(started_at=timezone.now() - timedelta(seconds=31))
    for run in evaluation.runs.all():
        for ordinal in range(3):
            write(run, ordinal, ["policies/leave.md"])
    ProgressEntry.objects.update(created_at=timezone.now() - timedelta(seconds=30))
    told: Any = world.client.get(f"{EVALUATIONS}/{evaluation.id}").json()
    # Three in 30 s, one left in each of two runs that go on side by side.
    assert told["eta_seconds"] == pytest.approx(10, abs=3)
    until = timezone.now() + timedelta(seconds=40)
    ProviderState.objects.create(workspace=world.workspace, provider=NEAR, held_at=timezone.now(), hold_until=until)
    told = world.client.get(f"{EVALUATIONS}/{evaluation.id}").json()
    (held,) = told["waiting_for"]
    assert (held["state"], held["gives_up_at"], told["eta_seconds"]) == ("held", None, None)
