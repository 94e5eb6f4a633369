#!/usr/bin/env python
"""The shell's way in. `up` and `demo` start what is missing; every other command uses what runs, or says what to do."""

import os
import sys
from typing import NoReturn

from backend import embedded

STARTERS = frozenset({"up", "demo"})
NO_DATABASE = "No database answers. Start `touchstone up` in another terminal, or set DATABASE_URL."


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
    command = arguments[1] if len(arguments) > 1 else "help"
    given = any(os.environ.get(name) for name in _ADDRESSES)
    if not given and command not in STARTERS:
        try:
            running = embedded.attach(embedded.home_from(os.environ))
        except embedded.EmbeddedError as error:
            _end(f"{error}.")
        if running is not None:
            os.environ["DATABASE_URL"], os.environ["REDIS_URL"] = running.database_url, running.redis_url
    # Not before: settings read the addresses when they are loaded.
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(arguments)
    except OperationalError as error:
        # A failure to connect has no SQLSTATE; anything else is a fault worth its traceback.
        if getattr(error.__cause__, "sqlstate", None) is not None:
            raise
        if os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE"):
            _end(f"The database of DATABASE_URL does not answer: {error}")
        _end(NO_DATABASE)


_ADDRESSES = ("DATABASE_URL", "DATABASE_URL_FILE", "REDIS_URL", "REDIS_URL_FILE")


def _end(sentence: str) -> NoReturn:
    sys.stderr.write(f"{sentence.strip()}\n")
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv)
