"""Broker and database that stop, stall, fill up and forget, in mid-run. Numbers as in docs/measured.md."""

import os
import random
import signal
import time

import httpx
import pytest

from tests.e2e import oracle
from tests.e2e.cluster import WORKERS, Cluster
from tests.e2e.faults import MODES, N_QUESTIONS, WORDS, check, deaths, gets_on, in_mid_slice
from tests.e2e.oracle import submit
from tests.e2e.shelf import Shelf

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
SEED = 20261130


def test_f10_a_broker_that_is_away_for_half_a_minute_and_comes_back_empty(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    pids = [faulty.pid(name) for name in WORKERS]
    faulty.tell(slow_question="0.1")
    evaluation = submit(faulty, small, **MODES)
    gets_on(faulty, evaluation, n=10)
    faulty.kill_broker()
    time.sleep(30)
    faulty.tell(slow_question="")
    faulty.wait(lambda: bool(faulty.revive()), "the broker to be started again", seconds=180)
    check(faulty, evaluation, small, undisturbed)
    # Nobody had to start them again.
    assert [faulty.pid(name) for name in WORKERS] == pids
    assert all(faulty.runs(name) for name in WORKERS)
    assert deaths(faulty, evaluation) == 0


def test_f11_ten_flushes_at_random_moments(faulty: Cluster, small: Shelf, undisturbed: str) -> None:
    chance = random.Random(SEED)
    faulty.tell(slow_question="0.2")
    evaluation = submit(faulty, small, **MODES)
    for number in range(10):
        time.sleep(chance.uniform(0.2, 2.0))
        faulty.flush()
        if number == 7:
            faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    assert deaths(faulty, evaluation) == 0
    assert len(faulty.noted("asked")) == N_QUESTIONS


def test_f12_a_broker_that_accepts_and_says_nothing_for_twenty_seconds(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    evaluation = submit(faulty, small, **MODES)
    gets_on(faulty, evaluation, n=10)
    os.kill(faulty.broker_pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        meanwhile = submit(faulty, small, **WORDS)
        submitted = time.monotonic() - started
        until = time.monotonic() + 20
        times = []
        while time.monotonic() < until:
            started = time.monotonic()
            assert httpx.get(f"{faulty.url}/healthz", timeout=20).status_code == 200
            assert faulty.get(f"evaluations/{evaluation}")["id"] == evaluation
            times.append(time.monotonic() - started)
            time.sleep(0.5)
    finally:
        os.kill(faulty.broker_pid, signal.SIGCONT)
    check(faulty, evaluation, small, undisturbed)
    assert faulty.finished(meanwhile)["state"] == "completed"
    # Two seconds for the broker, and what a request takes on a busy machine. It was 15 and more.
    assert submitted < 10
    assert len(faulty.noted("asked")) == 2 * N_QUESTIONS
    # Reading needs no broker. On a busy machine a poll takes what a poll takes.
    assert sorted(times)[len(times) // 2] < 3
    print(f"\nMEASURED a submit while the broker was frozen: {submitted:.2f} s; polls {max(times):.2f} s at most")


def test_f13_a_broker_without_memory_refuses_and_the_run_starts_when_it_has_some(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    with faulty.broker() as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "1mb")
    try:
        evaluation = submit(faulty, small, **MODES)  # 202, or this raises
        time.sleep(5)
        assert faulty.get(f"evaluations/{evaluation}")["state"] == "queued"
    finally:
        with faulty.broker() as client:
            client.config_set("maxmemory", "0")
    check(faulty, evaluation, small, undisturbed)
    assert all(faulty.runs(name) for name in WORKERS)


def test_f14_five_restarts_of_the_database(faulty: Cluster, small: Shelf, undisturbed: str) -> None:
    chance = random.Random(SEED)
    faulty.tell(slow_question="0.3")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    for number in range(5):
        time.sleep(chance.uniform(0.5, 3.0))
        faulty.kill_database()
        faulty.wait(lambda: bool(faulty.revive()), "the database to be started again", seconds=180)
        if number == 3:
            faulty.tell(slow_question="")
    final = check(faulty, evaluation, small, undisturbed)
    assert [run["counts"]["n_error"] for run in final["runs"]] == [0, 0]
    again = submit(faulty, small, **MODES)
    check(faulty, again, small, undisturbed)
    assert deaths(faulty, again) == 0


def test_f15_a_database_that_is_away_for_ten_leases_costs_no_lease(
    faulty: Cluster, small: Shelf, undisturbed: str
) -> None:
    """Nobody could renew meanwhile: whoever holds a slice still does when the sweeper looks again."""
    faulty.tell(slow_question="0.1")
    evaluation = submit(faulty, small, **MODES)
    in_mid_slice(faulty, evaluation)
    faulty.kill_database()
    time.sleep(40)
    faulty.wait(lambda: bool(faulty.revive()), "the database to be started again", seconds=180)
    faulty.tell(slow_question="")
    check(faulty, evaluation, small, undisturbed)
    # A slice whose commit found no database for longer than it waits is asked again: at most one for each place.
    assert deaths(faulty, evaluation) <= 2 + 16
    assert faulty.sql("SELECT max(deaths) < 2 FROM backend_slice WHERE evaluation_id = %s", evaluation) == [(True,)]


def test_the_service_is_well_after_all_of_it(faulty: Cluster, small: Shelf) -> None:
    faulty.wait(lambda: faulty.http.get(f"{faulty.url}/readyz").status_code == 200, "readiness", seconds=180)
    evaluation = submit(faulty, small, **WORDS)
    assert faulty.finished(evaluation)["state"] == "completed"
    oracle.check_drained(faulty)
