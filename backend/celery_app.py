"""The Celery client: a name and a configuration. It knows no task; workers/ registers them."""

from celery import Celery

app = Celery("touchstone", set_as_current=False)
app.config_from_object("django.conf:settings", namespace="CELERY")
