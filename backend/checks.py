"""What must hold between settings, checked at every start (`manage.py check`, and each worker)."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connection
from django.db.utils import DatabaseError

from backend import production
from backend.core import prices
from backend.net.addresses import Policy
from backend.providers import sealing

PGVECTOR_WANTED = (0, 8, 4)
# Ours, told from Django's: a worker runs these alone.
TOUCHSTONE = "touchstone"


@register(TOUCHSTONE)
def leases_outlast_their_heartbeat(**_: Any) -> list[CheckMessage]:
    """A lease is renewed at least twice before it ends, else a busy worker loses work it is doing."""
    if settings.SLICE_HEARTBEAT_SECONDS * 2 > settings.SLICE_LEASE_SECONDS:
        return [
            Error(
                "TOUCHSTONE_HEARTBEAT_SECONDS must be at most half of TOUCHSTONE_LEASE_SECONDS.",
                hint="Leave it out: the default is a third of the lease.",
                id="touchstone.E001",
            )
        ]
    return []


@register(TOUCHSTONE)
def doorbells_outlive_the_tasks(**_: Any) -> list[CheckMessage]:
    """The broker hands a message out again only after its task must have ended."""
    timeout = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    if timeout < 2 * settings.CELERY_TASK_TIME_LIMIT:
        return [Error("visibility_timeout must be above twice the task's time limit.", id="touchstone.E002")]
    return []


@register(TOUCHSTONE)
def provider_calls_end_within_a_slice(**_: Any) -> list[CheckMessage]:
    if settings.PROVIDER_TIMEOUT_SECONDS >= settings.SLICE_DEADLINE_SECONDS:
        return [
            Error(
                "TOUCHSTONE_PROVIDER_TIMEOUT_SECONDS must be below TOUCHSTONE_SLICE_DEADLINE_SECONDS.",
                id="touchstone.E003",
            )
        ]
    return []


@register(TOUCHSTONE)
def prices_can_be_used(**_: Any) -> list[CheckMessage]:
    try:
        prices.parse(settings.PRICES)
    except ValueError as error:
        return [Error(f"TOUCHSTONE_PRICES cannot be used: {error}.", id="touchstone.E005")]
    return []


@register(TOUCHSTONE)
def secrets_can_be_used(**_: Any) -> list[CheckMessage]:
    """A missing one is refused by the web process alone (api/wsgi.py): a command gets by without."""
    found: list[CheckMessage] = []
    weak = settings.SECRET_KEY_IS_KEPT and production.weakness(settings.SECRET_KEY)
    if weak and not settings.DEBUG:
        found.append(Error(f"TOUCHSTONE_SECRET_KEY is weak: {weak}.", hint=production.HOW, id="touchstone.E050"))
    try:
        sealing.check(settings.SECRET_KEYS)
    except sealing.SealError as error:
        found.append(Error(f"TOUCHSTONE_SECRET_KEYS cannot be used: {error}.", id="touchstone.E051"))
    try:
        Policy.of(settings.URL_ALLOW)
    except ValueError as error:
        found.append(Error(f"TOUCHSTONE_URL_ALLOW cannot be used: {error}.", id="touchstone.E052"))
    return found


@register(Tags.database)
def pgvector_is_recent(databases: Any = None, **_: Any) -> list[CheckMessage]:
    if not databases:
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            row = cursor.fetchone()
    except DatabaseError as error:
        return [
            Error(
                f"The database does not answer: {error}",
                hint="Start `touchstone up` in another terminal, or set DATABASE_URL.",
                id="touchstone.E004",
            )
        ]
    if row and tuple(int(part) for part in row[0].split(".")) < PGVECTOR_WANTED:
        return [
            CheckWarning(
                f"pgvector {row[0]} has known faults in its HNSW index; 0.8.4 or newer is advised.",
                id="touchstone.W001",
            )
        ]
    return []
