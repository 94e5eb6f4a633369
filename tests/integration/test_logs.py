"""Every line a worker logs about a slice says whose it is, which, and which question."""

import io
import logging
from typing import Any

import pytest
import structlog
from django.db import DatabaseError, connection

from backend.logs import PRE_CHAIN, PROCESSORS
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


@pytest.mark.parametrize("quoted", [False, True])
def test_a_refused_statement_is_logged_without_the_texts_in_it(quoted: bool) -> None:
    """The database quotes the statement, the row and the value: which are what people wrote."""
    statements = (
        "INSERT INTO refused (id, text) VALUES (1, 'the heron\nnests'), (1, 'the heron\n\nnests')",
        "INSERT INTO refused (id, text) VALUES (2, NULL), (3, 'the heron')",
        "SELECT 'the heron' FROM nowhere",
    )
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE refused (id int, text text NOT NULL CHECK (text <> 'the heron'))")
        cursor.execute("CREATE UNIQUE INDEX ON refused (text, id)")
        cursor.execute("INSERT INTO refused VALUES (1, 'the heron\nnests')")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=PROCESSORS, foreign_pre_chain=PRE_CHAIN))
    logger = logging.getLogger("tests.told_apart")
    logger.propagate = False
    logger.addHandler(handler)
    for statement in statements:
        try:
            connection.cursor().execute(statement)
        except DatabaseError as error:
            # As Celery does it: the error's own words in the line, and the traceback beside it.
            said = f"Task raised unexpected: {error!r}"
            logger.exception(said if quoted else "slice_failed")
    logger.removeHandler(handler)
    told = stream.getvalue()
    assert told.count('"level": "error"') == 3
    assert "duplicate key value violates unique constraint" in told
    assert "heron" not in told
    assert "nests" not in told


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
