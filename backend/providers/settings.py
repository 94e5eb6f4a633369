"""What the providers need to know, as one value: they read no environment and no Django settings themselves."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from backend.net.addresses import Policy
from backend.providers.base import ProviderError, ProviderFault

RERANK_SHAPES = ("tei", "jina", "vllm", "llamacpp", "cohere")

_RATE_PREFIX = "TOUCHSTONE_RATE_"
_RERANK_VARIABLE = re.compile(r"^TOUCHSTONE_RERANK_([A-Z0-9_]+)_URL$")
_CHAT_VARIABLE = re.compile(r"^TOUCHSTONE_CHAT_([A-Z0-9_]+)_URL$")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRerankerSettings:
    """One `http:NAME` reranker. `shape` is the server's wire format; `batch_size` None takes the shape's own."""

    name: str
    url: str
    shape: str = "tei"
    model: str = ""
    key: str = field(default="", repr=False)
    batch_size: int | None = None
    policy: Policy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServer:
    """A chat server beside OPENAI_BASE_URL, by the name that specifications give it (`NAME:MODEL`)."""

    name: str
    url: str
    key: str = field(default="", repr=False)
    policy: Policy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """Keys, addresses, the model folder and timeouts. Keys stay out of `repr`.

    `model_folder` holds downloaded models and the assembled bundled one. `extra_model_folders` are further
    folders that `local:FOLDER` may name: any other path is refused, since a specification may come from a user.
    `offline` forbids downloads. `token_cache_bytes` bounds the local blend's passage cache in each process.
    The prefixes override the table of prefixes.py for every embedder; None leaves it alone. `rates` holds the
    limits that are set, by variable (rates.py). A policy is there where the address was given by a workspace: it is
    then judged at each connection; None is the operator's own.
    """

    model_folder: Path
    extra_model_folders: tuple[Path, ...] = ()
    offline: bool = False
    cohere_key: str = field(default="", repr=False)
    cohere_url: str = "https://api.cohere.com"
    openai_key: str = field(default="", repr=False)
    openai_url: str = "https://api.openai.com/v1"
    cohere_policy: Policy | None = None
    openai_policy: Policy | None = None
    http_rerankers: tuple[HttpRerankerSettings, ...] = ()
    chat_servers: tuple[ChatServer, ...] = ()
    query_prefix: str | None = None
    document_prefix: str | None = None
    connect_timeout_seconds: float = 5.0
    token_cache_bytes: int = 96 * 1024 * 1024
    rates: Mapping[str, int] = field(default_factory=dict, hash=False)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ProviderSettings":
        """Reads the variables that docs/providers.md lists; an empty one counts as absent."""
        home = Path(env.get("TOUCHSTONE_HOME") or ".touchstone")
        folders = (env.get("TOUCHSTONE_MODEL_FOLDERS") or "").split(os.pathsep)
        return cls(
            model_folder=Path(env.get("TOUCHSTONE_MODELS") or home / "models").expanduser().absolute(),
            extra_model_folders=tuple(Path(f).expanduser().absolute() for f in folders if f),
            offline=(env.get("TOUCHSTONE_OFFLINE") or "").lower() in {"1", "true", "yes", "on"},
            cohere_key=(env.get("CO_API_KEY") or env.get("COHERE_API_KEY") or "").strip(),
            cohere_url=(env.get("TOUCHSTONE_COHERE_URL") or "https://api.cohere.com").rstrip("/"),
            openai_key=(env.get("OPENAI_API_KEY") or "").strip(),
            openai_url=(env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1").rstrip("/"),
            http_rerankers=_http_rerankers(env),
            chat_servers=_chat_servers(env),
            query_prefix=env.get("TOUCHSTONE_QUERY_PREFIX"),
            document_prefix=env.get("TOUCHSTONE_DOCUMENT_PREFIX"),
            # -1 is refused when the provider is used: one bad entry must not stop a process from starting.
            rates={
                name: int(value) if value.isdecimal() else -1
                for name, value in env.items()
                if name.startswith(_RATE_PREFIX) and value
            },
        )

    def http_reranker(self, name: str) -> HttpRerankerSettings:
        """The entry called `name` (case and dashes do not matter), checked; NOT_CONFIGURED says what to set."""
        wanted = _variable_part(name)
        variable = f"TOUCHSTONE_RERANK_{wanted}"
        for entry in self.http_rerankers:
            if _variable_part(entry.name) == wanted:
                break
        else:
            raise ProviderError(
                ProviderFault.NOT_CONFIGURED,
                f"There is no reranker called {name!r}: set {variable}_URL to its address.",
            )
        check_url(entry.url, variable=f"{variable}_URL")
        if entry.shape not in RERANK_SHAPES:
            raise ProviderError(
                ProviderFault.NOT_CONFIGURED,
                f"{variable}_SHAPE is {entry.shape!r}; it must be one of {', '.join(RERANK_SHAPES)}.",
            )
        if entry.batch_size is not None and entry.batch_size < 1:
            raise ProviderError(ProviderFault.NOT_CONFIGURED, f"{variable}_BATCH must be a whole number above 0.")
        return entry

    def chat_server(self, name: str) -> ChatServer:
        """The chat server called `name` (case and dashes do not matter), checked."""
        wanted = _variable_part(name)
        variable = f"TOUCHSTONE_CHAT_{wanted}_URL"
        for entry in self.chat_servers:
            if _variable_part(entry.name) == wanted:
                check_url(entry.url, variable=variable)
                return entry
        raise ProviderError(
            ProviderFault.NOT_CONFIGURED, f"There is no chat server called {name!r}: set {variable} to its address."
        )


def check_url(url: str, *, variable: str) -> None:
    """Refuses an address that is no plain http(s) URL. A password in it would end up in fingerprints and exports."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        secret = bool(parts.username or parts.password or parts.query)
    except ValueError:
        usable, secret = False, False
    if not usable or secret:
        raise ProviderError(
            ProviderFault.NOT_CONFIGURED,
            f"{variable} must be an http or https address with neither user, password nor query in it.",
        )


def _variable_part(name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", name.upper())


def _chat_servers(env: Mapping[str, str]) -> tuple[ChatServer, ...]:
    return tuple(
        ChatServer(
            name=match[1].lower(),
            url=env[variable].rstrip("/"),
            key=(env.get(f"{variable.removesuffix('_URL')}_KEY") or "").strip(),
        )
        for variable in sorted(env)
        if (match := _CHAT_VARIABLE.match(variable)) and env[variable]
    )


def _http_rerankers(env: Mapping[str, str]) -> tuple[HttpRerankerSettings, ...]:
    found = []
    for variable in sorted(env):
        match = _RERANK_VARIABLE.match(variable)
        if match is None or not env[variable]:
            continue
        stem = variable.removesuffix("_URL")
        batch = env.get(f"{stem}_BATCH") or ""
        found.append(
            HttpRerankerSettings(
                name=match[1].lower(),
                url=env[variable].rstrip("/"),
                shape=(env.get(f"{stem}_SHAPE") or "tei").lower(),
                model=env.get(f"{stem}_MODEL") or "",
                key=(env.get(f"{stem}_KEY") or "").strip(),
                # 0 is refused when the reranker is used: one bad entry must not stop a process from starting.
                batch_size=None if not batch else int(batch) if batch.isdecimal() else 0,
            )
        )
    return tuple(found)
