"""The form that submits an evaluation."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from backend.models import Evaluation
from tests.api.conftest import World
from tests.api.test_result_pages import console_of, plain, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def console(world: World) -> Client:
    return console_of(world.workspace)


def test_a_new_evaluation_is_estimated_and_run_once_however_often_it_is_sent(console: Client, world: World) -> None:
    base = str(world.base.knowledge_base.id)
    form = text(console, "/evaluations/new")
    once = re.findall(r'name="once" value="([^"]+)"', form)[0]
    given = {"question_set": world.set_id, "scope": f"base:{base}", "modes": ["keyword"], "once": once, "cache": "on"}
    estimated = plain(console.post("/evaluations/new", {**given, "press": "estimate"}).content.decode())
    assert "4 × 1 way" in estimated
    assert "minutes not estimated: no provider's limit slows this" in html.unescape(estimated)
    both = console.post("/evaluations/new", {**given, "press": "both:keyword"}).content.decode()
    assert re.findall(r'value="(\w+)" checked', both) == ["keyword", "keyword_rerank"]
    assert not Evaluation.objects.exists()
    first = console.post("/evaluations/new", {**given, "press": "run"})
    second = console.post("/evaluations/new", {**given, "press": "run"})
    assert first.headers["Location"] == second.headers["Location"]
    assert Evaluation.objects.count() == 1
    text(console, "/evaluations/new", like=str(Evaluation.objects.get().id))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scope": ""}, "Choose where to search"),
        ({"modes": []}, "Choose at least one way"),
        ({"top_k": "ten"}, "top_k is a whole number"),
        ({"top_k": "5", "k": "10"}, "beyond top_k 5"),
        ({"configurations": "{"}, "are no JSON"),
        ({"configurations": '[{"mode": "magic"}]'}, "magic"),
        ({"question_set": "no-id"}, "question set"),
    ],
)
def test_a_form_that_cannot_be_run_says_why_and_keeps_what_was_written(
    console: Client, world: World, wrong: dict[str, Any], said: str
) -> None:
    given = {"question_set": world.set_id, "scope": f"base:{world.base.knowledge_base.id}", "modes": ["keyword"]}
    answer = console.post("/evaluations/new", {**given, "label": "mine", "press": "run", **wrong})
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert 'value="mine"' in answer.content.decode()
    assert not Evaluation.objects.exists()
