from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from backend.core.states import EvaluationState, SliceState
from backend.core.types import Outcome
from backend.models import Evaluation, QuestionSet, Result, Run, Slice
from tests.api.conftest import API, World
from tests.api.test_errors import is_problem

pytestmark = pytest.mark.django_db
RUNS = f"{API}/runs"
Write = Callable[..., Any]


@pytest.fixture
def run(evaluation: Evaluation, write: Write) -> Run:
    """q1 found at rank 2, q2 missed, q3 an error, q4 unanswerable."""
    found = evaluation.runs.get(name="keyword")
    write(found, 0, ["x.md", "policies/leave.md"], milliseconds=30)
    write(found, 1, ["x.md", "y.md", "z.md", "w.md"], milliseconds=10)
    write(found, 2, outcome=Outcome.ERROR, code="PROVIDER_TIMEOUT")
    write(found, 3, ["x.md"], milliseconds=20)
    return found


def results(world: World, run: Run, **query: Any) -> Any:
    answer = world.client.get(f"{RUNS}/{run.id}/results", query)
    assert answer.status_code == 200, answer.json()
    return answer.json()["results"]


def test_runs_are_listed_and_filtered(world: World, run: Run) -> None:
    both = world.client.get(RUNS).json()["results"]
    assert {one["mode"] for one in both} == {"keyword", "keyword_rerank"}
    assert [one["mode"] for one in world.client.get(RUNS, {"mode": "fulltext_rerank"}).json()["results"]] == [
        "keyword_rerank"
    ]
    base = str(world.base.knowledge_base.id)
    for query, n in (
        ({"knowledge_base": base}, 2),
        ({"knowledge_base": str(run.id)}, 0),
        ({"question_set": world.set_id}, 2),
        ({"question_set": base}, 0),
        ({"since": (timezone.now() + timedelta(hours=1)).isoformat()}, 0),
        ({"since": "2020-01-01"}, 2),
        ({"since": "2020-01-01T00:00:00Z"}, 2),
        ({"limit": 1}, 1),
    ):
        assert len(world.client.get(RUNS, query).json()["results"]) == n, query
    for wrong in ({"mode": "magic"}, {"since": "yesterday"}, {"since": "2020-13-01T00:00:00Z"}):
        is_problem(world.client.get(RUNS, wrong), 422, "VALIDATION")
    is_problem(world.client.get(RUNS, {"knowledge_base": "x"}), 404, "NOT_FOUND")


def test_a_run_is_read_labelled_and_pinned(world: World, run: Run) -> None:
    path = f"{RUNS}/{run.id}"
    body = world.client.get(path).json()
    assert (body["name"], body["pinned"], body["fingerprints"]["config"]) == ("keyword", False, run.config_fingerprint)
    assert body["knowledge_base"] == {"id": str(world.base.knowledge_base.id), "name": "Handbook"}
    changed = world.client.patch(path, {"label": "kept", "pinned": True})
    assert (changed.status_code, changed.json()["label"], changed.json()["pinned"]) == (200, "kept", True)
    assert world.client.patch(path, {"label": ""}).json()["pinned"] is True
    assert world.client.patch(path, {}).status_code == 200
    for wrong in ({"label": "x" * 201}, {"pinned": "perhaps"}, {"state": "scored"}, {"label": None}):
        is_problem(world.client.patch(path, wrong), 422, "VALIDATION")


def test_a_run_of_an_open_evaluation_goes_only_by_force(world: World, run: Run, evaluation: Evaluation) -> None:
    path = f"{RUNS}/{run.id}"
    is_problem(world.client.delete(path), 409, "CONFLICT")
    assert Result.objects.filter(run=run).count() == 4
    piece = Slice.objects.get(evaluation=evaluation)
    Slice.objects.filter(id=piece.id).update(
        state=SliceState.LEASED, token=piece.id, lease_until=timezone.now() + timedelta(minutes=1)
    )
    assert world.client.delete(f"{path}?force=true").status_code == 204
    is_problem(world.client.get(path), 404, "NOT_FOUND")
    assert not Result.objects.filter(run_id=run.id).exists()
    piece.refresh_from_db()
    assert (piece.state, piece.token) == (SliceState.CANCELLED, None)
    assert world.client.get(f"{API}/evaluations/{evaluation.id}").json()["state"] == "cancelling"
    assert Slice.objects.filter(evaluation=evaluation, kind="aggregate").count() == 1


def test_an_evaluation_goes_with_its_last_run(world: World, run: Run, evaluation: Evaluation) -> None:
    Evaluation.objects.update(state=EvaluationState.COMPLETED)
    for one in evaluation.runs.all():
        assert world.client.get(f"{API}/evaluations/{evaluation.id}").status_code == 200
        assert world.client.delete(f"{RUNS}/{one.id}").status_code == 204
    is_problem(world.client.get(f"{API}/evaluations/{evaluation.id}"), 404, "NOT_FOUND")


