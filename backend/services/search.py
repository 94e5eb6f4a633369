"""`POST search`: one question, one or several modes, with the reasons. The legs are those of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.conf import settings

from backend.core import configs as retrievals
from backend.core.configs import RetrievalConfig
from backend.core.errors import ValidationError
from backend.core.types import Level, Passage
from backend.models import Workspace
from backend.providers.base import ProviderError
from backend.search import ann, embedding, explain, pipeline, rerank
from backend.search.explain import Snippet
from backend.search.snapshot import open_snapshot
from backend.search.types import Entry, Failure, Ranked, SearchScope, StageRank
from backend.services import scopes

MAX_QUERY = 10_000
MAX_TOP_K = 100
DEFAULT_MODES = ("hybrid",)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One result. `rank` counts documents at document level, passages else."""

    rank: int
    score: float
    passage: Passage
    snippet: Snippet
    stages: Mapping[str, StageRank]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeAnswer:
    """What one mode found. `n_results` is the length of its whole ranking, `leg_sizes` what each leg gave.

    `degraded`: answered by keywords, or without the reranker, as a warning says. With a `failure` there are no
    results.
    """

    name: str
    mode: str
    results: tuple[SearchResult, ...] = ()
    n_results: int = 0
    depth: int = 0
    leg_sizes: Mapping[str, int] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    degraded: bool = False
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    query: str
    scope: Mapping[str, Any]
    level: Level
    modes: tuple[ModeAnswer, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """One mode on its way to an answer. `mode` is what was asked for, `config` what answers."""

    mode: str
    config: RetrievalConfig
    ranked: Ranked | Failure
    timings: dict[str, float]
    degraded: bool = False


def search(
    *,
    workspace: Workspace,
    scope_request: Mapping[str, Any],
    query: str,
    modes: Sequence[Any] | None = None,
    configurations: Sequence[Any] | None = None,
    top_k: int = 10,
    level: Level | None = None,
    reranker: str = "",
) -> SearchAnswer:
    """Answers at once. Without `modes` and `configurations`: hybrid.

    Where a run would fail, this goes on: without the embedder it answers by keywords, without the reranker in the
    order before it, each with a warning. Raises TouchstoneError for a request that cannot be answered at all.
    """
    if not query.strip() or len(query) > MAX_QUERY:
        raise ValidationError(f"query is a text of 1 to {MAX_QUERY:,} characters.", field="query")
    if isinstance(top_k, bool) or not 1 <= top_k <= MAX_TOP_K:
        raise ValidationError(f"top_k is a whole number from 1 to {MAX_TOP_K}.", field="top_k")
    overrides = [str(item["index"]) for item in configurations or () if isinstance(item, Mapping) and item.get("index")]
    scoped = scopes.resolve(workspace, scope_request, index_overrides=overrides)
    base_settings = scoped.knowledge_base.settings if scoped.knowledge_base is not None else {}
    indexes = scoped.scope.all_indexes
    configs = retrievals.parse_all(
        modes=modes,
        configurations=configurations,
        reranker=reranker or str(base_settings.get("reranker") or "") or settings.RERANKER,
        base_fusion=base_settings.get("fusion"),
        default_modes=DEFAULT_MODES,
        # Nobody waits here for a graph to be built: evaluations build it.
        exact=not (ann.pays(indexes) and all(ann.is_ready(index.id) for index in indexes)),
    )
    warnings: list[str] = []
    vectors, embed_ms = _vectors(workspace.id, query, configs=configs, scope=scoped.scope)
    found = _first_stages(query, configs=configs, scope=scoped.scope, vectors=vectors, top_k=top_k, warnings=warnings)
    for one in found:
        if one.config.needs_vector and embed_ms is not None:
            one.timings["embed"] = embed_ms
    found = [_reranked(workspace.id, query, one, warnings=warnings) for one in found]
    answers = _answers(query, found, scope=scoped.scope, top_k=top_k, level=level or Level.PASSAGE)
    return SearchAnswer(
        query=query,
        scope=scoped.canonical,
        level=level or Level.PASSAGE,
        modes=answers,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _vectors(
    workspace_id: UUID, query: str, *, configs: Sequence[RetrievalConfig], scope: SearchScope
) -> tuple[dict[UUID, Sequence[float] | Failure], float | None]:
    """The question's vector for every Index that some configuration searches by meaning, once per model."""
    wanted = {
        index.id: index
        for config in configs
        if config.needs_vector
        for index in scope.indexes_for(config.index)
        if index.embedder
    }
    by_model: dict[tuple[str, str | None], Sequence[float] | Failure] = {}
    total: float | None = None
    for index in wanted.values():
        model = (index.embedder, index.query_prefix)
        if model in by_model:
            continue
        try:
            embedded = embedding.embed_queries(workspace_id, index.embedder, [query], query_prefix=index.query_prefix)
        except ProviderError as error:
            by_model[model] = Failure.of(error)
        else:
            by_model[model] = embedded.vectors[0]
            total = (total or 0.0) + embedded.ms
    return {key: by_model[index.embedder, index.query_prefix] for key, index in wanted.items()}, total


def _first_stages(
    query: str,
    *,
    configs: Sequence[RetrievalConfig],
    scope: SearchScope,
    vectors: pipeline.Vectors,
    top_k: int,
    warnings: list[str],
) -> list[_Found]:
    """The rankings before any reranker; a mode that has no vector is answered by its keyword leg."""
    asked = []
    for config in configs:
        failure = _without_vector(config, scope=scope, vectors=vectors)
        if failure is None:
            asked.append((config, config))
        else:
            # A cut by a score that is not there any more would cut at random.
            min_score = config.min_score if config.reranker else None
            asked.append((config, replace(config, base="keyword", min_score=min_score)))
            warnings.append(
                f"{config.name} was answered by keywords alone: {failure.reason} ({failure.code}) "
                "An evaluation would report it as failed."
            )
    with open_snapshot(scope, older_words=True) as snapshot:
        ranked = pipeline.search_question(
            query, vectors=vectors, configs=[run for _, run in asked], scope=scope, snapshot=snapshot, top_k=top_k
        )
    return [
        _Found(
            mode=config.mode,
            config=run,
            ranked=(answer := ranked[config.name]),
            timings=dict(answer.timings_ms) if isinstance(answer, Ranked) else {},
            degraded=run != config,
        )
        for config, run in asked
    ]


def _without_vector(config: RetrievalConfig, *, scope: SearchScope, vectors: pipeline.Vectors) -> Failure | None:
    if not config.needs_vector:
        return None
    for index in scope.indexes_for(config.index):
        given = vectors.get(index.id)
        if isinstance(given, Failure):
            return given
        if given is None:
            return pipeline.no_embedder()
    return None


def _reranked(workspace_id: UUID, query: str, found: _Found, *, warnings: list[str]) -> _Found:
    config, ranked = found.config, found.ranked
    if not config.reranker or isinstance(ranked, Failure) or not ranked.entries:
        return found
    try:
        scored = rerank.score_pool(workspace_id, config.reranker, query, ranked.entries[: config.rerank_depth])
    except ProviderError as error:
        warnings.append(
            f"{config.name} stands in the order before its reranker: {error.message} ({error.code}) "
            "An evaluation would report it as failed."
        )
        return replace(found, degraded=True)
    entries = rerank.apply(ranked.entries, scored.scores, depth=config.rerank_depth, min_score=config.min_score)
    return replace(found, ranked=replace(ranked, entries=entries), timings={**found.timings, "rerank": scored.ms})


def _answers(
    query: str, found: Sequence[_Found], *, scope: SearchScope, top_k: int, level: Level
) -> tuple[ModeAnswer, ...]:
    shown = {
        one.config.name: _shown(one.ranked.entries, top_k=top_k, level=level)
        for one in found
        if isinstance(one.ranked, Ranked)
    }
    passages = {entry.passage.id: entry.passage for entries in shown.values() for entry in entries}
    languages = {index.language for index in scope.all_indexes}
    cut = explain.snippets(list(passages.values()), query, languages=sorted(languages))
    snippets = dict(zip(passages, cut, strict=True))
    answers = []
    for one in found:
        if isinstance(one.ranked, Failure):
            answers.append(ModeAnswer(name=one.config.name, mode=one.mode, failure=one.ranked))
            continue
        results = tuple(
            SearchResult(
                rank=rank,
                score=entry.score,
                passage=entry.passage,
                snippet=snippets[entry.passage.id],
                stages=entry.stages,
                reason=explain.reason(entry, legs=one.config.legs),
            )
            for rank, entry in enumerate(shown[one.config.name], start=1)
        )
        answers.append(
            ModeAnswer(
                name=one.config.name,
                mode=one.mode,
                results=results,
                n_results=len(one.ranked.entries),
                depth=one.ranked.depth,
                leg_sizes=one.ranked.leg_sizes,
                timings_ms=one.timings,
                degraded=one.degraded,
            )
        )
    return tuple(answers)


def _shown(entries: Sequence[Entry], *, top_k: int, level: Level) -> list[Entry]:
    if level is Level.PASSAGE:
        return list(entries[:top_k])
    first: dict[str, Entry] = {}
    for entry in entries:
        first.setdefault(entry.passage.document_id, entry)
    return list(first.values())[:top_k]
