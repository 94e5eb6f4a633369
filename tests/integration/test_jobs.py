"""Jobs on real tables: started, claimed, fenced, swept and cancelled as every slice is."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from backend.core.errors import ConflictError, ErrorCode, Fault, NotFoundError, QuestionSetError
from backend.core.states import FileRole, JobKind, JobState, Lane, SliceState
from backend.models import Job, JobFile, Slice, Workspace
from backend.providers.base import ProviderError, ProviderFault
from backend.services import jobs, pump, slices, sweeper
from backend.services.handlers import job as handlers
from backend.services.slices import Lease, LeaseLostError
from tests.engine import drain

pytestmark = pytest.mark.django_db
Handler = Callable[[Lease, Job], Mapping[str, Any] | None]


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.create(name="ours")


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> Callable[[Handler], None]:
    """Say what a job of kind `gate` does in this test."""

    def set_handler(handler: Handler) -> None:
        monkeypatch.setitem(handlers.HANDLERS, JobKind.GATE, handler)

    return set_handler


def start(workspace: Workspace, **more: Any) -> Job:
    return jobs.start(workspace, JobKind.GATE, {"n": 3}, **more)


def claimed(job: Job) -> Lease:
    pump.run()
    piece = Slice.objects.get(job=job, state=SliceState.QUEUED)
    lease = slices.claim(piece.id, delivery=piece.delivery)
    assert lease is not None
    return lease


def seen(job: Job) -> Job:
    return Job.objects.get(id=job.id)


def test_a_job_does_its_work_and_keeps_its_result(workspace: Workspace, does: Callable[[Handler], None]) -> None:
    def handler(lease: Lease, job: Job) -> Mapping[str, Any]:
        jobs.progress(lease, 2, 3)
        assert (seen(job).n_done, seen(job).n_total, seen(job).state) == (2, 3, JobState.RUNNING)
        return {"sum": job.payload["n"]}

    does(handler)
    job = start(workspace, created_by="token:x")
    assert job.state == JobState.QUEUED
    drain()
    ended = seen(job)
    assert (ended.state, ended.result, ended.n_done) == (JobState.COMPLETED, {"sum": 3}, 3)
    assert ended.started_at is not None
    assert ended.finished_at is not None
    assert Slice.objects.get(job=job).state == SliceState.DONE


def test_a_job_whose_transaction_is_rolled_back_never_was(workspace: Workspace) -> None:
    with transaction.atomic():
        start(workspace)
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not Slice.objects.exists()


def test_a_job_for_later_waits_for_its_time(workspace: Workspace, does: Callable[[Handler], None]) -> None:
    does(lambda _lease, _job: {"done": True})
    job = start(workspace, wait_seconds=600)
    assert drain() == 0
    Slice.objects.filter(job=job).update(not_before=timezone.now() - timedelta(seconds=1))
    assert drain() == 1
    assert seen(job).state == JobState.COMPLETED


def test_a_job_that_asks_for_later_counts_its_tries(workspace: Workspace, does: Callable[[Handler], None]) -> None:
    def handler(lease: Lease, _job: Job) -> Mapping[str, Any]:
        if lease.tries < 2:
            raise jobs.LaterError(wait_seconds=0)
        return {"tries": lease.tries}

    does(handler)
    job = start(workspace)
    drain()
    assert seen(job).result == {"tries": 2}


def test_a_refusal_fails_the_job_with_its_code_and_every_fault(
    workspace: Workspace, does: Callable[[Handler], None]
) -> None:
    faults = [Fault(code=ErrorCode.EVAL_FILE, message=f"line {line} is not JSON", line=line) for line in (3, 7)]

    def handler(_lease: Lease, _job: Job) -> None:
        raise QuestionSetError(faults)

    does(handler)
    job = start(workspace, file=jobs.File(name="a.jsonl", media_type="", data=b"x"))
    drain()
    ended = seen(job)
    assert (ended.state, ended.code) == (JobState.FAILED, ErrorCode.EVAL_FILE)
    assert [fault["line"] for fault in ended.faults] == [3, 7]
    assert not JobFile.objects.exists()


def test_a_provider_that_may_recover_is_tried_again_and_one_that_refuses_is_not(
    workspace: Workspace, does: Callable[[Handler], None]
) -> None:
    calls = []

    def handler(lease: Lease, _job: Job) -> Mapping[str, Any]:
        calls.append(lease.tries)
        fault = ProviderFault.RATE if len(calls) == 1 else ProviderFault.AUTH
        raise ProviderError(fault, "no", retryable=fault is ProviderFault.RATE, wait_seconds=0.0)

    does(handler)
    job = start(workspace)
    drain()
    Slice.objects.filter(job=job).update(not_before=None)
    drain()
    assert len(calls) == 2
    assert (seen(job).state, seen(job).code) == (JobState.FAILED, ErrorCode.PROVIDER_AUTH)


def test_a_defect_of_ours_fails_the_job_after_one_more_try(
    workspace: Workspace, does: Callable[[Handler], None]
) -> None:
    def handler(_lease: Lease, _job: Job) -> None:
        raise KeyError("defect")

    does(handler)
    job = start(workspace)
    drain()
    assert seen(job).state == JobState.RUNNING
    Slice.objects.filter(job=job).update(not_before=None)
    drain()
    assert (seen(job).state, seen(job).code) == (JobState.FAILED, ErrorCode.INTERNAL)


def test_writes_of_its_own_and_the_end_are_one_transaction(
    workspace: Workspace, does: Callable[[Handler], None]
) -> None:
    def handler(lease: Lease, _job: Job) -> None:
        made = jobs.File(name="run.csv", media_type="text/csv", data=b"a,b\n")
        with jobs.finishing(lease, file=made) as result:
            Workspace.objects.create(name="made by the job")
            result["rows"] = 1

    does(handler)
    job = start(workspace, n_total=5)
    drain()
    assert (seen(job).state, seen(job).result, seen(job).n_done) == (JobState.COMPLETED, {"rows": 1}, 5)
    kept = JobFile.objects.get(job=job, role=FileRole.OUTPUT)
    assert (bytes(kept.data), kept.size) == (b"a,b\n", 4)


def test_a_worker_that_lost_its_lease_can_neither_progress_nor_finish(workspace: Workspace) -> None:
    job = start(workspace)
    lease = claimed(job)
    jobs.begin(lease)
    slices.release(lease)
    successor = claimed(job)
    for late in (lambda: jobs.progress(lease, 1), lambda: jobs.finish(lease, {}), lambda: jobs.begin(lease)):
        with pytest.raises(LeaseLostError):
            late()
    with pytest.raises(LeaseLostError), jobs.finishing(lease):
        Workspace.objects.create(name="never")
    jobs.finish(successor, {"by": "the successor"})
    assert seen(job).result == {"by": "the successor"}
    assert not Workspace.objects.filter(name="never").exists()


def test_what_is_done_is_not_done_again_by_the_next_worker(workspace: Workspace) -> None:
    job = start(workspace)
    lease = claimed(job)
    jobs.begin(lease)
    jobs.progress(lease, 40, 100, payload={"n": 3, "next": 40})
    slices.release(lease)
    assert jobs.begin(claimed(job)).payload["next"] == 40


def test_a_waiting_job_is_cancelled_at_once(workspace: Workspace) -> None:
    job = start(workspace)
    assert jobs.cancel(workspace, job.id).state == JobState.CANCELLED
    assert jobs.cancel(workspace, job.id).state == JobState.CANCELLED
    assert Slice.objects.get(job=job).state == SliceState.CANCELLED
    assert drain() == 0


def test_a_job_at_work_stops_at_its_next_look_and_writes_nothing(
    workspace: Workspace, does: Callable[[Handler], None]
) -> None:
    def handler(lease: Lease, job: Job) -> Mapping[str, Any]:
        assert jobs.cancel(workspace, job.id).state == JobState.CANCELLING
        assert not slices.renew(lease)
        return {"too": "late"}

    does(handler)
    job = start(workspace)
    drain()
    assert (seen(job).state, seen(job).result) == (JobState.CANCELLED, {})


def test_a_cancelled_job_whose_worker_died_is_closed_by_the_sweeper(workspace: Workspace) -> None:
    job = start(workspace)
    jobs.begin(claimed(job))
    assert jobs.cancel(workspace, job.id).state == JobState.CANCELLING
    assert sweeper.advance() == 0
    Slice.objects.filter(job=job).update(lease_until=timezone.now() - timedelta(hours=1))
    assert sweeper.advance() == 1
    assert seen(job).state == JobState.CANCELLED


def test_what_has_ended_cannot_be_cancelled_and_another_workspaces_is_not_found(
    workspace: Workspace, does: Callable[[Handler], None]
) -> None:
    does(lambda _lease, _job: {})
    job = start(workspace)
    drain()
    with pytest.raises(ConflictError):
        jobs.cancel(workspace, job.id)
    with pytest.raises(NotFoundError):
        jobs.cancel(Workspace.objects.create(name="theirs"), job.id)


def test_a_job_whose_workers_die_five_times_is_failed_and_says_so(workspace: Workspace) -> None:
    job = start(workspace)
    for _ in range(sweeper.MOST_DEATHS):
        assert seen(job).state != JobState.FAILED
        claimed(job)
        Slice.objects.filter(job=job).update(lease_until=timezone.now() - timedelta(hours=1))
        sweeper.expire()
    assert (seen(job).state, seen(job).code) == (JobState.FAILED, ErrorCode.WORKER_LOST)
    assert not Slice.objects.filter(job=job, state__in=["pending", "queued", "leased"]).exists()


def test_a_job_past_its_deadline_is_failed_and_its_worker_writes_nothing(workspace: Workspace) -> None:
    job = start(workspace)
    lease = claimed(job)
    Job.objects.filter(id=job.id).update(deadline_at=timezone.now() - timedelta(seconds=1))
    sweeper.advance()
    assert (seen(job).state, seen(job).code) == (JobState.FAILED, ErrorCode.DEADLINE)
    with pytest.raises(LeaseLostError):
        jobs.finish(lease, {})


def test_a_kind_that_this_worker_does_not_know_waits_for_one_that_does(workspace: Workspace) -> None:
    job = jobs.start(workspace, JobKind.GATE, {})
    Job.objects.filter(id=job.id).update(kind="of-the-next-release")
    drain()
    piece = Slice.objects.get(job=job)
    assert piece.state == SliceState.PENDING
    assert piece.not_before is not None
    assert seen(job).state == JobState.RUNNING


def test_a_job_does_not_wait_behind_another_workspaces_thousand(
    workspace: Workspace, does: Callable[[Handler], None], settings: Any
) -> None:
    settings.SEARCH_SLOTS = 1
    crowd = Workspace.objects.create(name="crowd")
    with transaction.atomic():
        for _ in range(5):
            start(crowd, lane=Lane.SEARCH)
        job = start(workspace, lane=Lane.SEARCH)
        Slice.objects.filter(job=job).update(created_at=timezone.now() + timedelta(seconds=60))
    pump.run()
    queued = Slice.objects.filter(state=SliceState.QUEUED)
    first = queued.order_by("queued_at").values_list("workspace_id", flat=True)
    assert crowd.id in set(first)
    assert queued.count() < 6
    # A place was taken by the crowd: the next that is free is the other workspace's.
    for piece in queued.filter(workspace=crowd)[:1]:
        slices.close([piece.id], SliceState.CANCELLED)
    pump.run()
    assert Slice.objects.filter(job=job, state=SliceState.QUEUED).exists()


def test_the_database_refuses_two_owners_and_two_open_slices(workspace: Workspace) -> None:
    job = start(workspace)
    for more in ({}, {"job": None}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Slice.objects.create(workspace=workspace, kind="job", lane="control", **{"job": job, **more})
    with pytest.raises(IntegrityError), transaction.atomic():
        Job.objects.filter(id=job.id).update(state="unheard of")
    jobs.cancel(workspace, job.id)
    twice = [JobFile(job=job, role=FileRole.INPUT, name=name, size=0, data=b"") for name in "ab"]
    with pytest.raises(IntegrityError), transaction.atomic():
        JobFile.objects.bulk_create(twice)


def test_jobs_that_ended_long_ago_go_with_their_files(workspace: Workspace, does: Callable[[Handler], None]) -> None:
    does(lambda lease, _job: jobs.finish(lease, file=jobs.File(name="x", media_type="", data=b"x")))
    old, recent = start(workspace), start(workspace)
    drain()
    Job.objects.filter(id=old.id).update(finished_at=timezone.now() - timedelta(days=jobs.KEPT_DAYS + 1))
    assert jobs.forget() == 1
    assert list(JobFile.objects.values_list("job_id", flat=True)) == [recent.id]
