"""Slices, arithmetic, causes and advice over HTTP, of runs that really searched."""

from typing import Any

import pytest

from backend.models import Run, Workspace
from tests.api.conftest import API, World, client_of
from tests.api.test_rescoring import orchard, run_of

pytestmark = pytest.mark.django_db(transaction=True)
# `apple` finds a, b, c and so on, in this order.
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "t/1",
        "question": "apple",
        "expect": [{"path": "b", "grade": 1}, {"path": "d", "grade": 2}],
        "tags": ["x", "y"],
    },
    {"id": "2", "question": "an apple", "expected": ["o"], "tags": ["y"], "must_pass": True},
    {"id": "t/3", "question": "the apple", "expected": ["nowhere"]},
    {"id": "t/4", "question": "pear", "unanswerable": True},
]


@pytest.fixture
def world(db: None) -> World:
    workspace = Workspace.objects.create(name="ours")
    client = client_of(workspace)
    made = client.post(f"{API}/question-sets", {"name": "golden", "questions": QUESTIONS})
    assert made.status_code == 201, made.json()
    return World(workspace=workspace, client=client, base=orchard(workspace, twice=False), set_id=made.json()["id"])


@pytest.fixture
def run(world: World) -> Run:
    return run_of(world)


def get(world: World, address: str, **params: Any) -> Any:
    answer = world.client.get(f"{API}/{address}", params)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_the_arithmetic_adds_up_to_the_value_with_what_is_at_each_rank(world: World, run: Run) -> None:
    told = get(world, f"runs/{run.id}/results/t/1/arithmetic", metric="ndcg@10")
    assert [(term["rank"], term["path"], term["gain"]) for term in told["terms"]] == [(2, "b", 1), (4, "d", 2)]
    assert [term["gain"] for term in told["ideal"]] == [2, 1]
    total = sum(term["term"] for term in told["terms"])
    assert told["value"] == pytest.approx(total / told["denominator"])
    assert told["denominator"] == pytest.approx(sum(term["term"] for term in told["ideal"]))
    assert (told["key"], told["grades"], told["threshold"]) == ("t/1", [1, 2], 1)


def test_a_question_is_named_by_its_key_before_its_number(world: World, run: Run) -> None:
    assert get(world, f"runs/{run.id}/results/2/arithmetic")["key"] == "2"
    assert get(world, f"runs/{run.id}/results/0/arithmetic")["key"] == "t/1"
    excluded = get(world, f"runs/{run.id}/results/3/arithmetic")
    assert (excluded["value"], "unanswerable" in excluded["excluded"]) == (None, True)
    assert world.client.get(f"{API}/runs/{run.id}/results/9/arithmetic").status_code == 404
    deep = world.client.get(f"{API}/runs/{run.id}/results/0/arithmetic", {"metric": "mrr@11"})
    assert (deep.status_code, "top_k 10" in deep.json()["detail"]) == (422, True)


def test_a_tag_has_the_figures_of_its_own_questions(world: World, run: Run) -> None:
    told = get(world, f"runs/{run.id}/slices", metrics="mrr@10,hit@10")
    means = {one["tag"]: (one["n_questions"], one["metrics"]["mrr@10"]["mean"]) for one in told["by_tag"]}
    assert means == {"x": (1, 0.5), "y": (2, 0.25)}
    assert (told["untagged"]["n_questions"], told["untagged"]["n_scored"]) == (2, 1)
    assert (told["must_pass"]["n"], told["must_pass"]["n_found"]) == (1, 0)
    assert told["must_pass"]["failed"][0]["key"] == "2"
    assert told["unanswerable"] == {"n": 1, "n_asked": 1, "n_silent": 1, "share": None}


def test_unanswerable_questions_have_a_share_where_scores_have_a_floor(world: World) -> None:
    run = run_of(world, modes=[], configurations=[{"name": "floor", "mode": "keyword", "min_score": 0.001}])
    assert get(world, f"runs/{run.id}/slices")["unanswerable"]["share"] == 1


def test_a_missed_question_says_where_it_was_lost(world: World, run: Run) -> None:
    rows = get(world, f"runs/{run.id}/results")["results"]
    assert [row["cause"] for row in rows] == ["", "below k", "not indexed", ""]
    assert rows[1]["losses"][0]["ranks"]["final"] == 15
    assert [row["key"] for row in get(world, f"runs/{run.id}/results", must_pass="true")["results"]] == ["2"]


def test_the_causes_of_a_set_add_up_and_are_told_by_tag(world: World, run: Run) -> None:
    told = get(world, f"runs/{run.id}/diagnosis")
    assert told["overall"]["causes"] == {"below k": 1, "not indexed": 1}
    assert told["by_tag"]["y"]["causes"] == {"below k": 1}
    assert (told["k"], told["lift"]) == (10, None)
    assert told["ceiling"] == pytest.approx(2 / 3)


def test_advice_is_told_with_what_scripts_match_on(world: World, run: Run) -> None:
    told = get(world, f"runs/{run.id}/advice")["advice"]
    assert "few_questions" in [one["id"] for one in told]
    assert all(one["sentence"] for one in told)


def test_nothing_of_another_workspace_can_be_read(world: World, run: Run) -> None:
    stranger = client_of(Workspace.objects.create(name="theirs"))
    for address in ("slices", "diagnosis", "advice", "results/0/arithmetic", "export"):
        assert stranger.get(f"{API}/runs/{run.id}/{address}").status_code == 404, address
    assert stranger.post(f"{API}/runs/{run.id}/rescore", {}).status_code == 404
