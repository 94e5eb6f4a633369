from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from backend.core.states import EvaluationState, RunState
from backend.core.types import Outcome
from backend.models import Evaluation, KnowledgeBase, QuestionSetVersion, Run, Slice, SourceSetFile
from backend.queries import partial
from backend.services import documents, set_files, sources
from tests import engine
from tests.api.conftest import API, World
from tests.api.test_errors import is_problem

pytestmark = pytest.mark.django_db
EVALUATIONS = f"{API}/evaluations"
Write = Callable[..., Any]


def test_an_evaluation_is_accepted_with_its_runs(world: World) -> None:
    answer = world.evaluate(modes=["keyword", "semantic"], label="first", metadata={"commit": "abc"}, top_k=5, k=[1, 5])
    assert answer.status_code == 202, answer.json()
    body = answer.json()
    assert answer["Location"] == f"http://testserver{EVALUATIONS}/{body['id']}"
    assert (body["state"], body["is_final"], body["label"], body["metadata"]) == (
        "queued",
        False,
        "first",
        {"commit": "abc"},
    )
    assert body["scope"] == world.scope
    assert (body["top_k"], body["ks"], body["level"], body["primary_metric"]) == (5, [1, 5], "document", "mrr@5")
    assert [(run["name"], run["state"], run["partial"], run["metrics"]) for run in body["runs"]] == [
        ("keyword", "pending", True, {}),
        ("semantic", "pending", True, {}),
    ]
    assert body["question_set"]["name"] == "golden@1"
    assert body["progress"] == {
        "n_questions": 4,
        "n_done": 0,
        "n_results": 0,
        "n_results_total": 8,
        "by_outcome": {"ok": 0, "empty": 0, "error": 0, "cancelled": 0, "not_run": 0},
    }
    assert body["eta_seconds"] is None
    assert Slice.objects.filter(evaluation=body["id"], kind="prepare").count() == 1


def test_both_default_modes_are_used_where_none_is_named(world: World) -> None:
    answer = world.evaluate(modes=None)
    assert [run["name"] for run in answer.json()["runs"]] == ["hybrid_rerank", "hybrid"]


@pytest.mark.parametrize(
    "configuration",
    [
        {"name": "a", "mode": "keyword", "keyword": "fts", "fts": "or", "depth": 20, "min_score": 0.1},
        {"name": "b", "mode": "hybrid", "fusion": {"formula": "convex", "weights": [0.3, 0.7]}},
        {"name": "c", "mode": "semantic", "exact": False, "ef_search": 40},
        {"name": "d", "mode": "keyword_rerank", "reranker": "local", "rerank_depth": 10},
    ],
)
def test_a_configuration_is_taken_field_by_field(world: World, configuration: dict[str, Any]) -> None:
    answer = world.evaluate(modes=None, configurations=[configuration])
    assert answer.status_code == 202, answer.json()
    (run,) = answer.json()["runs"]
    assert run["name"] == configuration["name"]
    for name in set(configuration) & {"depth", "min_score", "exact", "ef_search", "reranker", "rerank_depth"}:
        assert run["config"][name] == configuration[name]


def test_every_fault_of_a_request_is_told_together(world: World) -> None:
    answer = world.client.post(
        EVALUATIONS,
        {
            "questionset": "x",
            "topk": 3,
            "scope": [],
            "modes": ["magic"],
            "configurations": [{"mode": "hybrid", "depth": 0, "dpeth": 1}],
            "k": 20,
            "top_k": 10,
            "level": "page",
            "primary_metric": "mrrr@10",
            "cache": "yes",
            "label": 3,
            "metadata": "x",
            "wait_for_index": 1,
        },
    )
    body = is_problem(answer, 422, "VALIDATION")
    assert {fault["field"] for fault in body["errors"]} == {
        "questionset",
        "topk",
        "question_set",
        "scope",
        "modes[0]",
        "configurations[0].depth",
        "configurations[0].dpeth",
        "k",
        "level",
        "primary_metric",
        "cache",
        "label",
        "metadata",
        "wait_for_index",
    }
    told = {fault["field"]: fault["detail"] for fault in body["errors"]}
    assert "Did you mean question_set?" in told["questionset"]
    assert "Did you mean top_k?" in told["topk"]
    assert not Evaluation.objects.exists()


