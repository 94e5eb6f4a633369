"""What the stand-in is told to do, and what it remembers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """How a call goes wrong. The ones after HTML answer 200 in the right format with the wrong content."""

    STATUS = "status"
    HANG = "hang"
    DRIP = "drip"
    DRIP_HEADERS = "drip_headers"
    RESET = "reset"
    TRUNCATED = "truncated"
    REDIRECT = "redirect"
    HTML = "html"
    NOT_THE_SHAPE = "not_the_shape"
    TOO_FEW = "too_few"
    TOO_MANY = "too_many"
    NAN = "nan"
    NOT_A_NUMBER = "not_a_number"
    DOUBLED_INDEX = "doubled_index"
    OUT_OF_RANGE = "out_of_range"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Behaviour of every call. `fault` strikes calls number `fault_from` (from 0) on, `n_faults` of them or all;
    with `fault_every=N` each Nth only.

    `status` with `fault="status"` (a `status` alone implies it); `retry_after` is the header's text, `body` replaces
    the provider's usual error body. `die_after=N`: N calls are answered, then every connection is reset.
    `order`: `overlap` scores by words in common (the same text always gets the same score), `reverse` scores each
    later passage higher than all before it. `key`: another bearer token gets a 401. `strikes`: what is other for calls
    whose query, or one of whose texts, ends in a word. `chat`: `fixed` replies with `chat_reply`, `works` does what it
    is asked (chat.py).
    """

    latency_seconds: float = 0.0
    fault: Fault | None = None
    fault_from: int = 0
    fault_every: int = 1
    n_faults: int | None = None
    status: int = 500
    retry_after: str | None = None
    body: str | None = None
    die_after: int | None = None
    order: str = "overlap"
    max_batch: int = 32
    dimensions: int = 64
    key: str | None = None
    chat_reply: str = "It is in the first passage."
    chat: str = "fixed"
    chat_manners: tuple[str, ...] = ()
    chat_words: Mapping[str, str] = field(default_factory=dict)
    strikes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of_call(self, body: Any) -> "Script":
        """The script as it is for a call with this body."""
        if not self.strikes or not isinstance(body, dict):
            return self
        given = body.get("query") or body.get("input") or body.get("texts") or ""
        for text in given if isinstance(given, list) else [given]:
            word = str(text).rpartition(" ")[2]
            if word in self.strikes:
                return replace(self, **self.strikes[word])
        return self

    def fault_of(self, number: int) -> Fault | None:
        """The fault that strikes the call with this number, counted from 0."""
        if self.fault is None or number < self.fault_from:
            return None
        if self.n_faults is not None and number >= self.fault_from + self.n_faults:
            return None
        return None if (number - self.fault_from) % self.fault_every else self.fault

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Script":
        known = {field.name for field in fields(cls)}
        unknown = set(data) - known
        if unknown:
            raise ValueError(f"a script has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}")
        values = dict(data)
        if values.get("fault") is not None:
            values["fault"] = Fault(values["fault"])
        values["chat_manners"] = tuple(values.get("chat_manners", ()))
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call. Times are Unix seconds; `status` 0 means that no answer was given."""

    number: int
    path: str
    body: Any
    headers: Mapping[str, str]
    started_at: float
    ended_at: float
    status: int

    def to_json(self) -> dict[str, Any]:
        """Without the headers: they hold keys."""
        return {
            "number": self.number,
            "path": self.path,
            "body": self.body,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "status": self.status,
        }
