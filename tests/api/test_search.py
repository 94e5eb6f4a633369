from typing import Any

import pytest

from backend.core.configs import MODES
from backend.core.types import Level
from backend.services.search import SearchAnswer
from tests.api.conftest import API, World
from tests.api.test_errors import is_problem

# What is really searched needs a transaction of its own: the legs read one snapshot.
searching = pytest.mark.django_db(transaction=True)


def search(world: World, **more: Any) -> Any:
    return world.client.post(f"{API}/search", {"query": "who approves a trip", "scope": world.scope, **more})


@searching
def test_a_search_answers_with_reasons(world: World) -> None:
    answer = search(world, mode="keyword", top_k=2)
    assert answer.status_code == 200, answer.json()
    body = answer.json()
    (mode,) = body["modes"]
    assert (mode["name"], mode["degraded"], mode["failure"]) == ("keyword", False, None)
    assert mode["n_results"] >= 1
    assert mode["timings_ms"]
    first = mode["results"][0]
    assert (first["rank"], first["document"]["path"]) == (1, "finance/travel.md")
    assert first["stages"]["words"]["rank"] == 1
    assert first["stages"]["meaning"] is None
    text = first["snippet"]["text"]
    assert "approves" in {text[start:end] for start, end in first["snippet"]["marks"]}
    assert first["reason"].endswith(".")


@searching
def test_without_an_embedder_words_answer_and_a_warning_says_so(world: World) -> None:
    body = search(world, modes=["hybrid"]).json()
    assert body["modes"][0]["degraded"] is True
    assert body["modes"][0]["results"][0]["document"]["path"] == "finance/travel.md"
    assert "keywords alone" in body["warnings"][0]


@pytest.mark.django_db
def test_all_modes_can_be_asked_for_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def answer(**arguments: Any) -> SearchAnswer:
        asked.update(arguments)
        return SearchAnswer(query="q", scope={}, level=Level.DOCUMENT, modes=())

    monkeypatch.setattr("backend.services.search.search", answer)
    assert search(world, modes="all", level="document", reranker="local").json()["level"] == "document"
    assert asked["modes"] == list(MODES)
    assert (asked["level"], asked["reranker"], asked["top_k"]) == (Level.DOCUMENT, "local", 10)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"query": 3},
        {"query": "x" * 10_001},
        {"scope": {}},
        {"scope": "x"},
        {"mode": "magic"},
        {"mode": "keyword", "modes": ["hybrid"]},
        {"modes": "none"},
        {"top_k": 0},
        {"top_k": "3"},
        {"top_k": True},
        {"level": "page"},
        {"configurations": {}},
        {"topk": 3},
    ],
)
def test_a_search_that_makes_no_sense_is_refused(world: World, wrong: dict[str, Any]) -> None:
    is_problem(search(world, **wrong), 422, "VALIDATION")
