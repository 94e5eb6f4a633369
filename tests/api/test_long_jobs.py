"""What takes longer than a request: the same addresses answer with a job, and the job gives what they give at once."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from backend.core.states import JobState
from backend.models import Evaluation, Job, JobFile, Result, Run
from backend.services import jobs, long_jobs, rescoring
from tests import engine
from tests.api.conftest import API, World

pytestmark = pytest.mark.django_db(transaction=True)
OTHER = {"name": "none of it", "mode": "keyword", "min_score": 1000.0}


@pytest.fixture
def runs(world: World) -> list[Run]:
    made = world.evaluate(modes=["keyword"], configurations=[OTHER])
    engine.drain()
    return list(Evaluation.objects.get(id=made.json()["id"]).runs.order_by("ordinal"))


def done(world: World, answer: Any) -> dict[str, Any]:
    """The job that was answered, after workers had a look."""
    assert answer.status_code == 202, answer.content
    assert answer["Location"] == f"http://testserver{API}/jobs/{answer.json()['id']}"
    engine.drain()
    told: dict[str, Any] = world.client.get(answer["Location"]).json()
    return told


def document(world: World, answer: Any) -> Any:
    told = done(world, answer)
    assert told["state"] == "completed", told
    return world.client.get(f"{API}/jobs/{told['id']}/file").json()


def without(told: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in names}


def test_a_large_set_is_answered_with_a_job_that_gives_what_a_small_one_gets_at_once(
    world: World, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = f"{API}/runs/{runs[0].id}"
    wanted = {"baseline": str(runs[0].id), "candidates": [str(runs[1].id)]}

    def compare() -> Any:
        return world.client.post(f"{API}/comparisons", wanted)

    def preflight() -> Any:
        return world.client.post(f"{API}/question-sets/{world.set_id}/preflight", {"scope": world.scope})

    def rescore() -> Any:
        return world.client.post(f"{run}/rescore", {"k": 3}, headers={"Idempotency-Key": f"r{Run.objects.count()}"})

    def load() -> Any:
        file = SimpleUploadedFile("old.run", b"q1 Q0 policies/leave.md 1 2.0 old\nq9 Q0 x 1 1.0 old\n")
        body = {"file": file, "question_set": world.set_id}
        return world.client.post(f"{API}/runs/import", body, format="multipart")

    def export() -> Any:
        return world.client.get(f"{run}/export", {"format": "csv"})

    at_once = {make: make().json() for make in (compare, preflight, rescore, load)}
    as_csv = b"".join(export().streaming_content)
    monkeypatch.setattr(long_jobs, "MOST_AT_ONCE", 3)
    assert document(world, compare()) == at_once[compare]
    assert document(world, preflight()) == at_once[preflight]
    for make in (rescore, load):
        made = done(world, make())
        told = world.client.get(f"{API}/runs/{made['result']['run']}").json()
        unlike = ("id", "evaluation_id", "created_at", "finished_at")
        assert without(told, *unlike) == without(at_once[make], *unlike)
    assert not JobFile.objects.filter(role="input").exists(), "what was uploaded is not kept"
    first = export()
    told = done(world, first)
    assert world.client.get(f"{API}/jobs/{told['id']}/file").content == as_csv
    assert export().json()["id"] == told["id"], "asking again finds it"
    world.client.patch(run, {"label": "another"})
    assert export().json()["id"] != told["id"], "what has changed since is made anew"


def test_what_a_job_refuses_it_refuses_as_the_address_would_and_leaves_nothing(
    world: World, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_jobs, "MOST_AT_ONCE", 3)
    n_runs, n_results = Run.objects.count(), Result.objects.count()
    refused = done(world, world.client.post(f"{API}/runs/{runs[0].id}/rescore", {"top_k": 3, "k": 5}))
    assert (refused["state"], refused["code"]) == ("failed", "VALIDATION")
    assert refused["errors"][0]["field"] == "k"
    bad = SimpleUploadedFile("old.run", b"q1 Q0 a.md 1 2.0 old\nq1 Q0 b.md one\n")
    body: dict[str, Any] = {"file": bad, "question_set": world.set_id}
    faulty = done(world, world.client.post(f"{API}/runs/import", body, format="multipart"))
    assert faulty["state"] == "failed"
    assert [fault["line"] for fault in faulty["errors"]] == [2]
    assert world.client.post(f"{API}/runs/{world.set_id}/rescore", {"k": 1}).status_code == 404
    key = {"Idempotency-Key": "once"}
    twice = [world.client.post(f"{API}/runs/{runs[0].id}/rescore", {"k": 1}, headers=key) for _ in "ab"]
    assert twice[0].json()["id"] == twice[1].json()["id"]
    jobs.cancel(world.workspace, twice[0].json()["id"])
    engine.drain()
    assert (Run.objects.count(), Result.objects.count()) == (n_runs, n_results)


def test_a_run_of_a_job_that_was_cancelled_meanwhile_is_rolled_back(
    world: World, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_jobs, "MOST_AT_ONCE", 3)
    really = rescoring.rescore

    def slow(*arguments: Any, **more: Any) -> Run:
        made: Run = really(*arguments, **more)
        Job.objects.update(state=JobState.CANCELLING)
        return made

    n_runs = Run.objects.count()
    answer = world.client.post(f"{API}/runs/{runs[0].id}/rescore", {"k": 1})
    monkeypatch.setattr(rescoring, "rescore", slow)
    assert done(world, answer)["state"] != "completed"
    assert Run.objects.count() == n_runs
