"""A worker does not start with settings under which work would be lost, repeated or wrong."""

from typing import Any

import pytest
from django.db import DatabaseError

from backend import effective
from backend.celery_app import app


def ids(found: Any) -> list[str]:
    return [str(message.id).removeprefix("touchstone.") for message in found]


def test_the_settings_that_ship_are_in_force_and_without_fault() -> None:
    assert ids(effective.of_celery(app.conf)) == []


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"broker_transport_options": {"visibility_timeout": 60}}, "E010"),
        # Unset, Redis's own hour counts; a task may take longer than half of it.
        ({"broker_transport_options": {}, "task_time_limit": 2000}, "E010"),
        ({"task_time_limit": None}, "E010"),
        ({"task_time_limit": 30}, "E011"),
        ({"result_backend": "redis://"}, "E012"),
        ({"task_acks_late": False}, "E013"),
        ({"task_reject_on_worker_lost": True}, "E014"),
        ({"accept_content": ["json", "pickle"]}, "E015"),
        ({"worker_prefetch_multiplier": 4}, "W010"),
    ],
)
def test_what_celery_was_told_otherwise_is_found_by_name(changed: dict[str, Any], check: str) -> None:
    names = (
        "broker_transport_options",
        "task_time_limit",
        "result_backend",
        "task_acks_late",
        "task_reject_on_worker_lost",
        "accept_content",
        "worker_prefetch_multiplier",
    )
    conf = {name: app.conf[name] for name in names} | changed
    assert ids(effective.of_celery(conf)) == [check]


@pytest.mark.parametrize(
    ("info", "found"),
    [
        ({"redis_version": "7.0.15", "maxmemory_policy": "noeviction", "loading": 0}, []),
        ({"redis_version": "6.0.16"}, ["E030"]),
        ({"redis_version": "7.2.4", "maxmemory_policy": "allkeys-lru"}, ["W030"]),
        ({"redis_version": "7.2.4", "loading": 1}, ["W031"]),
    ],
)
def test_a_broker_that_is_too_old_or_throws_messages_away_is_found(info: dict[str, Any], found: list[str]) -> None:
    assert ids(effective.of_broker(info)) == found


class _Cursor:
    def __init__(self, told: dict[str, str], n_connected: int) -> None:
        self._told, self._n = told, n_connected

    def __enter__(self) -> "_Cursor":
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, *_: object) -> None: ...

    def fetchall(self) -> list[tuple[str, str]]:
        return list(self._told.items())

    def fetchone(self) -> tuple[int]:
        return (self._n,)


class _Connection:
    """As Django's, as far as it is looked at."""

    def __init__(self, *, n_connected: int = 5, prepare_threshold: int | None = None, **told: str) -> None:
        usual = {
            "server_version_num": "180006",
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "max_connections": "100",
        }
        self._told, self._n = {**usual, **told}, n_connected
        self.connection = type("Driver", (), {"prepare_threshold": prepare_threshold})()

    def cursor(self) -> _Cursor:
        return _Cursor(self._told, self._n)


@pytest.mark.parametrize(
    ("connection", "found"),
    [
        (_Connection(), []),
        (_Connection(prepare_threshold=5), ["E020"]),
        (_Connection(server_version_num="140012"), ["W020"]),
        (_Connection(fsync="off"), ["W021"]),
        (_Connection(synchronous_commit="off", full_page_writes="off"), ["W021"]),
        (_Connection(n_connected=70), ["W022"]),
    ],
)
def test_a_database_that_searches_otherwise_or_forgets_is_found(connection: Any, found: list[str]) -> None:
    assert ids(effective.of_database(connection, n_slots=32)) == found


def test_what_is_away_is_said_to_be_unchecked_and_keeps_no_worker_from_starting() -> None:
    class Away:
        def cursor(self) -> None:
            raise DatabaseError

    def info() -> Any:
        raise ConnectionRefusedError

    found = effective.all_of(
        conf=app.conf,
        connection=Away(),  # type: ignore[arg-type]
        info=info,
        n_slots=2,
        away=(DatabaseError, OSError),
    )
    assert ids(found) == ["W040", "W040"]
    assert all(not message.is_serious() for message in found)
