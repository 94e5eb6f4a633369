"""Workers that die, freeze, forget and hear double: the numbers of the table in docs/measured.md stand with each test.

After each one the oracle: one row per run and question, nothing open, sums right, and equal bit for bit to the run
that nothing disturbed.
"""

import os
import signal
import time

import pytest

from tests.e2e import oracle
from tests.e2e.cluster import WORKERS, Cluster
from tests.e2e.faults import (
    MODES,
    N_QUESTIONS,
    SLICE,
    WORDS,
    check,
    deaths,
    gets_on,
    in_mid_slice,
    leased,
    revive_workers,
    ring,
    with_a,
)
from tests.e2e.oracle import submit
from tests.e2e.shelf import Shelf
from tests.standins import Script, Standin

# What fits into CI beside the rest is less than these take.
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


@pytest.mark.core
def test_f1_a_killed_worker_costs_a_lease_and_no_result(
    faulty: Cluster, small: Shelf, undisturbed: str, provider: Standin
) -> None:
    faulty.tell(slow_question="0.05")
    evaluation = submit(faulty, small, **MODES)
    gets_on(faulty, evaluation, n=20)
    in_mid_slice(faulty, evaluation)
    faulty.restart("worker-search", "worker-provider")
    check(faulty, evaluation, small, undisturbed)
    # What is repeated is what was in hand: two slices of four questions, and the calls in flight.
    assert len(faulty.noted("asked")) <= N_QUESTIONS + 2 * SLICE
    assert len(provider.calls) <= N_QUESTIONS + 16
    oracle.check_drained(faulty)


