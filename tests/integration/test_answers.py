"""Answers judged in a run, against a chat server: what fails is counted and never averaged, retrieval is left alone."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from backend.core.errors import ErrorCode, TouchstoneError
from backend.core.states import EvaluationState
from backend.models import Answer, Evaluation, Result, Run, Slice, SpendEntry
from backend.providers import chat_openai
from backend.providers.base import Candidate
from backend.search import providers, rerank
from backend.services import evaluations, question_sets, submissions
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base
from tests.standins import Standin
from tests.standins.script import Fault, Script

pytestmark = pytest.mark.django_db(transaction=True)

N = 30
# The judge fails for every fifth question, at every attempt.
FAILING = {f"asker{number:02}": "judge:garbage" for number in range(5, N + 1, 5)}


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with Standin(Script(chat="works")) as running:
        monkeypatch.setenv("TOUCHSTONE_CHAT_SHELF_URL", f"{running.url}/v1")
        providers.forget()
        chat_openai.forget_manners()
        yield running
    providers.forget()


@pytest.fixture
def base() -> Base:
    rows = [
        Row(path=f"{number:02}.md", text=f"The rule case{number:02}x holds for {number} days. It is kept in a drawer.")
        for number in range(1, N + 1)
    ]
    return make_base(*rows, embedder="none", dimensions=None)


def questions(n: int = N) -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{number}",
            "question": f"How long does the rule case{number:02}x hold, asker{number:02}?",
            "expected": [f"{number:02}.md"],
            **({"reference_answer": f"The rule case{number:02}x holds for {number} days."} if number % 2 else {}),
        }
        for number in range(1, n + 1)
    ]


def submit(base: Base, items: list[dict[str, Any]], **more: Any) -> Evaluation:
    made = question_sets.create(base.workspace, name=f"set {len(more)} {timezone.now()}", items=items)
    body = {
        "question_set": str(made.question_set.id),
        "scope": {"knowledge_base": str(base.knowledge_base.id)},
        "modes": ["keyword"],
        "evaluate_answers": True,
        "llm": "shelf:small",
        "judge": "shelf:judge",
        **more,
    }
    return evaluations.start(base.workspace, submissions.parse(body), now=timezone.now())


def work() -> None:
    """Until nothing waits, not for its time either."""
    for _ in range(60):
        drain()
        if not Slice.objects.filter(state="pending").update(not_before=None):
            return


def stored(evaluation: Evaluation) -> list[Any]:
    rows = Result.objects.filter(run__evaluation=evaluation).order_by("run_id", "ordinal")
    return list(rows.values_list("id", "epoch", "outcome", "judged", "ranking", "created_at"))


def test_a_judge_that_fails_for_every_fifth_question_is_counted_and_the_mean_is_over_the_rest(
    base: Base, standin: Standin
) -> None:
    standin.set_script(Script(chat="works", chat_words=FAILING))
    plain = submit(base, questions(), evaluate_answers=False, llm="", judge="")
    judged = submit(base, questions())
    work()
    judged.refresh_from_db()
    assert judged.state == EvaluationState.COMPLETED
    run, unjudged = Run.objects.get(evaluation=judged), Run.objects.get(evaluation=plain)
    told = run.answers
    assert [told[f"n_{name}"] for name in ("total", "judged", "failed", "skipped")] == [30, 24, 6, 0]
    assert told["errors"] == {"PROVIDER_BAD_ANSWER": 6}
    for name in ("faithfulness", "relevance", "correctness"):
        values = [
            value
            for value in Answer.objects.filter(run=run, outcome="judged").values_list(name, flat=True)
            if value is not None
        ]
        assert told["metrics"][name]["n"] == len(values)
        assert told["metrics"][name]["mean"] == pytest.approx(sum(values) / len(values))
    assert told["metrics"]["faithfulness"]["n"] == 24
    assert told["metrics"]["correctness"]["n"] == 12
    assert (told["llm"], told["judge"], told["judges_itself"]) == ("shelf:small", "shelf:judge", False)
    assert "NaN" not in json.dumps([run.answers, run.metrics])
    assert all(math.isfinite(one["mean"]) for one in told["metrics"].values())
    # Retrieval's own figures are those of a run without answers.
    assert (run.metrics, run.counts) == (unjudged.metrics, unjudged.counts)
    assert unjudged.answers == {}
    failed = Answer.objects.filter(run=run, outcome="failed")
    assert {one.question_key for one in failed} == {f"q{number}" for number in range(5, N + 1, 5)}
    assert all(one.replies[-1]["text"].startswith("I would say") for one in failed)
    assert all(one.text for one in failed)
    # Four tries of the judge for each, and the answer asked for once: it was found again by content.
    asked = [call for call in standin.calls if "claims" not in call.body["messages"][0]["content"]]
    assert len(asked) == N
    assert len(standin.calls) == N + 24 + 6 * 4
    assert SpendEntry.objects.filter(purpose="answers", owner=judged.id).count() == len(standin.calls)


def test_a_retry_judges_again_from_the_stored_rankings_only_what_was_not_judged(base: Base, standin: Standin) -> None:
    standin.set_script(Script(chat="works", chat_words={"asker05": "judge:cut", "asker02": "judge:refused"}))
    evaluation = submit(base, questions(6))
    work()
    before = stored(evaluation)
    run = Run.objects.get(evaluation=evaluation)
    assert (run.answers["n_judged"], run.answers["n_failed"]) == (4, 2)
    kept = dict(Answer.objects.filter(run=run, outcome="judged").values_list("ordinal", "created_at"))
    standin.set_script(Script(chat="works"))
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    work()
    run.refresh_from_db()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.COMPLETED
    assert (run.answers["n_judged"], run.answers["n_failed"]) == (6, 0)
    assert stored(evaluation) == before
    assert kept.items() <= dict(Answer.objects.filter(run=run).values_list("ordinal", "created_at")).items()
    assert len(standin.calls) == 2


def test_a_question_without_passages_is_skipped_and_an_empty_answer_is_an_abstention(
    base: Base, standin: Standin
) -> None:
    items = [
        *questions(2),
        {"id": "none", "question": "zzzz yyyy", "expected": ["01.md"]},
        {"id": "moon", "question": "Who holds the rule of the moon?", "unanswerable": True},
    ]
    standin.set_script(Script(chat="works", chat_words={"of the moon": "abstain", "asker02": "abstain"}))
    run = Run.objects.get(evaluation=submit(base, items))
    work()
    run.refresh_from_db()
    told = run.answers
    assert [told[f"n_{name}"] for name in ("total", "judged", "skipped", "abstained")] == [4, 3, 1, 2]
    moon = Answer.objects.get(run=run, question_key="moon")
    assert (moon.abstained, moon.faithfulness, moon.relevance, moon.correctness) == (True, None, None, 1.0)
    silent = Answer.objects.get(run=run, question_key="q2")
    assert (silent.faithfulness, silent.relevance, silent.correctness) == (None, 0.0, None)


def test_a_refused_key_stops_the_answers_and_leaves_the_run_scored(base: Base, standin: Standin) -> None:
    standin.set_script(Script(chat="works", fault=Fault.STATUS, status=401))
    evaluation = submit(base, questions(8))
    work()
    evaluation.refresh_from_db()
    run = Run.objects.get(evaluation=evaluation)
    assert (evaluation.state, run.state) == (EvaluationState.COMPLETED, "scored")
    assert run.answers["n_not_run"] == 8
    assert run.answers["errors"] == {"PROVIDER_AUTH": 8}
    assert len(standin.calls) == 1


def test_a_judgement_is_repeated_as_often_as_asked_and_averaged(base: Base, standin: Standin) -> None:
    run = Run.objects.get(evaluation=submit(base, questions(2), judge_repeats=3, answer_passages=1))
    work()
    row = Answer.objects.filter(run=run).order_by("ordinal")[0]
    assert (row.n_repeats, len(row.claims), len(row.passages)) == (3, 3, 1)
    assert [one["repeat"] for one in row.replies if one["role"] == "judge"] == [0, 1, 2]


def test_cancelling_closes_what_was_not_answered(base: Base, standin: Standin) -> None:
    evaluation = submit(base, questions(4))
    evaluations.cancel(base.workspace, evaluation.id)
    work()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.CANCELLED
    assert Run.objects.get(evaluation=evaluation).answers["n_skipped"] == 4
    assert not standin.calls


def test_asking_for_answers_without_a_model_is_refused_at_submit(base: Base) -> None:
    with pytest.raises(TouchstoneError) as caught:
        submit(base, questions(1), llm="", judge="")
    assert (caught.value.code, caught.value.field) == (ErrorCode.PROVIDER_NOT_CONFIGURED, "llm")
    with pytest.raises(TouchstoneError) as caught:
        submit(base, questions(1), llm="nowhere:m", judge="")
    assert caught.value.code == ErrorCode.PROVIDER_NOT_CONFIGURED


def test_a_chat_reranker_is_found_again_by_its_ordered_pool(base: Base, standin: Standin) -> None:
    texts = ["Rule one holds here.", "The badge opens doors.", "Rule two holds there."]
    pool = [Candidate(text=text, score=1.0) for text in texts]

    def scored(some: list[Candidate], spec: str) -> rerank.RerankScores:
        return rerank.score_candidates(base.workspace.id, spec, "Which badge opens doors?", some)

    first = scored(pool, "llm:shelf:small")
    assert rerank.order(first.scores)[0] == 1
    assert scored(pool, "llm:shelf:small").n_cached == 3
    assert len(standin.calls) == 1
    assert scored(pool[::-1], "llm:shelf:small").n_cached == 0
    # Passage by passage, each score is kept by itself.
    assert scored(pool, "llm-pointwise:shelf:small").n_calls == 3
    assert scored(pool[::-1], "llm-pointwise:shelf:small").n_cached == 3
    assert len(standin.calls) == 5
    standin.set_script(Script(chat_reply="I cannot order these."))
    lost = scored(pool[:2], "llm:shelf:small")
    assert (lost.scores, lost.units["rerank_fallbacks"]) == ((None, None), 1.0)
    assert scored(pool[:2], "llm:shelf:small").n_cached == 0
