"""Webhooks: signed, and sent. docs/nightly.md tells receivers how to check the signature."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import httpcore
from django.conf import settings
from django.utils.crypto import salted_hmac

from backend.models import AlertTarget, Delivery
from backend.net import safe_http
from backend.net.safe_http import Policy, UnsafeUrlError
from backend.version import CODE_VERSION

TIMEOUT_SECONDS = 10.0
_GONE = 410


class DeliveryError(Exception):
    """Not delivered. `for_good`: trying again cannot help."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.for_good = for_good


def policy() -> Policy:
    """Which addresses may be called (TOUCHSTONE_URL_ALLOW)."""
    return Policy.of(settings.URL_ALLOW)


def secret_of(target: AlertTarget) -> str:
    """What the receiver checks signatures with. Derived from the service's secret key, so that no copy of the database
    holds it; another number gives another secret."""
    made = salted_hmac("touchstone.webhook", f"{target.id}:{target.secret_number}", algorithm="sha256")
    return f"whsec_{made.hexdigest()}"


def signature(secret: str, *, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over `timestamp.body`, in hex."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def send(delivery: Delivery, *, now: datetime) -> None:
    """One attempt. Raises DeliveryError for everything but an answer below 300."""
    body = encode(delivery.body)
    try:
        answer = safe_http.post(
            delivery.target.address,
            body,
            headers=headers_of(delivery, body, now=now),
            policy=policy(),
            timeout_seconds=TIMEOUT_SECONDS,
        )
    except UnsafeUrlError as error:
        raise DeliveryError(str(error), for_good=True) from error
    except (OSError, httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        raise DeliveryError(f"The receiver does not answer ({type(error).__name__}).") from error
    if answer.status >= 300:
        raise DeliveryError(f"The receiver answered {answer.status}.", for_good=answer.status == _GONE)


def encode(body: Mapping[str, Any]) -> bytes:
    """The same bytes on each attempt."""
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def headers_of(delivery: Delivery, body: bytes, *, now: datetime) -> dict[str, str]:
    """The delivery's id is the same on each attempt; timestamp and signature are the attempt's own."""
    timestamp = int(now.timestamp())
    secret = secret_of(delivery.target)
    return {
        "Content-Type": "application/json",
        "User-Agent": f"Touchstone/{CODE_VERSION.split('+')[0]}",
        "Touchstone-Event": delivery.event,
        "Touchstone-Delivery": str(delivery.id),
        "Touchstone-Timestamp": str(timestamp),
        "Touchstone-Signature": f"v1={signature(secret, timestamp=timestamp, body=body)}",
    }
