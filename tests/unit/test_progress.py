"""Progress where there is no terminal: a line now and then, not a bar."""

import io
from datetime import UTC, datetime

import pytest

from touchstone import progress


def test_a_pipe_gets_a_line_every_few_seconds_and_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr("touchstone.progress.time.monotonic", lambda: clock)
    stream = io.StringIO()
    with progress.Bar("Reading", stream=stream) as bar:
        bar.show(1, 20)
        clock += progress.LINE_SECONDS + 1
        bar.show(7, 20, note="30 s left")
        bar.show(8, 20)
    assert stream.getvalue() == "Reading: 7 of 20, 30 s left\n"


def test_a_stalled_provider_is_named_beside_the_bar() -> None:
    now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    stalled = {"provider": "http:near", "state": "stalled", "code": "PROVIDER_TIMEOUT"}
    held = {"provider": "cohere:rerank", "state": "held", "code": "", "retry_at": None}
    said = progress.waiting([{**stalled, "retry_at": "2026-11-30T12:00:08Z"}, held], now=now)
    assert said == "stalled: http:near (PROVIDER_TIMEOUT), asked again in 8 s; held: cohere:rerank"
    assert progress.waiting([{**stalled, "retry_at": now}], now=now).endswith("asked again in 0 s")
    assert progress.waiting([], now=now) == ""
