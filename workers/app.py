"""The Celery entry point: `celery -A workers.app worker`. Sets Django up, then registers tasks, ticks and start-up."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
django.setup()

from backend.celery_app import app  # noqa: E402  after Django is set up
from workers import broker, startup, tasks, ticks  # noqa: E402

app.set_default()
ticks.schedule(app)
startup.connect()
broker.connect()

__all__ = ["app", "tasks"]
