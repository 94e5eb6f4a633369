"""`runs/import`: rankings of another engine become a run that everything else works on."""

import json
from typing import Any

import pytest
import pytrec_eval
from django.core.files.uploadedfile import SimpleUploadedFile

from backend.models import Run, Workspace
from backend.services import diagnoses
from tests.api.conftest import API, World, client_of
from tests.api.test_rescoring import orchard, run_of
from tests.shared import shared_data

pytestmark = pytest.mark.django_db(transaction=True)

ODD = ["https://x.example/a?b=c&d=%20#e", "a/b/c.md", "Case", "case", "😀/ü.pdf", "uploads:policies/x.pdf"]
QUESTIONS: list[dict[str, Any]] = [
    {"id": f"q/{at}:😀", "question": f"question {at}", "expect": [{"path": path, "grade": 1 + at % 2}]}
    for at, path in enumerate(ODD)
]


@pytest.fixture
def world(db: None) -> World:
    workspace = Workspace.objects.create(name="ours")
    client = client_of(workspace)
    made = client.post(f"{API}/question-sets", {"name": "odd", "questions": QUESTIONS})
    assert made.status_code == 201, made.json()
    return World(workspace=workspace, client=client, base=orchard(workspace), set_id=made.json()["id"])


def upload(world: World, text: str, **fields: Any) -> Any:
    file = SimpleUploadedFile("old.run", text.encode(), content_type="text/plain")
    body = {"file": file, "question_set": world.set_id, **fields}
    return world.client.post(f"{API}/runs/import", body, format="multipart")


def imported(world: World, text: str, **fields: Any) -> Any:
    answer = upload(world, text, **fields)
    assert answer.status_code == 201, answer.json()
    return answer.json()


def trec(*rows: tuple[str, str, float]) -> str:
    return "".join(f"{question} Q0 {document} 7 {score} tag\n" for question, document, score in rows)


def exported(world: World, run_id: str, form: str) -> str:
    answer = world.client.get(f"{API}/runs/{run_id}/export", {"format": form})
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]  # it streams


def test_a_trec_run_is_read_by_score_and_equal_scores_stay_in_file_order(world: World) -> None:
    key = QUESTIONS[2]["id"]
    text = trec((key, "other", 1.0), (key, "case", 2.0), (key, "Case", 2.0), (key, "https://z", 3.0))
    run = imported(world, text)
    assert (run["kind"], run["mode"], run["state"], run["name"]) == ("imported", "imported", "scored", "tag")
    assert run["origin"]["n_tied"] == 2
    assert any("2 results share their score" in one for one in run["origin"]["warnings"])
    assert run["metrics"]["mrr@10"]["mean"] == pytest.approx(1 / 3)
    row = world.client.get(f"{API}/runs/{run['id']}/results").json()["results"][2]
    assert (row["first_rank"], row["first_relevant"]["stages"]) == (3, {"engine": {"rank": 3, "score": 2.0}})


def test_questions_without_a_ranking_are_not_run_unless_said_otherwise(world: World) -> None:
    text = trec((QUESTIONS[2]["id"], "Case", 1.0), ("unheard-of", "a", 1.0))
    run = imported(world, text)
    assert (run["counts"]["n_scored"], run["counts"]["n_not_run"]) == (1, 5)
    assert run["metrics"]["hit@1"]["n_total"] == 6
    warnings = " ".join(run["origin"]["warnings"])
    assert "1 rankings are for questions that the set does not have: 'unheard-of'" in warnings
    empty = imported(world, trec((QUESTIONS[2]["id"], "Case", 1.0)), missing="empty")
    assert (empty["counts"]["n_scored"], empty["counts"]["n_empty"]) == (6, 5)


def test_ids_are_opaque_and_come_back_as_they_were(world: World) -> None:
    rows = [(one["id"], path, 9.0 - at) for one in QUESTIONS for at, path in enumerate(ODD)]
    run = imported(world, trec(*rows))
    again = imported(world, exported(world, run["id"], "trec_run"))
    assert again["metrics"] == run["metrics"]
    ranks = [row["first_rank"] for row in world.client.get(f"{API}/runs/{run['id']}/results").json()["results"]]
    assert ranks == [1, 2, 3, 4, 5, 6], "no id is taken for another one that only looks like it"
    assert exported(world, again["id"], "trec_run") == exported(world, run["id"], "trec_run").replace(
        " imported\n", " tag\n"
    )


