"""The floor: the searches of a run in a plain loop, over the same functions of backend/search, without the service.

It shares what a run shares (each question's legs once, query vectors in the same batches, one snapshot for ten
questions) and has as many processes, each with its own model and connection, warm before the clock starts. It knows no
broker, no slices, no leases; it judges nothing and stores nothing: what it finds, it drops.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import Pool
from typing import Any
from uuid import UUID

from bench import machine
from tests.e2e.cluster import Cluster

Batch = list[tuple[int, str]]
_A_SNAPSHOT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What an evaluation froze, to be searched again here."""

    workspace_id: str
    scope: dict[str, Any]
    configs: list[dict[str, Any]]
    top_k: int


def spec_of(service: Cluster, evaluation_id: str) -> Spec:
    workspace, plan = service.sql("SELECT workspace_id, plan FROM backend_evaluation WHERE id = %s", evaluation_id)[0]
    configs = service.sql("SELECT config FROM backend_run WHERE evaluation_id = %s ORDER BY ordinal", evaluation_id)
    return Spec(
        workspace_id=str(workspace), scope=plan["scope"], configs=[row[0] for row in configs], top_k=int(plan["top_k"])
    )


class Floor:
    """Started by `running`. `search` returns the seconds that passed."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._pool._pool]  # type: ignore[attr-defined]  # noqa: SLF001

    def search(self, questions: Sequence[str], *, size: int) -> float:
        numbered = list(enumerate(questions))
        batches = [numbered[start : start + size] for start in range(0, len(numbered), size)]
        started = time.monotonic()
        found = sum(self._pool.imap_unordered(_search, batches))
        took = time.monotonic() - started
        if found == 0:
            raise SystemExit("the floor found nothing: it measures nothing")
        return took

    def cpu(self) -> float:
        return machine.spent(self.pids)


@contextmanager
def running(service: Cluster, spec: Spec, *, n_processes: int) -> Iterator[Floor]:
    """Processes of their own with the service's database, warm."""
    kept = dict(os.environ)
    os.environ.update({key: value for key, value in service.environment.items() if key != "PYTHONPATH"})
    try:
        context = multiprocessing.get_context("spawn")
        with context.Pool(n_processes, initializer=_begin, initargs=(spec,)) as pool:
            floor = Floor(pool)
            # More than enough for each process to load its model and open the words' file.
            floor.search([f"warm {number}" for number in range(40 * n_processes)], size=5)
            yield floor
    finally:
        os.environ.clear()
        os.environ.update(kept)


_spec: Spec


def _begin(spec: Spec) -> None:
    global _spec  # noqa: PLW0603  what a process of the pool is told once
    _spec = spec
    import django  # only these processes

    django.setup()


def _search(batch: Batch) -> int:
    """The number of passages found."""
    # Only where Django was set up.
    from backend.core import configs as stored
    from backend.search import pipeline, providers
    from backend.search.snapshot import open_snapshot
    from backend.search.types import Failure, SearchScope

    scope = SearchScope.from_json(_spec.scope)
    configs = [stored.from_stored(config) for config in _spec.configs]
    texts = [text for _, text in batch]
    vectors: dict[int, dict[UUID, Sequence[float]]] = {ordinal: {} for ordinal, _ in batch}
    if any(config.needs_vector for config in configs):
        for index in scope.all_indexes:
            embedder = providers.embedder(
                index.embedder,
                workspace_id=UUID(_spec.workspace_id),
                query_prefix=index.query_prefix,
                document_prefix=index.document_prefix,
            )
            for (ordinal, _), vector in zip(batch, embedder.embed_queries(texts, timeout=600).vectors, strict=True):
                vectors[ordinal][index.id] = vector
    n = 0
    for start in range(0, len(batch), _A_SNAPSHOT):
        with open_snapshot(scope) as snapshot:
            found = pipeline.search_many(
                batch[start : start + _A_SNAPSHOT],
                vectors=vectors,
                configs=configs,
                scope=scope,
                snapshot=snapshot,
                top_k=_spec.top_k,
            )
        for answers in found.values():
            for answer in answers.values():
                if isinstance(answer, Failure):
                    raise RuntimeError(answer.reason)  # noqa: TRY004  no fault of a type
                n += len(answer.entries)
    return n
