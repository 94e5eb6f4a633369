"""Cohere's embeddings and reranking, by its SDK over our own HTTP client (deadline, size limit, no retries).

Texts longer than a model's window are refused (`truncate` NONE), not cut in silence: a recall loss that looks like
the model's fault is what this service exists to show.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from backend.net.addresses import Policy
from backend.providers import prefixes, transport
from backend.providers.base import (
    Candidate,
    Embedded,
    EmbedderInfo,
    ProviderError,
    ProviderFault,
    Reranked,
    RerankerInfo,
)
from backend.providers.faults import from_status
from backend.providers.http_rerank import billed_units, checked_scores
from backend.providers.settings import ProviderSettings, check_url
from backend.providers.vectors import checked_vectors, wrong_shape

MAX_TEXTS = 96
MAX_DOCUMENTS = 1000
# Each workspace may bring a key.
_MOST_CLIENTS = 64

# (dimensions, window in tokens). Models come and go: one that is not here works, its sizes are unknown.
_SIZES = {
    "embed-v4.0": (1536, 128_000),
    "embed-english-v3.0": (1024, 512),
    "embed-multilingual-v3.0": (1024, 512),
    "embed-english-light-v3.0": (384, 512),
    "embed-multilingual-light-v3.0": (384, 512),
}


class CohereEmbedder:
    def __init__(self, model: str, settings: ProviderSettings) -> None:
        self._settings = settings
        self._info = describe_embedder(model, settings)
        _check_key(settings)

    @property
    def info(self) -> EmbedderInfo:
        return self._info

    def embed_documents(self, texts: Sequence[str], *, timeout: float) -> Embedded:
        prefixed = [self._info.document_prefix + text for text in texts]
        return self._embed(prefixed, input_type="search_document", timeout=timeout)

    def embed_queries(self, texts: Sequence[str], *, timeout: float) -> Embedded:
        prefixed = [self._info.query_prefix + text for text in texts]
        return self._embed(prefixed, input_type="search_query", timeout=timeout)

    def token_offsets(self, text: str) -> Sequence[int] | None:  # noqa: ARG002 - the protocol's
        """None: the tokenizer is a download."""
        return None

    def _embed(self, texts: list[str], *, input_type: str, timeout: float) -> Embedded:
        deadline = time.monotonic() + timeout
        who = f"cohere:{self._info.model}"
        vectors: list[tuple[float, ...]] = []
        tokens: int | None = None
        # The SDK's second client does not split: 200 texts would go out as one request and be refused.
        for start in range(0, len(texts), MAX_TEXTS):
            part = texts[start : start + MAX_TEXTS]
            answer = _call(
                partial(self._ask, part=part, input_type=input_type),
                settings=self._settings,
                deadline=deadline,
                who=who,
            )
            found = getattr(getattr(answer, "embeddings", None), "float_", None)
            vectors += checked_vectors(found, n_texts=len(part), who=who)
            billed = _billed(answer).get("input_tokens")
            tokens = tokens if billed is None else (tokens or 0) + int(billed)
        return Embedded(vectors=tuple(vectors), tokens=tokens)

    def _ask(self, client: Any, options: dict[str, Any], *, part: list[str], input_type: str) -> Any:
        return client.embed(
            model=self._info.model,
            texts=part,
            input_type=input_type,
            embedding_types=["float"],
            truncate="NONE",
            request_options=options,
        )


class CohereReranker:
    def __init__(self, model: str, settings: ProviderSettings) -> None:
        self._settings = settings
        self._info = describe_reranker(model, settings)
        _check_key(settings)

    @property
    def info(self) -> RerankerInfo:
        return self._info

    def rerank(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked:
        """One request: 100 passages are one search unit, and a request holds `info.max_documents`."""
        if not candidates:
            return Reranked(scores=(), scale="probability")
        if len(candidates) > MAX_DOCUMENTS:
            raise ProviderError(
                ProviderFault.BAD_REQUEST,
                f"{self._info.spec} takes {MAX_DOCUMENTS} passages a request, not {len(candidates)}.",
            )
        answer = _call(
            lambda client, options: client.rerank(
                model=self._info.model,
                query=query,
                documents=[candidate.text for candidate in candidates],
                request_options=options,
            ),
            settings=self._settings,
            deadline=time.monotonic() + timeout,
            who=self._info.spec,
        )
        results = getattr(answer, "results", None)
        plain = [
            {"index": getattr(r, "index", None), "score": getattr(r, "relevance_score", None)}
            for r in (results if isinstance(results, list) else ())
        ]
        scores = checked_scores(plain, n_documents=len(candidates), who=self._info.spec)
        return Reranked(scores=tuple(scores), units=_billed(answer), scale="probability")


def describe_embedder(model: str, settings: ProviderSettings) -> EmbedderInfo:
    _check_named(model, settings, variable="TOUCHSTONE_EMBEDDER")
    wanted = prefixes.for_model(model, query=settings.query_prefix, document=settings.document_prefix)
    dimensions, max_tokens = _SIZES.get(model, (None, None))
    return EmbedderInfo(
        provider="cohere",
        model=model,
        base_url=settings.cohere_url,
        dimensions=dimensions,
        max_tokens=max_tokens,
        query_prefix=wanted.query,
        document_prefix=wanted.document,
        batch_size=MAX_TEXTS,
        reserved_tokens=prefixes.reserved_tokens(wanted.document),
    )


def describe_reranker(model: str, settings: ProviderSettings) -> RerankerInfo:
    _check_named(model, settings, variable="TOUCHSTONE_RERANKER")
    return RerankerInfo(
        spec=f"cohere:{model}",
        provider="cohere",
        model=model,
        base_url=settings.cohere_url,
        label=f"Cohere {model}",
        max_documents=MAX_DOCUMENTS,
    )


def _check_named(model: str, settings: ProviderSettings, *, variable: str) -> None:
    if not model:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, f"cohere: needs a model's name: set {variable}=cohere:MODEL.")
    check_url(settings.cohere_url, variable="TOUCHSTONE_COHERE_URL")


def _check_key(settings: ProviderSettings) -> None:
    if not settings.cohere_key:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, "Cohere needs a key: set CO_API_KEY.")


def _call(run: Callable[[Any, dict[str, Any]], Any], *, settings: ProviderSettings, deadline: float, who: str) -> Any:
    # Heavy (about 2 s): only a worker that calls Cohere pays for it. Its import is not the call's time.
    before = time.monotonic()
    from cohere.core.api_error import ApiError

    client = _clients.get(settings)
    left = deadline - before
    if left <= 0:
        raise ProviderError(ProviderFault.TIMEOUT, f"{who} did not answer in time.", retryable=True)
    try:
        return run(client, {"max_retries": 0, "timeout_in_seconds": left})
    except ProviderError as error:
        raise transport.named(error, who=who) from error
    except ApiError as error:
        if error.status_code is None or error.status_code == 200:
            raise ProviderError(
                ProviderFault.SHAPE, f"{who} answered 200 with something that is not JSON.", retryable=True
            ) from error
        raise from_status(
            error.status_code,
            headers=error.headers or {},
            body=_text(error.body),
            who=who,
            now=time.time(),
            secret=settings.cohere_key,
        ) from error
    # What the SDK raises for a 200 of another shape is whatever its parsing ran into.
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise wrong_shape(who, "something that is not the documented answer") from error


def _billed(answer: Any) -> dict[str, float]:
    units: Any = getattr(getattr(answer, "meta", None), "billed_units", None)
    return billed_units(units.model_dump() if hasattr(units, "model_dump") else {})


def _text(body: Any) -> str:
    if isinstance(body, dict):
        return str(body.get("message") or body)
    return str(getattr(body, "message", None) or body or "")


class _Clients:
    """One SDK client per key and address: making one takes about as long as a call. None survives a fork."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str, Policy | None], Any] = {}

    def get(self, settings: ProviderSettings) -> Any:
        # Heavy: see _call.
        from cohere import ClientV2

        key = (settings.cohere_key, settings.cohere_url, settings.cohere_policy)
        with self._lock:
            if len(self._clients) >= _MOST_CLIENTS:
                self._clients.clear()
            if key not in self._clients:
                self._clients[key] = ClientV2(
                    api_key=settings.cohere_key,
                    base_url=settings.cohere_url,
                    client_name="touchstone",
                    httpx_client=transport.client(settings.cohere_policy),
                    max_retries=0,
                )
            return self._clients[key]


_clients = _Clients()
os.register_at_fork(after_in_child=_clients.reset)
