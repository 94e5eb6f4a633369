"""Questions made from documents over HTTP: begun, followed, decided about, put into a set, evaluated, and marked."""

from typing import Any

import pytest

from backend.core.generation.kinds import DraftState
from backend.models import Draft, Generation
from backend.queries.runs import caution
from tests.api.conftest import API, World

pytestmark = pytest.mark.django_db


@pytest.fixture
def drafted(world: World) -> Generation:
    made = Generation.objects.create(
        workspace=world.workspace, knowledge_base=world.base.knowledge_base, llm="openai:m", prompt_version="abc"
    )
    passage = {
        "chunk": "1",
        "document": "2",
        "path": "policies/leave.md",
        "source": "files",
        "collection": "",
        "heading": "",
        "page": None,
        "start": 0,
        "end": 26,
        "text": "The leave is thirty days.",
        "snippet": "leave is thirty days",
    }
    rows = [("How many days off are there?", "pending"), ("What about that?", "dropped"), ("", "failed")]
    for ordinal, (question, state) in enumerate(rows):
        Draft.objects.create(
            generation=made,
            ordinal=ordinal,
            kind="fact",
            state=state,
            question=question,
            passages=[passage],
            code="" if state == "pending" else "form",
            leakage_band="low",
        )
    return made


def test_generating_answers_at_once_with_where_to_look(world: World) -> None:
    body = {"knowledge_base": world.scope["knowledge_base"], "sample_size": 5}
    made = world.client.post(f"{API}/question-sets/generate", body, headers={"Idempotency-Key": "one"})
    again = world.client.post(f"{API}/question-sets/generate", body, headers={"Idempotency-Key": "one"})
    assert (made.status_code, again.json()["id"]) == (202, made.json()["id"])
    assert made.headers["Location"].endswith(f"/generations/{made.json()['id']}")
    told = world.client.get(made.headers["Location"]).json()
    assert (told["llm"], told["is_local"], told["job"]["state"], told["job"]["n_total"]) == ("local", True, "queued", 5)
    stopped = world.client.post(f"{API}/generations/{told['id']}/cancel")
    assert (stopped.status_code, stopped.json()["job"]["state"]) == (202, "cancelled")
    assert world.client.post(f"{API}/generations/{told['id']}/retry").status_code == 202


def test_a_body_with_faults_has_them_all_and_a_model_that_is_not_there_is_named(world: World) -> None:
    answer = world.client.post(f"{API}/question-sets/generate", {"sample_size": "many", "kinds": ["riddle"]})
    assert {one["field"] for one in answer.json()["errors"]} == {"knowledge_base", "sample_size", "kinds"}
    body = {"knowledge_base": world.scope["knowledge_base"], "llm": "nowhere:m"}
    answer = world.client.post(f"{API}/question-sets/generate", body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (
        422,
        "PROVIDER_NOT_CONFIGURED",
        "llm",
    )


def test_drafts_are_decided_about_and_become_a_set_that_stays_marked(world: World, drafted: Generation) -> None:
    told = world.client.get(f"{API}/generations/{drafted.id}").json()
    assert told["counts"] == {**{state.value: 0 for state in DraftState}, "pending": 1, "dropped": 1, "failed": 1}
    rows = world.client.get(f"{API}/generations/{drafted.id}/drafts").json()["results"]
    pending = world.client.get(f"{API}/generations/{drafted.id}/drafts?state=pending").json()["results"]
    assert [row["id"] for row in pending] == [rows[0]["id"]]
    assert world.client.post(f"{API}/generations/{drafted.id}/question-set", {"name": "x"}).status_code == 409
    for row, status in zip(rows, (200, 200, 409), strict=True):
        body: dict[str, Any] = {"action": "accept"}
        if row["state"] == "dropped":
            body["question"] = "How long may one be away?"
        answer = world.client.post(f"{API}/drafts/{row['id']}/review", body)
        assert answer.status_code == status, answer.json()
    assert world.client.get(f"{API}/drafts/{rows[1]['id']}").json()["original"] == "What about that?"
    made = world.client.post(f"{API}/generations/{drafted.id}/question-set", {"name": "made"})
    assert (made.status_code, made.json()["n_questions"]) == (201, 2)
    question = world.client.get(f"{API}/question-sets/{made.json()['id']}/questions").json()["results"][0]
    assert question["generated"] == "openai:m abc"
    assert question["expect"][0]["any_of"] == [
        {"path": "policies/leave.md", "source": "files", "text": "leave is thirty days"}
    ]
    assert question["tags"] == ["generated", "kind:fact", "leakage:low"]
    (rates,) = world.client.get(f"{API}/generation-rates").json()["results"]
    assert (rates["n_accepted"], rates["n_edited"], rates["acceptance"]) == (2, 1, 1.0)


@pytest.mark.parametrize("body", [{}, {"action": "burn"}, {"action": "accept", "question": " "}, {"action": 7}])
def test_a_decision_that_is_none_changes_nothing(world: World, drafted: Generation, body: dict[str, Any]) -> None:
    draft = drafted.drafts.order_by("ordinal")[0]
    assert world.client.post(f"{API}/drafts/{draft.id}/review", body).status_code == 422
    draft.refresh_from_db()
    assert draft.state == DraftState.PENDING


def test_answers_without_a_model_are_refused_at_submit(world: World) -> None:
    answer = world.evaluate(evaluate_answers=True)
    assert (answer.status_code, answer.json()["code"]) == (422, "PROVIDER_NOT_CONFIGURED")
    faults = world.evaluate(evaluate_answers=True, answer_passages=0, judge_repeats=9, judge=7).json()["errors"]
    assert {one["field"] for one in faults} == {"answer_passages", "judge_repeats", "judge"}


def test_numbers_on_generated_questions_carry_a_caution() -> None:
    assert caution({"n_total": 4}) == ""
    assert "3 of 4 questions were generated" in caution({"n_total": 4, "n_generated": 3})
