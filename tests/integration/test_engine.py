"""The run engine on real tables, slice by slice: claims, fencing, repairs, and what each failure leaves behind."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone
from psycopg.errors import DeadlockDetected

from backend.core.errors import ConflictError, ErrorCode
from backend.core.states import EvaluationState, Lane, SliceKind, SliceState
from backend.core.types import Outcome
from backend.models import Evaluation, KnowledgeBase, Result, Slice
from backend.services import (
    evaluations,
    in_use,
    knowledge_bases,
    pump,
    question_sets,
    results,
    runs,
    slices,
    sweeper,
    work,
)
from backend.services.evaluation_requests import Request
from backend.services.results import ResultRow
from backend.services.slices import LeaseLostError
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = ["heron", "otter", "badger", "lynx", "marten", "stoat"]


@pytest.fixture
def base() -> Base:
    return make_base(
        *(Row(path=f"{word}.txt", text=f"about the {word}", vector=None) for word in WORDS), embedder="none"
    )


def submit(base: Base, *, n: int = len(WORDS), **fields: Any) -> Evaluation:
    items = [{"question": f"the {WORDS[i % 6]} {i}", "expected": [f"{WORDS[i % 6]}.txt"]} for i in range(n)]
    made = question_sets.create(base.workspace, name=f"set of {n}", items=items)
    request = Request(
        question_set=str(made.question_set_id),
        scope={"knowledge_base": str(base.knowledge_base.id)},
        **{"modes": ["keyword"], **fields},
    )
    return evaluations.start(base.workspace, request, now=timezone.now())


def handed_out(evaluation: Evaluation, kind: SliceKind) -> Slice:
    """Work until a slice of this kind waits, and hand it out without working on it."""
    for _ in range(20):
        pump.run()
        for piece in Slice.objects.filter(evaluation=evaluation, state=SliceState.QUEUED).order_by("id"):
            if piece.kind == kind:
                return piece
            work.run(piece.id, delivery=piece.delivery)
    raise AssertionError(f"no slice of kind {kind} came")


def test_a_keyword_run_is_scored_and_every_question_has_one_row(base: Base) -> None:
    evaluation = submit(base, n=120)
    drain()
    evaluation.refresh_from_db()
    run = evaluation.runs.get()
    assert (evaluation.state, evaluation.revision) == (EvaluationState.COMPLETED, 1)
    assert run.counts["n_scored"] == 120
    assert run.metrics["hit@1"]["mean"] == 1.0
    assert Result.objects.filter(run=run).count() == 120
    assert not Slice.objects.filter(state__in=["pending", "queued", "leased"]).exists()
    assert not Slice.objects.exclude(payload=None).exists(), "a payload outlived its slice"


def test_a_mode_without_an_embedder_is_unavailable_and_the_other_is_scored(base: Base) -> None:
    evaluation = submit(base, modes=["semantic", "keyword"])
    drain()
    semantic, keyword = evaluation.runs.order_by("ordinal")
    assert (semantic.state, semantic.stop_code) == ("unavailable", "PROVIDER_NOT_CONFIGURED")
    assert semantic.metrics == {}
    assert semantic.counts["n_not_run"] == len(WORDS)
    assert keyword.state == "scored"


def test_a_label_that_differs_only_in_case_is_judged_by_the_one_document_it_can_mean(base: Base) -> None:
    items = [{"question": "the heron", "expected": ["HERON.TXT"]}]
    made = question_sets.create(base.workspace, name="shouting", items=items)
    scope = {"knowledge_base": str(base.knowledge_base.id)}
    request = Request(question_set=str(made.question_set_id), scope=scope, modes=["keyword"])
    evaluations.start(base.workspace, request, now=timezone.now())
    drain()
    # The rows of this base are not said to be indexed by documents; without that, nothing is known to fold by.
    assert Result.objects.get().first_rank is None
    base.index.indexed_documents.create(
        document=base.documents["heron.txt"], bytes_hash="0" * 64, generation=2, n_chunks=1
    )
    type(base.index).objects.filter(id=base.index.id).update(generation=2)
    evaluations.start(base.workspace, request, now=timezone.now())
    drain()
    assert Result.objects.latest("id").first_rank == 1


def test_an_old_or_doubled_doorbell_changes_nothing(base: Base) -> None:
    piece = handed_out(submit(base), SliceKind.SEARCH)
    assert slices.claim(piece.id, delivery=piece.delivery - 1) is None
    first = slices.claim(piece.id, delivery=piece.delivery)
    assert first is not None
    assert slices.claim(piece.id, delivery=piece.delivery) is None
    assert Slice.objects.get(id=piece.id).token == first.token


def test_of_two_workers_that_claim_at_once_one_wins(base: Base) -> None:
    piece = handed_out(submit(base), SliceKind.SEARCH)
    found = at_once(8, lambda: slices.claim(piece.id, delivery=piece.delivery))
    assert sum(lease is not None for lease in found) == 1


def test_a_worker_whose_lease_was_taken_away_can_write_nothing(base: Base) -> None:
    piece = handed_out(submit(base), SliceKind.SEARCH)
    zombie = slices.claim(piece.id, delivery=piece.delivery)
    assert zombie is not None
    expire(piece)
    sweeper.sweep()
    run = piece.evaluation.runs.get()  # type: ignore[union-attr]
    row = ResultRow(run_id=run.id, ordinal=0, question_key="k", outcome=Outcome.ERROR)
    with pytest.raises(LeaseLostError), slices.commit(zombie, finish=True):
        results.write([row], epoch=1)
    assert not slices.renew(zombie)
    assert not Result.objects.exists()
    drain()
    assert Result.objects.filter(outcome="ok").count() == len(WORDS)


def test_a_lost_doorbell_is_rung_again_and_counts_as_no_death(base: Base) -> None:
    piece = handed_out(submit(base), SliceKind.SEARCH)
    Slice.objects.filter(id=piece.id).update(queued_at=timezone.now() - timedelta(hours=1))
    swept = sweeper.sweep()
    piece.refresh_from_db()
    assert swept.n_rung_again == 1
    assert (piece.deaths, piece.n_rings) == (0, 1)
    drain()
    assert Evaluation.objects.get().state == EvaluationState.COMPLETED


def test_a_slice_whose_worker_died_twice_splits_and_every_question_is_still_scored(base: Base) -> None:
    evaluation = submit(base, n=96)
    piece = handed_out(evaluation, SliceKind.SEARCH)
    n_items = len(piece.items)
    assert n_items > 1
    for _ in range(2):
        die(piece)
    piece.refresh_from_db()
    assert piece.state == SliceState.SPLIT
    alone = Slice.objects.filter(evaluation=evaluation, kind="search", first__in=piece.items, last__in=piece.items)
    assert [one.items for one in alone.exclude(id=piece.id).order_by("first")] == [[item] for item in piece.items]
    drain()
    assert evaluation.runs.get().counts["n_scored"] == 96


def test_only_the_question_whose_child_dies_in_quarantine_is_lost(base: Base) -> None:
    evaluation = submit(base, n=1)
    piece = handed_out(evaluation, SliceKind.SEARCH)
    for _ in range(2):
        die(piece)
    piece.refresh_from_db()
    assert (piece.quarantined, piece.lane) == (True, Lane.SEARCH)
    pump.run()
    piece.refresh_from_db()
    assert slices.claim(piece.id, delivery=piece.delivery) is not None
    sweeper.child_died(piece.id, delivery=piece.delivery)
    drain()
    result = Result.objects.get()
    assert (result.outcome, result.code) == ("error", "WORKER_LOST")
    assert Evaluation.objects.get(id=evaluation.id).state == EvaluationState.FAILED


def test_killed_machines_do_not_turn_an_innocent_question_into_an_error(base: Base) -> None:
    evaluation = submit(base, n=1)
    piece = handed_out(evaluation, SliceKind.SEARCH)
    for _ in range(sweeper.MOST_DEATHS - 1):
        die(piece)
    drain()
    assert Result.objects.get().outcome == "ok"


def test_after_a_gap_of_its_own_the_sweeper_leaves_leases_alone_for_one_lease(base: Base) -> None:
    piece = handed_out(submit(base), SliceKind.SEARCH)
    assert slices.claim(piece.id, delivery=piece.delivery) is not None
    sweeper.sweep()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backend_pulse SET at = now() - interval '1 day' WHERE name = 'sweeper'")
    expire(piece)
    assert sweeper.sweep().skipped_leases
    piece.refresh_from_db()
    assert (piece.state, piece.deaths) == (SliceState.LEASED, 0)


def test_a_good_row_keeps_its_bytes_and_a_bad_one_gives_way_to_a_higher_epoch(base: Base) -> None:
    run = submit(base).runs.get()

    def write(outcome: Outcome, *, epoch: int, code: str = "") -> int:
        row = ResultRow(run_id=run.id, ordinal=0, question_key="k", outcome=outcome, code=code)
        return results.write([row], epoch=epoch)

    assert write(Outcome.ERROR, epoch=1, code="A") == 1
    assert write(Outcome.OK, epoch=1) == 0, "of one epoch, the first row stays"
    assert write(Outcome.OK, epoch=2) == 1
    assert write(Outcome.ERROR, epoch=3) == 0
    assert Result.objects.get().outcome == "ok"


def test_the_last_two_slices_at_once_always_close_the_evaluation(base: Base, settings: Any) -> None:
    # Places for all four at once.
    settings.SEARCH_SLOTS = 4
    for _ in range(15):
        evaluation = submit_named(base)
        handed_out(evaluation, SliceKind.SEARCH)
        pump.run()
        last = list(Slice.objects.filter(evaluation=evaluation, state=SliceState.QUEUED).order_by("id"))
        assert len(last) >= 2
        for piece in last[:-2]:
            work.run(piece.id, delivery=piece.delivery)
        at_once(2, *[lambda piece=piece: work.run(piece.id, delivery=piece.delivery) for piece in last[-2:]])
        evaluation.refresh_from_db()
        assert evaluation.state == EvaluationState.AGGREGATING
        assert Slice.objects.filter(evaluation=evaluation, kind="aggregate").count() == 1
        drain()


def test_a_row_that_went_missing_is_asked_again_once(base: Base) -> None:
    evaluation = submit(base)
    handed_out(evaluation, SliceKind.AGGREGATE)
    Result.objects.filter(ordinal__in=[2, 4]).delete()
    drain()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.COMPLETED
    assert Result.objects.count() == len(WORDS)
    assert Slice.objects.filter(evaluation=evaluation, pool="repair").exists()


def test_cancel_keeps_what_was_done_and_starts_nothing_new(base: Base) -> None:
    evaluation = submit(base, n=96)
    piece = handed_out(evaluation, SliceKind.SEARCH)
    work.run(piece.id, delivery=piece.delivery)
    n_done = Result.objects.count()
    assert n_done
    cancelled = evaluations.cancel(base.workspace, evaluation.id)
    assert cancelled.state == EvaluationState.CANCELLING
    assert evaluations.cancel(base.workspace, evaluation.id).state == EvaluationState.CANCELLING
    drain()
    evaluation.refresh_from_db()
    counts = evaluation.runs.get().counts
    assert evaluation.state == EvaluationState.CANCELLED
    assert (counts["n_scored"], counts["n_cancelled"]) == (n_done, 96 - n_done)
    assert evaluations.cancel(base.workspace, evaluation.id).state == EvaluationState.CANCELLED


def test_an_ended_evaluation_cannot_be_cancelled(base: Base) -> None:
    evaluation = submit(base)
    drain()
    with pytest.raises(ConflictError, match="completed"):
        evaluations.cancel(base.workspace, evaluation.id)


def test_cancel_waits_for_a_live_worker_and_not_for_a_dead_one(base: Base) -> None:
    evaluation = submit(base)
    piece = handed_out(evaluation, SliceKind.SEARCH)
    lease = slices.claim(piece.id, delivery=piece.delivery)
    assert lease is not None
    evaluations.cancel(base.workspace, evaluation.id)
    sweeper.advance()
    assert not Slice.objects.filter(evaluation=evaluation, kind="aggregate").exists()
    assert not slices.renew(lease), "the worker hears of it at its next heartbeat"
    expire(piece)
    sweeper.advance()
    drain()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.CANCELLED


@pytest.mark.parametrize("expired_before_cancel", [True, False])
def test_a_slice_whose_worker_died_does_not_keep_a_cancelled_evaluation_open(
    base: Base, expired_before_cancel: bool
) -> None:
    """Its run-out lease goes back to waiting, where nobody may claim it any more."""
    evaluation = submit(base)
    piece = handed_out(evaluation, SliceKind.SEARCH)
    assert slices.claim(piece.id, delivery=piece.delivery) is not None
    if expired_before_cancel:
        expire(piece)
    evaluations.cancel(base.workspace, evaluation.id)
    if not expired_before_cancel:
        expire(piece)
    sweeper.sweep()
    drain()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.CANCELLED


def test_a_child_is_never_born_into_a_cancelled_evaluation(base: Base) -> None:
    evaluation = submit(base, modes=["keyword_rerank"], reranker="local")
    piece = handed_out(evaluation, SliceKind.SEARCH)
    lease = slices.claim(piece.id, delivery=piece.delivery)
    assert lease is not None
    evaluations.cancel(base.workspace, evaluation.id)
    work.HANDLERS[SliceKind.SEARCH](lease)
    assert not Slice.objects.filter(evaluation=evaluation, kind="rerank").exists()
    sweeper.advance()
    drain()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.CANCELLED


def test_past_the_deadline_what_is_open_ends_with_that_code(base: Base) -> None:
    evaluation = submit(base, n=96)
    piece = handed_out(evaluation, SliceKind.SEARCH)
    work.run(piece.id, delivery=piece.delivery)
    n_done = Result.objects.count()
    Evaluation.objects.update(deadline_at=timezone.now() - timedelta(seconds=1))
    sweeper.sweep()
    drain()
    counts = evaluation.runs.get().counts
    assert (counts["n_scored"], counts["errors"]) == (n_done, {"DEADLINE": 96 - n_done})


def test_retry_asks_only_what_has_no_good_result(base: Base) -> None:
    evaluation = submit(base)
    drain()
    before = dict(Result.objects.values_list("ordinal", "created_at"))
    Result.objects.filter(ordinal=3).update(outcome="error", code=ErrorCode.PROVIDER_TIMEOUT, judged=None)
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    drain()
    evaluation.refresh_from_db()
    after = dict(Result.objects.values_list("ordinal", "created_at"))
    assert (evaluation.state, evaluation.epoch, evaluation.revision) == (EvaluationState.COMPLETED, 2, 2)
    assert {ordinal for ordinal in before if before[ordinal] != after[ordinal]} == {3}
    assert evaluation.runs.get().counts["n_scored"] == len(WORDS)


def test_retry_over_changed_documents_needs_saying_so(base: Base) -> None:
    evaluation = submit(base)
    drain()
    Result.objects.filter(ordinal=3).update(outcome="error", code=ErrorCode.PROVIDER_TIMEOUT, judged=None)
    base.index.indexed_documents.create(
        document=base.documents["heron.txt"], bytes_hash="1" * 64, generation=2, n_chunks=1
    )
    with pytest.raises(ConflictError, match="allow_changed_corpus"):
        evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now(), allow_changed_corpus=True)
    drain()
    run = evaluation.runs.get()
    assert (run.counts["n_scored"], run.corpus_changed) == (len(WORDS), True)


def test_a_retry_after_a_run_was_deleted_asks_for_the_others_alone(base: Base) -> None:
    """Workers keep an evaluation's plan: it must not name a run that is gone."""
    both = [{"name": "kept", "mode": "keyword"}, {"name": "gone", "mode": "keyword"}]
    evaluation = submit(base, modes=None, configurations=both)
    drain()
    gone = evaluation.runs.get(name="gone")
    Result.objects.filter(run__evaluation=evaluation, ordinal=2).update(outcome=Outcome.ERROR, code="INTERNAL")
    runs.delete(base.workspace, gone.id)
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    drain()
    evaluation.refresh_from_db()
    kept = evaluation.runs.get()
    assert (evaluation.state, kept.counts["n_scored"]) == (EvaluationState.COMPLETED, len(WORDS))


