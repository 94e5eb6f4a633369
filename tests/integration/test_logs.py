"""Every line a worker logs about a slice says whose it is, which, and which question."""

import logging
from typing import Any

import pytest

from backend.models import Slice
from backend.search import pipeline
from backend.services import work
from tests.engine import drain
from tests.integration.search_rows import Row, make_base
from tests.integration.test_engine import submit

pytestmark = pytest.mark.django_db(transaction=True)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """What the formatter is given: the event with all its fields."""
    return [record.msg for record in caplog.records if isinstance(record.msg, dict)]


def test_a_failed_search_is_logged_with_evaluation_slice_and_question(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make_base(Row(path="heron.txt", text="about the heron", vector=None), embedder="none")

    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("no such leg")

    monkeypatch.setattr(pipeline, "search_question", broken)
    with caplog.at_level(logging.INFO, logger="touchstone"):
        evaluation = submit(base, n=3)
        drain()
    failed = [line for line in lines(caplog) if line["event"] == "search_failed"]
    assert sorted(line["question"] for line in failed) == [0, 1, 2]
    known = {
        str(key) for key in Slice.objects.filter(evaluation=evaluation, kind="search").values_list("id", flat=True)
    }
    for line in failed:
        assert (line["evaluation"], line["kind"], line["epoch"]) == (str(evaluation.id), "search", 1)
        assert line["slice"] in known
        assert line["delivery"] == 1
    framed = [line["event"] for line in lines(caplog) if line.get("evaluation") == str(evaluation.id)]
    assert framed[0] == "evaluation_submitted"
    assert "evaluation_closed" in framed


def test_no_line_says_a_questions_text(caplog: pytest.LogCaptureFixture) -> None:
    base = make_base(Row(path="heron.txt", text="about the heron", vector=None), embedder="none")
    with caplog.at_level(logging.DEBUG, logger="touchstone"):
        submit(base, n=3)
        drain()
    assert lines(caplog)
    assert "the heron" not in str(lines(caplog))


def test_a_slice_of_several_questions_names_its_first_and_last(db: None) -> None:
    lease = type("Lease", (), {})()
    for name, value in {
        "evaluation_id": "e",
        "ingestion_id": None,
        "job_id": None,
        "slice_id": "s",
        "kind": type("Kind", (), {"value": "search"})(),
        "epoch": 2,
        "items": (4, 5, 9),
    }.items():
        setattr(lease, name, value)
    told = work._who(lease, 7)
    assert told == {"evaluation": "e", "slice": "s", "kind": "search", "epoch": 2, "delivery": 7, "questions": "4-9"}
