"""What a call can end with."""

from collections.abc import Sequence
from dataclasses import dataclass


class ClientError(Exception):
    """Something that the caller can act on; the message is a sentence."""


class UsageError(ClientError):
    """What was asked for makes no sense as it is written."""


class UnreachableError(ClientError):
    """Nothing answers at the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of several things that are wrong in what was sent."""

    code: str
    detail: str
    line: int | None = None
    field: str | None = None


class ApiError(ClientError):
    """The service refused, and said why: `code` is what scripts match on, `faults` holds all that is wrong."""

    def __init__(
        self,
        detail: str,
        *,
        status: int,
        code: str,
        faults: Sequence[Fault] = (),
        n_faults: int = 0,
        request_id: str = "",
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.faults = tuple(faults)
        self.n_faults = max(n_faults, len(self.faults))
        self.request_id = request_id
