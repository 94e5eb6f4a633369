"""A POST that is sent twice is done once: the first answer is kept under its Idempotency-Key."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, transaction

from backend.core.errors import ConflictError, Fault, ValidationError
from backend.core.errors import ErrorCode as Code
from backend.models import IdempotencyRecord, Workspace

KEPT = timedelta(hours=24)
MAX_KEY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered: `body` is JSON values. `repeated`: it was kept from the first request."""

    status: int
    body: Any
    location: str = ""
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What makes two requests one: the caller, the route, the key; `body_hash` must then be the same too."""

    workspace: Workspace
    caller: str
    route: str
    key: str
    body_hash: str


def body_hash(*parts: Any) -> str:
    """Over canonical JSON."""
    data = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(data.encode()).hexdigest()


def once(request: Request, answer: Callable[[], Answer], *, now: datetime) -> Answer:
    """The first answer to this request; `answer` runs only where there is none, in the transaction that keeps it.

    Of two at once, the second waits for the first and gets its answer. An error is no answer: it rolls back, and the
    key is free again. Raises ConflictError when the key was used with another body, or the wait takes too long.
    """
    if not request.key.strip() or len(request.key) > MAX_KEY or not request.key.isprintable():
        raise ValidationError(
            f"An Idempotency-Key is 1 to {MAX_KEY} printable characters.",
            field="Idempotency-Key",
            faults=[
                Fault(
                    code=Code.VALIDATION,
                    message=f"An Idempotency-Key is 1 to {MAX_KEY} printable characters.",
                    field="Idempotency-Key",
                )
            ],
        )
    mine = IdempotencyRecord.objects.filter(
        workspace=request.workspace, caller=request.caller, route=request.route, key=request.key
    )
    with transaction.atomic():
        mine.filter(created_at__lt=now - KEPT).delete()
        record = IdempotencyRecord(
            workspace=request.workspace,
            caller=request.caller,
            route=request.route,
            key=request.key,
            body_hash=request.body_hash,
        )
        if _insert(record):
            given = answer()
            mine.filter(id=record.id).update(status=given.status, location=given.location, body=given.body)
            return given
        first = mine.get()
    if first.body_hash != request.body_hash:
        raise ConflictError("This Idempotency-Key was used with another body. Take a new key for a new request.")
    return Answer(status=first.status, body=first.body, location=first.location, repeated=True)


def forget(*, now: datetime) -> int:
    """Delete the answers that are older than a day. For the sweeper, once in a while."""
    return IdempotencyRecord.objects.filter(created_at__lt=now - KEPT).delete()[0]


def _insert(record: IdempotencyRecord) -> bool:
    """False when the key is there already; waits for one that is being inserted."""
    try:
        with transaction.atomic():
            IdempotencyRecord.objects.bulk_create([record], ignore_conflicts=True)
    except OperationalError as error:  # lock_timeout
        raise ConflictError("The first request with this Idempotency-Key is still being answered.") from error
    return IdempotencyRecord.objects.filter(id=record.id).exists()
