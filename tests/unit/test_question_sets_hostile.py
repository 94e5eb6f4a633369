"""Whatever bytes arrive, the answer is a set or a QuestionSetError, and it comes soon."""

import io
import json
import time
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.core.errors import QuestionSetError
from backend.core.question_sets import format_names, parse, parse_files, parse_items
from backend.core.question_sets.cases import FIELDS
from backend.core.types import ParsedSet

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["a", "drive:x", "", "\x00"]),
)
_names = st.sampled_from(
    (
        *FIELDS,
        *("any_of", "grade", "path", "document", "content_contains", "passage", "text", "cases", "queries"),
        *("ratings", "correct_chunks", "relevant_documents", "query_id", "doc_uri", "relevance", "corpus"),
        *("relevant_docs", "golden_chunk_uuids", "golden_documents", "judgmentRatings", "queryText", "x"),
    )
)
_json = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_names, inner, max_size=5)),
    max_leaves=12,
)
_pieces = st.sampled_from(
    (
        *('{"question": "a", "expected": "b"}', "question,document\n", "\n", "\r", '"', "a,b\n", "[", "]", "{", "}"),
        *("cases:\n", "  - relevant_phrases: [a]\n", "<top>", "<num> 1", "<title> t", "q 0 d 1\n", "\t", "#"),
        *("query,docid,rating\n", "query,correct_chunks\n", '"[""a""]"', "&a [*a, *a]\n", "Question,Source Docs\n"),
        "\ufeff",
    )
)


def _read(call: Callable[[], ParsedSet]) -> None:
    """Anything but a set or a QuestionSetError fails the test by itself."""
    n_told = 0
    try:
        n_told = len(call().questions)
    except QuestionSetError as error:
        n_told = sum(bool(fault.message) for fault in error.faults)
    assert n_told > 0


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_random_bytes_raise_nothing_else(data: bytes) -> None:
    _read(lambda: parse(data))


@given(st.lists(_pieces, max_size=12), st.sampled_from([None, *format_names()]))
@settings(max_examples=300, deadline=None)
def test_random_pieces_of_files_raise_nothing_else(pieces: list[str], name: str | None) -> None:
    _read(lambda: parse("".join(pieces).encode(), format=name))


@given(_json, st.sampled_from([None, *format_names()]))
@settings(max_examples=300, deadline=None)
def test_random_json_raises_nothing_else(value: Any, name: str | None) -> None:
    _read(lambda: parse(json.dumps(value).encode(), format=name, known_sources=frozenset({"drive"})))


@given(st.lists(_json, max_size=4))
@settings(max_examples=300, deadline=None)
def test_random_items_raise_nothing_else(items: list[Any]) -> None:
    _read(lambda: parse_items(items, known_sources=frozenset({"drive"})))


@given(
    st.dictionaries(
        st.sampled_from(["queries.jsonl", "qrels/test.tsv", "qrels.txt", "topics.txt", "x"]),
        st.lists(
            _pieces | st.sampled_from(['{"_id": "q", "text": "t"}\n', "query-id\tcorpus-id\tscore\n", "q\td\t1\n"]),
            max_size=8,
        ),
        max_size=3,
    )
)
@settings(max_examples=300, deadline=None)
def test_random_bundles_raise_nothing_else(files: dict[str, list[str]]) -> None:
    _read(lambda: parse_files({name: "".join(pieces).encode() for name, pieces in files.items()}))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * 1_000_000, id="deep lists"),
        pytest.param(b'{"a":' * 1_000_000, id="deep objects"),
        pytest.param(b'{"question": "a", "expected": {"path": "x", "grade": ' + b"9" * 1_000_000 + b"}}", id="number"),
        pytest.param(b'{"question": "a", "expected": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", id="deep value"),
        pytest.param(b"cases:\n - relevant_phrases:\n   " + b"[" * 20_000, id="deep YAML"),
        pytest.param(b"cases:\n - &a [x]\n - *a\n - relevant_phrases: b\n", id="YAML alias"),
        pytest.param(b'question,document\n"' + b"x" * 10_000_000, id="one cell"),
        pytest.param(b"x" * 10_000_000, id="one word"),
        pytest.param(b"\n" * 10_000_000, id="line ends"),
        pytest.param(b"<top>" * 1_000_000, id="tags"),
        pytest.param(b"PK\x03\x04 broken", id="broken zip"),
    ],
)
def test_hostile_files_are_refused_soon(data: bytes) -> None:
    begin = time.process_time()
    with pytest.raises(QuestionSetError):
        parse(data)
    assert time.process_time() - begin < 10


def test_a_line_of_ten_megabytes_is_read_soon() -> None:
    line = json.dumps({"question": "a", "expect": {"content_contains": "b c" * 3_400_000}}).encode()
    begin = time.process_time()
    assert len(parse(line).questions) == 1
    assert time.process_time() - begin < 10


def test_a_zip_that_unpacks_beyond_the_limit_is_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("queries.jsonl", b" " * 60_000_000)
    with pytest.raises(QuestionSetError, match="unpacks to more than"):
        parse(packed.getvalue())
