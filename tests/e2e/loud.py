"""The service's settings with every logger at DEBUG: the provider clients', Celery's, the database's."""

from backend import settings
from backend.settings import *  # noqa: F403  settings are a module's names

_NAMES = (
    "touchstone celery kombu amqp django django.db django.db.backends django.request httpx httpcore cohere openai"
    " urllib3 redis psycopg asyncio"
)
LOGGING = {
    **settings.LOGGING,
    "root": {"handlers": ["stderr"], "level": "DEBUG"},
    "loggers": {name: {"level": "DEBUG"} for name in _NAMES.split()},
}
