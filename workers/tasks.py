"""The tasks: ids only, thin. What they do is in backend.services."""

from typing import Any
from uuid import UUID

from django.utils import timezone

from backend import dispatch
from backend.celery_app import app
from backend.services import housekeeping, sweeper, watching, work


@app.task(name=dispatch.WORK, queue="search")
def work_slice(*, slice: str, delivery: int, **_: Any) -> None:  # noqa: A002  the field's name on the wire
    work.run(UUID(slice), delivery=delivery)


@app.task(name=dispatch.TICK, queue="control")
def tick(**_: Any) -> None:
    sweeper.tick()
    watching.tick(now=timezone.now())


@app.task(name=dispatch.CLEAN, queue="control")
def clean(**_: Any) -> None:
    housekeeping.clean(now=timezone.now())