@pytest.mark.core
def test_f3_a_killed_child_is_seen_at_once_and_its_worker_lives(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    faulty.tell(slow_question="0.1")
    main = faulty.pid("worker-search")
    evaluation = submit(faulty, small, **MODES)
    faulty.wait(lambda: leased(faulty, evaluation) >= 2, "both children to be at work", seconds=180)
    victim = faulty.children("worker-search")[0]
    os.kill(victim, signal.SIGKILL)
    faulty.wait(lambda: deaths(faulty, evaluation) >= 1, "the death to be seen", seconds=180)
    faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    assert faulty.pid("worker-search") == main
    assert faulty.runs("worker-search")
    assert deaths(faulty, evaluation) == 1


@pytest.mark.core
def test_f4_of_a_set_with_a_question_that_kills_its_process_exactly_that_one_is_lost(
    faulty: Cluster, small: Shelf
) -> None:
    bad = with_a("cyanide", cluster=faulty, shelf=small)
    faulty.tell(poison="cyanide")
    evaluation = submit(faulty, bad, **WORDS)
    final = faulty.finished(evaluation)
    oracle.check_whole(faulty, evaluation, bad, n_runs=1)
    found = oracle.endings(faulty, final["runs"][0])
    assert found.pop("q5") == ("error", "WORKER_LOST")
    assert set(found.values()) == {("ok", "")}
    # Two in company, two alone, and the one in quarantine that says who it was.
    assert deaths(faulty, evaluation) <= 6
    assert faulty.runs("worker-search")


def test_f4_a_pool_that_kills_the_process_of_many_threads_is_the_only_one_lost(
    faulty: Cluster, small: Shelf, provider: Standin
) -> None:
    """A thread takes its neighbours along: they are asked again, and the culprit is found out in a child of its own."""
    provider.set_script(Script(max_batch=64, latency_seconds=0.3))
    bad = with_a("arsenic", cluster=faulty, shelf=small)
    faulty.tell(poison_rerank="arsenic")
    evaluation = submit(faulty, bad, modes=["keyword_rerank"], reranker="http:near", cache=False)
    for _ in range(2):
        code = faulty.ended("worker-provider", seconds=180)
        assert code != 0
        faulty.start("worker-provider")
    final = faulty.finished(evaluation)
    oracle.check_whole(faulty, evaluation, bad, n_runs=1)
    found = oracle.endings(faulty, final["runs"][0])
    assert found.pop("q5") == ("error", "WORKER_LOST")
    assert set(found.values()) == {("ok", "")}


def test_f5_of_a_set_with_a_question_that_needs_all_memory_only_that_one_fails(faulty: Cluster, small: Shelf) -> None:
    bad = with_a("feast", cluster=faulty, shelf=small)
    faulty.tell(hungry="feast")
    evaluation = submit(faulty, bad, **WORDS)
    final = faulty.finished(evaluation)
    oracle.check_whole(faulty, evaluation, bad, n_runs=1)
    found = oracle.endings(faulty, final["runs"][0])
    assert found.pop("q5") == ("error", "INTERNAL")
    assert set(found.values()) == {("ok", "")}
    assert deaths(faulty, evaluation) == 0


@pytest.mark.core
def test_f6_a_worker_that_froze_past_its_lease_and_wakes_can_write_nothing(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    faulty.tell(slow_question="0.1")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    faulty.kill("worker-search", number=signal.SIGSTOP)
    faulty.start("worker-search", alias="second")
    held = faulty.sql(
        "SELECT id, delivery FROM backend_slice WHERE evaluation_id = %s AND state = 'leased' AND lane = 'search'",
        evaluation,
    )
    assert held
    faulty.tell(slow_question="")

    def taken() -> bool:
        rows = faulty.sql(
            "SELECT count(*) FROM backend_slice WHERE id = ANY(%s) AND state = 'done'", [row[0] for row in held]
        )
        return bool(rows[0][0] == len(held))

    faulty.wait(taken, "the other worker to do what the frozen one held", seconds=180)
    faulty.kill("worker-search", number=signal.SIGCONT)
    check(faulty, evaluation, small, undisturbed)
    faulty.wait(lambda: "lease_lost" in faulty.log("worker-search"), "the woken one to see it", seconds=180)
    faulty.kill("second")


@pytest.mark.core
def test_f7_a_worker_asked_to_stop_ends_what_it_holds_and_leaves_no_lease(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    faulty.tell(slow_question="0.1")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    # As an orchestrator does: the main process alone. What is gone with it is started as in a deploy.
    for name in ("worker-search", "worker-provider"):
        os.kill(faulty.pid(name), signal.SIGTERM)
    assert faulty.ended("worker-search", seconds=180) == 0
    assert faulty.ended("worker-provider", seconds=180) == 0
    assert leased(faulty, evaluation) == leased(faulty, evaluation, kind="rerank") == 0
    faulty.tell(slow_question="")
    for name in ("worker-search", "worker-provider"):
        faulty.start(name)
    check(faulty, evaluation, small, undisturbed)
    assert deaths(faulty, evaluation) == 0
    assert len(faulty.noted("asked")) == N_QUESTIONS


def test_f8_no_way_of_ending_a_worker_leaves_a_row_stuck(faulty: Cluster, small: Shelf, undisturbed: str) -> None:
    """SIGQUIT amid commits, and SIGTERM with SIGKILL a second later, by turns: 200 ends, no more than eight in one run
    (a question that is in hand at five of them is given up)."""
    faulty.tell(slow_question="0.05")
    n = n_deaths = n_runs = 0
    while n < 200:
        evaluation = submit(faulty, small, **MODES)
        for _ in range(8):
            faulty.wait(
                lambda: leased(faulty, evaluation) >= 1 or oracle.n_results(faulty, evaluation) >= 2 * N_QUESTIONS,  # noqa: B023
                "a slice to be worked on",
                seconds=60,
            )
            if oracle.n_results(faulty, evaluation) >= 2 * N_QUESTIONS:
                break
            time.sleep(0.1 * (n % 5))
            os.kill(faulty.pid("worker-search"), signal.SIGQUIT if n % 2 else signal.SIGTERM)
            if n % 2 == 0:
                time.sleep(1)
                faulty.kill("worker-search")
            else:
                faulty.ended("worker-search", seconds=180)
            faulty.start("worker-search")
            n += 1
        check(faulty, evaluation, small, undisturbed)
        n_deaths += deaths(faulty, evaluation)
        n_runs += 1
    faulty.tell(slow_question="")
    print(f"\nMEASURED {n} ends of the search worker over {n_runs} runs, {n_deaths} deaths counted")


@pytest.mark.core
@pytest.mark.parametrize(
    "door",
    [
        pytest.param("before-ring", marks=pytest.mark.chaos),
        "after-commit",
        pytest.param("before-ack", marks=pytest.mark.chaos),
    ],
)
def test_f16_a_process_that_dies_between_two_steps_is_made_good(
    faulty: Cluster, small: Shelf, undisturbed: str, door: str
) -> None:
    """Between handed out and rung, between commit and what it made possible, between that and the acknowledgement."""
    evaluation = submit(faulty, small, **MODES)
    gets_on(faulty, evaluation, n=10)
    faulty.open_door(door)

    def ended() -> bool:
        revive_workers(faulty)
        return faulty.get(f"evaluations/{evaluation}")["state"] in {"completed", "failed"}

    faulty.wait(ended, "the run to end", seconds=180)
    check(faulty, evaluation, small, undisturbed)
    assert not list(faulty.faults.glob(f"{door}.*"))


@pytest.mark.core
def test_f17_a_doorbell_that_rings_five_times_is_answered_once(faulty: Cluster, small: Shelf, undisturbed: str) -> None:
    faulty.tell(slow_question="0.05")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    rows = faulty.sql(
        "SELECT id, delivery, lane FROM backend_slice WHERE evaluation_id = %s AND kind = 'search' "
        "AND state IN ('queued', 'leased')",
        evaluation,
    )
    for slice_id, delivery, lane in rows:
        for number in (delivery, delivery, delivery, delivery, delivery - 1):
            ring(faulty, lane=lane, slice=str(slice_id), delivery=number)
    faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    oracle.check_drained(faulty)
    drops = [float(line) for line in faulty.noted("dropped").split()]
    assert len(drops) >= 4 * len(rows)
    assert len(faulty.noted("asked")) == N_QUESTIONS
    print(f"\nMEASURED {len(drops)} doorbells dropped, each in {sorted(drops)[len(drops) // 2]:.1f} ms at the median")


def test_f18_a_broker_that_hands_out_again_what_is_being_worked_on_repeats_nothing(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    faulty.kill("worker-search")
    faulty.start("worker-search", environment={"FAULTS_VISIBILITY": "2"})
    faulty.tell(slow_question="1.5")  # four questions a slice
    evaluation = submit(faulty, small, **MODES)
    faulty.wait(lambda: len(faulty.noted("dropped").split()) >= 3, "messages to come twice", seconds=180)
    faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    assert len(faulty.noted("asked")) == N_QUESTIONS
    assert deaths(faulty, evaluation) == 0
    faulty.restart("worker-search")


@pytest.mark.core
def test_f19_a_doorbell_that_comes_after_the_end_has_no_effect(
    faulty: Cluster, small: Shelf, undisturbed: str, provider: Standin
) -> None:
    rows = faulty.sql("SELECT id, delivery, lane FROM backend_slice WHERE evaluation_id = %s", undisturbed)
    before = faulty.sql(
        "SELECT md5(string_agg(x::text, '' ORDER BY x.id)) FROM backend_result x JOIN backend_run r ON r.id = x.run_id "
        "WHERE r.evaluation_id = %s",
        undisturbed,
    )
    revision = faulty.sql("SELECT state, revision FROM backend_evaluation WHERE id = %s", undisturbed)
    for slice_id, delivery, lane in sorted(rows, key=lambda row: str(row[0])[::-1]):
        ring(faulty, lane=lane, slice=str(slice_id), delivery=delivery)
    faulty.wait(lambda: len(faulty.noted("dropped").split()) >= len(rows), "every doorbell to be dropped", seconds=180)
    after = faulty.sql(
        "SELECT md5(string_agg(x::text, '' ORDER BY x.id)) FROM backend_result x JOIN backend_run r ON r.id = x.run_id "
        "WHERE r.evaluation_id = %s",
        undisturbed,
    )
    assert after == before
    assert faulty.sql("SELECT state, revision FROM backend_evaluation WHERE id = %s", undisturbed) == revision
    assert provider.calls == []


def test_f40_what_another_release_sends_is_understood_or_dropped(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    """A task that this release does not know, and one with an argument more."""
    faulty.tell(slow_question="0.05")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    for lane in ("control", "search", "provider"):
        ring(faulty, lane=lane, task="touchstone.of_tomorrow", slice="?")
    for slice_id, delivery, lane in faulty.sql(
        "SELECT id, delivery, lane FROM backend_slice WHERE evaluation_id = %s AND state = 'queued'", evaluation
    ):
        ring(faulty, lane=lane, slice=str(slice_id), delivery=delivery, colour="red", n=[1, 2])
    faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    assert all(faulty.runs(name) for name in WORKERS)


@pytest.mark.core
def test_f41_what_is_no_message_is_refused_and_the_workers_live(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    """Not JSON, a pickle, five megabytes, an envelope without what it needs."""
    pickled = (
        '{"body": "gASVGAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjARleGl0lIWUUpQu", "content-encoding": "binary", '
        '"content-type": "application/x-python-serialize", "headers": {"task": "touchstone.work", "id": "1"}, '
        '"properties": {"delivery_tag": "1", "body_encoding": "base64", "delivery_info": {"exchange": "", '
        '"routing_key": "search"}}}'
    )
    huge = pickled.replace("application/x-python-serialize", "application/json").replace("gASVGAA", "A" * 5_000_000)
    with faulty.broker() as client:
        for lane in ("control", "search", "provider"):
            client.lpush(f"touchstone:{lane}", "not JSON", pickled, huge, "{}", "[]", '{"properties": {}}', b"\xff\x00")
    evaluation = submit(faulty, small, **MODES)
    check(faulty, evaluation, small, undisturbed)
    assert all(faulty.runs(name) for name in WORKERS)
    with faulty.broker() as client:
        assert client.llen("touchstone:search") == client.llen("touchstone:provider") == 0
