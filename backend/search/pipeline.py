"""One question in many configurations: each distinct leg is read once, fusion is done per configuration.

The same code serves `POST search` and runs. A configuration fails alone: without its vector, or with a leg that
cannot be read, it gets a Failure and the others go on.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from uuid import UUID

from django.db import DatabaseError, connection, transaction

from backend.core.configs import RetrievalConfig
from backend.core.errors import ErrorCode, TouchstoneError
from backend.core.fusion import fuse, rrf
from backend.core.ties import Candidate
from backend.core.types import Passage
from backend.search import legs
from backend.search.snapshot import Snapshot
from backend.search.types import FUSED, Entry, Failure, IndexRef, Ranked, SearchScope, StageRank, above

Vectors = Mapping[UUID, Sequence[float] | Failure]

# With fewer documents than asked for, all legs are read again this many times as deep.
_DEEPEN = 4

logger = logging.getLogger("touchstone.search")


def search_question(
    question: str,
    *,
    vectors: Vectors,
    configs: Sequence[RetrievalConfig],
    scope: SearchScope,
    snapshot: Snapshot,
    top_k: int,
    measure_ann: bool = False,
) -> dict[str, Ranked | Failure]:
    """The ranking of each configuration, by its name; of a `_rerank` configuration that of its first stage.

    Rankings hold all that was read, not `top_k`: fusion and rerankers look further. Each reaches `top_k` + 1 distinct
    documents, or the end. `min_score` has been applied, except where a reranker's score is the one it cuts by.
    `measure_ann`: also how much of exact search the approximate configurations find.
    """
    asked = _Asked(question=question, vectors=vectors, scope=scope, snapshot=snapshot)
    found = {config.name: _ranked(asked, config, top_k=top_k) for config in configs}
    if measure_ann:
        for config in configs:
            ranked = found[config.name]
            if isinstance(ranked, Ranked) and config.needs_vector and not config.exact:
                found[config.name] = replace(ranked, ann_recall=_ann_recall(asked, config, top_k=top_k))
    return found


def search_many(
    questions: Sequence[tuple[int, str]],
    *,
    vectors: Mapping[int, Vectors],
    configs: Sequence[RetrievalConfig],
    scope: SearchScope,
    snapshot: Snapshot,
    top_k: int,
) -> dict[int, dict[str, Ranked | Failure]]:
    """`search_question` for several, by their ordinals: the questions' lexemes are read in one query."""
    if any("keyword" in config.legs for config in configs):
        for language in {index.language for index in scope.all_indexes}:
            snapshot.read_lexemes((text for _, text in questions), language=language)
    return {
        ordinal: search_question(
            text, vectors=vectors.get(ordinal, {}), configs=configs, scope=scope, snapshot=snapshot, top_k=top_k
        )
        for ordinal, text in questions
    }


def no_embedder() -> Failure:
    """What a configuration that needs a vector gets where the Index holds none."""
    return Failure(
        code=ErrorCode.PROVIDER_NOT_CONFIGURED,
        reason="This knowledge base has no embedder, so it can be searched by keyword only.",
        fatal=True,
    )


class _FailedError(Exception):
    """Ends one configuration."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A question while its configurations are answered: every leg that was read, and what went wrong with it."""

    question: str
    vectors: Vectors
    scope: SearchScope
    snapshot: Snapshot
    read: dict[legs.LegKey, legs.Leg | Failure] = field(default_factory=dict)

    def leg(self, key: legs.LegKey, *, index: IndexRef) -> legs.Leg:
        found = self.read.get(key)
        if found is None:
            found = self.read[key] = self._shallower(key) or self._read(key, index=index)
        if isinstance(found, Failure):
            raise _FailedError(found)
        return found

    def _shallower(self, key: legs.LegKey) -> legs.Leg | None:
        """A leg that ended before its depth gives no more at a greater one."""
        for other, found in self.read.items():
            if (
                other.same_but_depth(key)
                and other.depth <= key.depth
                and isinstance(found, legs.Leg)
                and not found.more
            ):
                return found
        return None

    def _read(self, key: legs.LegKey, *, index: IndexRef) -> legs.Leg | Failure:
        vector = None
        if key.kind == legs.SEMANTIC:
            given = self._vector(index)
            if isinstance(given, Failure):
                return given
            vector = given
        try:
            # A savepoint: a leg that PostgreSQL refuses must not take the others' transaction with it. BM25 reads a
            # file, and what it asks PostgreSQL has a savepoint of its own.
            with nullcontext() if key.kind == legs.BM25 else transaction.atomic():
                return legs.read(
                    key, question=self.question, vector=vector, index=index, scope=self.scope, snapshot=self.snapshot
                )
        except TouchstoneError as error:
            return Failure(code=error.code, reason=error.message)
        except (DatabaseError, OSError) as error:
            if connection.connection is None or connection.connection.closed:
                raise
            logger.exception("leg_failed", extra={"leg": key.kind, "index": str(index.id)})
            return Failure(
                code=ErrorCode.INTERNAL, reason=f"The {key.stage} leg could not be read: {type(error).__name__}."
            )

    def _vector(self, index: IndexRef) -> Sequence[float] | Failure:
        if not index.embedder:
            return no_embedder()
        given = self.vectors.get(index.id)
        if given is None:
            return Failure(code=ErrorCode.INTERNAL, reason="The question has no vector for this Index.")
        if not isinstance(given, Failure) and index.dimensions is not None and len(given) != index.dimensions:
            return Failure(
                code=ErrorCode.PROVIDER_BAD_ANSWER,
                reason=f"The question's vector has {len(given)} dimensions, the Index has {index.dimensions}.",
                fatal=True,
            )
        return given


