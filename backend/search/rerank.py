"""The reranker's step: scores of a pool, from the cache by content or from the reranker, and the order they make."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from time import perf_counter
from uuid import UUID

from django.conf import settings

from backend.providers import rates
from backend.providers.base import Candidate, ProviderError, ProviderFault, Reranked, Reranker, RerankerInfo
from backend.search import cache, ledger, pacing, providers
from backend.search.ledger import PaidFor
from backend.search.types import RERANKER, Entry, StageRank, above


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankScores:
    """One score per passage of the pool, in its order; None where the reranker gave none. `units` as billed; `ms` is
    the time of the calls alone."""

    scores: tuple[float | None, ...]
    n_cached: int = 0
    n_calls: int = 0
    units: dict[str, float] = field(default_factory=dict)
    ms: float = 0.0


def score_pool(
    workspace_id: UUID,
    spec: str,
    query: str,
    entries: Sequence[Entry],
    *,
    use_cache: bool = True,
    timeout: float | None = None,
    before_call: Callable[[], None] | None = None,
    paid_for: PaidFor = ledger.SEARCH,
) -> RerankScores:
    """The scores of these entries (the first `rerank_depth` of a ranking). Raises ProviderError."""
    pool = [Candidate(text=entry.passage.text, score=entry.score) for entry in entries]
    return score_candidates(
        workspace_id,
        spec,
        query,
        pool,
        use_cache=use_cache,
        timeout=timeout,
        before_call=before_call,
        paid_for=paid_for,
    )


def score_candidates(
    workspace_id: UUID,
    spec: str,
    query: str,
    pool: Sequence[Candidate],
    *,
    use_cache: bool = True,
    timeout: float | None = None,
    before_call: Callable[[], None] | None = None,
    paid_for: PaidFor = ledger.SEARCH,
) -> RerankScores:
    """The same for plain rows. Equal texts are scored once, unless the scores depend on the whole pool.

    Calls are paced, a pool's together (PacedError); `before_call` runs between leave and each call; `paid_for` says
    what for. A pool that is all cached costs none.
    """
    reranker = providers.reranker(spec, workspace_id=workspace_id)
    if not pool:
        return RerankScores(scores=())
    if timeout is None:
        timeout = settings.PROVIDER_TIMEOUT_SECONDS
    keys = _keys(reranker.info, query, pool)
    stored = cache.scores(workspace_id, keys) if use_cache else {}
    missing = [place for place, each in enumerate(keys) if each not in stored]
    if reranker.info.pool_dependent and missing:
        # The scores of a pool stand or fall together.
        stored, missing = {}, list(range(len(pool)))
    n_cached = len(pool) - len(missing)
    known: dict[bytes, float | None] = dict(stored)
    done = RerankScores(scores=())
    batches = _batches(reranker.info, keys, missing)
    if batches:
        pacing.take(workspace_id, rates.of_reranker(reranker.info, providers.settings(workspace_id)), n=len(batches))
    for batch in batches:
        if before_call is not None:
            before_call()
        if not reranker.info.local:
            ledger.check(workspace_id, spec)
        started = perf_counter()
        reranked = reranker.rerank(query, [pool[place] for place in batch], timeout=timeout)
        ms = (perf_counter() - started) * 1000
        if not reranker.info.local:
            # Before the answer is looked at: what cannot be used was paid for as well.
            ledger.record(
                workspace_id,
                spec,
                units={"rerank_calls": 1.0, **reranked.units},
                estimates={"search_units": float(ledger.search_units_of(len(batch)))},
                paid_for=paid_for,
            )
        _check(reranked, n_candidates=len(batch), reranker=reranker)
        fresh = {keys[place]: score for place, score in zip(batch, reranked.scores, strict=True)}
        complete = {each: score for each, score in fresh.items() if score is not None}
        if use_cache and (len(complete) == len(fresh) or not reranker.info.pool_dependent):
            cache.keep_scores(workspace_id, complete)
        known |= fresh
        units = {name: done.units.get(name, 0.0) + amount for name, amount in reranked.units.items()}
        done = replace(done, n_calls=done.n_calls + 1, ms=done.ms + ms, units=done.units | units)
    return replace(done, scores=tuple(known.get(each) for each in keys), n_cached=n_cached)


def order(scores: Sequence[float | None]) -> list[int]:
    """The places (from 0) in their new order: by score, equal ones as before, those without a score last, as before."""
    scored = [place for place, score in enumerate(scores) if score is not None]
    rest = [place for place, score in enumerate(scores) if score is None]
    return [*sorted(scored, key=lambda place: -_number(scores[place])), *rest]


def apply(
    entries: Sequence[Entry], scores: Sequence[float | None], *, depth: int, min_score: float | None = None
) -> tuple[Entry, ...]:
    """The first `depth` reordered by their scores, the rest following in their order.

    `min_score` keeps what the reranker gave at least that: what it gave no score goes, and so does the rest.
    """
    return apply_and_cut(entries, scores, depth=depth, min_score=min_score)[0]


def apply_and_cut(
    entries: Sequence[Entry], scores: Sequence[float | None], *, depth: int, min_score: float | None = None
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """`apply`, and what it cut, in the order it would have had."""
    pool = list(entries[:depth])
    if len(scores) != len(pool):
        raise ValueError(f"a pool of {len(pool)} needs as many scores, not {len(scores)}")
    reordered = []
    for rank, place in enumerate(order(scores), start=1):
        score = scores[place]
        entry = pool[place]
        if score is not None:
            entry = replace(entry, stages={**entry.stages, RERANKER: StageRank(rank=rank, score=score)})
        reordered.append(entry)
    whole = (*reordered, *entries[depth:])
    return (whole, ()) if min_score is None else above(whole, min_score, stage=RERANKER)


def _keys(info: RerankerInfo, query: str, pool: Sequence[Candidate]) -> list[bytes]:
    """One per candidate. Where scores depend on the pool, it is in the key: its texts and scores in order."""
    who = (info.provider, info.base_url, info.model, info.spec if not info.model else "")
    if not info.pool_dependent:
        return [cache.key("score", *who, query, candidate.text) for candidate in pool]
    whole = cache.key("pool", *who, query, *([candidate.text, candidate.score] for candidate in pool)).hex()
    return [cache.key("pool score", whole, place) for place in range(len(pool))]


def _batches(info: RerankerInfo, keys: Sequence[bytes], missing: Sequence[int]) -> list[list[int]]:
    """What to ask for, each text once, at most `max_documents` a call."""
    first: dict[bytes, int] = {}
    for place in missing:
        first.setdefault(keys[place], place)
    places = list(first.values())
    if info.pool_dependent:
        # What does not fit into its one call is left without a score.
        return [places[: info.max_documents]] if places else []
    return [places[start : start + info.max_documents] for start in range(0, len(places), info.max_documents)]


def _check(reranked: Reranked, *, n_candidates: int, reranker: Reranker) -> None:
    if len(reranked.scores) != n_candidates:
        raise ProviderError(
            ProviderFault.SHAPE,
            f"{reranker.info.spec} gave {len(reranked.scores)} scores for {n_candidates} passages.",
            retryable=True,
        )
    if not all(score is None or isfinite(score) for score in reranked.scores):
        raise ProviderError(
            ProviderFault.SHAPE, f"{reranker.info.spec} gave a score that is not a finite number.", retryable=True
        )


def _number(score: float | None) -> float:
    return 0.0 if score is None else score
