"""Sets written again: form 4 comes back the same, the others hold what they can and name what they cannot."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.core.errors import QuestionSetError, ValidationError
from backend.core.question_sets import (
    content_hash,
    from_full_form,
    parse,
    parse_files,
    parse_items,
    to_beir,
    to_csv,
    to_full_form,
    to_jsonl,
    to_qrels,
    to_topics,
)
from backend.core.types import ParsedSet

SOURCES = frozenset({"drive", "wiki"})
_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)
_path = st.one_of(_text, st.sampled_from(["a.md", "drive:b.md", "x:y", "https://a/b", "b c.md", "a\tb", "#c"]))
_maybe = st.none() | _text
_alternative = st.fixed_dictionaries(
    {"path": _path},
    optional={"source": st.sampled_from(["drive", "other"]), "document": _text, "text": _text, "passage": _text},
) | st.fixed_dictionaries({"content_contains": st.lists(_text, min_size=1, max_size=3)}, optional={"document": _text})
_grade = st.sampled_from([1, 1, 2, 0, -1, 0.5, 0.1, 3.25])
_entry = st.one_of(
    _path,
    _alternative,
    st.fixed_dictionaries(
        {"any_of": st.lists(_alternative | _path, min_size=1, max_size=3)}, optional={"grade": _grade}
    ),
)
_plain_entry = st.fixed_dictionaries({"path": _path}, optional={"grade": _grade})
_case = st.fixed_dictionaries(
    {"question": _text, "expect": st.lists(_entry, min_size=1, max_size=3)},
    optional={
        "tags": st.lists(_text, max_size=2),
        "note": _text,
        "must_pass": st.booleans(),
        "reference_answer": _text,
        "source": _text,
        "collection": _text,
    },
)
_plain_case = st.fixed_dictionaries(
    {"question": _text, "expect": st.lists(_plain_entry, min_size=1, max_size=3)}, optional={"id": _text}
)
_sets = st.lists(_case, min_size=1, max_size=4) | st.lists(_plain_case, min_size=1, max_size=4)


def _parsed(items: list[Any]) -> ParsedSet | None:
    try:
        return parse_items(items, known_sources=SOURCES)
    except QuestionSetError:
        return None


@given(_sets)
@settings(max_examples=150, deadline=None)
def test_the_full_form_gives_a_question_back_exactly(items: list[Any]) -> None:
    parsed = _parsed(items)
    for question in parsed.questions if parsed else ():
        assert from_full_form(json.loads(json.dumps(to_full_form(question)))) == question


@given(_sets)
@settings(max_examples=150, deadline=None)
def test_form_4_comes_back_the_same(items: list[Any]) -> None:
    parsed = _parsed(items)
    if parsed:
        again = parse(to_jsonl(parsed, form=4).encode(), known_sources=SOURCES)
        assert content_hash(again) == content_hash(parsed)
        assert again.warnings == () or "no metric" in again.warnings[0] or "is not one of" in again.warnings[0]
        assert [question.key for question in again.questions] == [question.key for question in parsed.questions]


@given(_sets)
@settings(max_examples=150, deadline=None)
def test_csv_comes_back_the_same_or_is_refused(items: list[Any]) -> None:
    parsed = _parsed(items)
    if parsed:
        try:
            text = to_csv(parsed)
        except ValidationError:
            return
        assert content_hash(parse(text.encode())) == content_hash(parsed)


@given(_sets)
@settings(max_examples=150, deadline=None)
def test_beir_and_qrels_come_back_the_same_or_are_refused(items: list[Any]) -> None:
    parsed = _parsed(items)
    if parsed is None:
        return
    try:
        beir = to_beir(parsed)
    except ValidationError:
        with pytest.raises(ValidationError):
            to_qrels(parsed)
        return
    assert content_hash(parse_files(beir)) == content_hash(parsed)
    try:
        qrels = to_qrels(parsed)
    except ValidationError:
        return
    again = parse_files({"qrels.txt": qrels.encode(), "topics.tsv": to_topics(parsed).encode()})
    assert {q.key: q.expectations for q in again.questions} == {q.key: q.expectations for q in parsed.questions}


@given(_sets)
@settings(max_examples=100, deadline=None)
def test_a_lossy_export_never_fails_and_can_be_read(items: list[Any]) -> None:
    parsed = _parsed(items)
    if parsed:
        for text in (to_jsonl(parsed, form=1, lossy=True), to_csv(parsed, lossy=True)):
            if text.count("\n") > 1 or text.startswith("{"):
                assert parse(text.encode()).questions
        to_beir(parsed, lossy=True)
        to_qrels(parsed, lossy=True)


def test_form_1_holds_questions_with_document_paths() -> None:
    text = (
        '{"question": "a", "expected": ["x.md", "drive:y.md"]}\n{"id": "q2", "question": "b", "expected": ["z.md"]}\n'
    )
    parsed = parse(text.encode(), known_sources=SOURCES)
    assert to_jsonl(parsed, form=1) == text


def test_a_form_that_is_too_narrow_names_the_questions_and_lossy_leaves_them_out() -> None:
    items = [
        {"id": "plain", "question": "a", "expected": ["x.md"]},
        {"id": "content", "question": "b", "expect": [{"content_contains": "z|y"}]},
        {"id": "graded", "question": "c", "expect": [{"path": "x.md", "grade": 0.5}], "tags": ["t"]},
        {"id": "either", "question": "d", "expect": [{"any_of": ["x.md", "y.md"]}]},
    ]
    parsed = parse_items(items)
    with pytest.raises(ValidationError, match=r"cannot hold 3 of 4 questions: content .*; graded .*; either "):
        to_jsonl(parsed, form=1)
    with pytest.raises(ValidationError) as caught:
        to_csv(parsed)
    assert [fault.field for fault in caught.value.faults] == ["content", "either"]
    with pytest.raises(ValidationError):
        to_qrels(parsed)
    assert to_qrels(parsed, lossy=True) == "plain 0 x.md 1\n"
    assert [json.loads(line)["id"] for line in to_jsonl(parsed, form=1, lossy=True).splitlines()] == [
        "plain",
        "graded",
    ]
    with pytest.raises(ValidationError, match="no form 3"):
        to_jsonl(parsed, form=3)


def test_a_path_that_only_looks_like_a_source_stays_whole_in_form_4() -> None:
    parsed = parse_files({"q": b"1 0 drive:x 1\n", "t": b"1\ta\n"}, known_sources=SOURCES)
    assert parsed.questions[0].expectations[0].any_of[0].path == "drive:x"
    again = parse(to_jsonl(parsed).encode(), known_sources=SOURCES)
    assert content_hash(again) == content_hash(parsed)
