"""Who changed what. Interfaces record it for every change that went through (api/base.py, console/access.py): a service
need not think of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction

from backend import logs
from backend.models import AuditEvent, Workspace

MOST_FIELDS = 50
COMMAND = "command"
_BATCH = 10_000
_log = logs.get("audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """`id` is `token:ID`, `user:ID` or `command`; `name` that of the token or user, as it was then."""

    id: str
    name: str = ""
    user: User | None = None


def record(
    workspace: Workspace | None,
    actor: Actor,
    action: str,
    *,
    now: datetime,
    target: str = "",
    fields: Iterable[str] = (),
    request_id: str = "",
) -> None:
    """One line of the log. `action` is what was done, `target` to what; `fields` names what was sent, never its values.

    The change has been made when this is called: where the line cannot be written the change stands, and the
    process's log tells the line.
    """
    # The line of a workspace's own end is nobody's.
    is_there = workspace is not None and Workspace.objects.filter(id=workspace.id).exists()
    event = AuditEvent(
        workspace=workspace if is_there else None,
        workspace_name="" if workspace is None else workspace.name,
        at=now,
        caller=actor.id[:80],
        caller_name=actor.name[:200],
        user=actor.user,
        action=action[:200],
        target=target[:500],
        fields=sorted({name[:80] for name in fields})[:MOST_FIELDS],
        request_id=request_id[:100],
    )
    try:
        with transaction.atomic():
            event.save(force_insert=True)
    except DatabaseError as error:
        _log.error("not_recorded", caller=event.caller, action=event.action, target=event.target, error=str(error))


def forget(*, now: datetime) -> int:
    """Delete what is older than TOUCHSTONE_AUDIT_DAYS. For the daily cleaning."""
    n = 0
    before = now - timedelta(days=settings.AUDIT_DAYS)
    while True:
        ids = list(AuditEvent.objects.filter(at__lt=before).order_by("at").values_list("id", flat=True)[:_BATCH])
        n += AuditEvent.objects.filter(id__in=ids).delete()[0]
        if len(ids) < _BATCH:
            return n
