"""Progress where there is no terminal: a line now and then, not a bar."""

import io

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
