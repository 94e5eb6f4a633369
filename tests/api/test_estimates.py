"""`POST evaluations/estimate` and `GET knowledge-bases/{id}/indexes`."""

from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from backend.core.states import EvaluationState
from backend.models import Evaluation, Slice
from backend.search import providers
from tests import engine
from tests.api.conftest import API, World

pytestmark = pytest.mark.django_db

COHERE = "cohere:rerank-v4.0-pro"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CO_API_KEY", "k")
    # Nobody listens there: an estimate that called a provider would fail.
    monkeypatch.setenv("TOUCHSTONE_COHERE_URL", "http://127.0.0.1:9")
    providers.forget()
    yield
    providers.forget()


def estimate(world: World, **more: Any) -> Any:
    body = {"question_set": world.set_id, "scope": world.scope, **more}
    answer = world.client.post(f"{API}/evaluations/estimate", body)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_an_estimate_counts_legs_once_and_calls_at_most(world: World, settings: Any) -> None:
    settings.PRICES = {"currency": "EUR", COHERE: {"search_units": 0.002}}
    told = estimate(world, modes=["keyword", "keyword_rerank"], reranker=COHERE)
    assert (told["n_questions"], told["n_runs"], told["n_searches"]) == (4, 2, 4)
    assert told["embedders"] == []
    (reranker,) = told["rerankers"]
    assert reranker == {
        "provider": COHERE,
        "n_items": 4,
        "n_cached": None,
        "n_calls": 4,
        "units": {"rerank_calls": 4.0, "search_units": 4.0},
        "limit_per_minute": 1000,
        "minutes": 0.0,
        "cost": 0.008,
        "is_local": False,
    }
    assert (told["cost"], told["currency"]) == (0.008, "EUR")
    assert not Evaluation.objects.exists()
    assert not Slice.objects.exists()


def test_two_configurations_of_one_pool_ask_once_and_of_two_pools_twice(world: World) -> None:
    same = [
        {"name": "all", "mode": "keyword_rerank", "reranker": COHERE},
        {"name": "cut", "mode": "keyword_rerank", "reranker": COHERE, "min_score": 0.5},
    ]
    assert estimate(world, configurations=same)["rerankers"][0]["n_calls"] == 4
    other = [*same, {"name": "fewer", "mode": "keyword_rerank", "reranker": COHERE, "rerank_depth": 10}]
    assert estimate(world, configurations=other)["rerankers"][0]["n_calls"] == 8


def test_an_unknown_price_is_said_and_no_zero(world: World) -> None:
    told = estimate(world, modes=["keyword_rerank"], reranker=COHERE)
    assert (told["cost"], told["rerankers"][0]["cost"]) == (None, None)
    assert told["notes"][0] == f"No price is known for {COHERE}: set TOUCHSTONE_PRICES."


@pytest.mark.django_db(transaction=True)
def test_a_finished_run_of_the_same_makes_its_pools_known(world: World) -> None:
    body = {"modes": ["keyword_rerank"], "reranker": "local"}
    assert estimate(world, **body)["rerankers"][0]["n_cached"] is None
    made = world.evaluate(**body)
    engine.drain()
    assert Evaluation.objects.get(id=made.json()["id"]).state == EvaluationState.COMPLETED
    reranker = estimate(world, **body)["rerankers"][0]
    assert (reranker["n_cached"], reranker["n_calls"]) == (4, 0)
    assert reranker["cost"] == 0.0
    uncached = estimate(world, **body, cache=False)["rerankers"][0]
    assert (uncached["n_cached"], uncached["n_calls"]) == (0, 4)
    deeper = [{"mode": "keyword_rerank", "reranker": "local", "rerank_depth": 20}]
    assert estimate(world, configurations=deeper)["rerankers"][0]["n_cached"] is None


def test_an_estimate_refuses_what_an_evaluation_refuses(world: World, stranger: APIClient) -> None:
    body = {"question_set": world.set_id, "scope": world.scope}
    refused = world.client.post(f"{API}/evaluations/estimate", {**body, "modes": ["telepathy"]})
    assert (refused.status_code, refused.json()["code"]) == (422, "VALIDATION")
    assert stranger.post(f"{API}/evaluations/estimate", body).status_code == 404
    unknown = world.client.post(
        f"{API}/evaluations/estimate", {**body, "modes": ["hybrid_rerank"], "reranker": "http:x"}
    )
    assert (unknown.status_code, unknown.json()["code"]) == (422, "PROVIDER_NOT_CONFIGURED")


def test_a_bases_indexes_are_listed_with_the_live_one_marked(world: World, stranger: APIClient) -> None:
    address = f"{API}/knowledge-bases/{world.base.knowledge_base.id}/indexes"
    world.base.index.ready_at = timezone.now()
    world.base.index.save(update_fields=["ready_at"])
    (shown,) = world.client.get(address).json()["results"]
    assert (shown["id"], shown["state"], shown["is_live"]) == (str(world.base.index.id), "ready", True)
    assert shown["settings"]["embedding"]["embedder"] == "none"
    assert stranger.get(address).status_code == 404