def test_each_question_tells_what_became_of_it(world: World, run: Run) -> None:
    found, missed, failed, unanswerable = results(world, run)
    assert (found["question"], found["found"], found["first_rank"]) == ("How long is the leave?", True, 2)
    assert found["found_at"] == {"1": False, "3": True, "5": True, "10": True}
    assert found["expect"] == [{"any_of": [{"path": "policies/leave.md"}], "grade": 1.0}]
    assert found["first_relevant"]["rank"] == 2
    assert found["first_relevant"]["stages"] == {"words": {"rank": 2, "score": 5.0}}
    assert found["found_instead"] == []
    assert (found["tags"], found["latency_ms"], found["timings_ms"]) == (["leave"], 30.0, {"words": 30})
    assert (missed["found"], missed["first_rank"], missed["first_relevant"]) == (False, None, None)
    assert [place["path"] for place in missed["found_instead"]] == ["x.md", "y.md", "z.md"]
    assert missed["found_instead"][0]["snippet"] == "Text of x.md"
    assert (failed["outcome"], failed["code"], failed["reason"]) == ("error", "PROVIDER_TIMEOUT", "It failed.")
    assert (failed["found"], failed["found_at"], failed["latency_ms"]) == (None, {}, None)
    assert (unanswerable["unanswerable"], unanswerable["found"]) == (True, None)


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ({"outcome": "found"}, ["q1"]),
        ({"outcome": "missed"}, ["q2"]),
        ({"outcome": "found", "k": 1}, []),
        ({"outcome": "missed", "k": 1}, ["q1", "q2"]),
        ({"outcome": "error"}, ["q3"]),
        ({"outcome": "ok"}, ["q1", "q2", "q4"]),
        ({"outcome": "empty"}, []),
        ({"outcome": "not_run"}, []),
        ({"tag": "money"}, ["q2"]),
        ({"tag": "none"}, []),
        ({"order": "-question"}, ["q4", "q3", "q2", "q1"]),
        ({"order": "rank"}, ["q1", "q2", "q3", "q4"]),
        ({"order": "-rank"}, ["q2", "q3", "q4", "q1"]),
        ({"order": "-latency"}, ["q1", "q4", "q2", "q3"]),
    ],
)
def test_results_are_filtered_and_ordered_the_same_on_every_page(
    world: World, run: Run, query: dict[str, Any], keys: list[str]
) -> None:
    assert [one["key"] for one in results(world, run, **query)] == keys
    paged: list[str] = []
    page = world.client.get(f"{RUNS}/{run.id}/results", {**query, "limit": 1}).json()
    while page["next"]:
        paged += [one["key"] for one in page["results"]]
        page = world.client.get(page["next"]).json()
    paged += [one["key"] for one in page["results"]]
    assert paged == keys


def test_a_smaller_k_tells_what_was_found_above_it(world: World, run: Run) -> None:
    (first, _) = results(world, run, outcome="missed", k=1)
    assert (first["k"], first["found"], first["first_relevant"]["rank"]) == (1, False, 2)
    assert [place["path"] for place in first["found_instead"]] == ["x.md"]


@pytest.mark.parametrize("query", [{"k": 11}, {"k": 0}, {"k": "x"}, {"outcome": "lost"}, {"order": "random"}])
def test_a_question_about_results_that_makes_no_sense_is_refused(world: World, run: Run, query: dict[str, Any]) -> None:
    is_problem(world.client.get(f"{RUNS}/{run.id}/results", query), 422, "VALIDATION")


def test_history_keeps_numbers_when_the_set_is_gone(world: World, run: Run) -> None:
    Evaluation.objects.update(state=EvaluationState.CANCELLED)
    QuestionSet.objects.all().delete()
    first = results(world, run)[0]
    assert (first["question"], first["key"], first["first_rank"], first["found"]) == (None, "q1", 2, True)


def test_a_page_of_results_costs_a_fixed_number_of_queries(
    world: World, run: Run, django_assert_max_num_queries: Any
) -> None:
    # The first look resolves the labels, as the end of a run does; from then on they are read.
    results(world, run)
    with django_assert_max_num_queries(12):
        results(world, run)
    with django_assert_max_num_queries(3):
        world.client.get(RUNS)


def test_nothing_of_a_run_is_another_workspaces(world: World, run: Run, stranger: APIClient) -> None:
    path = f"{RUNS}/{run.id}"
    assert stranger.get(RUNS).json()["results"] == []
    assert stranger.get(RUNS, {"knowledge_base": str(world.base.knowledge_base.id)}).json()["results"] == []
    for call in (
        stranger.get(path),
        stranger.patch(path, {"label": "mine"}),
        stranger.delete(f"{path}?force=true"),
        stranger.get(f"{path}/results"),
        stranger.get(f"{RUNS}/no-id"),
    ):
        is_problem(call, 404, "NOT_FOUND")
    run.refresh_from_db()
    assert run.label == ""
