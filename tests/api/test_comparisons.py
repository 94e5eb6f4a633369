"""`comparisons` and `runs/{id}/export`, over runs that really searched."""

import csv
import io
import json
from typing import Any

import pytest
import pytrec_eval
from django.core.files.uploadedfile import SimpleUploadedFile
from junitparser import JUnitXml
from rest_framework.test import APIClient

from backend.core import question_sets
from backend.core.types import Level
from backend.models import Evaluation, Result, Run, Scope
from tests import engine
from tests.api.conftest import API, World, client_of

pytestmark = pytest.mark.django_db(transaction=True)
OTHER = {"name": "none of it", "mode": "keyword", "min_score": 1000.0}


@pytest.fixture
def runs(world: World) -> list[Run]:
    """`keyword`, and a configuration that finds nothing; three questions of four can be scored."""
    made = world.evaluate(modes=["keyword"], configurations=[OTHER])
    assert made.status_code == 202, made.json()
    engine.drain()
    evaluation = Evaluation.objects.get(id=made.json()["id"])
    assert evaluation.state == "completed", evaluation.reason
    return list(evaluation.runs.order_by("ordinal"))


def compare(client: APIClient, baseline: Any, *candidates: Any, **more: Any) -> Any:
    body = {"baseline": str(baseline), "candidates": [str(one) for one in candidates], **more}
    return client.post(f"{API}/comparisons", body)


def export(world: World, run: Run, form: str) -> str:
    answer = world.client.get(f"{API}/runs/{run.id}/export", {"format": form})
    assert answer.status_code == 200
    assert f"run-{run.id}." in answer["Content-Disposition"]
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]  # it streams


def test_a_comparison_pairs_the_questions_that_can_be_scored(world: World, runs: list[Run]) -> None:
    told = compare(world.client, runs[0].id, runs[1].id).json()
    assert (told["baseline"]["id"], told["primary_metric"]) == (str(runs[0].id), "mrr@10")
    one = told["candidates"][0]
    assert one["run"]["id"] == str(runs[1].id)
    assert one["verdict"] == "too few questions"
    assert (one["primary"]["n"], one["primary"]["n_dropped"]) == (3, 0), "the unanswerable one is no loss"
    assert one["primary"]["mean_delta"] == pytest.approx(-runs[0].metrics["mrr@10"]["mean"])
    assert one["deltas"][0]["question"] == "How long is the leave?"
    assert one["transitions"]["n_down"] == one["primary"]["n_losses"]
    assert {other["metric"] for other in one["others"]} == set(runs[0].metrics) - {"mrr@10"}
    assert [(tag["tag"], tag["n"]) for tag in one["by_tag"]] == [("leave", 1), ("money", 1)]
    assert one["by_tag"][0]["mean_delta"] == one["deltas"][0]["delta"]


def test_two_runs_of_one_configuration_have_no_difference(world: World, runs: list[Run]) -> None:
    world.evaluate(modes=["keyword"])
    engine.drain()
    again = Run.objects.order_by("-id").first()
    assert again is not None
    one = compare(world.client, runs[0].id, again.id).json()["candidates"][0]
    assert (one["primary"]["mean_delta"], one["primary"]["n_ties"], one["warnings"]) == (0, 3, [])
    assert one["sentence"].endswith("The candidate took over all its results from the baseline, so they are the same.")
    world.evaluate(modes=["keyword"])
    engine.drain()
    third = Run.objects.order_by("-id")[0]
    said = compare(world.client, again.id, third.id).json()["candidates"][0]["sentence"]
    assert said.endswith("Both took over their results from one earlier run, so they are the same.")
    world.evaluate(modes=["keyword"], cache=False)
    engine.drain()
    asked_anew = Run.objects.order_by("-id")[0]
    assert "took over" not in compare(world.client, again.id, asked_anew.id).json()["candidates"][0]["sentence"]


def test_runs_of_different_sets_are_not_comparable_and_it_says_why(world: World, runs: list[Run]) -> None:
    questions = [{"question": "How long is the leave?", "expected": ["policies/leave.md"]}]
    made = world.client.post(f"{API}/question-sets/{world.set_id}/versions", {"questions": questions})
    assert made.status_code == 201
    world.evaluate(modes=["keyword"])
    engine.drain()
    newest = Run.objects.order_by("-id").first()
    assert newest is not None
    one = compare(world.client, runs[0].id, newest.id).json()["candidates"][0]
    assert (one["verdict"], one["primary"]) == ("not comparable", None)
    assert "different versions of the question set" in one["sentence"]


