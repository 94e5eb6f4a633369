"""`touchstone`: the commands put together, and how each way of ending becomes an exit code."""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from cli import documents, evaluating, gating, generating, output, rankings, reading, scheduling, server, sets
from cli.errors import ClientError
from touchstone import rules

app = typer.Typer(
    name="touchstone",
    help="Measure how well a search finds what answers people's questions.",
    epilog=(
        "Where the service is: TOUCHSTONE_URL and TOUCHSTONE_TOKEN, else what `touchstone up` left in .touchstone/. "
        "Exit codes: 0 done, 1 could not run, 2 wrong usage, 3 a quality rule broke, 4 only questions failed, "
        "130 interrupted."
    ),
    no_args_is_help=True,
    # A traceback with the values of variables would show tokens.
    pretty_exceptions_enable=False,
    add_completion=False,
)
for part in (server, documents, evaluating, reading, rankings, gating, scheduling, generating):
    app.registered_commands += part.app.registered_commands
app.add_typer(sets.app, name="sets")
app.add_typer(gating.baselines, name="baselines")
app.add_typer(scheduling.schedule, name="schedule")


def _version(asked: bool) -> None:  # noqa: FBT001  typer calls it so
    if asked:
        try:
            output.answer(f"touchstone {version('touchstone')}")
        except PackageNotFoundError:
            output.answer("touchstone (not installed as a package)")
        raise typer.Exit


@app.callback()
def main(
    version_: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure how well a search finds what answers people's questions."""


def run() -> None:
    """The entry point: never a traceback for what a person can act on."""
    try:
        app()
    except ClientError as error:
        sys.exit(output.fail(error))
    except KeyboardInterrupt:
        sys.exit(rules.INTERRUPTED)
    except BrokenPipeError:
        # `touchstone runs | head`: the reader has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(rules.DONE)


if __name__ == "__main__":
    run()
