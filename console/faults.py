"""What went wrong, as a page shows it: above the form and at its fields, or as a page of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from backend.core.errors import ErrorCode, Fault, TouchstoneError
from backend.providers.base import ProviderError

EXPECTED = (TouchstoneError, ProviderError)
MOST_SHOWN = 100
_STATUS: dict[ErrorCode, int] = {
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.CONFLICT: 409,
    ErrorCode.KB_NOT_READY: 409,
    ErrorCode.KB_EMPTY: 409,
    ErrorCode.SPEND_LIMIT: 409,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.INTERNAL: 500,
}
# Where to look for what is not there: by the first part of the address, a page's name and what it is called.
_LISTS = {
    "alerts": ("alerts", "All alerts"),
    "baselines": ("baselines", "All baselines"),
    "bases": ("bases", "All knowledge bases"),
    "compare": ("compare", "Choose runs to compare"),
    "drafts": ("drafts", "All drafts"),
    "evaluations": ("evaluations", "All evaluations"),
    "gates": ("gates", "All gates"),
    "jobs": ("jobs", "All jobs"),
    "runs": ("evaluations", "All evaluations and their runs"),
    "schedules": ("schedules", "All schedules"),
    "sets": ("sets", "All question sets"),
}
_TITLES = {403: "Not allowed", 404: "Not found", 409: "Not possible now", 429: "Too many requests"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """For `partials/faults.html`. `rows` are the first of `n_rows` faults, `by_field` the sentence of each field."""

    code: str
    message: str
    rows: tuple[Fault, ...]
    n_rows: int
    by_field: Mapping[str, str]

    @property
    def n_more(self) -> int:
        return self.n_rows - len(self.rows)


def shown(error: TouchstoneError | ProviderError, *, inside: str = "") -> Shown:
    """Of an error that a form's submission raised. `inside`: what the form stands for in the service's eyes, such as
    `questions[0].`, which is taken off the fields' names and their sentences."""
    found: tuple[Fault, ...] = tuple(_within(fault, inside) for fault in getattr(error, "faults", ()))
    message = found[0].message if inside and len(found) == 1 else error.message
    by_field: dict[str, str] = {}
    for fault in found:
        if fault.field and fault.field not in by_field:
            by_field[fault.field] = fault.message
    field = getattr(error, "field", None)
    if field and not by_field:
        by_field[field] = error.message
    return Shown(code=error.code.value, message=message, rows=found[:MOST_SHOWN], n_rows=len(found), by_field=by_field)


def _within(fault: Fault, inside: str) -> Fault:
    """The sentence without the place, which the page shows beside it."""
    if fault.line is not None:
        told = fault.message.removeprefix(f"line {fault.line}: ")
        return replace(fault, message=told[:1].upper() + told[1:])
    if not inside or not fault.field:
        return fault
    told = fault.message.removeprefix(f"{fault.field}: ")
    # A form has one field for a list: a fault of an entry is told there.
    name = fault.field.removeprefix(inside).partition("[")[0]
    return replace(fault, field=name, message=told[:1].upper() + told[1:])


def status_of(error: TouchstoneError | ProviderError) -> int:
    return _STATUS.get(error.code, 422)


def page_of(request: HttpRequest, error: TouchstoneError | ProviderError) -> HttpResponse:
    """A page of its own, for what no form is there to show."""
    return page(request, status=status_of(error), code=error.code, message=error.message)


def page(request: HttpRequest, *, status: int, code: ErrorCode, message: str) -> HttpResponse:
    problem = {
        "title": _TITLES.get(status, "This cannot be done"),
        "detail": message,
        "status": status,
        "code": code.value,
        "request_id": request.META.get("touchstone.request_id", ""),
    }
    instead = _LISTS.get(request.path.split("/")[1]) if code == ErrorCode.NOT_FOUND else None
    return render(request, "problem.html", {"problem": problem, "instead": instead}, status=status)
