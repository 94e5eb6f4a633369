"""Our own JSON formats: what they mean, and how every fault is told with its place."""

import json
from typing import Any

import pytest

from backend.core.errors import ErrorCode, Fault, QuestionSetError
from backend.core.question_sets import content_hash, parse, parse_items
from backend.core.types import Alternative, Expectation, Level, ParsedSet

SOURCES = frozenset({"drive", "wiki"})


def read(text: str, **options: Any) -> ParsedSet:
    return parse(text.encode(), **options)


def faults(text: str | bytes, **options: Any) -> list[Fault]:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(QuestionSetError) as caught:
        parse(data, **options)
    return list(caught.value.faults)


def fault(text: str | bytes, **options: Any) -> Fault:
    found = faults(text, **options)
    assert len(found) == 1, found
    return found[0]


def only(text: str, **options: Any) -> tuple[Alternative, ...]:
    (question,) = read(text, **options).questions
    (expectation,) = question.expectations
    return expectation.any_of


def test_jsonl_skips_blank_lines_and_comments_and_keeps_line_numbers() -> None:
    text = """# a comment

{"question": "How long is leave?", "expected": ["policies/leave.pdf"]}
  \t
{"query": "b", "expect": "c.md"}"""
    parsed = read(text)
    assert parsed.format == "jsonl"
    assert [question.line for question in parsed.questions] == [3, 5]
    assert parsed.questions[0].text == "How long is leave?"
    assert parsed.questions[0].expectations == (Expectation(any_of=(Alternative(path="policies/leave.pdf"),)),)
    assert parsed.level is Level.DOCUMENT
    assert parsed.threshold == 1.0


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_byte_order_mark_and_line_ends_change_nothing(mark: bytes, end: str) -> None:
    lines = ['{"question": "ığdır nerede?", "expected": "a.md"}', '{"question": "b", "expected": "b.md"}', ""]
    parsed = parse(mark + end.join(lines).encode())
    assert [question.text for question in parsed.questions] == ["ığdır nerede?", "b"]
    assert content_hash(parsed) == content_hash(read("\n".join(lines)))


def test_cases_json_is_the_same_set_with_the_line_of_each_case() -> None:
    text = """{
  "name": "smoke",
  "cases": [
    {"description": "money", "query": "What did revenue do?",
     "expect": {"document": "report.pdf", "content_contains": ["revenue grew", "gelirleri"]}},

    {"query": "b", "expect": {"content_contains": "x"}}
  ]
}"""
    parsed = read(text)
    assert parsed.format == "cases"
    assert parsed.level is Level.PASSAGE
    assert [question.line for question in parsed.questions] == [4, 7]
    assert parsed.questions[0].note == "money"
    assert parsed.questions[0].expectations[0].any_of == (
        Alternative(document="report.pdf", content_contains=("revenue grew", "gelirleri")),
    )
    assert parsed.questions[1].expectations[0].any_of == (Alternative(content_contains=("x",)),)


def test_a_bare_array_and_one_pretty_printed_case_are_read() -> None:
    assert [q.line for q in read('[\n{"query": "a", "expect": "b"}\n]').questions] == [2]
    assert read('{\n"question": "a",\n"expected": ["b"]\n}').questions[0].text == "a"


def test_passage_ids_are_expectations_of_their_own() -> None:
    case = {
        "question": "a",
        "expected_chunk_id": "c1",
        "expected_chunk_ids": ["c2", 3],
        "source_id": "drive",
        "collection": "hr",
        "reference_answer": "yes",
    }
    parsed = read(json.dumps(case))
    question = parsed.questions[0]
    assert [entry.any_of for entry in question.expectations] == [
        (Alternative(passage="c1"),),
        (Alternative(passage="c2"),),
        (Alternative(passage="3"),),
    ]
    assert (question.source, question.collection, question.reference_answer) == ("drive", "hr", "yes")
    assert parsed.level is Level.PASSAGE


