"""Beat only ticks. One that comes soon after another does nothing (`sweeper.tick`), and old ones are dropped."""

from celery import Celery
from celery.schedules import crontab
from django.conf import settings

from backend import dispatch

# Long: a tick expires by the clock of the worker that takes it, and no clock that is a few seconds or an hour ahead of
# beat's may stop the sweeper.
_EXPIRES_SECONDS = 2 * 3600.0


def schedule(app: Celery) -> None:
    app.conf.beat_schedule = {
        "tick": {
            "task": dispatch.TICK,
            "schedule": settings.TICK_SECONDS,
            "options": {"expires": _EXPIRES_SECONDS, "queue": "control"},
        },
        "clean": {
            "task": dispatch.CLEAN,
            "schedule": crontab(minute="17", hour="3"),
            "options": {"expires": _EXPIRES_SECONDS, "queue": "control"},
        },
    }