def test_a_retry_over_an_index_that_is_gone_is_refused_and_keeps_the_numbers(base: Base) -> None:
    evaluation = submit(base)
    drain()
    Result.objects.filter(run__evaluation=evaluation, ordinal=2).update(outcome=Outcome.ERROR, code="INTERNAL")
    knowledge_bases.delete(base.knowledge_base)
    for allow in (False, True):
        with pytest.raises(ConflictError, match="gone"):
            evaluations.retry(base.workspace, evaluation.id, now=timezone.now(), allow_changed_corpus=allow)
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.runs.get().state) == (EvaluationState.COMPLETED, "scored")


def test_a_deletion_that_meets_a_deadlock_is_begun_anew(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    free, n_calls = in_use.free, 0

    def fail_twice(*arguments: Any, **options: Any) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls <= 2:
            raise OperationalError("deadlock detected") from DeadlockDetected()
        free(*arguments, **options)

    monkeypatch.setattr(in_use, "free", fail_twice)
    knowledge_bases.delete(base.knowledge_base)
    assert not KnowledgeBase.objects.filter(id=base.knowledge_base.id).exists()


def test_a_set_deleted_by_force_leaves_a_row_for_every_question(base: Base) -> None:
    evaluation = submit(base, n=12)
    handed_out(evaluation, SliceKind.SEARCH)
    version = evaluation.question_set_version
    assert version is not None
    question_sets.delete(version.question_set, force=True)
    slices_done(evaluation)
    evaluation.refresh_from_db()
    run = evaluation.runs.get()
    assert evaluation.state == EvaluationState.CANCELLED
    assert (run.counts["n_total"], run.counts["n_scored"] + run.counts["n_cancelled"]) == (12, 12)


def test_a_postgresql_that_restarts_costs_a_slice_neither_a_try_nor_a_death(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = submit(base)
    piece = handed_out(evaluation, SliceKind.SEARCH)

    def fail(_: Any) -> None:
        connection.close()
        raise OperationalError("the connection was lost")

    with monkeypatch.context() as patched:
        patched.setitem(work.HANDLERS, SliceKind.SEARCH, fail)
        work.run(piece.id, delivery=piece.delivery)
    piece.refresh_from_db()
    assert (piece.state, piece.tries, piece.deaths, piece.token) == (SliceState.PENDING, 0, 0, None)
    slices_done(evaluation)


def test_what_postgresql_refuses_is_an_error_of_ours_and_no_lost_worker(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = submit(base)

    def fail(_: Any) -> None:
        raise IntegrityError("a broken constraint")

    monkeypatch.setitem(work.HANDLERS, SliceKind.SEARCH, fail)
    slices_done(evaluation)
    codes = set(Result.objects.filter(run__evaluation=evaluation).values_list("code", flat=True))
    assert codes == {ErrorCode.INTERNAL}


def test_a_lock_that_is_not_had_is_tried_again(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = submit(base, n=1)
    search, n_calls = work.HANDLERS[SliceKind.SEARCH], 0

    def fail_thrice(lease: slices.Lease) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls <= 3:
            raise OperationalError("deadlock detected")
        search(lease)

    monkeypatch.setitem(work.HANDLERS, SliceKind.SEARCH, fail_thrice)
    slices_done(evaluation)
    evaluation.refresh_from_db()
    assert (evaluation.state, n_calls) == (EvaluationState.COMPLETED, 4)


def slices_done(evaluation: Evaluation) -> None:
    """Work until the evaluation has ended, without waiting for the times at which slices come back."""
    for _ in range(20):
        Slice.objects.filter(evaluation=evaluation, state=SliceState.PENDING).update(not_before=None)
        drain()
        evaluation.refresh_from_db()
        if evaluation.finished_at is not None:
            return
    raise AssertionError(f"still {evaluation.state}")


def test_a_failing_handler_is_tried_once_more_and_then_says_so(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(lease: slices.Lease) -> None:
        raise RuntimeError("a fault of ours")

    evaluation = submit(base)
    monkeypatch.setitem(work.HANDLERS, SliceKind.SEARCH, broken)
    for _ in range(4):
        drain()
        Slice.objects.update(not_before=None)
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.FAILED
    assert set(Result.objects.values_list("outcome", "code")) == {("error", "INTERNAL")}


def test_a_small_run_is_handed_out_beside_a_large_one(base: Base) -> None:
    large = submit(base, n=3000)
    handed_out(large, SliceKind.SEARCH)
    small = submit(base, n=12)
    for piece in Slice.objects.filter(evaluation=small, kind="prepare"):
        pump.run()
        piece.refresh_from_db()
        work.run(piece.id, delivery=piece.delivery)
    Slice.objects.filter(evaluation=large, state=SliceState.QUEUED).update(state=SliceState.PENDING)
    pump.run()
    out = list(Slice.objects.filter(state=SliceState.QUEUED).values_list("evaluation_id", flat=True))
    assert small.id in out
    assert out.count(small.id) >= out.count(large.id)


def test_the_window_bounds_how_many_questions_are_begun(base: Base, settings: Any) -> None:
    settings.EVALUATION_WINDOW = 60
    settings.SEARCH_SLOTS = 50
    evaluation = submit(base, n=2000)
    handed_out(evaluation, SliceKind.SEARCH)
    pump.run()
    begun = list(Slice.objects.filter(evaluation=evaluation, state=SliceState.QUEUED).values_list("items", flat=True))
    n_begun = sum(len(items) for items in begun)
    assert 60 <= n_begun < 60 + max(len(items) for items in begun), "full, by no more than one slice over"
    assert pump.run() == 0, "a full window takes no more"
    piece = Slice.objects.filter(evaluation=evaluation, state=SliceState.QUEUED).order_by("id")[0]
    work.run(piece.id, delivery=piece.delivery)
    assert Slice.objects.filter(evaluation=evaluation, state=SliceState.QUEUED).count() == len(begun)


# ---- helpers


def submit_named(base: Base) -> Evaluation:
    items = [{"question": f"the {WORDS[i % 6]} {i}", "expected": [f"{WORDS[i % 6]}.txt"]} for i in range(4)]
    made = question_sets.create(base.workspace, name=f"set {timezone.now().isoformat()}", items=items)
    request = Request(
        question_set=str(made.question_set_id),
        scope={"knowledge_base": str(base.knowledge_base.id)},
        modes=["keyword"],
    )
    return evaluations.start(base.workspace, request, now=timezone.now())


def expire(piece: Slice) -> None:
    Slice.objects.filter(id=piece.id).update(lease_until=timezone.now() - timedelta(seconds=1))


def die(piece: Slice) -> None:
    """A worker takes the slice and is killed."""
    Slice.objects.filter(id=piece.id, state=SliceState.PENDING).update(
        state=SliceState.QUEUED, delivery=piece.delivery + 1
    )
    piece.refresh_from_db()
    assert slices.claim(piece.id, delivery=piece.delivery) is not None
    expire(piece)
    sweeper.expire()
    piece.refresh_from_db()


def at_once(n: int, *calls: Callable[[], Any]) -> list[Any]:
    """Run the calls (one of them n times) in threads that start together; each with its own connection."""
    barrier = threading.Barrier(n)
    found: list[Any] = [None] * n

    def one(place: int) -> None:
        barrier.wait()
        try:
            found[place] = calls[place % len(calls)]()
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(place,)) for place in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    transaction.get_connection().ensure_connection()
    return found
