"""What is printed, and where: answers on stdout, all else on stderr; colour and bars only on a terminal."""

import json
import os
import re
import sys
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from cli.errors import ApiError, ClientError, UsageError
from touchstone import rules

_CELL = re.compile(r"(?<=  )(miss|error|n/a|not run|cancelled)(?=\s|$)")
_MOST_FAULTS = 100


def answer(text: str) -> None:
    """On stdout, as it is; misses and errors coloured on a terminal."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal:
        print(text)
        return
    shown = Text(text)
    for found in _CELL.finditer(text):
        shown.stylize("red" if found[1] == "error" else "yellow" if found[1] == "miss" else "dim", *found.span())
    console.print(shown)


def answer_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def note(text: str) -> None:
    """For the person, not for a pipe."""
    Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(text)


def end(code: int) -> NoReturn:
    sys.stdout.flush()
    raise typer.Exit(code)


def fail(error: ClientError) -> int:
    """Tell what went wrong; returns the exit code."""
    if not isinstance(error, ApiError):
        note(str(error))
        return rules.WRONG_USAGE if isinstance(error, UsageError) else rules.COULD_NOT_RUN
    if error.status == 401:
        note(f"{error.detail} ({error.code})\n{_token_advice()}")
    elif len(error.faults) > 1:
        note(f"{error.n_faults} faults, and nothing was done:")
        for fault in error.faults[:_MOST_FAULTS]:
            note(f"  {_placed(fault.detail, fault.line, fault.field)} ({fault.code})")
        if error.n_faults > len(error.faults):
            note(f"  and {error.n_faults - len(error.faults)} more")
    else:
        line, field = (error.faults[0].line, error.faults[0].field) if error.faults else (None, None)
        note(f"{_placed(error.detail, line, field)} ({error.code})")
    if error.status >= 500:
        note(f"The service's log has more under the request id {error.request_id}.")
    return rules.WRONG_USAGE if error.code == "VALIDATION" and error.status == 422 else rules.COULD_NOT_RUN


def _token_advice() -> str:
    if os.environ.get("TOUCHSTONE_TOKEN"):
        return "It was sent because TOUCHSTONE_TOKEN holds it. Set a valid one, or unset it where `touchstone up` runs."
    return "Set TOUCHSTONE_TOKEN, or run this where `touchstone up` runs."


def _placed(detail: str, line: int | None, field: str | None) -> str:
    """The sentence with its line, where it does not say it itself."""
    if line is not None and f"line {line}" not in detail:
        return f"line {line}: {detail}"
    if line is None and field and field.rpartition(".")[2] not in detail:
        return f"{field}: {detail}"
    return detail
