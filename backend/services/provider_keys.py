"""Keys that a workspace brings for its providers: sealed when given, opened only where a provider is called
(backend/search/providers.py), shown to nobody again."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from backend.core.errors import ConflictError, ErrorCode, Fault, NotFoundError, ValidationError
from backend.models import ProviderKey, Workspace
from backend.models.runs import ProviderState
from backend.net.addresses import Policy, UnsafeUrlError, check
from backend.providers import sealing
from backend.providers.settings import RERANK_SHAPES
from backend.search import providers

PLAIN = ("openai", "cohere")
_SERVER = re.compile(r"http:[a-z0-9][a-z0-9-]{0,59}")
MOST_CHARACTERS, FEWEST_CHARACTERS = 1000, 8
MOST_KEYS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was given. `base_url`, `shape` and `model` empty: the installation's address, `tei`, the server's model."""

    provider: str
    key: str
    base_url: str = ""
    shape: str = ""
    model: str = ""

    def __repr__(self) -> str:
        return f"Given(provider={self.provider!r})"


def keep(workspace: Workspace, given: Given, *, now: datetime) -> ProviderKey:
    """Keep the key, in place of the one before. Raises ValidationError with every fault, ConflictError where this
    installation keeps none."""
    if not settings.SECRET_KEYS:
        raise ConflictError(
            "This installation keeps no keys of workspaces: its operator sets TOUCHSTONE_SECRET_KEYS first."
        )
    faults = _faults(given)
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    sealed = sealing.seal(
        given.key.strip(), keys=settings.SECRET_KEYS, use=providers.use_of(workspace.id, given.provider)
    )
    values: dict[str, Any] = {
        "sealed": sealed,
        "fingerprint": _fingerprint(workspace, given.key),
        "base_url": given.base_url.rstrip("/"),
        "shape": given.shape,
        "model": given.model,
        "changed_at": now,
    }
    with transaction.atomic():
        Workspace.objects.select_for_update().get(id=workspace.id)
        held = ProviderKey.objects.filter(workspace=workspace)
        if held.exclude(provider=given.provider).count() >= MOST_KEYS:
            raise ConflictError(f"A workspace keeps at most {MOST_KEYS} provider keys.")
        row, _ = ProviderKey.objects.update_or_create(
            workspace=workspace,
            provider=given.provider,
            defaults=values,
            create_defaults={**values, "created_at": now},
        )
        _forget_holds(workspace, given.provider)
        transaction.on_commit(providers.forget)
    return row


def remove(workspace: Workspace, provider: str) -> None:
    """From now on the installation's key is used, where it has one. Raises NotFoundError."""
    with transaction.atomic():
        if not ProviderKey.objects.filter(workspace=workspace, provider=provider).delete()[0]:
            raise NotFoundError("provider key", provider[:60])
        _forget_holds(workspace, provider)
        transaction.on_commit(providers.forget)


def rotate() -> tuple[int, list[str]]:
    """Seal every key anew with the first of TOUCHSTONE_SECRET_KEYS. Returns how many there were, and those that none
    of the keys opens."""
    n, lost = 0, []
    for row in ProviderKey.objects.order_by("id").iterator():
        try:
            sealed = sealing.reseal(row.sealed, keys=settings.SECRET_KEYS)
        except sealing.SealError:
            lost.append(f"{row.workspace_id} {row.provider}")
            continue
        # One that was given anew meanwhile is sealed anew already.
        n += ProviderKey.objects.filter(id=row.id, sealed=row.sealed).update(sealed=sealed)
    return n, lost


def _forget_holds(workspace: Workspace, provider: str) -> None:
    """What was refused to the old key is not known of the new one."""
    prefix = provider if provider.startswith("http:") else f"{provider}:"
    ProviderState.objects.filter(workspace=workspace, provider__startswith=prefix).delete()


def _fingerprint(workspace: Workspace, key: str) -> str:
    return hashlib.sha256(f"{workspace.id}\x1f{key.strip()}".encode()).hexdigest()[:12]


def _faults(given: Given) -> list[Fault]:
    faults: list[Fault] = []

    def tell(message: str, field: str) -> None:
        faults.append(Fault(code=ErrorCode.VALIDATION, message=message, field=field))

    is_server = _SERVER.fullmatch(given.provider) is not None
    if given.provider not in PLAIN and not is_server:
        tell(f"provider is one of {', '.join(PLAIN)}, or http:NAME for a rerank server.", "provider")
    key = given.key.strip()
    if not (key.isascii() and key.isprintable() and " " not in key and len(key) <= MOST_CHARACTERS):
        tell("key holds characters that no key can hold, or is too long.", "key")
    elif len(key) < FEWEST_CHARACTERS and not (is_server and not key):
        tell(f"key has at least {FEWEST_CHARACTERS} characters.", "key")
    if given.base_url:
        fault = _url_fault(given.base_url)
        if fault:
            tell(fault, "base_url")
    elif is_server:
        tell("A rerank server needs its address.", "base_url")
    if given.shape and (not is_server or given.shape not in RERANK_SHAPES):
        tell(f"shape is that of a rerank server: one of {', '.join(RERANK_SHAPES)}.", "shape")
    if len(given.model) > 200 or not given.model.isprintable() or (given.model and not is_server):
        tell("model is the name of a rerank server's model, of at most 200 characters.", "model")
    return faults


def _url_fault(url: Any) -> str:
    if len(url) > 500:
        return "base_url has at most 500 characters."
    try:
        check(url, Policy.of(settings.URL_ALLOW))
    except UnsafeUrlError as error:
        return str(error)
    # A password there would end up in fingerprints and exports.
    parts = urlsplit(url)
    return "base_url has neither query nor fragment." if parts.query or parts.fragment else ""
