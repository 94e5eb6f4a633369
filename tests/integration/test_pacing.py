"""Leave to call, from one bucket: never above the limit in any minute, nor in bursts, whatever becomes of Redis."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
import redis
from django.conf import settings
from django.db import connection

from backend import env
from backend.models import Pulse, Workspace
from backend.providers.rates import Rate
from backend.search import pacing
from backend.search.pacing import PacedError

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broker() -> Iterator["redis.Redis"]:
    client = redis.Redis.from_url(env.redis_for_client(settings.REDIS_URL))
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def pacers(monkeypatch: pytest.MonkeyPatch) -> list["pacing._Pacer"]:
    """Two workers' worth of state, taken in turns by the threads of a test."""
    two = [pacing._Pacer(), pacing._Pacer()]
    monkeypatch.setattr(pacing, "_pacer", two[0])
    return two


def most_within(moments: Sequence[float], seconds: float) -> int:
    """The most that lie in any window of this length."""
    ordered = sorted(moments)
    return max((sum(1 for one in ordered if start <= one < start + seconds) for start in ordered), default=0)


def call_for(seconds: float, *, workspace: Workspace, rate: Rate, n_threads: int = 8) -> list[float]:
    """Call as often as there is leave. The moments of the calls."""
    moments: list[float] = []
    until = time.monotonic() + seconds

    def work() -> None:
        while time.monotonic() < until:
            try:
                pacing.take(workspace.id, rate)
            except PacedError as error:
                time.sleep(min(error.wait_seconds or 0.1, 0.3))
            else:
                moments.append(time.monotonic())
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return moments


@pytest.mark.parametrize("flushed", [False, True])
def test_many_threads_stay_below_the_rate_though_the_broker_is_flushed(broker: "redis.Redis", flushed: bool) -> None:
    rate = Rate(bucket="b", spec="cohere:m", limit=600)
    workspace = Workspace.objects.create(name="w")
    flushes = [threading.Timer(second, broker.flushall) for second in (1.5, 3.0)] if flushed else []
    for timer in flushes:
        timer.start()
    moments = call_for(6, workspace=workspace, rate=rate)
    for timer in flushes:
        timer.join()
    most = most_within(moments, 1.0)
    assert most <= 600 / 60 + 5, most
    # Each flush costs the time that leave may have been granted ahead, and no more.
    assert len(moments) >= (20 if flushed else 40)


def test_what_one_worker_was_granted_the_other_waits_for(broker: "redis.Redis", pacers: list["pacing._Pacer"]) -> None:
    rate = Rate(bucket="b", spec="cohere:m", limit=60)
    first, second = pacers
    assert first.ask("name", rate, n=1) == (True, 0.0)
    granted, wait = second.ask("name", rate, n=1)
    assert granted
    assert 0.8 < wait <= 61 / 60
    granted, wait = first.ask("name", rate, n=1)
    assert not granted, "further ahead than leave is granted"
    assert 1.8 < wait <= 2 * 61 / 60


def test_a_long_wait_is_not_slept(broker: "redis.Redis") -> None:
    rate = Rate(bucket="b", spec="cohere:rerank-v4", limit=10)
    workspace = Workspace.objects.create(name="w")
    assert pacing.take(workspace.id, rate) < 1
    started = time.monotonic()
    with pytest.raises(PacedError, match="at its limit of 10 a minute") as caught:
        pacing.take(workspace.id, rate)
    assert time.monotonic() - started < 1
    assert caught.value.wait_seconds == pytest.approx(6.1 - pacing.HORIZON_SECONDS / 2, abs=1)
    assert caught.value.retryable


def test_those_who_wait_are_told_one_after_the_other(broker: "redis.Redis") -> None:
    rate = Rate(bucket="b", spec="cohere:rerank-v4", limit=10)
    workspace = Workspace.objects.create(name="w")
    pacing.take(workspace.id, rate)
    waits = []
    for _ in range(3):
        with pytest.raises(PacedError) as caught:
            pacing.take(workspace.id, rate)
        waits.append(caught.value.wait_seconds or 0)
    assert waits[1] - waits[0] == pytest.approx(6.1, abs=0.7)
    assert waits[2] - waits[1] == pytest.approx(6.1, abs=0.7)


def test_a_bucket_that_was_flushed_begins_behind_all_that_was_granted(
    broker: "redis.Redis", pacers: list["pacing._Pacer"]
) -> None:
    rate = Rate(bucket="b", spec="cohere:m", limit=60)
    first, second = pacers
    assert first.ask("name", rate, n=1)[0]
    broker.flushall()
    # The other worker has never seen the bucket; that it is in use stands in PostgreSQL.
    granted, wait = second.ask("name", rate, n=1)
    assert not granted
    assert wait > pacing.HORIZON_SECONDS


def test_a_bucket_that_nobody_used_lately_begins_at_once(broker: "redis.Redis", pacers: list["pacing._Pacer"]) -> None:
    rate = Rate(bucket="b", spec="cohere:m", limit=60)
    first, second = pacers
    first.ask("name", rate, n=1)
    broker.flushall()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backend_pulse SET at = now() - interval '2 minutes' WHERE name = 'pace:name'")
    assert second.ask("name", rate, n=1) == (True, 0.0)


def test_without_redis_a_worker_takes_its_share(monkeypatch: pytest.MonkeyPatch, pacers: list["pacing._Pacer"]) -> None:
    def refuse(*_: object) -> tuple[int, float]:
        raise redis.ConnectionError

    rate = Rate(bucket="b", spec="cohere:m", limit=600)
    Pulse.objects.create(name="worker:a", lane="provider", slots=9, at="2999-01-01T00:00Z")
    pacer = pacers[0]
    monkeypatch.setattr(pacer, "_run", refuse)
    granted = [pacer.ask("name", rate, n=1) for _ in range(3)]
    assert [one for one, _ in granted] == [False, False, False], "what Redis granted comes first"
    pacer._buckets["name"].free = time.monotonic()
    found = [pacer.ask("name", rate, n=1) for _ in range(3)]
    assert [one for one, _ in found] == [True, True, False], "a tenth of the limit: one a second"
    assert found[1][1] == pytest.approx(61 / 600 * 10, abs=0.1)


def test_no_limit_costs_nothing(django_assert_num_queries: Callable[[int], object]) -> None:
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        assert pacing.take(Workspace(name="w").id, None) == 0.0