def test_the_full_form_has_alternatives_and_grades() -> None:
    case = {
        "id": "q1",
        "question": "a",
        "expect": [
            {"any_of": ["x.md", {"document": "y", "content_contains": ["z"]}], "grade": 2},
            {"passage": "p", "text": "snippet", "grade": 0},
            "drive:policies/w.md",
        ],
        "tags": ["t"],
        "note": "n",
        "must_pass": True,
    }
    question = read(json.dumps(case), known_sources=SOURCES).questions[0]
    assert question.key == "q1"
    assert question.must_pass is True
    assert question.tags == ("t",)
    assert question.expectations == (
        Expectation(any_of=(Alternative(path="x.md"), Alternative(document="y", content_contains=("z",))), grade=2.0),
        Expectation(any_of=(Alternative(passage="p", text="snippet"),), grade=0.0),
        Expectation(any_of=(Alternative(path="policies/w.md", source="drive"),)),
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("drive:a/b.md", Alternative(path="a/b.md", source="drive")),
        ("drive:a:b", Alternative(path="a:b", source="drive")),
        ("other:a/b.md", Alternative(path="other:a/b.md")),
        ("https://drive:80/a#b", Alternative(path="https://drive:80/a#b")),
        ("drive://x", Alternative(path="drive://x")),
        ("C:\\docs\\a.pdf", Alternative(path="C:\\docs\\a.pdf")),
    ],
)
def test_a_source_prefix_is_cut_only_where_the_source_is_known(path: str, expected: Alternative) -> None:
    assert only(json.dumps({"question": "a", "expected": path}), known_sources=SOURCES) == (expected,)
    assert only(json.dumps({"question": "a", "expected": {"path": path}}), known_sources=SOURCES) == (expected,)
    assert only(json.dumps({"question": "a", "expected": path})) == (Alternative(path=path),)


def test_a_prefix_that_is_no_source_is_a_warning_that_names_those_there_are() -> None:
    (warning,) = read('{"question": "a", "expected": ["hr:a.md", "hr:b.md"]}', known_sources=SOURCES).warnings
    assert warning == "line 1: `hr` is not one of the sources there are: `drive`, `wiki` (and 1 more like it)"


def test_a_set_with_six_different_faults_is_refused_with_all_six_by_line() -> None:
    text = """{"question": "fine", "expected": ["a.md"], "id": "one"}
this is not JSON
{"question": "", "expected": ["a.md"]}
# a comment
{"question": "says nothing of what to find"}
{"question": "x", "expect": {"content_contains": [""]}}
{"question": "x", "expect": {"path": "a.md", "grade": "high"}}

{"question": "again", "expected": ["a.md"], "id": "one"}
"""
    found = faults(text)
    assert [(one.line, one.code, one.field) for one in found] == [
        (2, ErrorCode.EVAL_FILE, None),
        (3, ErrorCode.EVAL_CASE_INVALID, "question"),
        (5, ErrorCode.EVAL_CASE_INVALID, "expected"),
        (6, ErrorCode.EVAL_CASE_INVALID, "expect.content_contains[0]"),
        (7, ErrorCode.EVAL_CASE_INVALID, "expect.grade"),
        (9, ErrorCode.EVAL_CASE_INVALID, "id"),
    ]
    assert all(one.message.startswith(f"line {one.line}: ") for one in found)
    assert "first at line 1" in found[5].message


@pytest.mark.parametrize(
    ("case", "fields"),
    [
        ('{"id": "one", "question": "x", "expect": {"path": "a", "grade": "high"}}', ["expect.grade", "id"]),
        ('{"id": "one", "question": "", "expected": 3}', ["question", "expected", "id"]),
        ('{"note": 1, "tags": 3, "tags": 4, "note": 2, "expected": []}',
         ["note", "tags", "question", "expected", "tags", "note"]),
        ('{"question": "x", "expect": [{"path": "a"}, {"path": 3}], "unanswerable": true}',
         ["expect[1].path", "unanswerable"]),
        ('{"question": "x", "expect": {"any_of": [{"path": 3}], "path": "b", "text": "c", "grade": "high"}}',
         ["expect.grade", "expect", "expect", "expect.any_of[0].path"]),
        ('{"question": "x", "expect": {"any_of": [{"path": 3}], "grade": 1, "grade": 2}}',
         ["expect", "expect.any_of[0].path"]),
        ('{"question": "x", "expect": {"path": 3, "path": 4, "text": ""}}', ["expect", "expect.text", "expect.path"]),
        ('{"question": "x", "expect": {"any_of": [{"source": 3, "grade": 2}]}}',
         ["expect.any_of[0].grade", "expect.any_of[0].source", "expect.any_of[0]"]),
    ],
)  # fmt: skip
def test_no_fault_of_a_line_hides_another_one(case: str, fields: list[str]) -> None:
    found = faults('{"id": "one", "question": "a", "expected": "b"}\n' + case)
    assert {one.line for one in found} == {2}
    assert [one.field for one in found] == fields


def test_an_id_comes_twice_even_where_its_first_case_is_faulty() -> None:
    found = faults('{"id": "one", "question": "", "expected": "b"}\n{"id": "one", "question": "a", "expected": "b"}')
    assert [(one.line, one.field) for one in found] == [(1, "question"), (2, "id")]


