"""`manage.py limits`: what a workspace may have, shown and changed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from backend.core.errors import TouchstoneError
from backend.models import Workspace
from backend.queries import spending
from backend.queries.lookups import get
from backend.services import limits

_OPTIONS = {
    "spend_per_month": "money for providers a month (UTC), in the currency of TOUCHSTONE_PRICES",
    "open_evaluations": "evaluations that have not ended",
    "questions_in_flight": "questions begun and not ended, of all its evaluations",
}


class Command(BaseCommand):
    help = "Show a workspace's limits and what it has spent this month; with options, change them first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", metavar="ID", help="needed where there are several")
        for name, meaning in _OPTIONS.items():
            parser.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=f"{meaning}; none: the installation's")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            workspace = _workspace(options["workspace"])
            changes = {name: _value(options[name]) for name in _OPTIONS if options[name] is not None}
            told = limits.change(workspace, changes) if changes else limits.of(workspace)
        except TouchstoneError as error:
            raise CommandError(f"{error.message} ({error.code})") from error
        month = spending.of_month(workspace, timezone.now().date().replace(day=1))
        self.stdout.write(f"{workspace.name} ({workspace.id})")
        for name in _OPTIONS:
            value = getattr(told, name)
            whose = "" if name in told.own else " (the installation's)"
            self.stdout.write(f"  {name}: {'no limit' if value is None else value}{whose}")
        self.stdout.write(f"  spent in {month.month}: {month.spent:,.2f} {month.currency}")


def _workspace(key: str | None) -> Workspace:
    if key:
        return get(Workspace.objects.all(), key, what="workspace")
    found = list(Workspace.objects.order_by("created_at")[:2])
    if len(found) != 1:
        raise CommandError("Name the workspace: --workspace ID.")
    return found[0]


def _value(text: str) -> Any:
    """A number as it is written; what is none is told so by the service."""
    if text == "none":
        return None
    return int(text) if text.isdigit() else text
