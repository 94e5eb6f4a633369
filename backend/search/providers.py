"""The providers of this process, made when first asked for and kept: they hold connections and loaded models.

What a workspace brought (its keys, its addresses) comes before what the environment says. Whoever asks says for which
workspace: a key is used for its own workspace only.
"""

import os
import threading
import time
from dataclasses import replace
from functools import lru_cache
from uuid import UUID

from django.conf import settings as django_settings

from backend.models import ProviderKey
from backend.net.addresses import Policy
from backend.providers import registry, sealing
from backend.providers.base import Embedder, EmbedderInfo, ProviderError, ProviderFault, Reranker, RerankerInfo
from backend.providers.chat import ChatInfo, ChatModel
from backend.providers.settings import HttpRerankerSettings, ProviderSettings

# A key that was changed or taken away is used no longer than this in other processes.
_KEPT_SECONDS = 5.0
_MOST_KEPT = 500


@lru_cache(maxsize=1)
def installation() -> ProviderSettings:
    """From the environment, read once."""
    return ProviderSettings.from_env(os.environ)


def settings(workspace_id: UUID) -> ProviderSettings:
    """Those of the installation, with what the workspace brought in their place. Raises ProviderError NOT_CONFIGURED
    for a key that cannot be opened: another one in its place would send the workspace's texts elsewhere."""
    return _kept.get(workspace_id)


def embedder(
    spec: str, *, workspace_id: UUID, query_prefix: str | None = None, document_prefix: str | None = None
) -> Embedder:
    """Prefixes None: those of the environment or of the model. Raises ProviderError where it is not configured."""
    return _embedder(spec, _with_prefixes(_for(spec, workspace_id), query_prefix, document_prefix))


def reranker(spec: str, *, workspace_id: UUID) -> Reranker:
    """Raises ProviderError where it is not configured."""
    return _reranker(spec, _for(spec, workspace_id))


def chat(spec: str, *, workspace_id: UUID) -> ChatModel:
    """Raises ProviderError where it is not configured."""
    return _chat(spec, settings(workspace_id))


def describe_embedder(
    spec: str, *, workspace_id: UUID, query_prefix: str | None = None, document_prefix: str | None = None
) -> EmbedderInfo:
    """What the embedder is, without loading it."""
    return registry.describe_embedder(spec, _with_prefixes(_for(spec, workspace_id), query_prefix, document_prefix))


def describe_reranker(spec: str, *, workspace_id: UUID) -> RerankerInfo:
    return registry.describe_reranker(spec, _for(spec, workspace_id))


def describe_chat(spec: str, *, workspace_id: UUID) -> ChatInfo:
    return registry.describe_chat(spec, settings(workspace_id))


def use_of(workspace_id: UUID, provider: str) -> str:
    """What a workspace's key is sealed for: it opens in no other row."""
    return f"{workspace_id} {provider}"


def forget() -> None:
    """Reads the environment and the workspaces' keys again at the next use."""
    for made in (installation, _embedder, _reranker, _chat):
        made.cache_clear()
    _kept.forget()


_embedder = lru_cache(maxsize=64)(registry.embedder)
_reranker = lru_cache(maxsize=64)(registry.reranker)
_chat = lru_cache(maxsize=64)(registry.chat)


def _for(spec: str, workspace_id: UUID) -> ProviderSettings:
    # What computes here needs no key, and its loaded model is one for all.
    return installation() if spec.strip().lower().partition(":")[0] in {"local", "none", ""} else settings(workspace_id)


def _with_prefixes(wanted: ProviderSettings, query_prefix: str | None, document_prefix: str | None) -> ProviderSettings:
    if query_prefix is not None:
        wanted = replace(wanted, query_prefix=query_prefix)
    if document_prefix is not None:
        wanted = replace(wanted, document_prefix=document_prefix)
    return wanted


class _Kept:
    """The settings of workspaces for a few seconds: they are asked for many times in one question."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[UUID, tuple[float, ProviderSettings]] = {}

    def get(self, workspace_id: UUID) -> ProviderSettings:
        found = self._found.get(workspace_id)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        made = _read(workspace_id)
        with self._lock:
            if len(self._found) >= _MOST_KEPT:
                self._found.clear()
            self._found[workspace_id] = (time.monotonic() + _KEPT_SECONDS, made)
        return made


_kept = _Kept()
os.register_at_fork(after_in_child=_kept.forget)


def _read(workspace_id: UUID) -> ProviderSettings:
    made = installation()
    for row in ProviderKey.objects.filter(workspace_id=workspace_id).order_by("provider"):
        try:
            key = sealing.unseal(row.sealed, keys=django_settings.SECRET_KEYS, use=use_of(workspace_id, row.provider))
        except sealing.SealError as error:
            raise ProviderError(
                ProviderFault.NOT_CONFIGURED,
                f"This workspace's key for {row.provider} cannot be used: {error}. Give it again.",
            ) from None
        made = _with_key(made, row, key)
    return made


def _with_key(made: ProviderSettings, row: ProviderKey, key: str) -> ProviderSettings:
    policy = Policy.of(django_settings.URL_ALLOW) if row.base_url else None
    if row.provider == "openai":
        return replace(made, openai_key=key, openai_url=row.base_url or made.openai_url, openai_policy=policy)
    if row.provider == "cohere":
        return replace(made, cohere_key=key, cohere_url=row.base_url or made.cohere_url, cohere_policy=policy)
    own = HttpRerankerSettings(
        name=row.provider.partition(":")[2],
        url=row.base_url,
        shape=row.shape or "tei",
        model=row.model,
        key=key,
        policy=policy,
    )
    # The first of a name is the one that is found.
    return replace(made, http_rerankers=(own, *made.http_rerankers))
