"""Formats that others made: CSV, BEIR, TREC, judgement lists; and the files that are refused with advice."""

import io
import json
import zipfile
from typing import Any

import pytest

from backend.core.errors import ErrorCode, Fault, QuestionSetError
from backend.core.question_sets import content_hash, parse, parse_files
from backend.core.types import Alternative, Expectation, Level, ParsedSet


def read(text: str, **options: Any) -> ParsedSet:
    return parse(text.encode(), **options)


def faults(data: str | dict[str, str]) -> list[Fault]:
    with pytest.raises(QuestionSetError) as caught:
        parse(data.encode()) if isinstance(data, str) else parse_files(_bytes(data))
    return list(caught.value.faults)


def _bytes(files: dict[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}


def paths(parsed: ParsedSet) -> dict[str, list[tuple[str | None, float]]]:
    return {
        question.text: [(entry.any_of[0].path, entry.grade) for entry in question.expectations]
        for question in parsed.questions
    }


def test_csv_rows_of_one_question_are_its_expectations() -> None:
    text = (
        "question,document,content_contains,grade,tags\n"
        "What did revenue do?,report.pdf,revenue grew|gelirleri,2,money|q3\n"
        '"Who, then?",people.md,,,\n'
        "What did revenue do?,notes.md,,,\n"
    )
    parsed = read(text)
    assert parsed.format == "csv"
    first, second = parsed.questions
    assert first.expectations == (
        Expectation(
            any_of=(Alternative(document="report.pdf", content_contains=("revenue grew", "gelirleri")),), grade=2.0
        ),
        Expectation(any_of=(Alternative(document="notes.md"),)),
    )
    assert first.tags == ("money", "q3")
    assert (first.line, second.line) == (2, 3)
    assert parsed.level is Level.PASSAGE


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_is_the_same_set_with_any_separator(delimiter: str) -> None:
    rows = [["question", "document", "grade"], ["a", "x.md", "1"], ["b", "y.md", "0.5"]]
    parsed = read("\r\n".join(delimiter.join(row) for row in rows) + "\r\n")
    jsonl = read(
        '{"query": "a", "expect": {"document": "x.md"}}\n{"query": "b", "expect": {"document": "y.md", "grade": 0.5}}'
    )
    assert content_hash(parsed) == content_hash(jsonl)


def test_csv_faults_carry_the_line_on_which_the_row_begins() -> None:
    text = (
        'question,document,content_contains,grade\n"two\nlines",a.md,,1\n,b.md,,1\nc,,,\nd,d.md,x||y,1\ne,e.md,,high\n'
    )
    assert [(one.line, one.field) for one in faults(text)] == [
        (4, "question"),
        (5, "expected"),
        (6, "content_contains[1]"),
        (7, "grade"),
    ]


def test_csv_that_breaks_off_or_has_too_many_cells_is_told_by_line() -> None:
    found = faults('question,document\na,b,c\nd,"e\n')
    assert [(one.line, one.code) for one in found] == [(2, ErrorCode.EVAL_FILE), (3, ErrorCode.EVAL_FILE)]


def test_csv_ids_and_paths_with_sources() -> None:
    parsed = read("id,query,expected\n1,a,drive:x.md\n1,a,y.md\n2,a,y.md\n", known_sources=frozenset({"drive"}))
    assert [question.key for question in parsed.questions] == ["1", "2"]
    assert parsed.questions[0].expectations[0].any_of == (Alternative(path="x.md", source="drive"),)
    (found,) = faults("id,query,expected\n1,a,x.md\n1,b,y.md\n")
    assert (found.line, found.field) == (3, "question")


BEIR = {
    "set/queries.jsonl": '{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n{"_id": "q3", "text": "x"}\n',
    "set/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\tdoc:1\t2\nq1\thttps://x/y z\t1\nq2\td3\t0\n",
    "set/qrels/train.tsv": "query-id\tcorpus-id\tscore\nq3\td9\t1\n",
    "set/corpus.jsonl": "not looked at",
    "__MACOSX/set/._queries.jsonl": "\x00",
}


def test_a_beir_folder_and_its_zip_are_the_same_set() -> None:
    folder = parse_files(_bytes(BEIR), known_sources=frozenset({"doc"}))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in BEIR.items():
            archive.writestr(name, text)
    zipped = parse(packed.getvalue(), known_sources=frozenset({"doc"}))
    assert content_hash(folder) == content_hash(zipped)
    assert folder.format == "beir"
    assert paths(folder) == {"one": [("doc:1", 2.0), ("https://x/y z", 1.0)], "two": [("d3", 0.0)]}
    assert [question.key for question in folder.questions] == ["q1", "q2"]
    assert folder.warnings == (
        "the split `test` was read; also there: train",
        "1 questions have no judgement and were left out",
    )


def test_beir_faults_name_their_file() -> None:
    found = faults({**BEIR, "set/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\tgood\nq8\td1\t1\nq1\n"})
    assert [one.message.split(":")[0] for one in found] == [
        "set/qrels/test.tsv line 2",
        "set/qrels/test.tsv line 3",
        "set/qrels/test.tsv line 4",
    ]


@pytest.mark.parametrize(
    "topics",
    [
        "301\tInternational crime\n302\tPolio\n",
        """<top>\n<num> Number: 301\n<title> International\n crime\n<desc> d\n</top>
<top><num>302</num><title>Polio</title></top>""",
    ],
)
def test_trec_topics_and_qrels_are_told_apart_by_content(topics: str) -> None:
    qrels = "# comment\n301 0 d1 1\n301 0 d2 -1\n302 0 d3 2\n"
    parsed = parse_files(_bytes({"a": qrels, "b": topics}))
    assert parsed.format == "trec"
    assert paths(parsed) == {"International crime": [("d1", 1.0), ("d2", -1.0)], "Polio": [("d3", 2.0)]}


def test_an_id_twice_among_topics_is_a_fault() -> None:
    (found,) = faults({"qrels": "1 0 d 1\n", "topics": "1\ta\n1\tb\n"})
    assert "comes twice" in found.message
    assert found.message.startswith("topics line 2")


def test_opensearch_judgements_have_ratings_as_texts() -> None:
    ratings = [{"docId": "B1", "rating": "100.000"}, {"docId": "B2", "rating": "0.000"}]
    wrapped = read(json.dumps({"name": "n", "judgmentRatings": [{"query": "towel", "ratings": ratings}]}))
    bare = read(json.dumps([{"query": "towel", "ratings": ratings}]))
    table = read("query,docid,rating\ntowel,B1,100.0\ntowel,B2,0.0\n")
    assert paths(wrapped) == {"towel": [("B1", 100.0), ("B2", 0.0)]}
    assert content_hash(wrapped) == content_hash(bare) == content_hash(table)


def test_ratings_csv_leaves_out_what_was_not_rated() -> None:
    parsed = read("query,docid,rating\na,1,3\na,2,\n")
    assert paths(parsed) == {"a": [("1", 3.0)]}
    assert "not judged" in parsed.warnings[0]


def test_rre_ratings_are_keyed_by_grade() -> None:
    query = {"placeholders": {"$query": "star trek"}, "relevant_documents": {"1": ["193"], "2": ["157"]}}
    assert paths(read(json.dumps({"queries": [query]}, indent=1))) == {"star trek": [("193", 1.0), ("157", 2.0)]}


def test_llama_index_sets_keep_a_snippet_of_each_passage() -> None:
    value = {
        "queries": {"q": "why?"},
        "corpus": {"c1": "Because of the " + "very " * 100 + "long text"},
        "relevant_docs": {"q": ["c1"]},
    }
    (question,) = read(json.dumps(value)).questions
    (alternative,) = question.expectations[0].any_of
    assert question.key == "q"
    assert alternative.passage == "c1"
    assert alternative.text is not None
    assert alternative.text.startswith("Because of the very")
    assert len(alternative.text) <= 200


def test_retrieval_eval_judgements_are_gathered_by_query() -> None:
    lines = [
        {"query_id": "q1", "query": "text", "doc_uri": "a:b", "relevance": 2, "stratum": "hard"},
        {"query_id": "q1", "doc_uri": "d", "chunk_id": "c1:0", "chunk_text": "words", "relevance": 0},
    ]
    (question,) = read("\n".join(map(json.dumps, lines))).questions
    assert question.tags == ("hard",)
    assert question.expectations == (
        Expectation(any_of=(Alternative(path="a:b"),), grade=2.0),
        Expectation(any_of=(Alternative(passage="c1:0", text="words"),), grade=0.0),
    )


def test_a_phrase_suite_is_read_from_yaml() -> None:
    text = "name: x\ncases:\n  - id: 001\n    query: 'how?'\n    relevant_phrases: [one, two]\n    tags: [t]\n"
    (question,) = read(text).questions
    assert question.key == "001"
    assert question.line == 3
    assert question.expectations == (Expectation(any_of=(Alternative(content_contains=("one", "two")),)),)


def test_a_pattern_inside_a_document_name_is_refused() -> None:
    (found,) = faults("Question,Source Docs\na,*2023*AAPL*\n")
    assert (found.line, found.field) == (2, "Source Docs")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prompts: [a]\nproviders: [b]\n\ntests: data/questions.csv\n", "`data/questions.csv`"),
        ("question,retrieval_precision\na,0.5\n", "table of results"),
        ("query,correct_answer\na,b\n", "Add a column"),
        ("question,owner\na,b\n", "no column that says what should be found"),
        ('{"question": "a", "truth": "b [x.pdf#page=7]"}\n{"question": "c", "truth": "d"}\n', "answers only"),
        ('{"queryText": "phone"}\n{"queryText": "steel"}', "query set"),
        ('{"question": "a", "expected_docs": ["France is a country."]}', "text of documents"),
        ('{"query_id": "q", "ranking": ["d"]}\n{"query_id": "r", "ranking": ["d"]}', "a run"),
        ("q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 0.4 tag\n", "a run"),
        ("q1 0 d1 1\nq1 0 d2 0\n", "qrels"),
        ('[{"chunk_link": "a", "text": "b"}]', "corpus"),
        ("judge:\n  model: x\nmetrics:\n  a: 1\n", "YAML"),
        ("PK is how this text begins, and it is no archive", "no format that is known"),
    ],
)
def test_a_file_that_cannot_serve_is_refused_with_advice(text: str, words: str) -> None:
    (found,) = faults(text)
    assert found.code is ErrorCode.EVAL_FILE
    assert words in found.message