def _ann_recall(asked: _Asked, config: RetrievalConfig, *, top_k: int) -> float | None:
    """Reads the exact leg beside the approximate one, in no configuration's time. None where there is nothing to find,
    or the exact leg fails: a measurement costs no result."""
    n = n_found = 0
    for index in asked.scope.indexes_for(config.index):
        key = next(one for one in legs.keys_of(config, index=index, depth=config.depth) if one.kind == legs.SEMANTIC)
        try:
            exact = asked.leg(replace(key, ef_search=None), index=index)
            near = asked.leg(key, index=index)
        except _FailedError:
            return None
        wanted = {hit.id for hit in exact.hits[:top_k]}
        n += len(wanted)
        n_found += len(wanted.intersection(hit.id for hit in near.hits[:top_k]))
    return n_found / n if n else None


def _ranked(asked: _Asked, config: RetrievalConfig, *, top_k: int) -> Ranked | Failure:
    try:
        indexes = asked.scope.indexes_for(config.index)
    except LookupError:
        return Failure(
            code=ErrorCode.NOT_FOUND,
            reason=f"There is no Index {config.index} in the scope of this search.",
            fatal=True,
        )
    timings: dict[str, float] = {}
    counted: list[legs.Leg] = []
    depth = config.depth
    try:
        while True:
            found = _first_stage(asked, config, indexes=indexes, depth=depth, timings=timings, counted=counted)
            documents = {entry.passage.document_id for entry in found.entries}
            if len(documents) > top_k or not found.more:
                break
            depth *= _DEEPEN
    except _FailedError as failed:
        return failed.failure
    entries = found.entries
    cut: tuple[Entry, ...] = ()
    if config.min_score is not None and not config.reranker:
        entries, cut = above(entries, config.min_score)
    return Ranked(entries=entries, depth=depth, timings_ms=timings, leg_sizes=found.sizes, cut=cut)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    entries: tuple[Entry, ...]
    sizes: Mapping[str, int]
    more: bool


def _first_stage(
    asked: _Asked,
    config: RetrievalConfig,
    *,
    indexes: Iterable[IndexRef],
    depth: int,
    timings: dict[str, float],
    counted: list[legs.Leg],
) -> _Found:
    """All legs at one depth, fused: per Index by the configuration's formula, over several Indexes by RRF.

    Adds to `timings`; `counted` are the readings whose time is in them already.
    """
    stages: dict[str, dict[str, StageRank]] = {}
    sizes: dict[str, int] = {}
    read: list[list[legs.Leg]] = []
    for index in indexes:
        of_index = [asked.leg(key, index=index) for key in legs.keys_of(config, index=index, depth=depth)]
        for leg in of_index:
            if not any(leg is other for other in counted):
                counted.append(leg)
                timings[leg.stage] = timings.get(leg.stage, 0.0) + leg.ms
            sizes[leg.stage] = sizes.get(leg.stage, 0) + len(leg.hits)
            for rank, hit in enumerate(leg.hits, start=1):
                stages.setdefault(hit.id, {})[leg.stage] = StageRank(rank=rank, score=hit.score)
        read.append(of_index)
    started = perf_counter()
    passages = asked.snapshot.passages(list(stages))
    timings["passages"] = timings.get("passages", 0.0) + _ms_since(started)
    started = perf_counter()
    order, fused = _fused(config, read, passages=passages)
    timings["fusion"] = timings.get("fusion", 0.0) + _ms_since(started)
    entries = []
    for rank, (key, score) in enumerate(order, start=1):
        of_entry = stages[key]
        if fused:
            of_entry[FUSED] = StageRank(rank=rank, score=score)
        entries.append(Entry(passage=passages[key], stages=of_entry))
    return _Found(entries=tuple(entries), sizes=sizes, more=any(leg.more for of_index in read for leg in of_index))


def _fused(
    config: RetrievalConfig, read: Sequence[Sequence[legs.Leg]], *, passages: Mapping[str, Passage]
) -> tuple[list[tuple[str, float]], bool]:
    """The final order with its scores, and whether anything was fused: one leg of one Index stands as it is."""
    if len(read) == 1 and len(read[0]) == 1:
        return [(hit.id, hit.score) for hit in read[0][0].hits if hit.id in passages], False
    lists = []
    for of_index in read:
        candidates = [[_candidate(hit, passages[hit.id]) for hit in leg.hits if hit.id in passages] for leg in of_index]
        lists.append(candidates[0] if len(candidates) == 1 else fuse(candidates, fusion=config.fusion))
    order = lists[0] if len(lists) == 1 else rrf(lists)
    return [(candidate.id, candidate.score) for candidate in order], True


def _candidate(hit: legs.Hit, passage: Passage) -> Candidate:
    return Candidate(id=hit.id, score=hit.score, path=passage.path, source=passage.source, ordinal=passage.ordinal)


def _ms_since(started: float) -> float:
    return (perf_counter() - started) * 1000
