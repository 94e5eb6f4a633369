"""What pages say of an evaluation before it is over, and after it was cancelled."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from backend.core.states import EvaluationState
from backend.core.types import Outcome
from backend.models import Evaluation, Run
from backend.queries import partial
from tests.api.conftest import World
from tests.api.test_result_pages import console_of, plain, text

pytestmark = pytest.mark.django_db
Write = Callable[..., Any]


@pytest.fixture
def console(world: World) -> Client:
    return console_of(world.workspace)


@pytest.fixture
def running(evaluation: Evaluation, write: Write) -> Evaluation:
    """Two modes, four questions: three answers of the one, one of the other."""
    keyword, reranked = evaluation.runs.order_by("ordinal")
    write(keyword, 0, ["policies/leave.md"])
    write(keyword, 1, ["policies/leave.md"])
    write(keyword, 2, outcome=Outcome.ERROR, code="PROVIDER_TIMEOUT")
    write(reranked, 0, ["policies/leave.md"])
    Evaluation.objects.update(state=EvaluationState.RUNNING)
    Run.objects.update(state="running")
    return evaluation


def test_answers_are_counted_as_answers_and_figures_so_far_beside_the_whole_set(
    console: Client, running: Evaluation
) -> None:
    said = plain(text(console, f"/evaluations/{running.id}"))
    assert "1 of 4 questions" in said
    assert "4 of 8 answers: 3 ok 1 error" in said
    assert "mrr@10 (2 of 3 so far, 4 in the set)" in said
    assert "2 of 3 so far, 4 in the set" in said.split("No result")[1]


def test_too_many_answers_for_figures_are_counted_and_the_numbers_come_at_the_end(
    console: Client, running: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial, "MOST_ROWS", 1)
    said = plain(text(console, f"/evaluations/{running.id}"))
    tiles, table = said.split("No result")
    assert tiles.count("numbers come at the end") == 2
    assert "not yet" not in tiles
    assert "3 answers numbers come at the end" in table
    assert "1 answer numbers come at the end" in table
    assert "0 of 4" not in table


def test_nothing_is_n_a_before_the_first_answer(console: Client, evaluation: Evaluation) -> None:
    said = plain(text(console, f"/evaluations/{evaluation.id}"))
    assert said.count("not yet") == 2
    assert "n/a" not in said
    assert "0 of 8 answers " in said
    assert "0 of 4" not in said.split("No result")[1]


def test_the_tabs_of_runs_that_are_under_way_say_not_yet(console: Client, running: Evaluation) -> None:
    run, other = running.runs.order_by("ordinal")

    def tab() -> str:
        page = text(console, f"/runs/{run.id}").split('aria-label="Runs of this evaluation"')[1].split("</nav>")[0]
        return plain(page.split(f"/runs/{other.id}")[1].split("</li>")[0])

    for state, said in (("pending", "not yet"), ("running", "not yet"), ("cancelled", "cancelled")):
        Run.objects.filter(id=other.id).update(state=state)
        assert tab().endswith(f"keyword_rerank {said}"), state
    Run.objects.filter(id=other.id).update(state="unavailable")
    assert tab().endswith("keyword_rerank n/a")


@pytest.mark.parametrize(
    ("counts", "said", "button"),
    [
        ({"n_cancelled": 2}, "2 answers were not asked for, since it was cancelled. Asking", "Ask the rest"),
        ({"n_error": 1}, "1 answer is missing or failed. Asking", "Retry what failed"),
        (
            {"n_cancelled": 1, "n_error": 1, "n_not_run": 1},
            "1 answer was not asked for, since it was cancelled. 2 answers are missing or failed. Asking",
            "Ask the rest, and what failed",
        ),
    ],
)
def test_what_was_not_asked_for_after_a_cancel_is_not_said_to_have_failed(
    console: Client, running: Evaluation, counts: dict[str, int], said: str, button: str
) -> None:
    figure = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 2, "n_total": 4}
    metrics = dict.fromkeys(running.plan["keys"], figure)
    Run.objects.filter(ordinal=0).update(state="cancelled", counts=counts, metrics=metrics)
    Run.objects.filter(ordinal=1).update(state="scored", metrics=metrics)
    Evaluation.objects.update(state=EvaluationState.CANCELLED)
    page = text(console, f"/evaluations/{running.id}")
    assert said in plain(page)
    assert f">{button}</button>" in page
    assert "mrr@10 (2 of 4)" in plain(page)
    assert "so far" not in page
