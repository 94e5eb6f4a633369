"""Embeddings by OpenAI's API and by the many servers that speak it (TEI, vLLM, llama.cpp, Ollama…).

Spoken directly: the official client sorts nothing by index, asks for base64 (which some servers mangle), and counts
its timeouts per read.
"""

import time
from collections.abc import Iterator, Sequence

from backend.providers import prefixes
from backend.providers.base import Embedded, EmbedderInfo, ProviderError, ProviderFault
from backend.providers.settings import ProviderSettings, check_url
from backend.providers.transport import post_json
from backend.providers.vectors import checked_vectors, wrong_shape

_HOSTED_URL = "https://api.openai.com/v1"

# (dimensions, window in tokens) of OpenAI's own models; another server's are unknown.
_SIZES = {
    "text-embedding-3-small": (1536, 8191),
    "text-embedding-3-large": (3072, 8191),
    "text-embedding-ada-002": (1536, 8191),
}

# OpenAI takes 2,048 texts and 300,000 tokens a request. A request stays within the second by bytes: two to a token
# is fewer than any language that we know of needs.
_MAX_TEXTS = 2048
_MAX_BYTES = 600_000
_CALL_SIZE = 128


class OpenAIEmbedder:
    def __init__(self, model: str, settings: ProviderSettings) -> None:
        self._settings = settings
        self._info = describe(model, settings)
        if not settings.openai_key and settings.openai_url == _HOSTED_URL:
            raise ProviderError(
                ProviderFault.NOT_CONFIGURED,
                "OpenAI's embeddings need a key: set OPENAI_API_KEY (or OPENAI_BASE_URL to a server of your own).",
            )

    @property
    def info(self) -> EmbedderInfo:
        return self._info

    def embed_documents(self, texts: Sequence[str], *, timeout: float) -> Embedded:
        return self._embed([self._info.document_prefix + text for text in texts], timeout=timeout)

    def embed_queries(self, texts: Sequence[str], *, timeout: float) -> Embedded:
        return self._embed([self._info.query_prefix + text for text in texts], timeout=timeout)

    def token_offsets(self, text: str) -> Sequence[int] | None:  # noqa: ARG002 - the protocol's
        """None: the tokenizer is the server's."""
        return None

    def _embed(self, texts: list[str], *, timeout: float) -> Embedded:
        deadline = time.monotonic() + timeout
        vectors: list[tuple[float, ...]] = []
        tokens: int | None = None
        for part in _parts(texts):
            answer = post_json(
                f"{self._info.base_url}/embeddings",
                {"model": self._info.model, "input": part, "encoding_format": "float"},
                timeout=deadline - time.monotonic(),
                connect_timeout=self._settings.connect_timeout_seconds,
                who=f"openai:{self._info.model}",
                key=self._settings.openai_key,
                policy=self._settings.openai_policy,
            )
            vectors += self._vectors(answer, n_texts=len(part))
            usage = answer.get("usage")
            billed = usage.get("total_tokens") if isinstance(usage, dict) else None
            if isinstance(billed, int) and not isinstance(billed, bool):
                tokens = (tokens or 0) + billed
        return Embedded(vectors=tuple(vectors), tokens=tokens)

    def _vectors(self, answer: object, *, n_texts: int) -> tuple[tuple[float, ...], ...]:
        who = f"openai:{self._info.model}"
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
            raise wrong_shape(who, "no list of embeddings")
        indexes = [entry.get("index") for entry in data]
        by_index = dict(zip(indexes, (entry.get("embedding") for entry in data), strict=True))
        # `True == 1` in a dict's keys, so the types are looked at too.
        if len(data) != n_texts or set(by_index) != set(range(n_texts)) or bool in map(type, indexes):
            raise wrong_shape(who, f"{len(data)} embeddings, wrongly numbered, for {n_texts} texts")
        return checked_vectors([by_index[index] for index in range(n_texts)], n_texts=n_texts, who=who)


def describe(model: str, settings: ProviderSettings) -> EmbedderInfo:
    if not model:
        raise ProviderError(
            ProviderFault.NOT_CONFIGURED, "openai: needs a model's name: set TOUCHSTONE_EMBEDDER=openai:MODEL."
        )
    check_url(settings.openai_url, variable="OPENAI_BASE_URL")
    wanted = prefixes.for_model(model, query=settings.query_prefix, document=settings.document_prefix)
    dimensions, max_tokens = _SIZES.get(model, (None, None))
    return EmbedderInfo(
        provider="openai",
        model=model,
        base_url=settings.openai_url,
        dimensions=dimensions,
        max_tokens=max_tokens,
        query_prefix=wanted.query,
        document_prefix=wanted.document,
        batch_size=_CALL_SIZE,
        reserved_tokens=prefixes.reserved_tokens(wanted.document),
    )


def _parts(texts: list[str]) -> Iterator[list[str]]:
    """The texts in requests within the API's limits; a text above the limit goes alone, to be refused by name."""
    part: list[str] = []
    size = 0
    for text in texts:
        n_bytes = len(text.encode())
        if part and (len(part) == _MAX_TEXTS or size + n_bytes > _MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(text)
        size += n_bytes
    if part:
        yield part
