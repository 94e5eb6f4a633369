"""What Celery's client of the broker is made to do differently."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from kombu import Connection
from kombu.transport import redis as transport

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
