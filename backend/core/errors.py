"""Every failure that is expected, with its code, a sentence for people and fields for machines.

Interfaces translate these (api/errors.py knows HTTP, the commands know exit codes); nothing here does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ErrorCode(StrEnum):
    """The names that scripts match on. Each has an entry in docs/troubleshooting.md."""

    EVAL_FILE = "EVAL_FILE"
    EVAL_CASE_INVALID = "EVAL_CASE_INVALID"
    EVAL_SET_EMPTY = "EVAL_SET_EMPTY"
    EVAL_TOO_LARGE = "EVAL_TOO_LARGE"
    KB_NOT_READY = "KB_NOT_READY"
    KB_EMPTY = "KB_EMPTY"
    PROVIDER_AUTH = "PROVIDER_AUTH"
    PROVIDER_BILLING = "PROVIDER_BILLING"
    PROVIDER_RATE = "PROVIDER_RATE"
    PROVIDER_TIMEOUT = "PROVIDER_TIMEOUT"
    PROVIDER_UNAVAILABLE = "PROVIDER_UNAVAILABLE"
    PROVIDER_BAD_ANSWER = "PROVIDER_BAD_ANSWER"
    PROVIDER_NOT_CONFIGURED = "PROVIDER_NOT_CONFIGURED"
    PROVIDER_QUOTA = "PROVIDER_QUOTA"
    PROVIDER_MODEL = "PROVIDER_MODEL"
    PROVIDER_BAD_REQUEST = "PROVIDER_BAD_REQUEST"
    SPEND_LIMIT = "SPEND_LIMIT"
    WORKER_LOST = "WORKER_LOST"
    DEADLINE = "DEADLINE"
    INTERNAL = "INTERNAL"
    DOCUMENT_TYPE = "DOCUMENT_TYPE"
    DOCUMENT_TOO_LARGE = "DOCUMENT_TOO_LARGE"
    DOCUMENT_ENCRYPTED = "DOCUMENT_ENCRYPTED"
    DOCUMENT_NO_TEXT = "DOCUMENT_NO_TEXT"
    DOCUMENT_UNREADABLE = "DOCUMENT_UNREADABLE"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    VALIDATION = "VALIDATION"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    RATE_LIMITED = "RATE_LIMITED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong in an input, with where it is."""

    code: ErrorCode
    message: str
    line: int | None = None
    field: str | None = None


class TouchstoneError(Exception):
    """An expected failure. `message` is a sentence a person can act on.

    `faults` holds every fault of a refused input (all are told together); a single fault's line and field
    are also those of the error.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        line: int | None = None,
        field: str | None = None,
        faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.field = field
        self.faults = tuple(faults)


def together(errors: Sequence[TouchstoneError]) -> TouchstoneError:
    """One refusal for several: the first one, so that its class still says what it is, with the faults of all. One
    alone stays as it is."""
    first = errors[0]
    if len(errors) > 1:
        faults: list[Fault] = []
        for error in errors:
            alone = Fault(code=error.code, message=error.message, line=error.line, field=error.field)
            faults += error.faults or [alone]
        first.faults = tuple(faults)
    return first


class NotFoundError(TouchstoneError):
    """The thing does not exist in the caller's workspace (or at all: the two are never told apart)."""

    def __init__(self, what: str, key: object) -> None:
        super().__init__(ErrorCode.NOT_FOUND, f"There is no {what} {key!s} in this workspace.")


class ConflictError(TouchstoneError):
    """The state of things forbids it now; the sentence says what would allow it."""

    def __init__(self, message: str, *, code: ErrorCode = ErrorCode.CONFLICT) -> None:
        super().__init__(code, message)


class ValidationError(TouchstoneError):
    """A field's value cannot be used. One fault per field; all are told together."""

    def __init__(self, message: str, *, field: str | None = None, faults: Sequence[Fault] = ()) -> None:
        super().__init__(ErrorCode.VALIDATION, message, field=field, faults=faults)


class QuestionSetError(TouchstoneError):
    """A question set is refused whole. Built from all its faults."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        if not faults:
            raise ValueError("a refused question set has at least one fault")
        first = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(first.code, first.message + more, line=first.line, field=first.field, faults=faults)


class DocumentError(TouchstoneError):
    """A document that cannot be indexed; stored on it, the others go on."""
