"""Emptied queues cost time and no work; a worker's look at its surroundings works on the real ones."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from backend import effective
from backend.core.states import EvaluationState, SliceState
from backend.models import Slice
from backend.queries import broker
from backend.services import purging, work
from tests.engine import drain
from tests.integration.search_rows import Row, make_base
from tests.integration.test_engine import submit

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_purge_empties_the_queues_and_hands_the_work_out_anew() -> None:
    base = make_base(Row(path="heron.txt", text="about the heron", vector=None), embedder="none")
    evaluation = submit(base, n=20)
    before = Slice.objects.get(state=SliceState.QUEUED)
    client = broker.client()
    for number in range(50):
        client.rpush(broker.key("search"), f"old message {number}")
    done = purging.purge()
    assert (done.n_messages >= 50, done.n_waiting, done.n_handed_out) == (True, 1, 1)
    assert client.llen(broker.key("search")) == 0
    assert client.llen(broker.key("control")) == 1
    client.close()
    # The message that was out is an old one now: it changes nothing.
    work.run(before.id, delivery=before.delivery)
    assert Slice.objects.get(id=before.id).state == SliceState.QUEUED
    drain()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.COMPLETED


def test_without_a_broker_nothing_is_purged(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    with pytest.raises(CommandError, match="nothing was done"):
        call_command("purge", stdout=io.StringIO())


def test_the_real_database_and_broker_have_no_fault_that_keeps_a_worker_from_starting() -> None:
    client = broker.client()
    found = [*effective.of_database(connection, n_slots=4), *effective.of_broker(client.info())]
    client.close()
    assert [message.id for message in found if message.is_serious()] == []
