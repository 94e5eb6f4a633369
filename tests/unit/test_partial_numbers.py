"""Numbers of a run that is not over: costly ones are not worked out again at every poll."""

import time
from typing import Any
from uuid import uuid4

import pytest

from backend.queries import partial


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often they were worked out; each takes 0.1 s of processor time."""
    calls: list[int] = []

    def metrics(*_: Any, **__: Any) -> dict[Any, Any]:
        calls.append(1)
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        return {uuid4(): {"n": len(calls)}}

    monkeypatch.setattr(partial, "metrics", metrics)
    partial._kept.clear()
    return calls


def _ask(evaluation: Any, *, n_rows: int, epoch: int = 1) -> tuple[Any, bool]:
    return partial.lately(evaluation, n_rows=n_rows, run_ids=[], keys=[], version_id=None, epoch=epoch)


def test_costly_numbers_are_shown_again_for_a_while_and_said_to_be_older(made: list[int]) -> None:
    key = uuid4()
    first, is_current = _ask(key, n_rows=10)
    assert is_current
    again, is_current = _ask(key, n_rows=12)
    assert (again, is_current, len(made)) == (first, False, 1)


def test_numbers_of_the_same_rows_are_current_however_old(made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    key = uuid4()
    _ask(key, n_rows=10)
    monkeypatch.setattr(time, "monotonic", lambda: 1e12)
    assert _ask(key, n_rows=10)[1]
    assert len(made) == 1
    assert _ask(key, n_rows=11)[1]
    assert len(made) == 2


def test_another_try_and_another_evaluation_have_numbers_of_their_own(made: list[int]) -> None:
    key = uuid4()
    _ask(key, n_rows=10)
    _ask(key, n_rows=10, epoch=2)
    _ask(uuid4(), n_rows=10)
    assert len(made) == 3


def test_cheap_numbers_are_always_new(made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial, "_CHEAP_SECONDS", 5.0)
    key = uuid4()
    assert _ask(key, n_rows=10)[1]
    assert _ask(key, n_rows=11)[1]
    assert len(made) == 2
