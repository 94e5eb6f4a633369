"""How often a provider may be asked: limits a minute, as data.

`TOUCHSTONE_RATE_<PROVIDER>_<ROLE>` (such as TOUCHSTONE_RATE_COHERE_RERANK) sets one, with `_<MODEL>` after it for one
model only; `TOUCHSTONE_RATE_HTTP_<NAME>` that of a rerank server, `TOUCHSTONE_RATE_OPENAI_CHAT` that of chat models.
Rerankers and chat models count calls, embedders texts; 0 lifts it.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from backend.providers.base import EmbedderInfo, ProviderError, ProviderFault, RerankerInfo
from backend.providers.settings import ProviderSettings

# What a production key may do. A trial key of Cohere's reranks 10 times a minute: set the variable.
DEFAULTS: Mapping[str, int] = {"TOUCHSTONE_RATE_COHERE_RERANK": 1000, "TOUCHSTONE_RATE_COHERE_EMBED": 2000}
# A window is a minute and this much: between leave and call a thread may be held up a little.
_WINDOW_SECONDS = 61.0
_BURST, _BURST_FROM = 2, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At most `limit` a minute. Whoever shares key and endpoint shares the `bucket`, a digest that tells no key.
    `burst` is what may go out at once; `spec` names the provider to people."""

    bucket: str
    spec: str
    limit: int

    @property
    def burst(self) -> int:
        return _BURST if self.limit >= _BURST_FROM else 1

    @property
    def most_inputs(self) -> int:
        """How many texts one call may hold, so that even a small limit gets on evenly."""
        return max(1, self.limit // 4)

    def interval(self, n: int) -> float:
        """Seconds from one to the next, when up to `n` are taken together: then no window of a minute, wherever it
        begins, holds more than the limit (what fits between its ends, the burst, and one taking whole)."""
        return _WINDOW_SECONDS / max(1, self.limit - self.burst - n + 2)


def of_embedder(info: EmbedderInfo, settings: ProviderSettings) -> Rate | None:
    """None: it computes here, or no limit is known."""
    if info.local:
        return None
    key = {"cohere": settings.cohere_key, "openai": settings.openai_key}.get(info.provider, "")
    return _find(
        [f"{info.provider}_embed_{info.model}", f"{info.provider}_embed"],
        spec=f"{info.provider}:{info.model}",
        shared_by=(info.provider, info.base_url, "embed", key),
        settings=settings,
    )


def of_reranker(info: RerankerInfo, settings: ProviderSettings) -> Rate | None:
    if info.local:
        return None
    kind, _, name = info.spec.partition(":")
    if kind in {"llm", "llm-pointwise"}:
        return of_chat(name, base_url=info.base_url, settings=settings)
    if kind == "http":
        keys = [entry.key for entry in settings.http_rerankers if _variable(entry.name) == _variable(name)]
        names = [f"http_{name}"]
    else:
        keys = [settings.cohere_key] if kind == "cohere" else []
        names = [f"{kind}_rerank_{name}", f"{kind}_rerank"]
    return _find(names, spec=info.spec, shared_by=(kind, info.base_url, "rerank", *keys), settings=settings)


def of_chat(spec: str, *, base_url: str, settings: ProviderSettings) -> Rate | None:
    """That of a chat model, whatever it is asked for: answers, judgements and rankings share its limit."""
    server, _, model = spec.partition(":")
    key = settings.openai_key if server == "openai" else ""
    keys = [key, *(entry.key for entry in settings.chat_servers if _variable(entry.name) == _variable(server))]
    return _find(
        [f"{server}_chat_{model}", f"{server}_chat"],
        spec=spec,
        shared_by=(server, base_url, "chat", *keys),
        settings=settings,
    )


def _find(names: list[str], *, spec: str, shared_by: tuple[str, ...], settings: ProviderSettings) -> Rate | None:
    known = {**DEFAULTS, **settings.rates}
    for name in names:
        variable = f"TOUCHSTONE_RATE_{_variable(name)}"
        if variable not in known:
            continue
        limit = known[variable]
        if limit < 0:
            raise ProviderError(
                ProviderFault.NOT_CONFIGURED, f"{variable} must be a whole number a minute, or 0 for no limit."
            )
        digest = hashlib.sha256("\x1f".join((*shared_by, variable)).encode()).hexdigest()[:32]
        return Rate(bucket=digest, spec=spec, limit=limit) if limit else None
    return None


def _variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", name.upper())
