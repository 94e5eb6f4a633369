"""`manage.py sweep`: repair once what died, as the beat's tick does every few seconds."""

import dataclasses
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from backend.services import sweeper

_SAID = {
    "n_rung_again": "lost messages sent again",
    "n_expired": "slices taken back from workers that died",
    "n_split": "of them split",
    "n_given_up": "slices given up",
    "n_advanced": "evaluations and ingestions moved on",
    "n_left_over": "slices of what has ended closed",
    "n_handed_out": "slices handed out",
}


class Command(BaseCommand):
    help = (
        "Repair once what died: lost messages, leases that ran out, evaluations that nobody closed. "
        "The beat process does the same every few seconds; run this where there is none."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the counts as JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        swept = dataclasses.asdict(sweeper.sweep())
        if options["json"]:
            self.stdout.write(json.dumps(swept))
            return
        done = [f"{swept[name]} {words}" for name, words in _SAID.items() if swept[name]]
        self.stdout.write("; ".join(done) if done else "Nothing to repair.")
        if swept["skipped_leases"]:
            self.stdout.write("Nobody swept for a while: workers get one more lease before theirs are taken back.")
