"""The providers of this process, made when first asked for and kept: they hold connections and loaded models."""

import os
from dataclasses import replace
from functools import lru_cache

from backend.providers import registry
from backend.providers.base import Embedder, EmbedderInfo, Reranker, RerankerInfo
from backend.providers.settings import ProviderSettings


@lru_cache(maxsize=1)
def settings() -> ProviderSettings:
    """From the environment, read once."""
    return ProviderSettings.from_env(os.environ)


@lru_cache(maxsize=32)
def embedder(spec: str, *, query_prefix: str | None = None, document_prefix: str | None = None) -> Embedder:
    """Prefixes None: those of the environment or of the model. Raises ProviderError where it is not configured."""
    return registry.embedder(spec, _with_prefixes(query_prefix, document_prefix))


@lru_cache(maxsize=32)
def reranker(spec: str) -> Reranker:
    """Raises ProviderError where it is not configured."""
    return registry.reranker(spec, settings())


def describe_embedder(
    spec: str, *, query_prefix: str | None = None, document_prefix: str | None = None
) -> EmbedderInfo:
    """What the embedder is, without loading it."""
    return registry.describe_embedder(spec, _with_prefixes(query_prefix, document_prefix))


def describe_reranker(spec: str) -> RerankerInfo:
    return registry.describe_reranker(spec, settings())


def forget() -> None:
    """Reads the environment again at the next use."""
    for made in (settings, embedder, reranker):
        made.cache_clear()


def _with_prefixes(query_prefix: str | None, document_prefix: str | None) -> ProviderSettings:
    wanted = settings()
    if query_prefix is not None:
        wanted = replace(wanted, query_prefix=query_prefix)
    if document_prefix is not None:
        wanted = replace(wanted, document_prefix=document_prefix)
    return wanted
