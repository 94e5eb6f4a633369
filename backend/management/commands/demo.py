"""`manage.py demo`: from nothing to the first evaluation, with the sample handbook, in one command."""

import subprocess
import sys
import time
from argparse import SUPPRESS
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend import embedded
from backend.core.errors import TouchstoneError
from backend.embedded.stack import Stack, run_stack
from backend.management import demonstration, following
from backend.management.commands.up import Progress, bootstrap
from touchstone import program, rules

HANDBOOK = settings.BASE_DIR / "examples" / "handbook"
_LOOK_SECONDS = 0.2
_NEXT = """What to do next with your own documents:
  {touchstone} up                        in one terminal; then, in another:
  {touchstone} ingest ./docs             a folder of yours, with its sub-folders
  {touchstone} sets template > my.jsonl  put your questions in
  {touchstone} evaluate my.jsonl -b docs
  {touchstone} compare RUN RUN           when you have changed something and evaluated again"""


class Command(BaseCommand):
    help = "Start what is missing, read the sample handbook, evaluate every mode, print the tables, and stop again."
    # There is no database yet to check.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--handbook",
            type=Path,
            default=HANDBOOK,
            metavar="FOLDER",
            help="another folder instead of examples/handbook, such as a copy with a file deleted",
        )
        parser.add_argument("--port", type=int, default=0, help="port of the page meanwhile (a free one)")
        parser.add_argument("--verbose", action="store_true", help="show the logs of all processes here")
        parser.add_argument("--only-measure", action="store_true", help=SUPPRESS)

    def handle(self, *_: Any, **options: Any) -> None:
        folder = options["handbook"].resolve()
        if not folder.is_dir():
            raise CommandError(f"There is no folder {options['handbook']}.", returncode=rules.WRONG_USAGE)
        if options["only_measure"]:
            self._measure(folder)
            return
        began = time.monotonic()
        try:
            with run_stack(
                home=settings.HOME,
                project=settings.BASE_DIR,
                bootstrap=bootstrap,
                say=Progress(self._say),
                port=options["port"],
                verbose=options["verbose"],
            ) as stack:
                if not stack.owned:
                    self._say(f"Touchstone runs already at {stack.base_url}: using it.")
                code = _watched(stack, folder)
                if code == 0:
                    self._introduce(stack, seconds=time.monotonic() - began)
        except KeyboardInterrupt:
            self._say(f"Interrupted. What was measured is kept; `{program.name()} up` goes on with it.")
            sys.exit(rules.INTERRUPTED)
        except embedded.EmbeddedError as error:
            raise CommandError(str(error)) from error
        if code:
            sys.exit(code)

    def _introduce(self, stack: Stack, *, seconds: float) -> None:
        self._say(f"\nDone in {seconds:.0f} s. The runs are kept in {stack.home}.")
        if stack.owned:
            self._say(f"To look at them: `{program.name()} up` prints a link that signs you in.\n")
        else:
            self._say(f"To look at them: {stack.base_url}\n")
        self._say(f"{_NEXT.format(touchstone=program.name())}\n")

    def _measure(self, folder: Path) -> None:
        """In a process of its own, which loaded its settings when there was a database."""
        try:
            demonstration.run(folder, say=self._say, stream=sys.stderr)
        except TouchstoneError as error:
            self.stderr.write(following.faults(error))
            sys.exit(rules.COULD_NOT_RUN)
        except KeyboardInterrupt:
            sys.exit(rules.INTERRUPTED)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _watched(stack: Stack, folder: Path) -> int:
    """Measure in a process of its own, and keep the stack alive meanwhile."""
    command = [
        sys.executable,
        str(settings.BASE_DIR / "manage.py"),
        "demo",
        "--only-measure",
        "--handbook",
        str(folder),
    ]
    child = subprocess.Popen(command, env=stack.environment, cwd=settings.BASE_DIR)
    try:
        while child.poll() is None:
            stack.check()
            time.sleep(_LOOK_SECONDS)
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
    return child.returncode
