"""Whether the service lives, and whether it can do its work."""

from collections.abc import Callable
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from backend import env
from backend.queries import pulses
from backend.version import RELEASE

_BROKER_TIMEOUT_SECONDS = 2


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001  the framework's signature
    """The process answers. Says nothing of what it needs."""
    return JsonResponse({"status": "ok", "version": RELEASE})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001  as above
    """The database, the broker, a fresh pulse from each lane of workers, the migrations; 503 names what is missing."""
    checks: dict[str, Callable[[], str]] = {
        "database": _database,
        "migrations": _migrations,
        "broker": _broker,
        "workers": _workers,
    }
    found = {name: _checked(check) for name, check in checks.items()}
    is_ready = all(one["ok"] for one in found.values())
    return JsonResponse(
        {"status": "ready" if is_ready else "not ready", "checks": found}, status=200 if is_ready else 503
    )


def _checked(check: Callable[[], str]) -> dict[str, Any]:
    """What a check complains of; its own failure names the error's class only: addresses may hold passwords."""
    try:
        fault = check()
    except (DatabaseError, redis.RedisError, OSError) as error:
        fault = f"does not answer ({type(error).__name__})"
    return {"ok": not fault, **({"detail": fault} if fault else {})}


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(missing)} migrations are not applied: run `python manage.py migrate`" if missing else ""


def _broker() -> str:
    client = redis.Redis.from_url(
        env.redis_for_client(settings.REDIS_URL),
        socket_timeout=_BROKER_TIMEOUT_SECONDS,
        socket_connect_timeout=_BROKER_TIMEOUT_SECONDS,
    )
    try:
        client.ping()
    finally:
        client.close()
    return ""


def _workers() -> str:
    missing = pulses.silent_lanes()
    return f"no worker has shown life in the last minute: {', '.join(missing)}" if missing else ""
