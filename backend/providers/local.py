"""Embeddings computed in this process, by the bundled model or any other that fastembed can run."""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

from backend.providers import loaded, model_files, prefixes
from backend.providers.base import Embedded, EmbedderInfo, ProviderError, ProviderFault
from backend.providers.model_files import ModelFiles
from backend.providers.settings import ProviderSettings

CALL_SIZE = 32


class LocalEmbedder:
    """Loads nothing until its first call, and then once per process (see loaded.py)."""

    def __init__(self, name: str, settings: ProviderSettings) -> None:
        self._settings = settings
        self._files = model_files.find(name, settings)
        self._info = _info(self._files, settings)

    @property
    def info(self) -> EmbedderInfo:
        return self._info

    def embed_documents(self, texts: Sequence[str], *, timeout: float) -> Embedded:
        prefixed = [self._info.document_prefix + text for text in texts]
        return self._embed(prefixed, query=False, timeout=timeout)

    def embed_queries(self, texts: Sequence[str], *, timeout: float) -> Embedded:
        prefixed = [self._info.query_prefix + text for text in texts]
        return self._embed(prefixed, query=True, timeout=timeout)

    def token_offsets(self, text: str) -> Sequence[int] | None:
        """Of the text's own tokens: neither the special ones nor the prefix (`info.reserved_tokens`)."""
        encoding = loaded.tokenizer(self._files, self._settings).encode(text, add_special_tokens=False)
        return [start for start, _ in encoding.offsets]

    def _embed(self, texts: list[str], *, query: bool, timeout: float) -> Embedded:
        """`timeout` is looked at between batches: one batch always runs to its end."""
        deadline = time.monotonic() + timeout
        model = loaded.text_model(self._files, self._settings)
        # By length, so that a batch pads little; the order is restored below.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors: list[tuple[float, ...]] = [()] * len(texts)
        for index, vector in zip(order, self._run(model, [texts[i] for i in order], query=query), strict=True):
            if time.monotonic() > deadline:
                raise ProviderError(ProviderFault.TIMEOUT, "The local model did not finish in time.", retryable=True)
            vectors[index] = tuple(vector.tolist())
            if not all(map(math.isfinite, vectors[index])):
                raise ProviderError(ProviderFault.SHAPE, f"The model {self._files.name} gave a vector with NaN.")
        return Embedded(vectors=tuple(vectors))

    def _run(self, model: Any, texts: list[str], *, query: bool) -> Iterator[Any]:
        # Some models (Jina v3) take another path for queries, so fastembed is told which this is.
        run = model.query_embed if query else model.passage_embed
        return iter(run(texts, batch_size=self._files.batch_size))


def describe(name: str, settings: ProviderSettings) -> EmbedderInfo:
    """What LocalEmbedder(name).info says, for readers: costs a few small files at most."""
    return _info(model_files.find(name, settings), settings)


def _info(files: ModelFiles, settings: ProviderSettings) -> EmbedderInfo:
    wanted = prefixes.for_model(files.name, query=settings.query_prefix, document=settings.document_prefix)
    return EmbedderInfo(
        provider="local",
        model=files.name,
        dimensions=files.dimensions,
        max_tokens=files.max_tokens,
        query_prefix=wanted.query,
        document_prefix=wanted.document,
        batch_size=CALL_SIZE,
        local=True,
        reserved_tokens=prefixes.reserved_tokens(wanted.document),
    )
