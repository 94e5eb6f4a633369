"""`runs/{id}/rescore`: other rules over the stored rankings, and never a number they cannot carry."""

from typing import Any

import pytest

from backend.models import Chunk, Evaluation, Result, Run, Workspace
from tests import engine
from tests.api.conftest import API, World, client_of
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)

# By words, `apple` finds a, b, c and so on in this order: each passage is longer than the one before.
DOCUMENTS = "abcdefghijklmno"
QUESTIONS: list[dict[str, Any]] = [
    {"id": "q1", "question": "apple", "expect": [{"path": "a", "grade": 1}, {"path": "d", "grade": 2}]},
    {"id": "q2", "question": "the apple", "expect": [{"path": "h", "grade": 3}], "tags": ["deep"], "must_pass": True},
    {"id": "q3", "question": "pear", "unanswerable": True},
]


def orchard(workspace: Workspace, *, twice: bool = True) -> Base:
    """Each document has one passage with apples, and (unless not `twice`) another that comes after all of those."""
    rows = [Row(path=one, text="apple " + "leaf " * at, ordinal=0) for at, one in enumerate(DOCUMENTS)]
    if twice:
        rows += [Row(path=one, text="apple " + "wood " * (40 + at), ordinal=1) for at, one in enumerate(DOCUMENTS)]
    return make_base(*rows, workspace=workspace, name="Orchard", embedder="none", dimensions=None)


@pytest.fixture
def world(db: None) -> World:
    workspace = Workspace.objects.create(name="ours")
    client = client_of(workspace)
    made = client.post(f"{API}/question-sets", {"name": "golden", "questions": QUESTIONS})
    assert made.status_code == 201, made.json()
    return World(workspace=workspace, client=client, base=orchard(workspace), set_id=made.json()["id"])


def run_of(world: World, **more: Any) -> Run:
    made = world.evaluate(**more)
    assert made.status_code == 202, made.json()
    engine.drain()
    evaluation = Evaluation.objects.get(id=made.json()["id"])
    assert evaluation.state == "completed", evaluation.reason
    return evaluation.runs.get()


def rescored(world: World, run: Run, **body: Any) -> Any:
    answer = world.client.post(f"{API}/runs/{run.id}/rescore", body)
    assert answer.status_code == 201, answer.json()
    return answer.json()


def refusal(world: World, run: Run, **body: Any) -> str:
    answer = world.client.post(f"{API}/runs/{run.id}/rescore", body)
    assert answer.status_code == 422, answer.json()
    return str(answer.json()["detail"])


def means(run: Any) -> dict[str, float]:
    return {key: metric["mean"] for key, metric in run["metrics"].items()}


def test_the_same_rules_give_the_same_numbers_and_say_where_they_are_from(world: World) -> None:
    run = run_of(world)
    again = rescored(world, run)
    assert again["metrics"] == run.metrics
    assert again["counts"] == run.counts
    assert (again["kind"], again["derived_from"], again["state"]) == ("rescored", str(run.id), "scored")
    assert again["origin"]["run"] == str(run.id)
    assert again["fingerprints"]["config"] == run.config_fingerprint
    told = world.client.get(f"{API}/runs/{again['id']}/results").json()["results"]
    assert told == world.client.get(f"{API}/runs/{run.id}/results").json()["results"]


@pytest.mark.parametrize(
    "rules", [{"top_k": 5}, {"threshold": 2}, {"level": "passage"}, {"k": [2, 4], "primary_metric": "map@4"}]
)
def test_other_rules_give_the_numbers_of_a_run_that_was_searched_by_them(world: World, rules: dict[str, Any]) -> None:
    run = run_of(world)
    new = rescored(world, run, **rules)
    if "threshold" in rules:
        # Only the expectation of grade 2 counts: found at rank 4.
        assert means(new)["mrr@10"] == pytest.approx((1 / 4 + 1 / 8) / 2)
        assert new["threshold"] == 2
        return
    searched = run_of(world, **({"top_k": run.top_k} | rules))
    assert means(new) == {key: metric["mean"] for key, metric in searched.metrics.items()}
    assert new["top_k"] == searched.top_k


def test_further_metrics_are_computed(world: World) -> None:
    new = rescored(world, run_of(world), metrics=["ndcg(gain=exp)@10"])
    assert means(new)["ndcg(gain=exp)@10"] < means(new)["ndcg@10"]


