"""`manage.py up`: everything on this machine, started, watched and stopped together."""

import json
import subprocess
import sys
import time
from argparse import SUPPRESS
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend import embedded
from backend.embedded.paths import token_file
from backend.embedded.stack import Bootstrap, Stack, run_stack
from backend.services import workspaces


class Command(BaseCommand):
    help = "Start what is missing (PostgreSQL, broker, page, workers, clock) and keep it running until Ctrl-C."
    # There is no database yet to check.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the page; 0 takes a free one (8000)")
        parser.add_argument(
            "--host",
            default="127.0.0.1",
            help="address to listen on (127.0.0.1); for another machine's browser name it in TOUCHSTONE_HOSTS too",
        )
        parser.add_argument("--search-workers", type=int, metavar="N", help="search processes (one per core)")
        parser.add_argument("--verbose", action="store_true", help="show the logs of all processes here")
        parser.add_argument("--only-bootstrap", action="store_true", help=SUPPRESS)

    def handle(self, *_: Any, **options: Any) -> None:
        if options["only_bootstrap"]:
            kept = token_file(settings.HOME)
            first = workspaces.bootstrap(existing_token=kept.read_text().strip() if kept.exists() else None)
            self.stdout.write(json.dumps({"login_url_path": first.login_url_path, "token": first.token}))
            return
        if options["search_workers"] is not None and options["search_workers"] < 1:
            raise CommandError("--search-workers must be at least 1.")
        owned = True
        try:
            with run_stack(
                home=settings.HOME,
                project=settings.BASE_DIR,
                bootstrap=bootstrap,
                say=Progress(self.stdout.write),
                host=options["host"],
                port=options["port"],
                search_workers=options["search_workers"],
                verbose=options["verbose"] or options["verbosity"] > 1,
            ) as stack:
                owned = stack.owned
                self._introduce(stack)
                _follow(stack)
        except KeyboardInterrupt:
            # Somebody asked for it: that is success, not 130.
            self.stdout.write("Stopped." if owned else "The view ended; the service goes on.")
        except embedded.EmbeddedError as error:
            raise CommandError(str(error)) from error

    def _introduce(self, stack: Stack) -> None:
        login_url = stack.login_url
        if not stack.owned:
            self.stdout.write(f"\nAlready running at {stack.base_url}; following it. A moment for a new link …")
            self.stdout.flush()
            # The link of the first start works once: this is how to get another.
            login_url = f"{stack.base_url}{bootstrap(stack.environment).login_url_path}"
        self.stdout.write(f"\n  page    {login_url}   (signs you in, once)\n          {stack.base_url}")
        self.stdout.write(f"  token   in {stack.token_file}")
        self.stdout.write(f"  logs    in {stack.logs}")
        self.stdout.write(
            "\nCtrl-C stops everything.\n" if stack.owned else "\nCtrl-C ends this view; the stack goes on.\n"
        )
        self.stdout.flush()


class Progress:
    """Each step with the seconds since the beginning."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self._write = write
        self._began = time.monotonic()

    def __call__(self, sentence: str) -> None:
        self._write(f"[{time.monotonic() - self._began:6.1f} s] {sentence}")


def bootstrap(environment: Mapping[str, str]) -> Bootstrap:
    """The first workspace, made in a process of its own.

    This one loaded its settings before there was a database, and stays without a connection for as long as the
    stack runs.
    """
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "up", "--only-bootstrap"]
    done = subprocess.run(
        command, env=dict(environment), cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise embedded.EmbeddedError(f"the first workspace could not be made:\n{done.stderr.strip()}")
    return Bootstrap(**json.loads(done.stdout.splitlines()[-1]))


def _follow(stack: Stack) -> None:
    try:
        stack.watch()
    except embedded.EmbeddedError as error:
        if stack.owned:
            raise
        # Somebody stopped it: no fault of ours.
        stack.say(f"{error}.")
