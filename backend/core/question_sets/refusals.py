"""Files that people bring as question sets and that are none: what each is, why it cannot serve, what to do."""

import re
from collections.abc import Mapping

from backend.core.question_sets.content import Content, Refusal
from backend.core.question_sets.format_collections import looks_like_qrels
from backend.core.question_sets.table import Table

_TESTS_FILE = re.compile(r"^tests:[ \t]*['\"]?([^\s'\"]+\.(?:csv|jsonl?|ya?ml))", re.MULTILINE)
_PROMPTFOO = re.compile(r"^(?:prompts|providers):", re.MULTILINE)
_YAML_LINE = re.compile(r"^[A-Za-z_][\w-]*:(?:\s|$)", re.MULTILINE)
_RUN_ROW = re.compile(r"\S+\s+Q0\s+\S+\s+\d+\s+\S+\s+\S+\s*$")
_FILE_END = re.compile(r"\.\w{1,8}(#\S*)?$")
_SAY = 'Say for each question what should be found, such as "expected": ["policies/leave.pdf"].'
_METRIC_COLUMNS = ("retrieval_precision", "retrieval_recall", "retrieval_mrr", "precision", "recall", "mrr", "ndcg")


def _is_promptfoo(content: Content) -> bool:
    return content.json is None and bool(_PROMPTFOO.search(content.text)) and "\ntests:" in content.text


def _promptfoo(content: Content) -> str:
    named = _TESTS_FILE.search(content.text)
    if named:
        return f"This is a promptfoo configuration; its questions are in `{named.group(1)}`. Send that file instead."
    return (
        "This is a promptfoo configuration whose tests check the text of answers, not which documents are found. "
        "Write its questions as JSONL; a `contains` value can become "
        '"expect": {"content_contains": ["…"]}.'
    )


def _is_results(content: Content) -> bool:
    return content.json is None and any(Table(content.text).has(name) for name in _METRIC_COLUMNS)


def _is_answers_table(content: Content) -> bool:
    if content.json is not None:
        return False
    table = Table(content.text)
    asks = table.has("query") or table.has("question")
    answers = ("correct_answer", "answer", "expected_answer", "ground_truth", "truth", "reference_answer")
    return asks and any(table.has(name) for name in answers) and not _names_targets(table)


def _names_targets(table: Table) -> bool:
    targets = (
        "expected",
        "expect",
        "document",
        "content_contains",
        "path",
        "passage",
        "expected_chunk_id",
        "text",
        "unanswerable",
    )
    return any(table.has(name) for name in targets)


def _only_answers(content: Content) -> bool:
    """Questions whose only other field is an answer (`truth`, `ground_truth`…)."""
    asked = [one for one in content.sample if {"question", "query", "queryText", "user_input"} & set(one)]
    answers = {"truth", "ground_truth", "answer", "expected_answer", "referenceAnswer", "reference"}
    targets = {"expected", "expect", "expected_chunk_id", "expected_chunk_ids", "unanswerable", "reference_answer"}
    return bool(asked) and all(answers & set(one) and not targets & set(one) for one in asked)


def _is_document_texts(content: Content) -> bool:
    return bool(content.sample) and content.most_have("question", "expected_docs")


def _is_query_set(content: Content) -> bool:
    return bool(content.sample) and content.most_have("queryText")


def _answers_under_expected(content: Content) -> bool:
    """Whether every `expected` is a sentence: no file name, no slash, three words or more. Then it is an answer."""
    given = [one.get("expected") for one in content.sample]
    texts = [one for one in given if isinstance(one, str)]
    described = any("category" in one or "difficulty" in one for one in content.sample)
    return described and len(texts) >= 2 and len(texts) == len(given) and all(_is_sentence(one) for one in texts)


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= 3 and "/" not in text and not _FILE_END.search(text.strip())


def _is_annotations(content: Content) -> bool:
    return any(
        isinstance(value, list) and value and isinstance(value[0], Mapping) and "metric_input" in value[0]
        for value in content.top_fields.values()
    )


