"""Vectors of questions and passages: from the cache by content, else from the embedder in batches of its size."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from uuid import UUID

import numpy as np
from django.conf import settings

from backend.providers import rates
from backend.providers.base import Embedded, Embedder, EmbedderInfo, ProviderError, ProviderFault
from backend.search import cache, ledger, pacing, providers
from backend.search.ledger import PaidFor

Vector = tuple[float, ...]

_QUERY, _DOCUMENT = "query", "document"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTexts:
    """Vectors in the order of the texts. `n_cached` counts texts; equal ones are embedded once. `tokens` as billed,
    None where the provider told none. `ms` is the time of the calls alone."""

    vectors: tuple[Vector, ...]
    n_cached: int = 0
    n_calls: int = 0
    tokens: int | None = None
    ms: float = 0.0


def embed_queries(
    workspace_id: UUID,
    spec: str,
    texts: Sequence[str],
    *,
    use_cache: bool = True,
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    timeout: float | None = None,
    before_call: Callable[[], None] | None = None,
    paid_for: PaidFor = ledger.SEARCH,
) -> EmbeddedTexts:
    """The questions' vectors. Raises ProviderError.

    Each batch is cached as it comes, so that trying again asks only for what is missing. Calls are paced (PacedError);
    `before_call` runs between leave and call; `paid_for` says what for. Prefixes are those of the Index; None leaves
    them to the model's table.
    """
    chosen = providers.embedder(
        spec, workspace_id=workspace_id, query_prefix=query_prefix, document_prefix=document_prefix
    )
    return _embed(
        workspace_id,
        spec,
        chosen,
        texts,
        kind=_QUERY,
        use_cache=use_cache,
        timeout=timeout,
        before_call=before_call,
        paid_for=paid_for,
    )


def missing_queries(
    workspace_id: UUID, spec: str, texts: Sequence[str], *, use_cache: bool = True, query_prefix: str | None = None
) -> list[str]:
    """The distinct questions that would be sent to the embedder. Loads no model and calls nobody."""
    info = providers.describe_embedder(spec, workspace_id=workspace_id, query_prefix=query_prefix)
    keys = {text: _key(info, kind=_QUERY, text=text) for text in dict.fromkeys(texts)}
    stored = cache.vectors(workspace_id, keys.values()) if use_cache else {}
    return [text for text, key in keys.items() if key not in stored]


def embed_passages(
    workspace_id: UUID,
    spec: str,
    texts: Sequence[str],
    *,
    use_cache: bool = True,
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    timeout: float | None = None,
    before_call: Callable[[], None] | None = None,
    paid_for: PaidFor = ledger.SEARCH,
) -> EmbeddedTexts:
    """The passages' vectors, likewise."""
    chosen = providers.embedder(
        spec, workspace_id=workspace_id, query_prefix=query_prefix, document_prefix=document_prefix
    )
    return _embed(
        workspace_id,
        spec,
        chosen,
        texts,
        kind=_DOCUMENT,
        use_cache=use_cache,
        timeout=timeout,
        before_call=before_call,
        paid_for=paid_for,
    )


def pack(vector: Sequence[float]) -> str:
    """A vector for a JSON payload: its 32-bit floats in base64, a quarter of the size of their digits."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def unpack(packed: str) -> Vector:
    return _vector(base64.b64decode(packed))


def _embed(
    workspace_id: UUID,
    spec: str,
    embedder: Embedder,
    texts: Sequence[str],
    *,
    kind: str,
    use_cache: bool,
    timeout: float | None,
    before_call: Callable[[], None] | None,
    paid_for: PaidFor,
) -> EmbeddedTexts:
    info = embedder.info
    call = embedder.embed_queries if kind == _QUERY else embedder.embed_documents
    keys = {text: _key(info, kind=kind, text=text) for text in dict.fromkeys(texts)}
    stored = cache.vectors(workspace_id, keys.values()) if use_cache else {}
    vectors = {text: _vector(stored[key]) for text, key in keys.items() if key in stored}
    missing = [text for text in keys if text not in vectors]
    n_cached = sum(1 for text in texts if text in vectors)
    rate = rates.of_embedder(info, providers.settings(workspace_id))
    most = info.batch_size if rate is None else min(info.batch_size, rate.most_inputs)
    done = EmbeddedTexts(vectors=())
    for start in range(0, len(missing), most):
        batch = missing[start : start + most]
        pacing.take(workspace_id, rate, n=len(batch))
        if before_call is not None:
            before_call()
        if not info.local:
            ledger.check(workspace_id, spec)
        started = perf_counter()
        embedded = call(batch, timeout=timeout or settings.PROVIDER_TIMEOUT_SECONDS)
        ms = (perf_counter() - started) * 1000
        if not info.local:
            _pay(workspace_id, spec, embedded, texts=batch, paid_for=paid_for)
        fresh = _checked(embedded, n_texts=len(batch), info=info)
        if use_cache:
            cache.keep_vectors(workspace_id, {keys[text]: fresh[i] for i, text in enumerate(batch)})
        vectors |= {text: _vector(fresh[i]) for i, text in enumerate(batch)}
        done = replace(done, n_calls=done.n_calls + 1, ms=done.ms + ms, tokens=_sum(done.tokens, embedded.tokens))
    if len({len(vector) for vector in vectors.values()}) > 1:
        raise ProviderError(ProviderFault.SHAPE, f"{info.model} gave vectors of different sizes.")
    return replace(done, vectors=tuple(vectors[text] for text in texts), n_cached=n_cached)


def _pay(workspace_id: UUID, spec: str, embedded: Embedded, *, texts: Sequence[str], paid_for: PaidFor) -> None:
    """Before the answer is looked at: what cannot be used was paid for as well."""
    told = {} if embedded.tokens is None else {"input_tokens": float(embedded.tokens)}
    ledger.record(
        workspace_id,
        spec,
        units={"embed_calls": 1.0, **told},
        estimates={"input_tokens": float(ledger.tokens_of(texts))},
        paid_for=paid_for,
    )


def _checked(embedded: Embedded, *, n_texts: int, info: EmbedderInfo) -> list[bytes]:
    """The vectors as the bytes that are cached. What is rounded to 32 bits here is so from the cache as well."""
    if len(embedded.vectors) != n_texts:
        raise ProviderError(
            ProviderFault.SHAPE,
            f"{info.model} gave {len(embedded.vectors)} vectors for {n_texts} texts.",
            retryable=True,
        )
    if len({len(vector) for vector in embedded.vectors}) != 1 or not embedded.vectors[0]:
        raise ProviderError(ProviderFault.SHAPE, f"{info.model} gave vectors of different sizes.", retryable=True)
    with np.errstate(over="ignore"):
        matrix = np.asarray(embedded.vectors, dtype="<f4")
    if not np.isfinite(matrix).all():
        raise ProviderError(
            ProviderFault.SHAPE, f"{info.model} gave a vector with a value that is not a finite number.", retryable=True
        )
    if not matrix.any(axis=1).all():
        raise ProviderError(
            ProviderFault.SHAPE, f"{info.model} gave a vector of zeros, which has no direction to compare."
        )
    return [row.tobytes() for row in matrix]


def _key(info: EmbedderInfo, *, kind: str, text: str) -> bytes:
    prefix = info.query_prefix if kind == _QUERY else info.document_prefix
    return cache.key("embedding", info.provider, info.base_url, info.model, kind, prefix, text)


def _vector(stored: bytes) -> Vector:
    return tuple(np.frombuffer(stored, dtype="<f4").tolist())


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other
