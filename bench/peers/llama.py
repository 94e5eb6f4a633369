"""LlamaIndex as its documents advise: PGVectorStore (hybrid_search on, English), a retriever for each mode, and
RetrieverEvaluator for every question, by its `run_jobs` with as many workers as there are cores (this release has no
`aevaluate_dataset` any more).

`python -m bench.peers.llama ADDRESS INDEX QUESTIONS.json`. The passages are written into its table first, with the
vectors that are there, outside the clock. Prints its figures as JSON.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
from llama_index.core import VectorStoreIndex
from llama_index.core.async_utils import run_jobs
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.schema import TextNode
from llama_index.vector_stores.postgres import PGVectorStore

from bench.peers.model import load

TOP = 10
_model: Any = None


class Embedder(BaseEmbedding):
    """The same model, called as its base class has it: in a thread when it is asked for asynchronously."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return [float(value) for value in next(iter(_model.query_embed(query)))]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)


def store(address: str, index: str) -> PGVectorStore:
    parts = dict(part.split("=", 1) for part in address.split())
    url = f"{parts['user']}@/{parts['dbname']}?host={parts['host']}"
    made = PGVectorStore.from_params(
        connection_string=f"postgresql+psycopg2://{url}",
        async_connection_string=f"postgresql+asyncpg://{url}",
        table_name="bench_llama",
        embed_dim=384,
        hybrid_search=True,
        text_search_config="english",
    )
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE IF EXISTS data_bench_llama")
        rows = connection.execute(
            "SELECT path, text, embedding::text FROM backend_chunk WHERE index_id = %s", [index]
        ).fetchall()
    made.add([TextNode(id_=path, text=text, embedding=json.loads(vector)) for path, text, vector in rows])
    return made


async def main(address: str, index: str, file: str) -> None:
    global _model  # noqa: PLW0603  one for the process
    _model = load()
    questions = json.loads(Path(file).read_text())
    made = VectorStoreIndex.from_vector_store(store(address, index), embed_model=Embedder(model_name="bench"))
    modes = {"semantic": "default", "keyword": "sparse", "hybrid": "hybrid"}
    recall = {}
    made.as_retriever(similarity_top_k=TOP).retrieve("warm")
    started, spent = time.monotonic(), time.process_time()
    for name, mode in modes.items():
        retriever = made.as_retriever(similarity_top_k=TOP, sparse_top_k=TOP, vector_store_query_mode=mode)
        evaluator = RetrieverEvaluator.from_metric_names(["hit_rate", "mrr", "recall"], retriever=retriever)
        asked = [evaluator.aevaluate(one["question"], one["expected"]) for one in questions]
        results = await run_jobs(asked, workers=os.cpu_count() or 2)
        recall[name] = sum(one.metric_vals_dict["recall"] for one in results) / len(results)
    took = {"seconds": time.monotonic() - started, "cpu": time.process_time() - spent}
    print(json.dumps({**took, "n": len(questions), "recall@10": recall}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