@pytest.mark.parametrize("k", [0, -1, "3", 1.5, [], [1, "x"], {"k": 1}, True, 10**30])
def test_a_k_that_is_none_is_refused(world: World, k: Any) -> None:
    assert is_problem(world.evaluate(k=k), 422, "VALIDATION")["field"] in {"k", "top_k"}


def test_all_that_a_request_names_and_is_not_there_is_told(world: World) -> None:
    gone = "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"
    body = {"question_set": gone, "scope": {"knowledge_base": "abc"}, "evaluate_answers": True}
    told = is_problem(world.evaluate(**body), 422, "PROVIDER_NOT_CONFIGURED")
    assert [(one["code"], one["detail"]) for one in told["errors"][1:]] == [
        ("NOT_FOUND", "There is no knowledge base abc in this workspace."),
        ("NOT_FOUND", f"There is no question set {gone} in this workspace."),
    ]
    scope = {"documents": [gone, "abc"]}
    told = is_problem(world.evaluate(question_set=gone, scope=scope), 404, "NOT_FOUND")
    assert told["detail"] == told["errors"][0]["detail"] == "There is no document abc in this workspace."
    assert told["n_errors"] == 3
    told = is_problem(
        world.evaluate(question_set=gone, modes=["keyword_rerank"], reranker="http:nowhere"), 404, "NOT_FOUND"
    )
    assert [one["code"] for one in told["errors"]] == ["NOT_FOUND", "PROVIDER_NOT_CONFIGURED"]
    assert "errors" not in is_problem(world.evaluate(question_set=gone), 404, "NOT_FOUND")


def test_what_cannot_be_evaluated_is_told_at_submit(world: World) -> None:
    is_problem(world.evaluate(evaluate_answers=True), 422, "PROVIDER_NOT_CONFIGURED")
    is_problem(world.evaluate(modes=["keyword_rerank"], reranker="http:nowhere"), 422, "PROVIDER_NOT_CONFIGURED")
    is_problem(world.evaluate(question_set="0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"), 404, "NOT_FOUND")
    is_problem(world.evaluate(question_set=f"{world.set_id}@9"), 404, "NOT_FOUND")
    is_problem(world.evaluate(question_set=None, file="nowhere:x.jsonl"), 422, "EVAL_FILE")
    is_problem(world.evaluate(file="files:x.jsonl"), 422, "VALIDATION")
    is_problem(world.evaluate(scope={**world.scope, "collection": "none such"}), 422, "VALIDATION")
    empty = world.client.post(
        f"{API}/knowledge-bases", {"name": "empty", "settings": {"embedding": {"embedder": "none"}}}
    ).json()["id"]
    is_problem(world.evaluate(scope={"knowledge_base": empty}), 409, "KB_EMPTY")
    source = sources.upload_area(KnowledgeBase.objects.get(id=empty))
    documents.add_many(source, [documents.UploadedFile(path="a.md", data=b"x")])
    is_problem(world.evaluate(scope={"knowledge_base": empty}), 409, "KB_NOT_READY")
    assert world.evaluate(scope={"knowledge_base": empty}, wait_for_index=True).status_code == 202
    assert Evaluation.objects.count() == 1


def test_an_unknown_source_names_those_there_are(world: World) -> None:
    body = is_problem(world.evaluate(question_set=None, file="nowhere:x.jsonl"), 422, "EVAL_FILE")
    assert "files" in body["detail"]


