"""Rerank servers over HTTP: TEI, Jina, vLLM, llama.cpp and what speaks Cohere's format.

A 200 promises nothing (some servers give one for paths they do not know), so every answer is checked: one finite
score per passage, put back in the passages' order by `index`, never by position.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backend.providers.base import (
    Candidate,
    ProviderError,
    ProviderFault,
    Reranked,
    RerankerInfo,
)
from backend.providers.settings import HttpRerankerSettings
from backend.providers.transport import post_json
from backend.providers.vectors import wrong_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """A wire format. `scale` is what the server's scores are: thresholds do not carry over between scales."""

    path: str
    batch_size: int
    scale: str
    needs_model: bool = False


_SHAPES: dict[str, _Shape] = {
    "tei": _Shape(path="/rerank", batch_size=32, scale="probability"),
    "jina": _Shape(path="/v1/rerank", batch_size=1000, scale="probability", needs_model=True),
    "vllm": _Shape(path="/v1/rerank", batch_size=1000, scale="unknown", needs_model=True),
    "llamacpp": _Shape(path="/v1/rerank", batch_size=1000, scale="logit"),
    "cohere": _Shape(path="/v2/rerank", batch_size=1000, scale="probability", needs_model=True),
}


class HttpReranker:
    def __init__(self, settings: HttpRerankerSettings, *, connect_timeout: float = 5.0) -> None:
        self._settings = settings
        self._shape = _SHAPES[settings.shape]
        self._connect_timeout = connect_timeout
        self._info = describe(settings)
        # An address that already ends in a rerank path is taken as it is.
        ready = settings.url.endswith(("/rerank", "/reranking"))
        self._url = settings.url if ready else settings.url + self._shape.path

    @property
    def info(self) -> RerankerInfo:
        return self._info

    def rerank(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked:
        """Scores all candidates, in as many equal requests as the server's batch limit asks for.

        `timeout` bounds them together. Each passage is scored alone by the server, so batches do not change scores.
        """
        deadline = time.monotonic() + timeout
        scores: list[float] = []
        units: dict[str, float] = {}
        limit = self._settings.batch_size or self._shape.batch_size
        n_batches = math.ceil(len(candidates) / limit)
        for number in range(n_batches):
            start, end = (len(candidates) * n // n_batches for n in (number, number + 1))
            texts = [candidate.text for candidate in candidates[start:end]]
            answer = post_json(
                self._url,
                self._payload(query, texts),
                timeout=deadline - time.monotonic(),
                connect_timeout=self._connect_timeout,
                who=self._info.spec,
                key=self._settings.key,
                policy=self._settings.policy,
            )
            scores += checked_scores(_results(answer), n_documents=len(texts), who=self._info.spec)
            for unit, amount in _units(answer).items():
                units[unit] = units.get(unit, 0.0) + amount
        return Reranked(scores=tuple(scores), units=units, scale=self._shape.scale)

    def _payload(self, query: str, texts: list[str]) -> dict[str, Any]:
        if self._settings.shape == "tei":
            # Without `truncate` a server may refuse a passage longer than its model's window: the question would
            # be an error where every other reranker reads the passage's beginning.
            return {
                "query": query,
                "texts": texts,
                "raw_scores": False,
                "return_text": False,
                "truncate": True,
            }
        payload: dict[str, Any] = {"query": query, "documents": texts}
        if self._settings.model:
            payload["model"] = self._settings.model
        if self._settings.shape == "jina":
            payload |= {"top_n": len(texts), "return_documents": False}
        return payload


def describe(settings: HttpRerankerSettings) -> RerankerInfo:
    """What identifies this reranker; NOT_CONFIGURED when its wire format needs a model and none is named."""
    if _SHAPES[settings.shape].needs_model and not settings.model:
        variable = f"TOUCHSTONE_RERANK_{settings.name.upper().replace('-', '_')}_MODEL"
        raise ProviderError(
            ProviderFault.NOT_CONFIGURED,
            f"The reranker {settings.name!r} ({settings.shape}) needs a model's name: set {variable}.",
        )
    return RerankerInfo(
        spec=f"http:{settings.name}",
        provider=f"http-{settings.shape}",
        model=settings.model or settings.name,
        base_url=settings.url,
        label=f"{settings.name} ({settings.shape}{': ' + settings.model if settings.model else ''})",
    )


def checked_scores(results: object, *, n_documents: int, who: str) -> list[float]:
    """The scores of `[{index, score | relevance_score}]` in the documents' order, or SHAPE saying what is wrong."""
    if not isinstance(results, list):
        raise wrong_shape(who, "no list of results")
    if len(results) != n_documents:
        raise wrong_shape(who, f"{len(results)} scores for {n_documents} passages")
    scores: list[float | None] = [None] * n_documents
    for entry in results:
        index = entry.get("index") if isinstance(entry, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < n_documents:
            raise wrong_shape(who, f"a result whose index is not one of the {n_documents} passages")
        if scores[index] is not None:
            raise wrong_shape(who, f"passage {index} twice")
        score = entry["score"] if "score" in entry else entry.get("relevance_score")
        if not isinstance(score, int | float) or isinstance(score, bool) or not math.isfinite(score):
            raise wrong_shape(who, f"no finite score for passage {index}")
        scores[index] = float(score)
    return [score for score in scores if score is not None]


def _results(answer: object) -> object:
    return answer.get("results") if isinstance(answer, dict) else answer


def billed_units(billed: dict[Any, Any]) -> dict[str, float]:
    """The entries that are amounts, whatever their names: units come and go."""
    return {
        str(unit): float(amount)
        for unit, amount in billed.items()
        if isinstance(amount, int | float) and not isinstance(amount, bool) and math.isfinite(amount)
    }


def _units(answer: object) -> dict[str, float]:
    """What was billed: Cohere's `meta.billed_units`, or the tokens of Jina's and vLLM's `usage`."""
    if not isinstance(answer, dict):
        return {}
    meta, usage = answer.get("meta"), answer.get("usage")
    if isinstance(meta, dict) and isinstance(meta.get("billed_units"), dict):
        return billed_units(meta["billed_units"])
    return billed_units({"total_tokens": usage.get("total_tokens")}) if isinstance(usage, dict) else {}