def test_a_cut_beyond_what_was_kept_is_refused_with_the_number_of_questions(world: World) -> None:
    run = run_of(world)
    said = refusal(world, run, top_k=20)
    assert "2 questions do not reach top_k 20" in said
    assert "up to top_k 10" in said
    assert Run.objects.count() == 1, "what is refused leaves nothing behind"


def test_passages_that_are_all_of_few_documents_cannot_be_scored_as_documents(world: World) -> None:
    workspace = Workspace.objects.create(name="few")
    rows = [Row(path="a", text="apple " + "leaf " * at, ordinal=at) for at in range(12)]
    rows += [Row(path=one, text="apple " + "wood " * 60, ordinal=0) for one in "bcd"]
    client = client_of(workspace)
    made = client.post(f"{API}/question-sets", {"name": "golden", "questions": QUESTIONS}).json()
    few = World(
        workspace=workspace,
        client=client,
        base=make_base(*rows, workspace=workspace, name="Few", embedder="none", dimensions=None),
        set_id=made["id"],
    )
    run = run_of(few, level="passage")
    assert "up to top_k 1" in refusal(few, run, level="document")
    assert rescored(few, run, level="document", top_k=1)["metrics"]["hit@1"]["mean"] == 0.5


def test_another_version_is_scored_by_its_own_labels_and_what_was_not_asked_is_not_run(world: World) -> None:
    run = run_of(world)
    questions = [
        {"id": "q1", "question": "apple", "expect": [{"path": "b"}, {"path": "d"}]},
        {"id": "q2", "question": "a pear", "expected": ["a"]},
        {"id": "q9", "question": "new", "expected": ["a"]},
    ]
    made = world.client.post(f"{API}/question-sets/{world.set_id}/versions", {"questions": questions})
    assert made.status_code == 201
    new = rescored(world, run, version=2)
    assert (new["question_set"]["version"], new["counts"]["n_scored"], new["counts"]["n_not_run"]) == (2, 1, 2)
    assert new["metrics"]["mrr@10"]["mean"] == 0.5
    assert (new["metrics"]["mrr@10"]["n"], new["metrics"]["mrr@10"]["n_total"]) == (1, 3)


def test_new_labels_on_text_read_the_passages_and_are_refused_when_those_are_gone(world: World) -> None:
    run = run_of(world)
    questions = [{"id": "q1", "question": "apple", "expect": [{"content_contains": "apple leaf leaf leaf"}]}]
    world.client.post(f"{API}/question-sets/{world.set_id}/versions", {"questions": questions})
    new = rescored(world, run, version="2", level="passage")
    assert new["metrics"]["mrr@10"]["mean"] == 0.25
    Chunk.objects.filter(path="c").delete()
    said = refusal(world, run, version="2", level="passage")
    assert "1 question look at text" in said
    assert "1 retrieved passages" in said


def test_rankings_that_are_not_kept_any_more_are_no_zeros(world: World) -> None:
    run = run_of(world)
    Result.objects.filter(run=run, ordinal=0).update(ranking=[])
    assert "1 question are not kept any more" in refusal(world, run, top_k=5)


def test_a_rescored_run_can_be_scored_again_as_deep_as_the_first_was(world: World) -> None:
    run = run_of(world)
    short = rescored(world, run, top_k=3)
    again = rescored(world, Run.objects.get(id=short["id"]), top_k=10)
    assert again["metrics"] == run.metrics


def test_a_rescored_run_is_compared_exported_and_never_asked_again(world: World) -> None:
    run = run_of(world)
    new = rescored(world, run)
    told = world.client.post(f"{API}/comparisons", {"baseline": str(run.id), "candidates": [new["id"]]}).json()
    assert told["candidates"][0]["primary"]["mean_delta"] == 0
    text = b"".join(world.client.get(f"{API}/runs/{new['id']}/export", {"format": "trec_run"}).streaming_content)  # type: ignore[attr-defined]
    assert text.decode().startswith("q1 Q0 a 1 ")
    assert world.client.post(f"{API}/evaluations/{new['evaluation_id']}/retry").status_code == 409
    key = str(run.id)
    run.delete()
    left = world.client.get(f"{API}/runs/{new['id']}").json()
    assert (left["derived_from"], left["origin"]["run"]) == (None, key)


def test_must_pass_questions_have_figures_of_their_own(world: World) -> None:
    run = run_of(world)
    names = ("n_must_pass", "n_must_pass_scored", "n_must_pass_found", "n_unanswerable")
    assert [run.counts[name] for name in names] == [1, 1, 1, 1]
    assert rescored(world, run, top_k=5)["counts"]["n_must_pass_found"] == 0