def test_jsonl_names_questions_by_key_or_text_and_keeps_its_order(world: World) -> None:
    lines = [
        {"question": QUESTIONS[0]["id"], "ids": ["x", ODD[0]]},
        {"question": "QUESTION  3", "results": [{"id": "p9", "document": "case", "text": "t", "score": -1}]},
        {"question": QUESTIONS[5]["id"], "ids": []},
    ]
    run = imported(world, "\n".join(json.dumps(one) for one in lines), name="old", label="before")
    rows = world.client.get(f"{API}/runs/{run['id']}/results").json()["results"]
    assert [row["outcome"] for row in rows] == ["ok", "not_run", "not_run", "ok", "not_run", "empty"]
    assert (rows[0]["first_rank"], rows[3]["first_rank"]) == (2, 1)
    assert (run["name"], run["label"], run["origin"]["format"]) == ("old", "before", "jsonl")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("q Q0 a 1 1.0 tag\nq Q0 a 1 1.0", 2, "6 columns"),
        ("q Q0 a 1 nan tag", 1, "no finite number"),
        ("q Q0 a 1 1_0 tag", 1, "no finite number"),
        ('{"question": "q", "ids": ["a"]}\n{"question": "q", "ids": [""]}', 2, "an id is empty"),
        ('{"question": "q", "ids": ["a"]}\n\n{"question": "q"', 3, "not JSON"),
        ('{"question": "q", "ids": "a"}', 1, "best first"),
        ('{"question": "q", "idz": []}', 1, "no field 'idz'"),
        ('{"question": "question 1", "ids": ["a"]}\n{"question": "question 1", "ids": ["b"]}', 2, "a ranking already"),
    ],
)
def test_faults_are_told_by_line(world: World, text: str, line: int, said: str) -> None:
    answer = upload(world, text)
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert (fault["line"], said in fault["detail"]) == (line, True), fault
    assert not Run.objects.exists()


def test_a_file_for_another_set_is_refused_with_both_names(world: World) -> None:
    said = upload(world, trec(("t1", "a", 1.0))).json()["detail"]
    assert "'t1'" in said
    assert repr(QUESTIONS[0]["id"]) in said


def test_ids_that_match_no_label_are_told(world: World) -> None:
    run = imported(world, trec(*((one["id"], "doc-17", 1.0) for one in QUESTIONS)))
    assert run["metrics"]["hit@1"]["mean"] == 0
    assert any("None of the 6 documents" in one and "doc-17" in one for one in run["origin"]["warnings"])


def test_labels_that_look_at_text_need_text(world: World) -> None:
    questions = [{"id": "t", "question": "apple", "expect": [{"content_contains": "red"}]}]
    made = world.client.post(f"{API}/question-sets", {"name": "texts", "questions": questions}).json()
    blind = {"question_set": made["id"], "rankings": [{"question": "t", "ids": ["a"]}]}
    refused = world.client.post(f"{API}/runs/import", blind)
    assert (refused.status_code, "come without" in refused.json()["detail"]) == (422, True)
    results = [{"id": "a", "text": "green"}, {"id": "b", "text": "The RED one"}]
    seeing = {"question_set": made["id"], "rankings": [{"question": "t", "results": results}]}
    run = world.client.post(f"{API}/runs/import", seeing).json()
    assert (run["level"], run["metrics"]["mrr@10"]["mean"]) == ("passage", 0.5)


