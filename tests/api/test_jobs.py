"""`jobs`: listed, followed, fetched and stopped over HTTP."""

from collections.abc import Mapping
from typing import Any

import pytest

from backend.core.errors import ErrorCode, Fault, QuestionSetError
from backend.core.states import JobKind
from backend.models import Job, Scope
from backend.services import jobs
from backend.services.handlers import job as handlers
from backend.services.slices import Lease
from tests.api.conftest import API, World, client_of
from tests.engine import drain

pytestmark = pytest.mark.django_db


def test_a_job_is_followed_to_its_result_and_its_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(lease: Lease, _job: Job) -> None:
        jobs.finish(lease, {"rows": 2}, file=jobs.File(name="a.csv", media_type="text/csv", data=b"a\nb\n"))

    monkeypatch.setitem(handlers.HANDLERS, JobKind.EXPORT, handler)
    job = jobs.start(world.workspace, JobKind.EXPORT, {"secret": "never shown"}, created_by="token:x", n_total=2)
    address = f"{API}/jobs/{job.id}"
    before = world.client.get(address)
    assert (before.json()["state"], before.json()["is_final"]) == ("queued", False)
    assert "secret" not in before.content.decode()
    assert world.client.get(f"{address}/file").status_code == 404
    unchanged = world.client.get(address, headers={"If-None-Match": before["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    drain()
    after = world.client.get(address, headers={"If-None-Match": before["ETag"]}).json()
    assert (after["state"], after["result"], after["n_done"]) == ("completed", {"rows": 2}, 2)
    assert after["file"] == {"name": "a.csv", "media_type": "text/csv", "size": 4}
    made = world.client.get(f"{address}/file")
    assert (made.content, made["Content-Type"]) == (b"a\nb\n", "text/csv")
    assert 'filename="a.csv"' in made["Content-Disposition"]


def test_jobs_are_listed_by_kind_and_state(world: World) -> None:
    first = jobs.start(world.workspace, JobKind.EXPORT, {})
    second = jobs.start(world.workspace, JobKind.RESCORE, {})
    jobs.cancel(world.workspace, first.id)

    def ids(query: str) -> list[str]:
        return [row["id"] for row in world.client.get(f"{API}/jobs{query}").json()["results"]]

    assert ids("") == [str(second.id), str(first.id)]
    assert ids("?kind=export") == ids("?state=cancelled") == [str(first.id)]
    assert world.client.get(f"{API}/jobs?kind=nonsense").status_code == 422


def test_a_refused_job_tells_every_fault_with_its_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(_lease: Lease, _job: Job) -> Mapping[str, Any]:
        raise QuestionSetError([Fault(code=ErrorCode.EVAL_FILE, message="not JSON", line=9)])

    monkeypatch.setitem(handlers.HANDLERS, JobKind.IMPORT, handler)
    job = jobs.start(world.workspace, JobKind.IMPORT, {})
    drain()
    told = world.client.get(f"{API}/jobs/{job.id}").json()
    assert (told["state"], told["code"]) == ("failed", "EVAL_FILE")
    assert told["errors"] == [{"code": "EVAL_FILE", "detail": "not JSON", "line": 9, "field": None}]


def test_stopping_a_job_takes_the_scope_that_beginning_it_takes(world: World) -> None:
    reader = client_of(world.workspace, Scope.READ)
    for kind, allowed in ((JobKind.EXPORT, True), (JobKind.IMPORT, False), (JobKind.ALERT, False)):
        job = jobs.start(world.workspace, kind, {})
        answer = reader.post(f"{API}/jobs/{job.id}/cancel")
        assert answer.status_code == (202 if allowed else 403), kind
        assert Job.objects.get(id=job.id).state == ("cancelled" if allowed else "queued")
    again = world.client.post(f"{API}/jobs/{job.id}/cancel")
    assert (again.status_code, again["Location"]) == (202, f"http://testserver{API}/jobs/{job.id}")
