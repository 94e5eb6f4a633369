"""What the outside world looks like from inside: small protocols and one error.

Providers know no database: caches and pacing are put around them by backend.search. A provider raises
`ProviderError` only; the raiser says whether trying again can help and how long to wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from backend.core.errors import ErrorCode


class ProviderFault(StrEnum):
    """What went wrong out there. Each maps to one ErrorCode."""

    AUTH = "auth"
    BILLING = "billing"
    QUOTA = "quota"
    RATE = "rate"
    BAD_REQUEST = "bad_request"
    MODEL = "model"
    TIMEOUT = "timeout"
    SERVER = "server"
    SHAPE = "shape"
    NOT_CONFIGURED = "not_configured"
    # The workspace's own limit: the provider was not asked.
    SPEND = "spend"


ERROR_CODES: dict[ProviderFault, ErrorCode] = {
    ProviderFault.AUTH: ErrorCode.PROVIDER_AUTH,
    ProviderFault.BILLING: ErrorCode.PROVIDER_BILLING,
    ProviderFault.QUOTA: ErrorCode.PROVIDER_QUOTA,
    ProviderFault.RATE: ErrorCode.PROVIDER_RATE,
    ProviderFault.BAD_REQUEST: ErrorCode.PROVIDER_BAD_REQUEST,
    ProviderFault.MODEL: ErrorCode.PROVIDER_MODEL,
    ProviderFault.TIMEOUT: ErrorCode.PROVIDER_TIMEOUT,
    ProviderFault.SERVER: ErrorCode.PROVIDER_UNAVAILABLE,
    ProviderFault.SHAPE: ErrorCode.PROVIDER_BAD_ANSWER,
    ProviderFault.NOT_CONFIGURED: ErrorCode.PROVIDER_NOT_CONFIGURED,
    ProviderFault.SPEND: ErrorCode.SPEND_LIMIT,
}

# Faults that no other question of the run can escape: the mode stops with one clear reason.
FATAL = frozenset(
    {
        ProviderFault.AUTH,
        ProviderFault.BILLING,
        ProviderFault.QUOTA,
        ProviderFault.MODEL,
        ProviderFault.NOT_CONFIGURED,
        ProviderFault.SPEND,
    }
)


class ProviderError(Exception):
    """A call that failed. `wait_seconds` is what the provider asked for (Retry-After), never less is waited."""

    def __init__(
        self,
        fault: ProviderFault,
        message: str,
        *,
        retryable: bool = False,
        wait_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
        self.retryable = retryable
        self.wait_seconds = wait_seconds

    @property
    def code(self) -> ErrorCode:
        return ERROR_CODES[self.fault]

    @property
    def fatal(self) -> bool:
        return self.fault in FATAL


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderInfo:
    """What identifies an embedder in fingerprints and cache keys, and what bounds its calls.

    `max_tokens` is its window (None: unknown), of which `reserved_tokens` go to special tokens and the document
    prefix; `dimensions` None where unknown. `local` says that it computes in this process (CPU) rather than
    waiting on a server.
    """

    provider: str
    model: str
    base_url: str = ""
    dimensions: int | None = None
    max_tokens: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    batch_size: int = 32
    local: bool = False
    reserved_tokens: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors in the order of the texts, L2-normalised where the provider promises it. `tokens` as billed."""

    vectors: tuple[tuple[float, ...], ...]
    tokens: int | None = None


class Embedder(Protocol):
    """Turns texts into vectors. `texts` are raw: the embedder adds its prefixes. At most `info.batch_size` a call."""

    @property
    def info(self) -> EmbedderInfo: ...

    def embed_documents(self, texts: Sequence[str], *, timeout: float) -> Embedded: ...

    def embed_queries(self, texts: Sequence[str], *, timeout: float) -> Embedded: ...

    def token_offsets(self, text: str) -> Sequence[int] | None:
        """Start offsets (characters of `text`) of each token of the model, or None where it cannot be known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerInfo:
    """`spec` is how people name it (`local`, `http:NAME`, `cohere:MODEL`). `pool_dependent`: scores depend on the
    other passages or their first-stage scores (blends, listwise models), which the cache key must then hold."""

    spec: str
    provider: str
    model: str
    base_url: str = ""
    label: str = ""
    pool_dependent: bool = False
    local: bool = False
    max_documents: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A passage offered to a reranker, with the score of the stage before it."""

    text: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranked:
    """One score per candidate, in the candidates' order; None where the provider returned none for it.

    `units` are what the provider billed, by its own names (Cohere: `search_units`). `scale` is `probability`,
    `logit`, `zscore` (within the pool) or `unknown`: a threshold means nothing on another scale.
    """

    scores: tuple[float | None, ...]
    units: dict[str, float] = field(default_factory=dict)
    scale: str = "unknown"


class Reranker(Protocol):
    @property
    def info(self) -> RerankerInfo: ...

    def rerank(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked: ...
