"""Golden sets as they are published: the Anthropic cookbook's, KG-RAG's, LlamaIndex's fine-tuning sets."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Content, Format
from backend.core.question_sets.json_file import JsonDocument
from backend.core.question_sets.notes import Notes, Place
from backend.core.question_sets.table import Table

# In place of what was told as a fault already, so that the rest of its row is read.
_REFUSED = "-"
SNIPPET = 200  # characters of a passage that are kept beside its id, so that it is found after re-ingestion


def _is_cookbook(content: Content) -> bool:
    return bool(content.sample) and content.most_have("question", "correct_chunks")


def _read_cookbook(content: Content, notes: Notes) -> Iterator[RawCase]:
    if content.json is None:
        return
    for raw in content.json.items(notes):
        if not isinstance(raw.value, Mapping):
            yield raw
            continue
        value = {
            "id": raw.value.get("id"),
            "question": raw.value.get("question"),
            "expected": raw.value.get("correct_chunks"),
            "reference_answer": raw.value.get("correct_answer"),
        }
        yield RawCase(value=value, place=raw.place, opaque=True)


def _is_cookbook_csv(content: Content) -> bool:
    return content.json is None and Table(content.text).has("query", "correct_chunks")


def _read_cookbook_csv(content: Content, notes: Notes) -> Iterator[RawCase]:
    for row, place in Table(content.text).rows(notes):
        cell = row.get("correct_chunks", "")
        try:
            expected = json.loads(cell) if cell.lstrip().startswith("[") else cell.strip()
        except (ValueError, RecursionError):
            notes.invalid("the cell is not a JSON list", place=place / "correct_chunks")
            expected = _REFUSED
        yield RawCase(value={"question": row.get("query"), "expected": expected}, place=place, opaque=True)


def _is_contextual(content: Content) -> bool:
    return bool(content.sample) and content.most_have("query", "golden_chunk_uuids")


def _read_contextual(content: Content, notes: Notes) -> Iterator[RawCase]:
    if content.json is None:
        return
    for raw in content.json.items(notes):
        if not isinstance(raw.value, Mapping):
            yield raw
            continue
        pairs = raw.value.get("golden_chunk_uuids")
        texts = _chunk_texts(raw.value.get("golden_documents"))
        expect: Any = pairs
        if isinstance(pairs, list):
            expect = [_pair(pair, texts) for pair in pairs]
        value = {
            "question": raw.value.get("query"),
            "expect": expect,
            "reference_answer": raw.value.get("answer"),
        }
        yield RawCase(value=value, place=raw.place, opaque=True)


def _chunk_texts(documents: Any) -> dict[tuple[str, str], str]:
    """The text of each passage by (document, index), from the documents that lie inside each question."""
    found: dict[tuple[str, str], str] = {}
    for document in documents if isinstance(documents, list) else ():
        chunks = document.get("chunks") if isinstance(document, Mapping) else None
        for chunk in chunks if isinstance(chunks, list) else ():
            if isinstance(chunk, Mapping) and isinstance(chunk.get("content"), str):
                found[str(document.get("uuid")), str(chunk.get("index"))] = chunk["content"]
    return found


def _pair(pair: Any, texts: dict[tuple[str, str], str]) -> Any:
    if not isinstance(pair, list) or len(pair) != 2:
        return pair
    document, index = str(pair[0]), str(pair[1])
    return {"passage": f"{document}:{index}", "text": snippet(texts.get((document, index)))}


def snippet(text: Any) -> Any:
    """The beginning of a passage, cut at a word; None (left out) where there is no text."""
    if not isinstance(text, str) or not text.strip():
        return None
    if len(text) <= SNIPPET:
        return text.strip()
    head = text.strip()[:SNIPPET]
    return head[: max(head.rfind(" "), head.rfind("\n"))].rstrip() if len(head.split()) > 1 else head


def _is_kg_rag(content: Content) -> bool:
    return content.json is None and Table(content.text).has("question", "source docs")


def _read_kg_rag(content: Content, notes: Notes) -> Iterator[RawCase]:
    """`Source Docs` is a pattern such as `*AAPL*`: a part of the document's name."""
    for row, place in Table(content.text).rows(notes):
        pattern = row.get("source docs", "").strip()
        part = pattern.strip("*")
        if any(sign in part for sign in "*?["):
            notes.invalid(
                f"the pattern `{pattern[:80]}` cannot be used: only stars at its ends are understood",
                place=place / "Source Docs",
            )
            part = _REFUSED
        tags = [row[name].strip() for name in ("question type", "source chunk type") if name in row]
        yield RawCase(
            value={
                "question": row.get("question"),
                "expect": [{"document": part}],
                "tags": tags,
                "reference_answer": row.get("answer"),
            },
            place=place,
        )


_LLAMA = ("queries", "corpus", "relevant_docs")


def _is_llama_index(content: Content) -> bool:
    return all(isinstance(content.top_fields.get(name), Mapping) for name in _LLAMA)


def _read_llama_index(content: Content, notes: Notes) -> Iterator[RawCase]:
    fields = JsonDocument(content.text).fields
    queries, corpus, relevant = (fields.get(name) for name in _LLAMA)
    if not (isinstance(queries, Mapping) and isinstance(corpus, Mapping) and isinstance(relevant, Mapping)):
        notes.unreadable("`queries`, `corpus` and `relevant_docs` must be objects", place=Place(line=1))
        return
    for key, text in queries.items():
        ids = relevant.get(key)
        expect: Any = ids
        if isinstance(ids, list):
            expect = [
                {"passage": one, "text": snippet(corpus.get(one)) if isinstance(one, str) else None} for one in ids
            ]
        value = {"id": key, "question": text, "expect": expect}
        yield RawCase(value=value, place=Place(path=f"queries.{key[:80]}"), opaque=True)


COOKBOOK = Format(
    name="anthropic-rag",
    title="Anthropic cookbook questions (JSON)",
    recognise=_is_cookbook,
    read=_read_cookbook,
)
COOKBOOK_CSV = Format(
    name="anthropic-rag-csv",
    title="Anthropic cookbook questions (CSV)",
    recognise=_is_cookbook_csv,
    read=_read_cookbook_csv,
)
CONTEXTUAL = Format(
    name="anthropic-contextual",
    title="Anthropic contextual-embeddings questions (JSONL)",
    recognise=_is_contextual,
    read=_read_contextual,
)
KG_RAG = Format(name="kg-rag", title="KG-RAG questions (CSV)", recognise=_is_kg_rag, read=_read_kg_rag)
LLAMA_INDEX = Format(
    name="llama-index",
    title="LlamaIndex EmbeddingQAFinetuneDataset (JSON)",
    recognise=_is_llama_index,
    read=_read_llama_index,
)
