"""Reranking in this process: a cross-encoder that the user has, or the blend that needs nothing.

No package ships a cross-encoder's weights. The blend compares the question's token vectors with each passage's
(MaxSim) and averages that with the first stage. On its own such a score made hybrid order worse (Cranfield nDCG@10
0.399 against 0.423); blended it is a little better (0.429), and it is named for what it is.
"""

import hashlib
import math
import os
import statistics
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from backend.providers import loaded, model_files
from backend.providers.base import (
    Candidate,
    ProviderError,
    ProviderFault,
    Reranked,
    RerankerInfo,
)
from backend.providers.settings import ProviderSettings

BLEND_LABEL = "local blend (MaxSim + first stage)"


class BlendReranker:
    """Half MaxSim over the bundled model's token vectors, half the first stage, each as z-scores within the pool."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._files = model_files.bundled()

    @property
    def info(self) -> RerankerInfo:
        return describe_blend()

    def rerank(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked:
        deadline = time.monotonic() + timeout
        texts = [candidate.text for candidate in candidates]
        asked = self._token_vectors([query], deadline=deadline)[0]
        passages = self._token_vectors(texts, deadline=deadline)
        closeness = zscores([maxsim(asked, passage) for passage in passages])
        before = zscores([candidate.score for candidate in candidates])
        scores = tuple((near + first) / 2 for near, first in zip(closeness, before, strict=True))
        return Reranked(scores=scores, scale="zscore")

    def _token_vectors(self, texts: list[str], *, deadline: float) -> list[Any]:
        """Per text a matrix (tokens x dimensions) of unit rows in half precision, from the cache where it has it."""
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        found = {key: _cache.get(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        ordered = sorted(missing.items(), key=lambda item: len(item[1]))
        step = self._files.batch_size
        for start in range(0, len(ordered), step):
            if time.monotonic() > deadline:
                raise ProviderError(ProviderFault.TIMEOUT, "The local reranker did not finish in time.", retryable=True)
            batch = ordered[start : start + step]
            for (key, _), matrix in zip(batch, self._encode([text for _, text in batch]), strict=True):
                found[key] = matrix
                _cache.put(key, matrix, limit=self._settings.token_cache_bytes)
        return [found[key] for key in keys]

    def _encode(self, texts: list[str]) -> list[Any]:
        # Comes with fastembed; a process that only reads never needs it.
        import numpy as np

        output = loaded.text_model(self._files, self._settings).model.onnx_embed(texts)
        matrices = []
        for vectors, mask in zip(output.model_output, output.attention_mask, strict=True):
            # The first and last token are the special ones: they say nothing about any word.
            own = vectors[1 : int(mask.sum()) - 1]
            length = np.linalg.norm(own, axis=1, keepdims=True)
            matrices.append((own / np.maximum(length, 1e-12)).astype(np.float16))
        return matrices


class CrossEncoderReranker:
    """A cross-encoder through fastembed: one pair at a time, so that no score depends on the rest of the pool."""

    def __init__(self, name: str, settings: ProviderSettings) -> None:
        self._settings = settings
        self._files = model_files.find(name, settings)
        self._info = describe_cross_encoder(name, settings)

    @property
    def info(self) -> RerankerInfo:
        return self._info

    def rerank(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked:
        deadline = time.monotonic() + timeout
        model = loaded.cross_encoder(self._files, self._settings)
        scores: list[float] = []
        for score in model.rerank(query, [candidate.text for candidate in candidates], batch_size=1):
            if time.monotonic() > deadline:
                raise ProviderError(ProviderFault.TIMEOUT, "The local reranker did not finish in time.", retryable=True)
            if not math.isfinite(score):
                raise ProviderError(ProviderFault.SHAPE, f"The model {self._files.name} gave a score of NaN.")
            scores.append(float(score))
        return Reranked(scores=tuple(scores), scale="logit")


def maxsim(query: Any, passage: Any) -> float:
    """The mean over the query's tokens of the cosine to the nearest token of the passage; 0.0 where one has none.

    Khattab and Zaharia, ColBERT (2020), as a mean instead of a sum so that long questions weigh no more.
    """
    if not len(query) or not len(passage):
        return 0.0
    return float((query.astype("float32") @ passage.astype("float32").T).max(axis=1).mean())


def zscores(values: Sequence[float]) -> list[float]:
    """(value - mean) / population deviation; all 0.0 where the values do not differ."""
    if not values:
        return []
    mean, deviation = statistics.fmean(values), statistics.pstdev(values)
    return [(value - mean) / deviation if deviation > 1e-12 else 0.0 for value in values]


def describe_blend() -> RerankerInfo:
    return RerankerInfo(
        spec="local",
        provider="local",
        model=f"maxsim-blend-1:{model_files.BUNDLED}",
        label=BLEND_LABEL,
        pool_dependent=True,
        local=True,
    )


def describe_cross_encoder(name: str, settings: ProviderSettings) -> RerankerInfo:
    files = model_files.find(name, settings)
    return RerankerInfo(
        spec=f"local:{name}",
        provider="local",
        model=files.name,
        label=f"local cross-encoder {files.name}",
        local=True,
    )


class _TokenCache:
    """Passage token vectors of this process, least recently used out first: pools of one run overlap a great deal."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._matrices: OrderedDict[bytes, Any] = OrderedDict()
        self._n_bytes = 0

    def get(self, key: bytes) -> Any:
        with self._lock:
            if key in self._matrices:
                self._matrices.move_to_end(key)
            return self._matrices.get(key)

    def put(self, key: bytes, matrix: Any, *, limit: int) -> None:
        with self._lock:
            if key not in self._matrices:
                self._matrices[key] = matrix
                self._n_bytes += matrix.nbytes
            while self._n_bytes > limit and self._matrices:
                _, oldest = self._matrices.popitem(last=False)
                self._n_bytes -= oldest.nbytes


_cache = _TokenCache()
# A thread that the child does not have may hold the lock.
os.register_at_fork(after_in_child=_cache.reset)
