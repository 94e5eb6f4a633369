"""Beat only ticks. A tick that waited longer than its interval is dropped: the next one does the same."""

from celery import Celery
from celery.schedules import crontab
from django.conf import settings

from backend import dispatch


def schedule(app: Celery) -> None:
    app.conf.beat_schedule = {
        "tick": {
            "task": dispatch.TICK,
            "schedule": settings.TICK_SECONDS,
            "options": {"expires": max(1.0, settings.TICK_SECONDS * 0.9), "queue": "control"},
        },
        "clean": {
            "task": dispatch.CLEAN,
            "schedule": crontab(minute="17", hour="3"),
            "options": {"expires": 3600.0, "queue": "control"},
        },
    }
