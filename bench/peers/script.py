"""The script that teams write: each question in each mode by itself, the mean of what was found, nothing shared.

`python -m bench.peers.script ADDRESS INDEX QUESTIONS.json`. The same database, vectors, words and model as ours; bm25s
as its own page shows it, reciprocal ranks as everybody fuses them. Prints its figures as JSON.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import bm25s
import psycopg

from bench.peers.model import load

DEPTH, TOP, K = 100, 10, 60


def semantic(connection: Any, index: str, vector: list[float]) -> list[str]:
    statement = "SELECT path FROM backend_chunk WHERE index_id = %s ORDER BY embedding <=> %s::vector LIMIT %s"
    return [row[0] for row in connection.execute(statement, [index, str(vector), DEPTH]).fetchall()]


def keyword(words: Any, paths: list[str], question: str) -> list[str]:
    tokens = bm25s.tokenize(question, stopwords="en", show_progress=False)
    found, _ = words.retrieve(tokens, corpus=paths, k=DEPTH, show_progress=False)
    return [str(one) for one in found[0]]


def fused(lists: list[list[str]]) -> list[str]:
    scores: dict[str, float] = {}
    for ranking in lists:
        for rank, path in enumerate(ranking, start=1):
            scores[path] = scores.get(path, 0.0) + 1 / (K + rank)
    return sorted(scores, key=lambda path: -scores[path])


def main(address: str, index: str, file: str) -> None:
    questions = json.loads(Path(file).read_text())
    model = load()
    connection = psycopg.connect(address)
    rows = connection.execute("SELECT path, text FROM backend_chunk WHERE index_id = %s", [index]).fetchall()
    paths, words = [row[0] for row in rows], bm25s.BM25()
    words.index(bm25s.tokenize([row[1] for row in rows], stopwords="en", show_progress=False), show_progress=False)

    def vector(text: str) -> list[float]:
        return [float(value) for value in next(iter(model.query_embed(text)))]

    vector("warm")
    recall = {"semantic": 0.0, "keyword": 0.0, "hybrid": 0.0}
    started, spent = time.monotonic(), time.process_time()
    for one in questions:
        text, expected = one["question"], set(one["expected"])
        found = {
            "semantic": semantic(connection, index, vector(text)),
            "keyword": keyword(words, paths, text),
            "hybrid": fused([semantic(connection, index, vector(text)), keyword(words, paths, text)]),
        }
        for mode, ranking in found.items():
            recall[mode] += len(expected & set(ranking[:TOP])) / len(expected) / len(questions)
    took = {"seconds": time.monotonic() - started, "cpu": time.process_time() - spent}
    print(json.dumps({**took, "n": len(questions), "recall@10": recall}))


if __name__ == "__main__":
    main(*sys.argv[1:])