def test_text_is_judged_whole_though_only_its_beginning_is_kept(world: World) -> None:
    questions = [{"id": "t", "question": "apple", "expect": [{"content_contains": "red"}]}]
    made = world.client.post(f"{API}/question-sets", {"name": "texts", "questions": questions}).json()
    late = "green leaf " * 200 + "red"
    results = [{"id": "a", "text": "green"}, {"id": "b", "text": late}]
    body = {"question_set": made["id"], "rankings": [{"question": "t", "results": results}]}
    run = world.client.post(f"{API}/runs/import", body).json()
    assert run["metrics"]["mrr@10"]["mean"] == 0.5
    kept = Run.objects.get(id=run["id"]).results.get().ranking
    assert [len(entry["t"]) for entry in kept] == [5, 240]
    rescored = world.client.post(f"{API}/runs/{run['id']}/rescore", {"k": 2}).json()
    assert rescored["metrics"]["recall@2"]["mean"] == 1.0
    # Another label would have to be looked for in text that is not kept: refused, not answered by its beginning.
    questions[0]["expect"] = [{"content_contains": "green"}]
    world.client.post(f"{API}/question-sets/{made['id']}/versions", {"questions": questions})
    refused = world.client.post(f"{API}/runs/{run['id']}/rescore", {"version": "2"})
    assert (refused.status_code, "only the beginning is kept" in refused.json()["detail"]) == (422, True)


def test_a_run_of_ours_comes_back_with_the_same_numbers_at_both_levels(world: World) -> None:
    questions = [{"id": "q1", "question": "apple", "expect": [{"content_contains": "apple leaf leaf leaf"}]}]
    texts = world.client.post(f"{API}/question-sets", {"name": "texts", "questions": questions}).json()["id"]
    paths = world.client.post(
        f"{API}/question-sets", {"name": "paths", "questions": [{"question": "apple", "expected": ["d"]}]}
    ).json()["id"]
    for set_id in (texts, paths):
        run = run_of(World(workspace=world.workspace, client=world.client, base=world.base, set_id=set_id))
        again = imported(world, exported(world, str(run.id), "trec_run"), question_set=set_id)
        assert again["metrics"] == run.metrics


def test_the_rest_works_on_an_imported_run(world: World) -> None:
    rows = [(one["id"], path, 9.0 - at) for one in QUESTIONS for at, path in enumerate([*ODD[1:], "z"])]
    one, two = imported(world, trec(*rows)), imported(world, trec(*rows[:-1]), name="two")
    told = world.client.post(f"{API}/comparisons", {"baseline": one["id"], "candidates": [two["id"]]}).json()
    assert told["candidates"][0]["primary"]["n"] == 6
    new = world.client.post(f"{API}/runs/{one['id']}/rescore", {"top_k": 20, "threshold": 2})
    assert new.status_code == 201, new.json()
    run = Run.objects.select_related("evaluation__question_set_version").get(id=one["id"])
    losses = diagnoses.of(run, range(6))
    assert losses.by_question[0].cause == "not returned"
    assert diagnoses.summarise(run).summary.overall.causes == {"not returned": 1}
    assert world.client.get(f"{API}/runs", {"mode": "imported"}).json()["results"][0]["kind"] == "rescored"
    for form in ("json", "jsonl", "csv"):
        assert exported(world, one["id"], form)
    assert world.client.delete(f"{API}/runs/{one['id']}").status_code == 204


def test_the_cacm_run_of_another_toolkit_scores_as_trec_eval_says(world: World) -> None:
    folder = shared_data("oracle-anserini")
    relevant: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.cacm.txt").read_text().splitlines():
        question, _, document, grade = line.split()
        relevant.setdefault(question, {})[document] = int(grade)
    questions = [
        {
            "id": key,
            "question": f"topic {key}",
            "expect": [{"path": path, "grade": grade} for path, grade in one.items()],
        }
        for key, one in relevant.items()
    ]
    made = world.client.post(f"{API}/question-sets", {"name": "cacm", "questions": questions}).json()
    text = (folder / "cacm-bm25.run.txt").read_text()
    run = imported(world, text, question_set=made["id"], top_k="100", k="10,20", missing="empty")
    ranked: dict[str, dict[str, float]] = {}
    for line in exported(world, run["id"], "trec_run").splitlines():
        question, _, document, _, score, _ = line.split()
        ranked.setdefault(question, {})[document] = float(score)
    found = pytrec_eval.RelevanceEvaluator(relevant, {"ndcg_cut.10", "recall.20", "map_cut.20"}).evaluate(ranked)
    for key, name in (("ndcg@10", "ndcg_cut_10"), ("recall@20", "recall_20"), ("map@20", "map_cut_20")):
        mean = sum(found.get(one, {}).get(name, 0.0) for one in relevant) / len(relevant)
        assert run["metrics"][key]["mean"] == pytest.approx(mean, abs=1e-9)