def test_a_file_found_in_a_source_is_evaluated(world: World) -> None:
    source = world.base.knowledge_base.sources.get()
    set_files.record(source, ".touchstone/q.jsonl", b'{"question": "leave?", "expected": ["policies/leave.md"]}')
    answer = world.evaluate(question_set=None, file="files:.touchstone/q.jsonl")
    assert answer.status_code == 202, answer.json()
    assert answer.json()["question_set"]["name"] == "files:.touchstone/q.jsonl@1"
    SourceSetFile.objects.all().delete()


@pytest.mark.parametrize("narrow", [{}, {"collection": "money"}, {"source": "files"}])
def test_a_scope_can_be_the_workspace_or_documents(world: World, narrow: dict[str, str]) -> None:
    one = str(world.base.documents["finance/travel.md"].id)
    for scope in ({"workspace": str(world.workspace.id), **narrow}, {"documents": [one], **narrow}):
        answer = world.evaluate(scope=scope)
        assert answer.status_code == 202, answer.json()
        assert answer.json()["scope"] == scope


def test_progress_counts_outcomes_and_done_questions(world: World, evaluation: Evaluation, write: Write) -> None:
    keyword, rerank = evaluation.runs.order_by("ordinal")
    write(keyword, 0, ["policies/leave.md"])
    write(keyword, 1, outcome=Outcome.EMPTY)
    write(keyword, 2, outcome=Outcome.ERROR, code="PROVIDER_TIMEOUT")
    write(rerank, 0, ["x.md", "policies/leave.md"])
    now = timezone.now()
    Evaluation.objects.update(state=EvaluationState.RUNNING, started_at=now - timedelta(seconds=8))
    body = world.client.get(f"{EVALUATIONS}/{evaluation.id}").json()
    assert body["progress"] == {
        "n_questions": 4,
        "n_done": 1,
        "n_results": 4,
        "n_results_total": 8,
        "by_outcome": {"ok": 2, "empty": 1, "error": 1, "cancelled": 0, "not_run": 0},
    }
    assert 7 < body["elapsed_seconds"] < 60
    assert body["eta_seconds"] is None, "one result of the reranked mode says nothing of the next ones"
    first, second = body["runs"]
    assert first["partial"] is True
    assert first["metrics"]["mrr@10"]["mean"] == 0.5
    assert (first["metrics"]["mrr@10"]["n"], first["metrics"]["mrr@10"]["n_total"]) == (2, 3)
    assert first["headline"] == first["metrics"]["mrr@10"]
    assert second["metrics"]["mrr@10"]["mean"] == 0.5
    assert first["counts"]["n_error"] == 1


def test_a_bad_row_of_an_earlier_try_is_not_done(world: World, evaluation: Evaluation, write: Write) -> None:
    keyword, _ = evaluation.runs.order_by("ordinal")
    write(keyword, 0, ["policies/leave.md"])
    write(keyword, 2, outcome=Outcome.ERROR, code="PROVIDER_TIMEOUT")
    Evaluation.objects.update(state=EvaluationState.FAILED)
    assert world.client.post(f"{EVALUATIONS}/{evaluation.id}/retry").status_code == 202
    progress = world.client.get(f"{EVALUATIONS}/{evaluation.id}").json()["progress"]
    assert progress["n_results"] == 1
    assert progress["by_outcome"]["error"] == 0


def test_many_rows_are_counted_only_until_the_end(
    world: World, evaluation: Evaluation, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial, "MOST_ROWS", 1)
    keyword, _ = evaluation.runs.order_by("ordinal")
    write(keyword, 0, ["policies/leave.md"])
    write(keyword, 1, ["policies/leave.md"])
    run = world.client.get(f"{EVALUATIONS}/{evaluation.id}").json()["runs"][0]
    assert (run["metrics"], run["counts"]["n_total"]) == ({}, 2)


def test_a_poll_costs_a_fixed_number_of_queries(
    world: World, evaluation: Evaluation, write: Write, django_assert_max_num_queries: Any
) -> None:
    for run in evaluation.runs.all():
        for ordinal in range(3):
            write(run, ordinal, ["policies/leave.md"])
    with django_assert_max_num_queries(6):
        world.client.get(f"{EVALUATIONS}/{evaluation.id}")
    for n in range(5):
        world.evaluate(label=str(n))
    with django_assert_max_num_queries(4):
        world.client.get(EVALUATIONS)


