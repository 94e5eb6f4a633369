"""Chat models by OpenAI's API and by the many servers that speak it (vLLM, llama.cpp, Ollama, LM Studio…).

What such servers take differs. Where one refuses a way of asking, the next is tried within the same deadline, and the
process remembers what the model took: JSON schema, then JSON object, then words; `max_tokens` under either name; no
temperature or seed where it wants none.
"""

import re
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from backend.providers.base import ProviderError, ProviderFault
from backend.providers.chat import Ask, ChatInfo, ChatReply, Ending, Rung
from backend.providers.settings import ChatServer, ProviderSettings, check_url
from backend.providers.transport import post_json
from backend.providers.vectors import wrong_shape

_HOSTED_URL = "https://api.openai.com/v1"
_MOST_STEPS = 6

_ABOUT_FORM = re.compile(r"response_?format|json_?schema|json_?object|structured|guided|grammar", re.I)
_ABOUT_LIMIT = re.compile(r"max_tokens|max_completion_tokens", re.I)
_ABOUT_TEMPERATURE = re.compile(r"temperature", re.I)
_ABOUT_SEED = re.compile(r"\bseed\b", re.I)
_BELOW = {Rung.SCHEMA: Rung.OBJECT, Rung.OBJECT: Rung.TEXT}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manner:
    """How a model is asked, as far as this process knows."""

    rung: Rung = Rung.SCHEMA
    limit: str = "max_tokens"
    temperature: bool = True
    seed: bool = True


# By address and model: providers are made anew when settings are, and what a server takes does not change with them.
_manners: dict[tuple[str, str], _Manner] = {}
_lock = threading.Lock()


def forget_manners() -> None:
    """For tests: begin again at the top of the ladder."""
    with _lock:
        _manners.clear()


class OpenAIChat:
    def __init__(self, model: str, settings: ProviderSettings, *, server: str = "openai") -> None:
        self._info = describe(model, settings, server=server)
        self._connect_timeout = settings.connect_timeout_seconds
        self._key, self._policy = _server(settings, server).key, _server(settings, server).policy
        if not self._key and self._info.base_url == _HOSTED_URL:
            raise ProviderError(
                ProviderFault.NOT_CONFIGURED,
                "OpenAI's chat models need a key: set OPENAI_API_KEY (or OPENAI_BASE_URL to a server of your own).",
            )

    @property
    def info(self) -> ChatInfo:
        return self._info

    def reply(self, ask: Ask, *, timeout: float) -> ChatReply:
        """Raises ProviderError. `timeout` bounds all steps down the ladder together."""
        deadline = time.monotonic() + timeout
        where = (self._info.base_url, self._info.model)
        with _lock:
            manner = _manners.get(where, _Manner())
        n_calls = 0
        for _ in range(_MOST_STEPS):
            n_calls += 1
            try:
                answer = post_json(
                    f"{self._info.base_url}/chat/completions",
                    self._payload(ask, manner),
                    timeout=deadline - time.monotonic(),
                    connect_timeout=self._connect_timeout,
                    who=self._info.spec,
                    key=self._key,
                    policy=self._policy,
                )
            except ProviderError as error:
                other = _other_manner(manner, error, ask)
                if other is None:
                    raise
                manner = other
                continue
            with _lock:
                _manners[where] = manner
            rung = Rung.TEXT if ask.schema is None else manner.rung
            return _read(answer, who=self._info.spec, rung=rung, n_calls=n_calls)
        raise ProviderError(
            ProviderFault.BAD_REQUEST, f"{self._info.spec} refuses each way in which a chat model can be asked."
        )

    def _payload(self, ask: Ask, manner: _Manner) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": self._info.model,
            "messages": [{"role": one.role, "content": one.content} for one in ask.messages],
            manner.limit: ask.max_tokens,
        }
        if manner.temperature:
            payload["temperature"] = ask.temperature
        if manner.seed and ask.seed is not None:
            payload["seed"] = ask.seed
        if ask.schema is not None and manner.rung is Rung.SCHEMA:
            described = {"name": ask.name, "strict": True, "schema": ask.schema}
            payload["response_format"] = {"type": "json_schema", "json_schema": described}
        elif ask.schema is not None and manner.rung is Rung.OBJECT:
            payload["response_format"] = {"type": "json_object"}
        return payload


def describe(model: str, settings: ProviderSettings, *, server: str = "openai") -> ChatInfo:
    if not model:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, f"{server}: needs a chat model's name: {server}:MODEL.")
    return ChatInfo(spec=f"{server}:{model}", provider=server, model=model, base_url=_server(settings, server).url)


def _server(settings: ProviderSettings, name: str) -> ChatServer:
    if name == "openai":
        check_url(settings.openai_url, variable="OPENAI_BASE_URL")
        return ChatServer(
            name="openai", url=settings.openai_url, key=settings.openai_key, policy=settings.openai_policy
        )
    return settings.chat_server(name)


def _other_manner(manner: _Manner, error: ProviderError, ask: Ask) -> _Manner | None:
    """Another way of asking, where the refusal was of this one; None where it was of something else."""
    if error.fault is not ProviderFault.BAD_REQUEST:
        return None
    # The server's words follow the first colon after its name; the name itself could hold anything.
    said = error.message.partition("answered")[2]
    if _ABOUT_LIMIT.search(said) and manner.limit == "max_tokens":
        return replace(manner, limit="max_completion_tokens")
    if _ABOUT_TEMPERATURE.search(said) and manner.temperature:
        return replace(manner, temperature=False)
    if _ABOUT_SEED.search(said) and manner.seed and ask.seed is not None:
        return replace(manner, seed=False)
    if ask.schema is not None and manner.rung in _BELOW and (_ABOUT_FORM.search(said) or _says_nothing(said)):
        return replace(manner, rung=_BELOW[manner.rung])
    return None


def _says_nothing(said: str) -> bool:
    """A bare status: some servers refuse a form that they do not know without a word."""
    return ":" not in said


def _read(answer: Any, *, who: str, rung: Rung, n_calls: int) -> ChatReply:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        raise wrong_shape(who, "no message")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise wrong_shape(who, "a message that is not text")
    text = (content or "").strip()
    reason = first.get("finish_reason")
    if message.get("refusal") or reason == "content_filter":
        ending = Ending.REFUSED
        text = text or str(message.get("refusal") or "")
    elif reason == "length":
        ending = Ending.CUT
    else:
        ending = Ending.COMPLETE if text else Ending.EMPTY
    model = answer.get("model")
    return ChatReply(
        text=text,
        ending=ending,
        rung=rung,
        model=model if isinstance(model, str) else "",
        units={"chat_calls": float(n_calls), **_billed(answer.get("usage"))},
    )


def _billed(usage: Any) -> dict[str, float]:
    found = {}
    for name, key in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        value = usage.get(key) if isinstance(usage, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            found[name] = float(value)
    return found
