"""`manage.py create_admin NAME`: the first admin of an installation, or of a workspace."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from backend.core.errors import TouchstoneError
from backend.services import admins


class Command(BaseCommand):
    help = "Make somebody an admin of a workspace (made where it is missing), and print a link that logs them in once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the account's name")
        parser.add_argument("--workspace", default="default", help="the workspace's name (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  the framework's signature
        try:
            path = admins.make(options["name"], workspace=options["workspace"], now=timezone.now())
        except TouchstoneError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{options['name']} is an admin of {options['workspace']}.")
        self.stdout.write(f"Log in, once, within three days, at the service's address with this path:\n  {path}")
