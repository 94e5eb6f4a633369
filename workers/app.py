"""The Celery entry point: `celery -A workers.app worker`. Sets Django up, then registers tasks, ticks and start-up."""

import gc
import os

import django

# Nothing that an import makes is garbage: looking for it while they run is a fifth of a worker's start.
gc.disable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
# Celery would run every check of Django's, which loads all addresses and pages: a third of the start, and 20 MB in each
# process. `release` has run them; what a worker must know it checks itself (workers/startup.py).
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
django.setup()

from backend.celery_app import app  # noqa: E402  after Django is set up
from workers import broker, startup, tasks, ticks  # noqa: E402

app.set_default()
ticks.schedule(app)
startup.connect()
broker.connect()
# What stays for as long as the process is never looked through again, nor copied into a child for having been.
gc.freeze()
gc.enable()

__all__ = ["app", "tasks"]
