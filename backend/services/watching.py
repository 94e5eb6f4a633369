"""What a tick looks after beside repairs: slots that have come, closings nobody checked, providers that died."""

from dataclasses import dataclass
from datetime import datetime

from backend.services import alerts, closings, schedules


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    n_started: int
    n_closings: int
    n_alerts: int


def tick(*, now: datetime) -> Watched:
    """Any number of these at once is harmless."""
    return Watched(
        n_started=schedules.fire_due(now=now),
        n_closings=closings.repair(),
        n_alerts=alerts.watch_providers(now=now),
    )
