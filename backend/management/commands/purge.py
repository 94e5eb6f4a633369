"""`manage.py purge`: empty the queues. No work is lost: it is handed out anew."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.core.errors import ConflictError
from backend.services import purging


class Command(BaseCommand):
    help = (
        "Throw away the messages that wait in the broker and hand the work out anew: for queues that are full of old "
        "messages, or were filled by something else. Loses no work; what workers are at goes on."
    )

    def handle(self, *_: Any, **__: Any) -> None:
        try:
            done = purging.purge()
        except ConflictError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            f"{done.n_messages} messages thrown away; {done.n_waiting} slices wait again, {done.n_handed_out} of them "
            "handed out."
        )