def test_an_unchanged_evaluation_is_not_sent_again(world: World, evaluation: Evaluation, write: Write) -> None:
    path = f"{EVALUATIONS}/{evaluation.id}"
    tag = world.client.get(path)["ETag"]
    again = world.client.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
    write(evaluation.runs.first(), 0, ["policies/leave.md"])
    changed = world.client.get(path, headers={"If-None-Match": f'"other", {tag}'})
    assert changed.status_code == 200
    assert changed["ETag"] != tag
    tag = changed["ETag"]
    Run.objects.filter(evaluation=evaluation).update(label="renamed")
    assert world.client.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_evaluations_are_listed_newest_first(world: World) -> None:
    ids = [world.evaluate(label=str(n)).json()["id"] for n in range(3)]
    page = world.client.get(EVALUATIONS, {"limit": 2}).json()
    assert [one["id"] for one in page["results"]] == ids[:0:-1]
    assert [one["id"] for one in world.client.get(page["next"]).json()["results"]] == ids[:1]


def test_an_evaluation_is_cancelled_once(world: World, evaluation: Evaluation) -> None:
    path = f"{EVALUATIONS}/{evaluation.id}"
    answer = world.client.post(f"{path}/cancel")
    assert answer.status_code == 202
    assert answer.json()["state"] == "cancelling"
    assert answer["Location"].endswith(path)
    assert world.client.post(f"{path}/cancel").status_code == 202
    Evaluation.objects.update(state=EvaluationState.COMPLETED)
    is_problem(world.client.post(f"{path}/cancel"), 409, "CONFLICT")


def test_retry_is_for_what_has_ended(world: World, evaluation: Evaluation) -> None:
    path = f"{EVALUATIONS}/{evaluation.id}/retry"
    is_problem(world.client.post(path), 409, "CONFLICT")
    Evaluation.objects.update(state=EvaluationState.CANCELLED)
    answer = world.client.post(path)
    assert (answer.status_code, answer.json()["epoch"], answer.json()["state"]) == (202, 2, "queued")


def test_nothing_of_an_evaluation_is_another_workspaces(
    world: World, evaluation: Evaluation, stranger: APIClient
) -> None:
    path = f"{EVALUATIONS}/{evaluation.id}"
    assert stranger.get(EVALUATIONS).json()["results"] == []
    for call in (
        stranger.get(path),
        stranger.post(f"{path}/cancel"),
        stranger.post(f"{path}/retry"),
        stranger.get(f"{EVALUATIONS}/no-id"),
        stranger.post(EVALUATIONS, {"question_set": world.set_id, "scope": world.scope}),
    ):
        is_problem(call, 404, "NOT_FOUND")
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.QUEUED


@pytest.mark.django_db(transaction=True)
def test_an_evaluation_runs_to_its_end_and_tells_the_same_everywhere(world: World) -> None:
    evaluation_id = world.evaluate(modes=["keyword"], top_k=3).json()["id"]
    engine.drain()
    body = world.client.get(f"{EVALUATIONS}/{evaluation_id}").json()
    assert (body["state"], body["is_final"], body["eta_seconds"]) == ("completed", True, None)
    assert body["progress"]["n_done"] == 4
    (run,) = body["runs"]
    assert (run["state"], run["partial"]) == (RunState.SCORED, False)
    assert run == world.client.get(f"{API}/runs/{run['id']}").json()
    # Three of the four can be scored; the words find them all.
    assert run["headline"]["n_total"] == 3
    assert run["counts"]["n_unanswerable"] == 1
    found = world.client.get(f"{API}/runs/{run['id']}/results", {"outcome": "found"}).json()["results"]
    assert len(found) == round(run["metrics"]["hit@3"]["mean"] * 3)
    assert QuestionSetVersion.objects.count() == 1
