"""What a spreadsheet would run is made harmless, and nothing is lost by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.core.formulas import arm, disarm
from backend.core.question_sets import content_hash, parse, parse_items, to_csv

EVIL = ["=cmd()", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1", "'=1", "''@x", "\u200b=1", "\n=1"]


@pytest.mark.parametrize("cell", EVIL)
def test_a_cell_that_would_be_run_begins_with_an_apostrophe(cell: str) -> None:
    assert disarm(cell) == f"'{cell}"
    assert arm(disarm(cell)) == cell


@pytest.mark.parametrize("cell", ["plain", "a=b", "'quoted'", "", "1-2", "don't", "ü", "a\n=b"])
def test_a_harmless_cell_stays_as_it_is(cell: str) -> None:
    assert disarm(cell) == cell
    assert arm(cell) == cell


@given(st.text(alphabet="'=+-@\t \r\nａ＝x"))
def test_every_text_comes_back(cell: str) -> None:
    assert arm(disarm(cell)) == cell
    assert disarm(cell)[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n", "＝"}


def test_a_set_of_formulas_comes_back_from_its_csv_with_nothing_that_runs() -> None:
    items = [
        {
            "id": f"-{number}",
            "question": text.strip() or "x",
            "expect": [{"document": "=a()", "content_contains": ["+b"]}, {"path": "@c", "grade": -1}],
            "tags": ["=t"],
            "note": "'=n",
        }
        for number, text in enumerate(EVIL)
    ]
    parsed = parse_items(items)
    text = to_csv(parsed)
    assert content_hash(parse(text.encode(), filename="set.csv")) == content_hash(parsed)
    for line in text.splitlines()[1:]:
        assert not line.startswith(("=", "+", "-", "@"))
    assert ",-1.0," in text, "a grade stays a number"