def test_a_pair_is_the_same_whatever_stands_beside_it(world: World, runs: list[Run]) -> None:
    """A third run of another set brings no questions, and a comparable one knows no more of them than the set does."""
    questions = [{"id": f"x{n}", "question": f"question {n}", "expected": ["policies/leave.md"]} for n in range(9)]
    other = world.client.post(f"{API}/question-sets", {"name": "other", "questions": questions}).json()["id"]
    world.evaluate(question_set=other)
    world.evaluate(modes=["keyword"], configurations=[OTHER])
    engine.drain()
    *third, stranger = [*Run.objects.order_by("-id")[:2], Run.objects.get(evaluation__set_name="other@1")]
    # One question failed in both, one was asked in neither: a pair alone has no judged list of them.
    for ordinal, change in ((1, {"outcome": "error", "judged": None, "first_rank": None}), (2, None)):
        rows = Result.objects.filter(run__in=runs[:2], ordinal=ordinal)
        rows.update(**change) if change else rows.delete()
    alone = compare(world.client, runs[0].id, runs[1].id).json()["candidates"][0]
    assert (alone["primary"]["n"], alone["primary"]["n_dropped"]) == (1, 2)
    assert "only 1 of 3 questions" in alone["sentence"]
    refused = compare(world.client, runs[0].id, stranger.id).json()["candidates"][0]
    assert refused["sentence"] == "Not comparable: they asked different question sets."
    for beside in ([stranger.id], [third[0].id], [third[0].id, stranger.id]):
        assert compare(world.client, runs[0].id, runs[1].id, *beside).json()["candidates"][0] == alone
    # The unanswerable one is no loss, asked or not.
    Result.objects.filter(run__in=runs[:2], ordinal=3).delete()
    assert compare(world.client, runs[0].id, runs[1].id).json()["candidates"][0] == alone


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"primary_metric": "map@7"}, "primary_metric"),
        ({"primary_metric": "beauty@10"}, "metric"),
        ({"margin": 2}, "margin"),
        ({"candidate": "x"}, "candidate"),
    ],
)
def test_what_cannot_be_compared_is_refused(world: World, runs: list[Run], more: dict[str, Any], field: str) -> None:
    refused = compare(world.client, runs[0].id, runs[1].id, **more)
    assert (refused.status_code, refused.json()["code"]) == (422, "VALIDATION")
    assert refused.json()["field"] == field


def test_a_run_is_not_compared_with_itself_or_with_nothing(world: World, runs: list[Run]) -> None:
    assert compare(world.client, runs[0].id, runs[0].id).status_code == 422
    assert compare(world.client, runs[0].id).status_code == 422


def test_a_run_that_has_not_ended_waits(world: World, runs: list[Run]) -> None:
    world.evaluate(modes=["keyword"])
    newest = Run.objects.order_by("-id").first()
    assert newest is not None
    assert compare(world.client, runs[0].id, newest.id).status_code == 422
    assert world.client.get(f"{API}/runs/{newest.id}/export").status_code == 409


def test_every_run_that_is_not_there_is_told(world: World, runs: list[Run]) -> None:
    refused = compare(world.client, "abc", runs[0].id, "def")
    assert refused.status_code == 404
    assert [one["detail"] for one in refused.json()["errors"]] == [
        "There is no run abc in this workspace.",
        "There is no run def in this workspace.",
    ]


def test_another_workspaces_runs_are_not_found(world: World, runs: list[Run], stranger: APIClient) -> None:
    assert compare(stranger, runs[0].id, runs[1].id).status_code == 404
    assert stranger.get(f"{API}/runs/{runs[0].id}/export").status_code == 404


def test_comparing_and_exporting_only_read(world: World, runs: list[Run]) -> None:
    reader = client_of(world.workspace, Scope.READ)
    assert compare(reader, runs[0].id, runs[1].id).status_code == 200
    assert reader.get(f"{API}/runs/{runs[0].id}/export").status_code == 200


def test_the_exported_run_scored_by_trec_eval_gives_the_same_numbers(world: World, runs: list[Run]) -> None:
    # The question that has no answer is in neither file.
    qrels: dict[str, dict[str, int]] = {}
    for line in export(world, runs[0], "trec_qrels").splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(float(grade))
    ranked: dict[str, dict[str, float]] = {}
    for line in export(world, runs[0], "trec_run").splitlines():
        query, _, document, _, score, _ = line.split()
        ranked.setdefault(query, {})[document] = float(score)
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "success.1", "recall.5"}).evaluate(ranked)
    for key, name in (("ndcg@10", "ndcg_cut_10"), ("hit@1", "success_1"), ("recall@5", "recall_5")):
        values = [measured.get(query, {}).get(name, 0.0) for query in qrels]
        assert runs[0].metrics[key]["mean"] == pytest.approx(sum(values) / len(values), abs=1e-9)


