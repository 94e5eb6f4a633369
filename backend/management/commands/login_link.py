"""`manage.py login_link NAME`: a way in for whoever has lost theirs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from backend.core.errors import TouchstoneError
from backend.services import admins


class Command(BaseCommand):
    help = "Print a link that logs an account in once, within three days."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the account's name")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  the framework's signature
        try:
            self.stdout.write(admins.login_link(options["name"], now=timezone.now()))
        except TouchstoneError as error:
            raise CommandError(error.message) from error
