"""Parquet tables as question sets: read row by row, and refused when damaged or far larger than they look."""

import io
from itertools import accumulate

import pytest
from arro3.core import Array, DataType, Table, list_array
from arro3.io import write_parquet

from backend.core.errors import ErrorCode, QuestionSetError
from backend.core.question_sets import parse


def _offsets(lengths: list[int]) -> list[int]:
    return [0, *accumulate(lengths)]


def table(n: int) -> bytes:
    """Each row must find one of two documents, and a third."""
    ids = Array([f"q{i}" for i in range(n)], type=DataType.string())
    queries = Array([f"question {i}" for i in range(n)], type=DataType.string())
    ids_of_all = Array(["a/b.md", "https://example.org/x#y", "c"] * n, type=DataType.string())
    # Per row two groups: of two ids and of one.
    inner = list_array(Array(_offsets([2, 1] * n), type=DataType.int32()), ids_of_all)
    groups = list_array(Array(_offsets([2] * n), type=DataType.int32()), inner)
    out = io.BytesIO()
    write_parquet(Table.from_pydict({"qid": ids, "query": queries, "retrieval_gt": groups}), out)
    return out.getvalue()


def test_a_list_of_lists_is_all_of_these_each_by_any_of_its_ids() -> None:
    parsed = parse(table(3), filename="qa.parquet", known_sources=frozenset({"https"}))
    assert (parsed.format, [question.key for question in parsed.questions]) == ("autorag", ["q0", "q1", "q2"])
    first, second = parsed.questions[0].expectations
    assert [one.path for one in first.any_of] == ["a/b.md", "https://example.org/x#y"]
    assert [one.path for one in second.any_of] == ["c"]


def test_more_rows_than_allowed_are_refused_by_size() -> None:
    with pytest.raises(QuestionSetError) as caught:
        parse(table(50), filename="qa.parquet", max_questions=20)
    assert caught.value.code is ErrorCode.EVAL_TOO_LARGE


def test_a_table_with_a_broken_middle_is_refused_too() -> None:
    data = table(30)
    with pytest.raises(QuestionSetError, match="JSONL"):
        parse(data[:8] + b"\xff" * (len(data) - 16) + data[-8:], filename="qa.parquet")


@pytest.mark.parametrize("cut", [4, 5, 60, -1, -9])
def test_a_damaged_table_is_refused_with_what_to_do(cut: int) -> None:
    with pytest.raises(QuestionSetError, match="JSONL"):
        parse(table(3)[:cut], filename="qa.parquet")


def test_a_table_without_questions_is_no_set() -> None:
    out = io.BytesIO()
    write_parquet(Table.from_pydict({"n": Array([1, 2], type=DataType.int64())}), out)
    with pytest.raises(QuestionSetError) as caught:
        parse(out.getvalue(), filename="numbers.parquet")
    assert {fault.line for fault in caught.value.faults} == {1, 2}
