"""What an evaluation would take, before it is started: searches, calls, what is cached, minutes, money."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from backend.core import prices
from backend.core.configs import RetrievalConfig, fingerprint
from backend.core.states import RunState
from backend.models import Question, Run, Workspace
from backend.providers import rates
from backend.providers.rates import Rate
from backend.queries import corpora
from backend.search import embedding, ledger, providers
from backend.search.types import IndexRef
from backend.services import evaluation_requests, plans
from backend.services.evaluation_requests import Request, Resolved

# A passage of the usual size, and the words around the passages.
_PASSAGE_TOKENS = 300
_PROMPT_TOKENS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One embedder, reranker or chat model. `n_items` are texts, pools or answers, `n_cached` of them known already
    (None: only the run can tell), `n_calls` at most. `minutes` at `limit_per_minute`; None where no limit is known.
    `cost` None: no price is known."""

    provider: str
    n_items: int
    n_cached: int | None
    n_calls: int
    units: Mapping[str, float]
    limit_per_minute: int | None
    minutes: float | None
    cost: float | None
    is_local: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """`n_searches` counts legs: those that configurations share once. `cost` is the sum of what has a price; `notes`
    say what is missing from it."""

    n_questions: int
    n_runs: int
    n_searches: int
    embedders: tuple[Part, ...]
    rerankers: tuple[Part, ...]
    answers: tuple[Part, ...]
    minutes: float | None
    cost: float | None
    currency: str
    notes: tuple[str, ...]


def of(workspace: Workspace, request: Request) -> Estimate:
    """Raises TouchstoneError for what could not be run either. Calls no provider. The counts are upper bounds."""
    return of_resolved(workspace, request, evaluation_requests.resolve(workspace, request))


def of_resolved(workspace: Workspace, request: Request, resolved: Resolved) -> Estimate:
    """The same for a request whose names were looked up already."""
    table = prices.parse(settings.PRICES)
    embedders = tuple(_embedders(workspace, request, resolved, table=table))
    rerankers = tuple(_rerankers(workspace, request, resolved, table=table))
    answers = tuple(_answers(workspace, resolved, table=table))
    parts = (*embedders, *rerankers, *answers)
    paced = [part.minutes for part in parts if part.minutes is not None]
    priced = [part.cost for part in parts if part.cost is not None]
    return Estimate(
        n_questions=resolved.version.n_questions,
        n_runs=len(resolved.configs),
        n_searches=len(_legs(resolved)) * resolved.version.n_questions,
        embedders=embedders,
        rerankers=rerankers,
        answers=answers,
        # Each waits for its own limit, while the others go on; the longest is what is waited for.
        minutes=max(paced) if paced else None,
        cost=round(sum(priced), 6) if priced else None,
        currency=table.currency,
        notes=tuple(_notes(parts)),
    )


def _legs(resolved: Resolved) -> set[str]:
    """The distinct (leg, Index, depth) that the configurations read."""
    found = set()
    for config in resolved.configs:
        for index in resolved.scoped.scope.indexes_for(config.index):
            for leg in config.legs:
                how: list[Any] = [config.keyword_leg] if leg == "keyword" else [config.exact, config.ef_search]
                found.add(fingerprint([leg, str(index.id), config.depth, how]))
    return found


def _embedders(workspace: Workspace, request: Request, resolved: Resolved, *, table: prices.Prices) -> list[Part]:
    wanted: dict[str, IndexRef] = {
        plans.embedder_of(index).key: index
        for config in resolved.configs
        if config.needs_vector
        for index in resolved.scoped.scope.indexes_for(config.index)
        if index.embedder
    }
    if not wanted:
        return []
    texts = list(Question.objects.filter(version=resolved.version).order_by("ordinal").values_list("text", flat=True))
    found = []
    for index in wanted.values():
        info = providers.describe_embedder(index.embedder, workspace_id=workspace.id, query_prefix=index.query_prefix)
        missing = embedding.missing_queries(
            workspace.id, index.embedder, texts, use_cache=request.cache, query_prefix=index.query_prefix
        )
        rate = rates.of_embedder(info, providers.settings(workspace.id))
        most = info.batch_size if rate is None else min(info.batch_size, rate.most_inputs)
        # Batches are those of slices, too: a few questions each.
        n_calls = math.ceil(len(missing) / most)
        asked = set(missing)
        found.append(
            _part(
                index.embedder,
                n_items=len(texts),
                n_cached=sum(text not in asked for text in texts),
                n_calls=n_calls,
                units={
                    "embed_calls": float(n_calls),
                    "input_tokens": float(ledger.tokens_of(missing)),
                },
                rate=rate,
                n_paced=len(missing),
                is_local=info.local,
                table=table,
            )
        )
    return found


