"""`manage.py rotate_keys`: seal the workspaces' provider keys with the first of TOUCHSTONE_SECRET_KEYS."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from backend.providers import sealing
from backend.services import audit, provider_keys


class Command(BaseCommand):
    help = (
        "Seal every workspace's provider keys anew. To change the key: put a new one before the old in "
        "TOUCHSTONE_SECRET_KEYS, restart, run this, take the old one out, restart."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--new", action="store_true", help="only print a new key")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  the framework's signature
        if options["new"]:
            self.stdout.write(sealing.new_key())
            return
        n, lost = provider_keys.rotate()
        audit.record(None, audit.Actor(id=audit.COMMAND), "rotate_keys", now=timezone.now(), target=f"{n} keys")
        self.stdout.write(f"{n} keys are sealed with the first of TOUCHSTONE_SECRET_KEYS.")
        if lost:
            listed = "\n".join(f"  {one}" for one in lost)
            raise CommandError(f"None of the keys opens {len(lost)} (workspace, provider); give them again:\n{listed}")