def test_items_of_a_request_are_told_by_field_path() -> None:
    items = [{"question": "a", "expected": "b"}, 3, {"question": "a", "expected": ["x", ""], "id": "1"}]
    with pytest.raises(QuestionSetError) as caught:
        parse_items(items)
    assert [(one.field, one.line) for one in caught.value.faults] == [
        ("questions[1]", None),
        ("questions[2].expected[1]", None),
    ]
    assert caught.value.faults[1].message == "questions[2].expected[1]: the value is empty"


@pytest.mark.parametrize(
    ("case", "field", "words"),
    [
        ({"question": 3, "expected": "a"}, "question", "must be a text"),
        ({"question": " \u200b\u00ad", "expected": "a"}, "question", "empty"),
        ({"question": "a", "query": "b", "expected": "a"}, "query", "mean the same"),
        ({"question": "a", "expected": []}, "expected", "list is empty"),
        ({"question": "a", "expected": ""}, "expected", "empty"),
        ({"question": "a", "expected": [3]}, "expected[0]", "text or an object"),
        ({"question": "a", "expected": {}}, "expected", "must name something"),
        ({"question": "a", "expected": {"source": "drive"}}, "expected", "must name something"),
        ({"question": "a", "expected": "drive:"}, "expected", "no path behind"),
        ({"question": "a", "expected": {"content_contains": []}}, "expected.content_contains", "empty list"),
        ({"question": "a", "expected": {"content_contains": ["\u00ad"]}}, "expected.content_contains[0]", "empty"),
        ({"question": "a", "expected": {"any_of": []}}, "expected.any_of", "empty"),
        ({"question": "a", "expected": {"any_of": ["x"], "path": "y"}}, "expected", "beside `any_of`"),
        ({"question": "a", "expected": {"any_of": [{"path": "y", "grade": 2}]}}, "expected.any_of[0].grade", "beside"),
        ({"question": "a", "expected": {"path": "x", "grade": True}}, "expected.grade", "true or false"),
        ({"question": "a", "expected": {"path": "x", "grade": float("nan")}}, "expected.grade", "finite"),
        ({"question": "a", "expected": {"path": "x", "grade": float("inf")}}, "expected.grade", "finite"),
        ({"question": "a", "expected": {"path": "x", "grade": 10**30}}, "expected.grade", "finite"),
        ({"question": "a", "expected": "x", "unanswerable": True}, "unanswerable", "cannot be"),
        ({"question": "a", "expected": "x", "must_pass": "yes"}, "must_pass", "true or false"),
        ({"question": "a", "expected": "x", "tags": {"a": 1}}, "tags", "list of texts"),
        ({"question": "a", "expected": "x", "id": ""}, "id", "empty"),
        ({"question": "a", "expected": "x", "id": "i" * 501}, "id", "longer than 500"),
        ({"question": "a\x00", "expected": "x"}, "question", "NUL"),
        ({"question": "a\ud800", "expected": "x"}, "question", "surrogate"),
        ({"question": "a", "expected_chunk_ids": []}, "expected_chunk_ids", "list is empty"),
        ({"question": "a", "expcted": ["x"]}, "expected", "did you mean `expected`?"),
    ],
)
def test_a_bad_value_is_told_with_its_field(case: dict[str, Any], field: str, words: str) -> None:
    found = [one for one in faults(json.dumps(case), known_sources=SOURCES) if one.field == field]
    assert found, faults(json.dumps(case))
    assert found[0].code is ErrorCode.EVAL_CASE_INVALID
    assert words in found[0].message


def test_an_unanswerable_question_and_a_judgement_need_no_expectation() -> None:
    text = '{"question": "a", "unanswerable": true}\n{"question": "b", "expect": {"path": "x", "grade": -1}}'
    parsed = read(text)
    assert [question.unanswerable for question in parsed.questions] == [True, False]
    assert parsed.warnings == ("no question expects anything, so no metric can be given",)


def test_unknown_fields_are_a_warning_with_their_number_and_a_typo_is_named() -> None:
    text = """{"question": "a", "expected": "x", "owner": "me", "tag": ["a"]}
{"question": "b", "expected": "x", "owner": 1}"""
    assert read(text).warnings == (
        "line 1: the field `owner` is not known and is not read (and 1 more like it)",
        "line 1: the field `tag` is not read: did you mean `tags`?",
    )


def test_a_field_that_comes_twice_is_a_fault_not_silently_the_last() -> None:
    found = fault('{"question": "a", "expected": "x", "expected": "y"}')
    assert (found.line, found.field) == (1, "expected")


