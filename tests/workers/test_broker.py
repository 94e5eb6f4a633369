"""What Celery's client of the broker is made to do differently."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from kombu import Connection
from kombu.transport import redis as transport
from redis.exceptions import TimeoutError as RedisTimeoutError

from workers import broker


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport.Transport, "Channel", transport.Transport.Channel)
    broker.connect()


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("connection", [None, SimpleNamespace(client=None)])
def test_a_closed_channel_fails_as_a_lost_connection_which_celery_expects(connection: object) -> None:
    channel = object.__new__(transport.Transport.Channel)
    channel.connection = connection  # type: ignore[assignment]
    channel._pool = channel._async_pool = None  # type: ignore[attr-defined]
    with pytest.raises(Connection("redis://nowhere").connection_errors):
        _ = channel.pool


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(
    "error",
    [json.JSONDecodeError("no", "x", 0), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), KeyError("properties")],
)
def test_what_is_no_message_is_passed_over(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def read(self: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(transport.Channel, "_brpop_read", read)
    channel: Any = object.__new__(transport.Transport.Channel)
    assert channel._brpop_read() is True


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("answer", ["ack", "reject"])
def test_a_message_that_could_not_be_acknowledged_is_no_longer_in_hand(
    monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Or a worker that takes one at a time would take no other."""

    def fail(self: object, tag: str, pipe: object = None) -> None:
        raise RedisTimeoutError("the broker says nothing")

    monkeypatch.setattr(transport.QoS, "_remove_from_indices", fail)
    held: Any = transport.Transport.Channel.QoS(SimpleNamespace(do_restore=False), prefetch_count=1)
    held._delivered["a"] = "in hand"
    assert not held.can_consume()
    with pytest.raises(RedisTimeoutError):
        getattr(held, answer)("a")
    assert held.can_consume()
