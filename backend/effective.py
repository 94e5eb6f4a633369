"""The settings that are in force, whatever was written: looked at by each worker at its start (workers/startup.py).

Each finding has an id that docs/operations.md explains. An Error keeps a worker from starting: with it, work would be
lost, repeated or wrong. A Warning costs time or safety.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.db.backends.base.base import BaseDatabaseWrapper

OLDEST_POSTGRES = 15
OLDEST_BROKER = (6, 2)


def of_celery(conf: Mapping[str, Any]) -> list[CheckMessage]:
    """Celery's own, which a command line or another setting may have changed."""
    timeout = dict(conf["broker_transport_options"] or {}).get("visibility_timeout") or 3600
    limit = conf["task_time_limit"] or float("inf")
    rules: list[tuple[bool, str, str]] = [
        (timeout >= 2 * limit, "E010", f"visibility_timeout is {timeout} s, below twice task_time_limit ({limit} s)"),
        (limit > settings.SLICE_DEADLINE_SECONDS, "E011", "task_time_limit ends slices before their own deadline"),
        (not conf["result_backend"], "E012", "result_backend is set: results are rows, and a broker keeps none"),
        (bool(conf["task_acks_late"]), "E013", "task_acks_late is off: a killed worker loses its messages"),
        (
            not conf["task_reject_on_worker_lost"],
            "E014",
            "task_reject_on_worker_lost is on: a question that kills its worker would come back without end",
        ),
        (list(conf["accept_content"]) == ["json"], "E015", "accept_content is not json alone: messages could run code"),
    ]
    found: list[CheckMessage] = [Error(f"{text}.", id=f"touchstone.{key}") for holds, key, text in rules if not holds]
    if conf["worker_prefetch_multiplier"] != 1:
        found.append(
            CheckWarning("worker_prefetch_multiplier is not 1: slices wait at busy workers.", id="touchstone.W010")
        )
    return found


def of_database(connection: BaseDatabaseWrapper, *, n_slots: int = 0) -> list[CheckMessage]:
    """PostgreSQL as this process finds it; `n_slots` connections are still to come. Raises DatabaseError."""
    wanted = ("server_version_num", "fsync", "full_page_writes", "synchronous_commit", "max_connections")
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(wanted)])
        told = dict(cursor.fetchall())
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
        n_connected = int(cursor.fetchone()[0])
    found: list[CheckMessage] = []
    if getattr(connection.connection, "prepare_threshold", None) is not None:
        found.append(
            Error(
                "Statements are prepared (prepare_threshold): a cached plan can turn an exact search into an "
                "approximate one.",
                hint="Take prepare_threshold out of DATABASE_URL.",
                id="touchstone.E020",
            )
        )
    if int(told["server_version_num"]) < OLDEST_POSTGRES * 10_000:
        found.append(CheckWarning(f"PostgreSQL is older than {OLDEST_POSTGRES}.", id="touchstone.W020"))
    unsafe = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if told[name] == "off"]
    if unsafe:
        found.append(
            CheckWarning(
                f"{', '.join(unsafe)} is off: a crash of the machine loses results that were told as done.",
                id="touchstone.W021",
            )
        )
    if n_connected + n_slots > 0.9 * int(told["max_connections"]):
        found.append(
            CheckWarning(
                f"{n_connected} of {told['max_connections']} connections are taken, and this worker needs up to "
                f"{n_slots}.",
                id="touchstone.W022",
            )
        )
    return found


def of_broker(info: Mapping[str, Any]) -> list[CheckMessage]:
    """Redis or Valkey, by its own INFO."""
    found: list[CheckMessage] = []
    version = tuple(int(part) for part in str(info.get("redis_version", "0")).split(".")[:2] if part.isdigit())
    if version < OLDEST_BROKER:
        found.append(Error("The broker is older than Redis 6.2, which Celery needs.", id="touchstone.E030"))
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        found.append(
            CheckWarning(
                f"The broker's maxmemory-policy is {policy}: it throws messages away when it is full. Set noeviction.",
                id="touchstone.W030",
            )
        )
    if int(info.get("loading", 0)):
        found.append(CheckWarning("The broker is still loading its data.", id="touchstone.W031"))
    return found


def all_of(
    *,
    conf: Mapping[str, Any],
    connection: BaseDatabaseWrapper,
    info: Callable[[], Mapping[str, Any]],
    n_slots: int,
    away: tuple[type[Exception], ...],
) -> list[CheckMessage]:
    """The three together. What is away (those errors) is not checked and said so: a worker waits for it."""
    found = of_celery(conf)
    looks: dict[str, Callable[[], list[CheckMessage]]] = {
        "database": lambda: of_database(connection, n_slots=n_slots),
        "broker": lambda: of_broker(info()),
    }
    for what, look in looks.items():
        try:
            found += look()
        except away as error:
            found.append(
                CheckWarning(f"The {what} does not answer ({type(error).__name__}): unchecked.", id="touchstone.W040")
            )
    return found