def test_answers_under_expected_are_not_taken_for_paths() -> None:
    cases = [{"id": str(i), "question": "a", "expected": "Up to five days.", "category": "numbers"} for i in range(3)]
    (found,) = faults(json.dumps({"version": "1", "cases": cases}))
    assert "holds answers" in found.message
    titles = [{"question": "a", "expected": "The Employee Handbook"}]
    assert read(json.dumps({"cases": titles})).questions


TOPICS = "1\tWho signs?\n1\t\n"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("id,question,document,grade\na,x,d,high\na,other,,\n", ["the grade must be", "has another question"]),
        ('query,correct_chunks\n"\xad","[d"\n', ["not a JSON list", "the question is empty"]),
        ('question,source docs\n"\xad",a*b\n', ["cannot be used", "the question is empty"]),
        (
            {**BEIR, "set/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq8\td1\tgood\nq8\td2\t1\n"},
            ["no question with the id", "the grade"],
        ),
        ({"qrels": "1 0 d 1\n", "topics": TOPICS}, ["the question is empty", "comes twice"]),
        (
            (
                '{"query_id": "a", "query": "x", "doc_uri": "d", "relevance": 1}\n'
                '{"query_id": 2, "query": "y", "doc_uri": "d", "relevance": "high"}'
            ),
            ["must be an object with `query_id`", "the grade"],
        ),
    ],
)
def test_no_fault_of_a_row_hides_another_one(data: str | dict[str, str], told: list[str]) -> None:
    found = [one.message for one in faults(data)]
    assert len(found) == len(told), found
    assert all(any(part in message for message in found) for part in told), found
