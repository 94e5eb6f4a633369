"""Doorbells and a broker that does not answer."""

from uuid import UUID

import pytest
from kombu.exceptions import OperationalError

from backend import celery_app, dispatch
from backend.dispatch import Doorbell

BELLS = [Doorbell(slice_id=UUID(int=number), delivery=1, lane="search") for number in range(3)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often a broker that is away was asked."""
    found: list[str] = []

    def refuse(task: str, **_: object) -> None:
        found.append(task)
        raise OperationalError("timed out")

    monkeypatch.setattr(celery_app.app, "send_task", refuse)
    monkeypatch.setattr(dispatch._Patience, "away_until", 0.0)
    return found


@pytest.mark.parametrize(("hurried", "n_asked"), [(True, 1), (False, 3)])
def test_a_request_asks_a_broker_that_hangs_once_and_a_worker_each_time(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], hurried: bool, n_asked: int
) -> None:
    monkeypatch.setattr(dispatch._Patience, "hurried", hurried)
    assert [dispatch.ring(BELLS) for _ in range(3)] == [0, 0, 0]
    assert len(asked) == n_asked
