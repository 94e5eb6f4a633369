"""Haystack as its documents advise: a PgvectorDocumentStore (exact), a pipeline for each mode (the hybrid one joins by
reciprocal ranks), run for each question, and its DocumentRecallEvaluator and DocumentMRREvaluator over what came back.

`python -m bench.peers.haystack_ ADDRESS INDEX QUESTIONS.json`. The passages are written into its table first, with the
vectors that are there, outside the clock. Prints its figures as JSON.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
from haystack import Document, Pipeline, component
from haystack.components.evaluators import DocumentMRREvaluator, DocumentRecallEvaluator
from haystack.components.joiners import DocumentJoiner
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.components.retrievers.pgvector import PgvectorEmbeddingRetriever, PgvectorKeywordRetriever
from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

from bench.peers.model import load

TOP = 10


@component
class Embedder:
    """The same model as a text embedder's component."""

    def __init__(self) -> None:
        self._model = load()

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": [float(value) for value in next(iter(self._model.query_embed(text)))]}


def store(address: str, index: str) -> PgvectorDocumentStore:
    parts = dict(part.split("=", 1) for part in address.split())
    made = PgvectorDocumentStore(
        connection_string=Secret.from_token(f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"),
        table_name="bench_haystack",
        embedding_dimension=384,
        vector_function="cosine_similarity",
        recreate_table=True,
        search_strategy="exact_nearest_neighbor",
        language="english",
    )
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT path, text, embedding::text FROM backend_chunk WHERE index_id = %s", [index]
        ).fetchall()
    made.write_documents(
        [Document(id=path, content=text, embedding=json.loads(vector)) for path, text, vector in rows],
        policy=DuplicatePolicy.OVERWRITE,
    )
    return made


def pipelines(made: PgvectorDocumentStore, embedder: Any) -> dict[str, tuple[Pipeline, list[str], str]]:
    """By mode: the pipeline, the components that take the question, and the one that answers."""
    semantic = Pipeline()
    semantic.add_component("embedder", embedder())
    semantic.add_component("meaning", PgvectorEmbeddingRetriever(document_store=made, top_k=TOP))
    semantic.connect("embedder.embedding", "meaning.query_embedding")
    keyword = Pipeline()
    keyword.add_component("words", PgvectorKeywordRetriever(document_store=made, top_k=TOP))
    hybrid = Pipeline()
    hybrid.add_component("embedder", embedder())
    hybrid.add_component("meaning", PgvectorEmbeddingRetriever(document_store=made, top_k=TOP))
    hybrid.add_component("words", PgvectorKeywordRetriever(document_store=made, top_k=TOP))
    hybrid.add_component("joined", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=TOP))
    hybrid.connect("embedder.embedding", "meaning.query_embedding")
    hybrid.connect("meaning", "joined")
    hybrid.connect("words", "joined")
    return {
        "semantic": (semantic, ["embedder"], "meaning"),
        "keyword": (keyword, ["words"], "words"),
        "hybrid": (hybrid, ["embedder", "words"], "joined"),
    }


def main(address: str, index: str, file: str) -> None:
    questions = json.loads(Path(file).read_text())
    expected = [[Document(id=key, content=key) for key in one["expected"]] for one in questions]
    made = pipelines(store(address, index), Embedder)
    recall = {}
    for pipeline, takes, _ in made.values():
        pipeline.run({name: {"text" if name == "embedder" else "query": "warm"} for name in takes})
    started, spent = time.monotonic(), time.process_time()
    for mode, (pipeline, takes, gives) in made.items():
        found = []
        for one in questions:
            given = {name: {"text" if name == "embedder" else "query": one["question"]} for name in takes}
            # Its evaluators compare contents: here each document's is its key.
            documents = pipeline.run(given)[gives]["documents"]
            found.append([Document(id=each.id, content=each.id) for each in documents])
        told = DocumentRecallEvaluator(mode="multi_hit").run(ground_truth_documents=expected, retrieved_documents=found)
        DocumentMRREvaluator().run(ground_truth_documents=expected, retrieved_documents=found)
        recall[mode] = told["score"]
    took = {"seconds": time.monotonic() - started, "cpu": time.process_time() - spent}
    print(json.dumps({**took, "n": len(questions), "recall@10": recall}))


if __name__ == "__main__":
    main(*sys.argv[1:])
