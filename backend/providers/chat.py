"""Chat models: what is asked of one and what comes back.

A reply that came is never an error here, whatever it says: cut, refused and empty replies are told by `ending`, since
what they mean differs by who asked. Calls that failed raise ProviderError as everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class Rung(StrEnum):
    """How the form of a reply was asked for: by a JSON schema, as any JSON object, or in words alone."""

    SCHEMA = "json_schema"
    OBJECT = "json_object"
    TEXT = "text"


class Ending(StrEnum):
    """How a reply ended. `cut`: at the limit of tokens; `refused`: by the model or its provider's filter."""

    COMPLETE = "complete"
    CUT = "cut"
    REFUSED = "refused"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInfo:
    """`spec` is how people name it (`openai:MODEL`, `NAME:MODEL`)."""

    spec: str
    provider: str
    model: str
    base_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to a model. `schema` describes the JSON object that is wanted, under `name`; None: free text."""

    name: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 1000
    temperature: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """What came back. `model` is the name that the server gives itself; `units` as billed, with the calls made (each
    rung that was refused is one)."""

    text: str
    ending: Ending
    rung: Rung
    model: str = ""
    units: Mapping[str, float] = field(default_factory=dict)


class ChatModel(Protocol):
    @property
    def info(self) -> ChatInfo: ...

    def reply(self, ask: Ask, *, timeout: float) -> ChatReply: ...


def system_and_user(system: str, user: str) -> tuple[Message, ...]:
    return (Message(role="system", content=system), Message(role="user", content=user))


def added(units: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sum of what several calls were billed."""
    total: dict[str, float] = {}
    for one in units:
        for name, amount in one.items():
            total[name] = total.get(name, 0.0) + amount
    return total
