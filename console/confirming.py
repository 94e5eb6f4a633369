"""The page that asks before something goes, and does it once it is answered with yes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from backend.core.errors import ErrorCode
from console import faults
from console.access import PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """`crumbs`: (label, address's name, its parts), outermost first; the last of them is the way back for a no. `then`
    is such a name with its parts: where `done` is told."""

    title: str
    sentence: str
    verb: str
    done: str
    crumbs: Sequence[tuple[str, str, tuple[object, ...]]]
    then: tuple[str, tuple[object, ...]]
    note: str = ""
    is_undoable: bool = False


def asked(request: PageRequest, asking: Asking, do: Callable[[], object]) -> HttpResponse:
    """GET asks. POST calls `do`; what it refuses is told on the page that asked, but that it is not there is a 404."""
    fault, status = None, 200
    if request.method == "POST":
        try:
            do()
        except faults.EXPECTED as error:
            if error.code == ErrorCode.NOT_FOUND:
                raise
            fault, status = faults.shown(error), faults.status_of(error)
        else:
            messages.success(request, asking.done)
            name, parts = asking.then
            return redirect(reverse(name, args=parts))
    return render(request, "confirm.html", {"asking": asking, "fault": fault}, status=status)