def test_qrels_that_would_judge_nothing_of_the_run_are_refused(world: World, runs: list[Run]) -> None:
    """At passage level the run file names passages; where paths repeat, sources too. Neither is a number of 0."""
    path = f"{API}/runs/{runs[0].id}/export"
    Run.objects.filter(id=runs[0].id).update(level=Level.PASSAGE)
    refused = world.client.get(path, {"format": "trec_qrels"})
    assert (refused.status_code, "passage level" in refused.json()["detail"]) == (422, True)
    Run.objects.filter(id=runs[0].id).update(level=Level.DOCUMENT)
    found = Result.objects.filter(run=runs[0], outcome="ok").order_by("ordinal")[0]
    twin = {**found.ranking[0], "s": "elsewhere", "d": "another", "c": "another"}
    Result.objects.filter(id=found.id).update(ranking=[*found.ranking, twin])
    refused = world.client.get(path, {"format": "trec_qrels"})
    assert (refused.status_code, found.ranking[0]["p"] in refused.json()["detail"]) == (422, True)
    names = {line.split()[2] for line in export(world, runs[0], "trec_run").splitlines()}
    assert f"{found.ranking[0]['s']}:{found.ranking[0]['p']}" in names
    assert {name for name in names if ":" not in name}, "only a path that repeats has its source"


def test_each_form_holds_every_question(world: World, runs: list[Run]) -> None:
    whole = json.loads(export(world, runs[0], "json"))
    assert whole["metrics"] == runs[0].metrics
    lines = [json.loads(line) for line in export(world, runs[0], "jsonl").splitlines()]
    assert whole["results"] == lines
    assert [line["key"] for line in lines] == ["q1", "q2", "q3", "q4"]
    rows = list(csv.DictReader(io.StringIO(export(world, runs[0], "csv"))))
    ranks = [line["first_rank"] for line in lines]
    assert [row["first_rank"] for row in rows] == ["" if rank is None else str(rank) for rank in ranks]
    assert rows[0]["found_path"] == "policies/leave.md"


def test_reports_hold_every_question_and_the_verdict_beside_a_baseline(world: World, runs: list[Run]) -> None:
    for form in ("junit", "markdown", "html"):
        answer = world.client.get(f"{API}/runs/{runs[1].id}/export", {"format": form, "baseline": str(runs[0].id)})
        assert answer.status_code == 200
        text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]  # it streams
        assert "too few questions" in text, form
        assert "Who approves a trip?" in text, form
        assert "mrr@10" in text, form
    suite = next(iter(JUnitXml.fromstring(export(world, runs[1], "junit").encode())))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (4, 3, 0, 1)
    refused = world.client.get(f"{API}/runs/{runs[1].id}/export", {"format": "csv", "baseline": str(runs[0].id)})
    assert (refused.status_code, refused.json()["field"]) == (422, "baseline")


@pytest.mark.parametrize("form", ["full", "jsonl", "csv", "beir", "qrels"])
def test_a_set_comes_back_from_each_form_that_can_hold_it(world: World, form: str) -> None:
    odd = ["https://x.example/a?b=c", "a/b.md", "Case", "case", "😀.pdf", "=1.md"]
    questions = [{"id": f"Q{at}", "question": f"question {at}", "expected": [path]} for at, path in enumerate(odd)]
    made = world.client.post(f"{API}/question-sets", {"name": "first", "questions": questions}).json()
    file = world.client.get(f"{API}/question-sets/{made['id']}/export", {"format": form})
    assert file.status_code == 200
    files = [SimpleUploadedFile("again", file.content)]
    if form == "qrels":
        topics = world.client.get(f"{API}/question-sets/{made['id']}/export", {"format": "topics"})
        parsed = question_sets.parse_files({"qrels.txt": file.content, "topics.tsv": topics.content})
        assert question_sets.content_hash(parsed) == made["version"]["content_hash"]
        return
    again = world.client.post(f"{API}/question-sets", {"name": "again", "file": files[0]}, format="multipart")
    assert again.status_code == 201, again.json()
    assert again.json()["version"]["content_hash"] == made["version"]["content_hash"]


def test_a_form_that_cannot_hold_a_set_names_the_questions_unless_told_to_lose(world: World) -> None:
    address = f"{API}/question-sets/{world.set_id}/export"
    refused = world.client.get(address, {"format": "jsonl"})
    assert (refused.status_code, "q1 (has `tags`)" in refused.json()["detail"]) == (422, True)
    lossy = world.client.get(address, {"format": "jsonl", "lossy": "true"})
    assert len(lossy.content.splitlines()) == 3
    assert world.client.get(address, {"format": "xml"}).status_code == 422
    assert world.client.get(address, {"version": 7}).status_code == 404


def test_a_form_that_is_none_names_those_there_are(world: World, runs: list[Run]) -> None:
    refused = world.client.get(f"{API}/runs/{runs[0].id}/export", {"format": "xml"})
    assert (refused.status_code, "trec_run" in refused.json()["detail"]) == (422, True)


def test_a_cell_that_a_spreadsheet_would_run_is_made_harmless(world: World) -> None:
    made = world.client.post(
        f"{API}/question-sets", {"name": "evil", "questions": [{"question": "=cmd()", "expected": ["a"]}]}
    )
    world.evaluate(question_set=made.json()["id"])
    engine.drain()
    run = Run.objects.order_by("-id").first()
    assert run is not None
    assert next(csv.DictReader(io.StringIO(export(world, run, "csv"))))["question"] == "'=cmd()"
