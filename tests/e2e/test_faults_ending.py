"""Ends: numbers that keep dying, cancels at every moment, retries that are killed. Numbers as in docs/measured.md."""

import os
import signal
import threading
from typing import Any

import pytest

from tests.e2e import oracle
from tests.e2e.cluster import Cluster
from tests.e2e.faults import (
    MODES,
    N_QUESTIONS,
    WORDS,
    check,
    deaths,
    gets_on,
    in_mid_slice,
    leased,
    revive_workers,
)
from tests.e2e.oracle import submit
from tests.e2e.shelf import Shelf, fill
from tests.standins import Script, Standin

ENDED = {"completed", "failed", "cancelled"}

# What fits into CI beside the rest is less than these take.
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


def test_f20_numbers_whose_process_dies_five_times_fail_their_run_and_no_other(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    """The results are kept: a retry makes the numbers from them, and asks nobody anything."""
    doomed = submit(faulty, small, **MODES)
    faulty.tell(doomed=doomed)
    faulty.wait(lambda: len(faulty.noted("numbers")) >= 1, "the first death", seconds=180)
    other = submit(faulty, small, **WORDS)
    final = faulty.finished(doomed)
    assert (final["state"], final["code"]) == ("failed", "WORKER_LOST")
    assert deaths(faulty, doomed) == 5
    assert oracle.n_results(faulty, doomed) == 2 * N_QUESTIONS
    assert faulty.finished(other)["state"] == "completed"
    faulty.tell(doomed="")
    asked = len(faulty.noted("asked"))
    assert faulty.http.post(f"evaluations/{doomed}/retry").status_code == 202
    check(faulty, doomed, small, undisturbed)
    assert len(faulty.noted("asked")) == asked


@pytest.mark.chaos
def test_f20_two_that_make_the_numbers_at_once_write_them_once(faulty: Cluster, small: Shelf, undisturbed: str) -> None:
    """The first is frozen past its lease, a second ends the work, and the first wakes."""
    faulty.tell(slow_numbers="2")
    evaluation = submit(faulty, small, **MODES)
    faulty.wait(lambda: len(faulty.noted("numbers")) >= 1, "the numbers to be made", seconds=180)
    faulty.kill("worker-control", number=signal.SIGSTOP)
    faulty.start("worker-control", alias="second")
    faulty.wait(lambda: len(faulty.noted("numbers")) >= 2, "another to make them", seconds=180)
    faulty.kill("worker-control", number=signal.SIGCONT)
    check(faulty, evaluation, small, undisturbed)
    assert faulty.sql("SELECT revision FROM backend_evaluation WHERE id = %s", evaluation) == [(1,)]
    faulty.kill("second")


@pytest.mark.chaos
def test_f21_of_two_last_slices_one_sees_the_end_without_the_sweeper(faulty: Cluster, small: Shelf) -> None:
    """Two questions are two slices, worked on at once; with beat stopped nobody but they can close the evaluation."""
    pair = Shelf(
        knowledge_base=small.knowledge_base,
        question_set=fill(
            faulty, name="pair", n_documents=2, n_questions=2, settings={"embedding": {"embedder": "none"}}
        ).question_set,
        n_questions=2,
    )
    faulty.kill("beat", number=signal.SIGSTOP)
    try:
        for _ in range(10):
            some = [submit(faulty, pair, **WORDS) for _ in range(20)]
            for evaluation in some:
                assert faulty.finished(evaluation)["state"] == "completed"
                oracle.check_whole(faulty, evaluation, pair, n_runs=1)
    finally:
        faulty.kill("beat", number=signal.SIGCONT)


WHEN = ["queued", "handed out", "worked on", "worker dead", "broker away", "twenty at once"]


@pytest.mark.parametrize(
    "when", [pytest.param(one, marks=[] if one in {"worked on", "worker dead"} else pytest.mark.chaos) for one in WHEN]
)
def test_f28_a_cancel_at_any_moment_ends_the_run_and_starts_no_question(
    faulty: Cluster, small: Shelf, provider: Standin, when: str
) -> None:
    provider.set_script(Script(max_batch=64, latency_seconds=1.0))
    faulty.tell(slow_question="0.2")
    if when == "queued":
        faulty.kill("worker-control")
    if when == "handed out":
        faulty.kill("worker-search")
    evaluation = submit(faulty, small, **MODES)
    if when == "handed out":
        faulty.wait(lambda: _n_queued(faulty, evaluation) >= 1, "a slice to be handed out", seconds=180)
    elif when != "queued":
        in_mid_slice(faulty, evaluation)
    if when == "worker dead":
        faulty.kill("worker-search", "worker-provider")
    if when == "broker away":
        _freeze_broker(faulty, signal.SIGSTOP)
    answers = _cancel(faulty, evaluation, n=20 if when == "twenty at once" else 1)
    assert {answer.status_code for answer in answers} == {202}
    if when == "broker away":
        _freeze_broker(faulty, signal.SIGCONT)
    if when == "queued":
        faulty.start("worker-control")
    final = faulty.finished(evaluation)
    assert final["state"] == "cancelled"
    oracle.check_whole(faulty, evaluation, small, n_runs=2)
    late = faulty.sql(
        "SELECT count(*) FROM backend_slice WHERE evaluation_id = %s AND state = 'done' AND kind <> 'aggregate' "
        "AND finished_at > (SELECT finished_at FROM backend_evaluation WHERE id = %s)",
        evaluation,
        evaluation,
    )
    assert late == [(0,)]
    n_asked = len(faulty.noted("asked"))
    revive_workers(faulty) if when not in {"worker dead", "handed out"} else _start_missing(faulty)
    # Idempotent after the end too; and a run that was cancelled is never completed.
    assert _cancel(faulty, evaluation)[0].json()["state"] == "cancelled"
    assert len(faulty.noted("asked")) == n_asked


def _start_missing(faulty: Cluster) -> None:
    for name in ("worker-search", "worker-provider"):
        if not faulty.has(name):
            faulty.start(name)


def _n_queued(faulty: Cluster, evaluation: str) -> int:
    rows = faulty.sql(
        "SELECT count(*) FROM backend_slice WHERE evaluation_id = %s AND kind = 'search' AND state = 'queued'",
        evaluation,
    )
    return int(rows[0][0])


def _freeze_broker(faulty: Cluster, number: signal.Signals) -> None:
    os.kill(faulty.broker_pid, number)


def _cancel(faulty: Cluster, evaluation: str, *, n: int = 1) -> list[Any]:
    answers: list[Any] = []

    def one() -> None:
        answers.append(faulty.http.post(f"evaluations/{evaluation}/cancel"))

    threads = [threading.Thread(target=one) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.chaos
def test_f29_a_cancel_that_meets_the_end_leaves_exactly_one_of_the_two(faulty: Cluster, small: Shelf) -> None:
    """Two hundred small runs, each cancelled at another moment of its last steps."""
    few = fill(faulty, name="few", n_documents=4, n_questions=4, settings={"embedding": {"embedder": "none"}})
    seen: dict[str, int] = {}
    for number in range(200):
        evaluation = submit(faulty, few, **WORDS)
        threading.Event().wait(0.01 * (number % 25))
        status = _cancel(faulty, evaluation)[0].status_code
        final = faulty.finished(evaluation)
        assert status in {202, 409}
        assert (final["state"] == "cancelled") == (status == 202), final
        oracle.check_whole(faulty, evaluation, few, n_runs=1)
        counts = final["runs"][0]["counts"]
        assert status == 202 or counts["n_scored"] == 4
        seen[final["state"]] = seen.get(final["state"], 0) + 1
    print(f"\nMEASURED 200 cancels against the end: {seen}")


def test_f30_a_retry_that_is_killed_and_tried_again_asks_only_what_had_no_good_result(
    faulty: Cluster, small: Shelf, undisturbed: str, provider: Standin
) -> None:
    provider.set_script(Script(max_batch=64, latency_seconds=0.3))
    evaluation = submit(faulty, small, **MODES)
    gets_on(faulty, evaluation, n=N_QUESTIONS + 10)
    assert _cancel(faulty, evaluation)[0].status_code == 202
    assert faulty.finished(evaluation)["state"] == "cancelled"
    good = _good_rows(faulty, evaluation)
    assert 0 < len(good) < 2 * N_QUESTIONS
    assert faulty.http.post(f"evaluations/{evaluation}/retry").status_code == 202
    faulty.wait(lambda: len(_good_rows(faulty, evaluation)) >= len(good) + 5, "the retry to get on", seconds=180)
    faulty.restart("worker-search", "worker-provider")
    assert _cancel(faulty, evaluation)[0].status_code == 202
    assert faulty.finished(evaluation)["state"] == "cancelled"
    good |= _good_rows(faulty, evaluation)
    provider.set_script(Script(max_batch=64, latency_seconds=0.05))
    assert faulty.http.post(f"evaluations/{evaluation}/retry").status_code == 202
    check(faulty, evaluation, small, undisturbed)
    now = _good_rows(faulty, evaluation)
    assert {key: now[key] for key in good} == good
    n_reranked = sum(1 for run, _ in good if run == "keyword_rerank")
    assert len(provider.calls) == N_QUESTIONS - n_reranked
    assert leased(faulty, evaluation) == 0


def _good_rows(faulty: Cluster, evaluation: str) -> dict[tuple[str, int], str]:
    """Every byte of a row, by run and question."""
    rows = faulty.sql(
        "SELECT r.name, x.ordinal, x::text FROM backend_result x JOIN backend_run r ON r.id = x.run_id "
        "WHERE r.evaluation_id = %s AND x.outcome IN ('ok', 'empty')",
        evaluation,
    )
    return {(name, ordinal): text for name, ordinal, text in rows}