def _is_labels_table(content: Content) -> bool:
    if content.json is not None:
        return False
    table = Table(content.text)
    return table.has("text", "labels") and not (table.has("question") or table.has("query"))


def _is_corpus(content: Content) -> bool:
    if not content.sample or content.most_have("question") or content.most_have("query"):
        return False
    pairs = (("chunk_link", "text"), ("_id", "text"), ("doc_id", "chunks"), ("doc_id", "contents"))
    return any(content.most_have(*pair) for pair in pairs)


def _is_run(content: Content) -> bool:
    """A ranking made by a search engine: JSONL of ids, or TREC's six columns."""
    if content.json is not None:
        return bool(content.sample) and content.most_have("query_id", "ranking")
    rows = [line for line in content.text[:20_000].split("\n")[:-1] if line.strip()][:20]
    return bool(rows) and all(_RUN_ROW.match(line) for line in rows)


def _is_other_yaml(content: Content) -> bool:
    if content.json is not None:
        return False
    named = content.filename.lower().endswith((".yaml", ".yml"))
    table = Table(content.text)
    asks = table.has("question") or table.has("query")
    return named or (not asks and len(_YAML_LINE.findall(content.text[:20_000])) >= 2)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(recognise=_is_promptfoo, sentence=_promptfoo),
    Refusal(
        recognise=_is_results,
        sentence=(
            "This is a table of results (it has a column of metrics), not a set of questions with what they expect. "
            "Send the question set that was measured."
        ),
    ),
    Refusal(
        recognise=_is_query_set,
        sentence=(
            "This is a query set: questions without judgements, so nothing can be found or missed. "
            f"Send the judgment list that belongs to it (`query`, `docId`, `rating`). {_SAY}"
        ),
    ),
    Refusal(
        recognise=_is_document_texts,
        sentence=(
            "`expected_docs` holds the text of documents, not their paths. Write a telling phrase of each as "
            '"expect": [{"content_contains": ["…"]}], or the path as "expected": ["…"].'
        ),
    ),
    Refusal(
        recognise=_answers_under_expected,
        sentence=(
            "`expected` holds answers here, not documents. Rename it to `reference_answer`, and say in `expected` "
            'which document answers, such as "expected": ["handbook/leave.md"].'
        ),
    ),
    Refusal(
        recognise=_is_answers_table,
        sentence=(
            "This table has questions and answers but does not say which documents answer them, so retrieval "
            "cannot be measured. Add a column `document` or `content_contains`."
        ),
    ),
    Refusal(
        recognise=_only_answers,
        sentence=(
            "These are questions with answers only: they do not say which documents answer them, so retrieval cannot "
            f"be measured (sources named inside the answer's text are not read). {_SAY}"
        ),
    ),
    Refusal(
        recognise=_is_annotations,
        sentence="This is a file of rated model answers, not a set of questions for retrieval. " + _SAY,
    ),
    Refusal(
        recognise=_is_labels_table,
        sentence="This is a table of labelled texts (a classification set), not a set of questions. " + _SAY,
    ),
    Refusal(
        recognise=_is_corpus,
        sentence="This is a corpus (documents or passages), not a set of questions. Ingest it as documents.",
    ),
    Refusal(
        recognise=lambda content: content.json is None and looks_like_qrels(content.text[:20_000]),
        sentence=(
            "These are qrels: question ids with judgements, without the questions' texts. "
            "Send them together with the topics (TREC) or with `queries.jsonl` (BEIR)."
        ),
    ),
    Refusal(
        recognise=_is_run,
        sentence=(
            "This is a run (rankings that a search engine made), not a set of questions. "
            "Import it as a run, against the question set that it answers."
        ),
    ),
    Refusal(
        recognise=_is_other_yaml,
        sentence=(
            "This is a YAML file that is not a question set. Write the questions as JSONL, "
            'such as {"question": "…", "expected": ["policies/leave.pdf"]}.'
        ),
    ),
)
