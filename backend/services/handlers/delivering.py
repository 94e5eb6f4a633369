"""`alert` jobs: one message to one target, tried until it arrives, or until its job's day is over."""

import smtplib
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F
from django.utils import timezone

from backend import logs
from backend.core import alerts as core
from backend.core.alerts import DeliveryState, TargetKind
from backend.models import Delivery, Job
from backend.services import alerts, jobs, webhooks
from backend.services.slices import Lease
from backend.services.webhooks import DeliveryError

_MOST_WAIT_SECONDS = 3600.0
_BEHIND_SECONDS = 5.0
_log = logs.get("alerts")


def run(lease: Lease, job: Job) -> Mapping[str, Any] | None:
    """The first that arrives ends it; what was sent and could not be noted is sent again under the same id."""
    delivery = Delivery.objects.select_related("target__workspace", "alert").filter(id=job.payload["delivery"]).first()
    if delivery is None or delivery.state != DeliveryState.PENDING:
        return {}
    now = timezone.now()
    if not delivery.target.enabled:
        alerts.end(delivery, DeliveryState.DROPPED, now=now, reason="The target was switched off.")
        return {"state": DeliveryState.DROPPED}
    if _has_earlier(delivery):
        # "Recovered" does not overtake "broke" while a receiver is away.
        raise jobs.LaterError(wait_seconds=min(_BEHIND_SECONDS, settings.ALERT_RETRY_SECONDS), used_try=False)
    Delivery.objects.filter(id=delivery.id).update(n_attempts=F("n_attempts") + 1)
    try:
        _send(delivery)
    except DeliveryError as error:
        age = (now - delivery.created_at).total_seconds()
        if error.for_good or age > settings.EVALUATION_DEADLINE_SECONDS - _MOST_WAIT_SECONDS:
            _log.warning("alert_not_delivered", delivery=str(delivery.id), attempts=delivery.n_attempts + 1)
            alerts.end(delivery, DeliveryState.FAILED, now=now, reason=error.reason)
            return {"state": DeliveryState.FAILED}
        Delivery.objects.filter(id=delivery.id).update(reason=error.reason)
        wait = min(_MOST_WAIT_SECONDS, settings.ALERT_RETRY_SECONDS * 2.0 ** min(lease.tries, 20))
        raise jobs.LaterError(wait_seconds=wait) from error
    with jobs.finishing(lease) as result:
        alerts.end(delivery, DeliveryState.DELIVERED, now=timezone.now())
        result["state"] = DeliveryState.DELIVERED
    return None


def _has_earlier(delivery: Delivery) -> bool:
    return (
        delivery.alert_id is not None
        and Delivery.objects.filter(
            target=delivery.target_id, alert=delivery.alert_id, state=DeliveryState.PENDING, id__lt=delivery.id
        ).exists()
    )


def _send(delivery: Delivery) -> None:
    if delivery.target.kind == TargetKind.WEBHOOK:
        webhooks.send(delivery, now=timezone.now())
        return
    subject = " ".join(f"[Touchstone] {delivery.body['title']}".split())
    message = EmailMessage(
        subject=subject[:200],
        body=core.to_text(delivery.body),
        to=[delivery.target.address],
        # The same on each attempt, so that a mailbox shows one.
        headers={"Message-ID": f"<{delivery.id}@touchstone>"},
    )
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as error:
        raise DeliveryError(f"The mail server did not take it ({type(error).__name__}).") from error