def test_keys_are_ids_or_hashes_of_the_folded_text_numbered_for_repeats() -> None:
    text = "\n".join(
        json.dumps({"question": question, "expected": "x"})
        for question in ("Where is İSTANBUL?", "where  is istanbul?", "Where is it?", "WHERE IS ISTANBUL?")
    )
    keys = [question.key for question in read(text).questions]
    assert keys[1] == f"{keys[0]}-2"
    assert keys[3] == f"{keys[0]}-3"
    assert keys[2] != keys[0]
    clash = read(text + "\n" + json.dumps({"question": "z", "expected": "x", "id": keys[0]}))
    assert len({question.key for question in clash.questions}) == 5


@pytest.mark.parametrize(
    ("grades", "threshold"), [([1, 2], 1.0), ([0.2, 0.7, 0, -1], 0.2), ([0.5, 1], 1.0), ([0], 1.0), ([3], 1.0)]
)
def test_the_threshold_is_one_or_the_smallest_positive_grade_where_none_reaches_one(
    grades: list[float], threshold: float
) -> None:
    expect = [{"path": f"{i}.md", "grade": grade} for i, grade in enumerate(grades)]
    assert parse_items([{"question": "a", "expect": expect}]).threshold == threshold


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("{}".encode("utf-16"), "UTF-16 (little-endian)"),
        ('{"question": "a"}'.encode("utf-16-be"), "UTF-16 (big-endian)"),
        ('{"question": "a"}'.encode("utf-32"), "UTF-32"),
        ('{"question": "ışık, ağaç"}'.encode("cp1254"), "Windows-1254 (Turkish)"),
        ('{"question": "café"}'.encode("latin-1"), "Latin-1"),
        ('{"question": "it’s"}'.encode("cp1252"), "Windows-1252"),
        (b"PAR1abc", "Parquet"),
        (b"%PDF-1.7", "PDF"),
    ],
)
def test_another_encoding_or_kind_of_file_is_refused_by_name(data: bytes, words: str) -> None:
    found = fault(data)
    assert found.code is ErrorCode.EVAL_FILE
    assert words in found.message


def test_the_line_of_a_wrong_byte_is_told() -> None:
    found = fault(b'{"question": "a", "expected": "b"}\n{"question": "caf\xe9"}')
    assert found.line == 2


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n# here\n", "[]", '{"cases": []}', "\ufeff"])
def test_a_set_without_questions_is_empty(text: str) -> None:
    assert fault(text).code is ErrorCode.EVAL_SET_EMPTY


def test_a_set_above_the_limits_is_too_large() -> None:
    text = '{"question": "a", "expected": "b"}\n' * 3
    assert fault(text, max_questions=2).code is ErrorCode.EVAL_TOO_LARGE
    assert fault(text, max_bytes=20).code is ErrorCode.EVAL_TOO_LARGE
    assert len(read(text, max_questions=3).questions) == 3


def test_the_first_hundred_faults_are_told() -> None:
    found = faults("nope\n" * 500, format="jsonl")
    assert len(found) == 100
    assert found[-1].line == 100


def test_a_broken_cases_file_tells_the_faults_before_the_break_and_its_line() -> None:
    text = '{"cases": [\n  {"query": "", "expect": "a"},\n  {"query": "b", "expect": "a"}\n  {"query": "c"}\n]}'
    found = faults(text)
    assert [(one.line, one.code) for one in found] == [
        (2, ErrorCode.EVAL_CASE_INVALID),
        (4, ErrorCode.EVAL_FILE),
    ]


def test_a_format_named_by_the_caller_is_used_and_an_unknown_one_refused() -> None:
    assert read('{"question": "a", "expected": "b"}', format="passages").format == "jsonl"
    assert "is not a format" in fault("{}", format="excel").message
    assert "does not fit" in fault("{}", format="beir").message


def test_the_hash_is_that_of_the_content() -> None:
    jsonl = read('# x\n{"question": "a", "expected": ["x", "y"]}\n{"question": "b", "expected": ["z"]}')
    other = read(
        """{"cases": [{"expect": {"any_of": ["z"]}, "query": "b"},

        {"expect": [{"path": "y"}, {"path": "x", "grade": 1.0}], "query": "a"}]}"""
    )
    assert content_hash(jsonl) == content_hash(other)
    for changed in (
        '{"question": "a", "expected": ["x"]}\n{"question": "b", "expected": ["z"]}',
        '{"question": "a", "expected": ["x", "y"]}\n{"question": "b", "expected": ["z"], "must_pass": true}',
        '{"question": "a", "expected": ["x", "y"]}\n{"question": "b", "expect": {"path": "z", "grade": 2}}',
        '{"question": "a", "expected": ["x", {"document": "y"}]}\n{"question": "b", "expected": ["z"]}',
    ):
        assert content_hash(read(changed)) != content_hash(jsonl)
