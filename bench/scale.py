"""6: what grows with the number of questions and of passages, and where an approximate index starts to pay.

`python -m bench.scale [--questions 1000,10000] [--chunks 5000,50000] [--full]`. `--full`: 100,000 questions and 200,000
passages too (an hour). Passages are SciFact's, their vectors with noise added, written by PostgreSQL itself.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from bench import machine, report, service
from bench.report import Report
from tests.e2e.cluster import Cluster

GOAL = 1.15
FLAT_MB = 40.0
_ASKED = 60
_TOP = 10
# Half of a vector's length in noise: about what lies between two abstracts on one subject.
_NOISE = 0.05
_MULTIPLY = """
INSERT INTO backend_chunk (id, index_id, document_id, ordinal, start, "end", text, heading, page, truncated, path,
                           source_name, collection, embedding, lexemes)
SELECT gen_random_uuid(), '{index}', c.document_id, copy * 100 + c.ordinal, c.start, c."end", c.text, c.heading, c.page,
       c.truncated, c.path, c.source_name, c.collection,
       c.embedding + (SELECT array_agg(({noise} * (2 * random() - 1) + 0 * place * copy)::real)
                      FROM generate_series(1, vector_dims(c.embedding)) AS place)::vector, c.lexemes
FROM (SELECT * FROM backend_chunk WHERE index_id = '{from_index}' ORDER BY id LIMIT {n_source}) c
CROSS JOIN generate_series(1, {n_copies}) AS copy
LIMIT {n}
"""


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.scale")
    parser.add_argument("--questions", type=_whole, default=[1000, 10_000])
    parser.add_argument("--chunks", type=_whole, default=[5000, 50_000])
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args(arguments)
    service.need_data()
    questions = [*given.questions, *([100_000] if given.full else [])]
    chunks = [*given.chunks, *([200_000] if given.full else [])]
    made = Report(name="scale", title="6. Scale")
    with service.running() as running:
        base = service.scifact(running)
        _questions(made, running, base, questions)
        _passages(made, running, base, chunks)
    return made


def _whole(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one]


# ---- questions
def _questions(made: Report, running: Cluster, base: str, sizes: Sequence[int]) -> None:
    body = {"scope": {"knowledge_base": base}, "modes": ["keyword"], "cache": False}
    if sizes:
        service.evaluate(running, {**body, "question_set": service.question_set(running, 200)})
    seen: dict[int, dict[str, float]] = {}
    for n in sizes:
        with _watched(running) as peak:
            done = service.evaluate(running, {**body, "question_set": service.question_set(running, n)})
        cpu = {name: value for name, value in done["cpu"].items() if name != "web"}
        seen[n] = {"ms": 1000 * sum(cpu.values()) / n, "seconds": done["seconds"], **peak}
        made.add(
            f"{n:,} questions, keyword",
            f"{seen[n]['ms']:.1f} ms of processor time a question",
            note=f"{n / done['seconds']:.0f} a second; workers {peak['workers']:.0f} MiB, "
            f"broker {peak['broker']:.1f} MB",
        )
    if len(seen) > 1:
        few, many = seen[min(seen)], seen[max(seen)]
        report.at_most(made, "a question of the largest set to one of the smallest", many["ms"] / few["ms"], goal=GOAL)
        grown = many["workers"] - few["workers"]
        made.add(
            "memory of the workers, the largest set's to the smallest's",
            f"{grown:+.0f} MiB",
            goal=f"within {FLAT_MB:.0f} MiB",
            holds=grown <= FLAT_MB,
        )
    made.raw["questions"] = {str(n): one for n, one in seen.items()}


@contextmanager
def _watched(running: Cluster) -> Iterator[dict[str, float]]:
    peak = {"workers": 0.0, "broker": 0.0}
    workers = [running.pid(name) for name in running.names if name.startswith("worker")]

    def look() -> None:
        peak["workers"] = max(peak["workers"], machine.memory_mb(workers))
        with running.broker() as client:
            peak["broker"] = max(peak["broker"], int(client.info("memory")["used_memory"]) / 1e6)

    with machine.watched(look, every=1.0):
        yield peak


# ---- passages
def _passages(made: Report, running: Cluster, base: str, sizes: Sequence[int]) -> None:
    if not sizes:
        return
    source = str(running.sql("SELECT live_index_id FROM backend_knowledgebase WHERE id = %s", base)[0][0])
    n_source = int(running.sql("SELECT count(*) FROM backend_chunk WHERE index_id = %s", source)[0][0])
    pays = None
    for n in sizes:
        copy = _copy(running, n)
        running.sql("DELETE FROM backend_chunk WHERE index_id = %s", copy)
        n_copies = -(-n // n_source)
        running.sql(
            _MULTIPLY.format(
                index=UUID(copy), from_index=UUID(source), noise=_NOISE, n=n, n_copies=n_copies, n_source=n_source
            )
        )
        running.sql("VACUUM ANALYZE backend_chunk")
        told = json.loads(running.python("-m", "bench.scale_legs", copy, str(_ASKED), str(_TOP)).splitlines()[-1])
        made.raw[f"chunks {n}"] = told
        faster = told["exact_ms"] / told["near_ms"]
        if pays is None and faster > 1 and told["recall"] >= 0.95:
            pays = n
        made.add(
            f"{n:,} passages: exact, and by the graph",
            f"{told['exact_ms']:.1f} and {told['near_ms']:.1f} ms",
            note=f"the graph finds {told['recall']:.3f} of the first {_TOP}; built in {told['graph_s']:.0f} s",
        )
        made.add(
            f"{n:,} passages: bm25",
            f"{told['words_ms']:.1f} ms",
            note=f"its file made in {told['words_build_s']:.1f} s",
        )
        running.python("-m", "bench.scale_legs", copy, "0", "0")
        running.sql("DELETE FROM backend_chunk WHERE index_id = %s", copy)
    made.raw["pays_from"] = pays


def _copy(running: Cluster, n: int) -> str:
    """The Index of a base made for it: with one document, so that it is complete."""
    name = f"copies {n} {time.time():.0f}"
    settings = {"chunking": {"mode": "document"}, "keyword": {"language": "english"}}
    base = running.post("knowledge-bases", {"name": name, "settings": settings})["id"]
    service.upload(running, base, service.documents()[:1])
    service.wait_indexed(running, base)
    return str(running.sql("SELECT live_index_id FROM backend_knowledgebase WHERE id = %s", base)[0][0])


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
    report.main(run, sys.argv[1:])
