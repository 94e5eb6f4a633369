"""`up` and `demo`: these two belong to the server, and start its `manage.py` in place of this process."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cli.errors import ClientError

app = typer.Typer()
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
_ROOT = Path(__file__).resolve().parent.parent


@app.command(context_settings=_PASSED_ON)
def up(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(help="Port of the page; 0 takes a free one. Default: 8000.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    search_workers: Annotated[int | None, typer.Option(help="Search processes. Default: one per core.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the logs of all processes.")] = False,
) -> None:
    """Run the service on this machine until Ctrl-C.

    Starts what is missing (PostgreSQL, broker, page, workers, clock), prints a link that signs you in, and where the
    token is.

    Examples:

      touchstone up
      touchstone up --port 0 --search-workers 2
    """
    given = [("--port", port), ("--host", host), ("--search-workers", search_workers)]
    options = [text for name, value in given if value is not None for text in (name, str(value))]
    _become("up", *options, *(["--verbose"] if verbose else []), *context.args)


@app.command(context_settings=_PASSED_ON)
def demo(
    context: typer.Context,
    handbook: Annotated[Path | None, typer.Option(help="Another folder than the sample handbook.")] = None,
) -> None:
    """See a first evaluation: the sample handbook in all four modes.

    Starts what is missing, reads the handbook, asks its 30 questions, prints the tables, and stops what it started.

    Examples:

      touchstone demo
      touchstone demo --handbook ./a-copy-with-a-file-deleted
    """
    _become("demo", *(["--handbook", str(handbook)] if handbook else []), *context.args)


def _become(*arguments: str) -> NoReturn:
    manage = _ROOT / "manage.py"
    if not manage.is_file() or importlib.util.find_spec("django") is None:
        raise ClientError(
            f"`touchstone {arguments[0]}` needs the server, and only the client is installed here. Get the repository"
            f" and run `make {arguments[0]}` in it, or set TOUCHSTONE_URL and TOUCHSTONE_TOKEN to use a server that"
            " runs elsewhere."
        )
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, str(manage), *arguments])  # noqa: S606  no shell is wanted
