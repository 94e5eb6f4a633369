"""Golden sets as people publish them: what each must become, or the words with which it is refused."""

import pytest

from backend.core.errors import QuestionSetError
from backend.core.question_sets import parse, parse_files
from backend.core.types import Level
from tests.shared import shared_data

pytestmark = pytest.mark.shared

READ = [
    ("anthropic-rag/docs_evaluation_dataset.json", "anthropic-rag", 100, 192, Level.DOCUMENT),
    ("anthropic-rag/promptfoo_retrieval_dataset.csv", "anthropic-rag-csv", 100, 192, Level.DOCUMENT),
    ("anthropic-contextual/evaluation_set.jsonl", "anthropic-contextual", 248, 306, Level.PASSAGE),
    ("kg-rag-sec10q/qna_data_mini.csv", "kg-rag", 9, 9, Level.DOCUMENT),
    ("autorag/qa_data_sample.parquet", "autorag", 10, 10, Level.DOCUMENT),
    ("opensearch-srw/esci_us_judgments.json", "opensearch", 150, 6678, Level.DOCUMENT),
    ("opensearch-srw/judgment_before.json", "opensearch", 96, 229, Level.DOCUMENT),
    ("opensearch-srw/judgments_example.csv", "ratings-csv", 1, 3, Level.DOCUMENT),
    ("quepid/static_queryset.csv", "ratings-csv", 1, 3, Level.DOCUMENT),
    ("quepid/mock_rre_json.json", "rre", 2, 6, Level.DOCUMENT),
    ("hydrag-suites/k8s-kep.yaml", "phrases-yaml", 20, 20, Level.PASSAGE),
    ("hydrag-suites/synthetic-smoke.yaml", "phrases-yaml", 5, 5, Level.PASSAGE),
    ("retrieval-eval-spec/fixtures/basic/judgments.jsonl", "judgments", 2, 4, Level.DOCUMENT),
    ("retrieval-eval-spec/fixtures/no-positives/judgments.jsonl", "judgments", 2, 4, Level.DOCUMENT),
]
REFUSED = [
    ("anthropic-rag/promptfoo_end_to_end_dataset.csv", "does not say which documents"),
    ("anthropic-rag/promptfooconfig_retrieval.yaml", "promptfoo_datasets/retrieval_dataset.csv"),
    ("anthropic-rag/promptfooconfig_end_to_end.yaml", "promptfoo_datasets/end_to_end_dataset.csv"),
    ("anthropic-rag/evaluation_results_detailed.csv", "table of results"),
    ("anthropic-rag/anthropic_docs.json", "corpus"),
    ("azure-rag/qa.jsonl", "answers only"),
    ("autorag/corpus_data_sample.parquet", "corpus"),
    ("opensearch-srw/esci_us_queryset.json", "query set"),
    ("opensearch-srw/query_set_example.ndjson", "query set"),
    ("quepid/ratings.yml", "YAML"),
    ("promptfoo-rag-full/promptfooconfig.with-asserts.yaml", "promptfoo configuration"),
    ("raggate/golden.json", "holds answers"),
    ("raggate/gates.yaml", "YAML"),
    ("rag-eval-kit/sample_dataset.jsonl", "text of documents"),
    ("ragas-examples/annotated_data.json", "rated model answers"),
    ("ragas-examples/support_triage.csv", "classification"),
    ("retrieval-eval-spec/fixtures/basic/run.jsonl", "a run"),
]


@pytest.mark.parametrize(("name", "format_name", "n_questions", "n_expectations", "level"), READ)
def test_a_published_set_is_read(
    name: str, format_name: str, n_questions: int, n_expectations: int, level: Level
) -> None:
    parsed = parse(shared_data("golden-sets", name).read_bytes(), filename=name)
    assert parsed.format == format_name
    assert len(parsed.questions) == n_questions
    assert sum(len(question.expectations) for question in parsed.questions) == n_expectations
    assert parsed.level is level
    assert parsed.threshold == 1.0


@pytest.mark.parametrize(("name", "words"), REFUSED)
def test_a_published_file_that_cannot_serve_says_why(name: str, words: str) -> None:
    with pytest.raises(QuestionSetError) as caught:
        parse(shared_data("golden-sets", name).read_bytes(), filename=name)
    assert len(caught.value.faults) == 1
    assert words in caught.value.message


def test_the_quirks_of_published_sets_survive() -> None:
    contextual = parse(shared_data("golden-sets", "anthropic-contextual/evaluation_set.jsonl").read_bytes())
    assert sum(question.key.endswith("-2") for question in contextual.questions) == 2  # repeated questions
    first = contextual.questions[0].expectations[0].any_of[0]
    assert first.passage == "5e4c01057a10732d34784af2a97bee9d173863f043b9901de8ef7f57bc590145:0"
    assert (first.text or "").startswith("//! Executor for differential fuzzing.")

    filings = parse(shared_data("golden-sets", "kg-rag-sec10q/qna_data_mini.csv").read_bytes())
    assert filings.questions[0].expectations[0].any_of[0].document == "AAPL"
    assert filings.questions[0].reference_answer.count("\n") > 1

    products = parse(shared_data("golden-sets", "opensearch-srw/esci_us_judgments.json").read_bytes())
    grades = {entry.grade for question in products.questions for entry in question.expectations}
    assert grades == {100.0, 10.0, 1.0, 0.0}

    docs = parse(
        shared_data("golden-sets", "anthropic-rag/docs_evaluation_dataset.json").read_bytes(),
        known_sources=frozenset({"https"}),
    )
    assert (docs.questions[0].expectations[0].any_of[0].path or "").startswith("https://docs.claude.com/")


def test_scifact_is_read_as_a_beir_folder() -> None:
    names = ("queries.jsonl", "qrels.tsv")
    parsed = parse_files({name: shared_data("scifact", name).read_bytes() for name in names})
    assert len(parsed.questions) == 300
    assert parsed.level is Level.DOCUMENT
