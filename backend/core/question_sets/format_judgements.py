"""Judgement lists of search tools: OpenSearch (JSON and CSV), Quepid (CSV and RRE JSON), retrieval-eval (JSONL)."""

from collections.abc import Iterator, Mapping
from typing import Any

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Content, Format
from backend.core.question_sets.grouping import Groups, number_or_text
from backend.core.question_sets.json_file import JsonDocument, JsonLines
from backend.core.question_sets.notes import Notes, Place
from backend.core.question_sets.table import Table


def _is_opensearch(content: Content) -> bool:
    return bool(content.sample) and content.most_have("query", "ratings")


def _read_opensearch(content: Content, notes: Notes) -> Iterator[RawCase]:
    if content.json is None:
        return
    for raw in content.json.items(notes):
        if not isinstance(raw.value, Mapping):
            yield raw  # told to be no case
            continue
        ratings = raw.value.get("ratings")
        value: dict[str, Any] = {"question": raw.value.get("query"), "expect": ratings}
        if isinstance(ratings, list) and all(isinstance(one, Mapping) for one in ratings):
            value["expect"] = [
                {"path": one.get("docId"), "grade": number_or_text(one.get("rating"))} for one in ratings
            ]
        yield RawCase(value=value, place=raw.place, opaque=True)


def _judgement_columns(content: Content) -> tuple[str, str, str | None] | None:
    """The columns of question, document and rating (Quepid's snapshots have no rating); None for other tables."""
    if content.json is not None:
        return None
    table = Table(content.text)
    for question, document in (("query", "docid"), ("query", "doc_id"), ("query text", "doc id")):
        if table.has(question, document):
            return question, document, next((one for one in ("rating", "grade") if table.has(one)), None)
    return None


def _read_table(content: Content, notes: Notes) -> Iterator[RawCase]:
    columns = _judgement_columns(content)
    if columns is None:
        notes.unreadable("the header needs `query`, `docid` and `rating`", place=Place(line=1))
        return
    question, document, rating = columns
    if rating is None:
        notes.warn(
            "no ratings",
            "there is no `rating` column: every listed document counts as expected, with grade 1; "
            "its position is not read",
            place=Place(line=1),
        )
    groups = Groups(opaque=True)
    for row, place in Table(content.text).rows(notes):
        group = groups.get(
            row[question].strip() if question in row else place,
            place=place,
            fields={"question": row.get(question)},
        )
        if rating is not None and rating not in row:
            notes.warn("unrated", "a document without a rating is not judged and is left out", place=place)
            continue
        grade = number_or_text(row[rating]) if rating else 1.0
        group.add({"path": row.get(document, "").strip(), "grade": grade}, place=place)
    yield from groups.cases()


def _is_rre(content: Content) -> bool:
    queries = content.top_fields.get("queries")
    return (
        isinstance(queries, list)
        and bool(queries)
        and all(isinstance(one, Mapping) and "relevant_documents" in one for one in queries[:20])
    )


def _read_rre(content: Content, _notes: Notes) -> Iterator[RawCase]:
    fields = JsonDocument(content.text).fields
    queries = fields.get("queries")
    for i, one in enumerate(queries if isinstance(queries, list) else []):
        place = Place(path="queries") / i
        if not isinstance(one, Mapping):
            yield RawCase(value=one, place=place)
            continue
        placeholders = one.get("placeholders")
        text = placeholders.get("$query") if isinstance(placeholders, Mapping) else None
        graded = one.get("relevant_documents")
        expect: list[Any] = []
        for grade, ids in graded.items() if isinstance(graded, Mapping) else ():
            listed = ids if isinstance(ids, list) else [ids]
            expect += [{"path": each, "grade": number_or_text(grade)} for each in listed]
        yield RawCase(value={"question": text, "expect": expect}, place=place, opaque=True)


def _is_retrieval_eval(content: Content) -> bool:
    return bool(content.sample) and content.most_have("query_id", "doc_uri", "relevance")


def _read_retrieval_eval(content: Content, notes: Notes) -> Iterator[RawCase]:
    groups = Groups(opaque=True)
    for raw in JsonLines(content.text).items(notes):
        row = raw.value
        key = row.get("query_id") if isinstance(row, Mapping) else None
        if not isinstance(key, str):
            notes.invalid("a judgement must be an object with `query_id`, `doc_uri` and `relevance`", place=raw.place)
            if not isinstance(row, Mapping):
                continue
            key = None
        # Without an id it is a question of its own: the rest of its row is checked all the same.
        group = groups.get(key or raw.place, place=raw.place, fields={"id": key, "question": None})
        if group.fields["question"] is None:
            group.fields["question"] = row.get("query")
        if row.get("stratum") is not None:
            group.fields["tags"] = [row["stratum"]]
        target: dict[str, Any] = {"path": row.get("doc_uri")}
        if row.get("chunk_id") is not None:
            target = {"passage": row["chunk_id"], "text": row.get("chunk_text")}
        group.add({**target, "grade": row.get("relevance")}, place=raw.place)
    yield from groups.cases()


OPENSEARCH = Format(
    name="opensearch", title="OpenSearch judgment list (JSON)", recognise=_is_opensearch, read=_read_opensearch
)
RATINGS_CSV = Format(
    name="ratings-csv",
    title="Quepid or OpenSearch ratings (CSV)",
    recognise=lambda content: _judgement_columns(content) is not None,
    read=_read_table,
)
RRE = Format(name="rre", title="RRE ratings (JSON)", recognise=_is_rre, read=_read_rre)
RETRIEVAL_EVAL = Format(
    name="judgments",
    title="retrieval-eval judgments (JSONL)",
    recognise=_is_retrieval_eval,
    read=_read_retrieval_eval,
)