def _rerankers(workspace: Workspace, request: Request, resolved: Resolved, *, table: prices.Prices) -> list[Part]:
    pools: dict[str, dict[str, RetrievalConfig]] = {}
    for config in resolved.configs:
        if config.reranker:
            canonical = {
                name: value for name, value in config.canonical().items() if name not in {"reranker", "min_score"}
            }
            pools.setdefault(config.reranker, {})[fingerprint(canonical)] = config
    found = []
    n_questions = resolved.version.n_questions
    for spec, distinct in pools.items():
        info = providers.describe_reranker(spec, workspace_id=workspace.id)
        rate = rates.of_reranker(info, providers.settings(workspace.id))
        n_cached = 0
        n_calls, units = 0, 0
        for config in distinct.values():
            known = _asked_before(workspace, config, resolved) if request.cache else 0
            n_cached += known
            calls = math.ceil(config.rerank_depth / info.max_documents)
            n_calls += (n_questions - known) * calls
            units += (n_questions - known) * ledger.search_units_of(config.rerank_depth)
        found.append(
            _part(
                spec,
                n_items=len(distinct) * n_questions,
                # Nought on record is no nought: other runs may have scored some of the pairs.
                n_cached=n_cached or (None if request.cache else 0),
                n_calls=n_calls,
                units={
                    "rerank_calls": float(n_calls),
                    "search_units": float(units),
                    **_chat_units(spec, n_calls=n_calls, n_passages=min(info.max_documents, config.rerank_depth)),
                },
                rate=rate,
                n_paced=n_calls,
                is_local=info.local,
                table=table,
            )
        )
    return found


def _chat_units(spec: str, *, n_calls: int, n_passages: int) -> dict[str, float]:
    """What a chat model that reranks would be billed; nothing for other rerankers."""
    if prices.priced_as(spec) == spec:
        return {}
    return {
        "chat_calls": float(n_calls),
        "input_tokens": float(n_calls * (_PROMPT_TOKENS + n_passages * _PASSAGE_TOKENS)),
        "output_tokens": float(n_calls * 6 * n_passages),
    }


def _answers(workspace: Workspace, resolved: Resolved, *, table: prices.Prices) -> list[Part]:
    """The answering model and the judge, where answers are asked for: a call a question and run, at most."""
    wanted = resolved.answers
    if wanted is None:
        return []
    n_items = resolved.version.n_questions * len(resolved.configs)
    found = []
    for spec, n_calls, reply in ((wanted.llm, n_items, 150), (wanted.judge, n_items * wanted.repeats, 600)):
        info = providers.describe_chat(spec, workspace_id=workspace.id)
        rate = rates.of_chat(spec, base_url=info.base_url, settings=providers.settings(workspace.id))
        units = {
            "chat_calls": float(n_calls),
            "input_tokens": float(n_calls * (_PROMPT_TOKENS + wanted.passages * _PASSAGE_TOKENS)),
            "output_tokens": float(n_calls * reply),
        }
        found.append(
            _part(
                spec,
                n_items=n_items,
                # What was answered from the same passages before is found again; which, shows when it runs.
                n_cached=None,
                n_calls=n_calls,
                units=units,
                rate=rate,
                n_paced=n_calls,
                is_local=False,
                table=table,
            )
        )
    return found


def _asked_before(workspace: Workspace, config: RetrievalConfig, resolved: Resolved) -> int:
    """How many pools of this configuration a finished run has had scored: the same questions over the same documents
    under the same settings give the same pools."""
    indexes = resolved.scoped.scope.indexes_for(config.index)
    _, corpus = corpora.describe([index.id for index in indexes])
    run = (
        Run.objects.filter(
            workspace=workspace,
            config_fingerprint=resolved.config_fingerprint(config),
            set_hash=resolved.version.content_hash,
            corpus_fingerprint=corpus,
            corpus_changed=False,
            evaluation__use_cache=True,
            evaluation__scope=resolved.scoped.canonical,
            state=RunState.SCORED,
        )
        .order_by("-created_at")
        .values_list("counts", "generations")
        .first()
    )
    if run is None or not all(str(index.id) in run[1] for index in indexes):
        return 0
    counts = run[0]
    return int(counts["n_total"] - counts["n_error"] - counts["n_cancelled"] - counts["n_not_run"])


def _part(
    spec: str,
    *,
    n_items: int,
    n_cached: int | None,
    n_calls: int,
    units: Mapping[str, float],
    rate: Rate | None,
    n_paced: int,
    is_local: bool,
    table: prices.Prices,
) -> Part:
    cost = 0.0 if is_local else table.of(spec, units)
    return Part(
        provider=spec,
        n_items=n_items,
        n_cached=n_cached,
        n_calls=n_calls,
        units=units,
        limit_per_minute=None if rate is None else rate.limit,
        minutes=None if rate is None else round(n_paced / rate.limit, 2),
        cost=cost,
        is_local=is_local,
    )


def _notes(parts: tuple[Part, ...]) -> list[str]:
    notes = []
    unpriced = sorted({part.provider for part in parts if part.cost is None})
    if unpriced:
        notes.append(f"No price is known for {', '.join(unpriced)}: set TOUCHSTONE_PRICES.")
    unpaced = sorted({part.provider for part in parts if not part.is_local and part.limit_per_minute is None})
    if unpaced:
        notes.append(f"No limit is known for {', '.join(unpaced)}: it is asked as fast as it answers.")
    if any(part.n_cached is None for part in parts):
        notes.append(
            "Which rerank scores and answers are cached shows only when it runs: their calls are at most these."
        )
    if any("input_tokens" in part.units and not part.is_local for part in parts):
        notes.append(
            f"Tokens are estimated at {ledger.CHARACTERS_A_TOKEN} characters each; the run tells what was billed."
        )
    return notes
