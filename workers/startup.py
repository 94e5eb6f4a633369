"""What a worker does around its tasks: fresh database connections, a pulse, and noticing a child's death."""

from typing import Any
from uuid import UUID

import redis
from billiard.exceptions import WorkerLostError
from celery import signals
from django.conf import settings
from django.core.checks import run_checks
from django.core.checks.messages import ERROR, WARNING, CheckMessage
from django.db import DatabaseError, close_old_connections, connection

from backend import dispatch, effective, logs
from backend.checks import TOUCHSTONE
from backend.queries import broker
from backend.search import pacing
from backend.services import sweeper

PULSE_SECONDS = 15.0
_log = logs.get("worker")


def connect() -> None:
    """Connect the handlers below. Celery keeps weak references, so they are module-level functions."""
    signals.task_prerun.connect(_before_task)
    signals.task_failure.connect(_after_failure)
    signals.worker_ready.connect(_ready)


def _before_task(**_: Any) -> None:
    # With reuse on, this is what lets a worker survive a restart of PostgreSQL (docs/decisions/0004).
    close_old_connections()


def _after_failure(sender: Any = None, exception: Any = None, kwargs: Any = None, **_: Any) -> None:
    """In the main process: a prefork child died over a slice. Its lease need not run out first."""
    if isinstance(exception, WorkerLostError) and sender is not None and sender.name == dispatch.WORK and kwargs:
        try:
            sweeper.child_died(UUID(kwargs["slice"]), delivery=int(kwargs["delivery"]))
        except DatabaseError:
            _log.warning("child_death_not_noted", slice=kwargs["slice"], exc_info=True)
        finally:
            # The main process forks: it must not keep a connection that a child would inherit.
            connection.close()


def _ready(sender: Any = None, **_: Any) -> None:
    lane = ",".join(sorted(str(queue.name) for queue in sender.task_consumer.queues))
    slots = int(sender.controller.concurrency)
    _check_settings(sender.app, n_slots=slots)
    if sender.controller.pool_cls.__module__.endswith("thread"):
        # Its slots are threads of this process; children of a prefork pool have one each.
        pacing.has_slots(slots)
    name = f"worker:{sender.hostname}"
    # On the worker's own timer, not in a thread: the main process forks children, and a thread would not survive it.
    sender.timer.call_repeatedly(PULSE_SECONDS, _pulse, (name, lane, slots))
    _pulse(name, lane, slots)
    _log.info("worker_ready", worker=name, lane=lane, slots=slots, lease_seconds=settings.SLICE_LEASE_SECONDS)


def _check_settings(app: Any, *, n_slots: int) -> None:
    """Those in force, not those that were written: tell each that costs something, and end where work would be lost."""
    try:
        found = [*run_checks(tags=[TOUCHSTONE]), *_effective(app, n_slots=n_slots)]
    finally:
        # As in _after_failure: nothing that a child would inherit.
        connection.close()
    for message in found:
        if message.level >= ERROR:
            _log.error("setting_refused", check=message.id, message=str(message.msg))
        elif message.level >= WARNING:
            _log.warning("setting_doubtful", check=message.id, message=str(message.msg))
    if any(message.level >= ERROR for message in found):
        raise SystemExit(1)


def _effective(app: Any, *, n_slots: int) -> list[CheckMessage]:
    def info() -> Any:
        client = broker.client()
        try:
            return client.info()
        finally:
            client.close()

    return effective.all_of(
        conf=app.conf,
        connection=connection,
        info=info,
        n_slots=n_slots,
        away=(DatabaseError, redis.RedisError, OSError),
    )


def _pulse(name: str, lane: str, slots: int) -> None:
    """Tell the database that this worker lives and how many slots it has: readiness and the pump read it."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO backend_pulse (name, at, lane, slots) VALUES (%s, now(), %s, %s) "
                "ON CONFLICT (name) DO UPDATE SET at = now(), lane = excluded.lane, slots = excluded.slots",
                [name, lane, slots],
            )
    except DatabaseError as error:
        _log.warning("pulse_failed", error=type(error).__name__)
    finally:
        connection.close()
