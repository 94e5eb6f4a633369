"""From an HTTP answer that is not a result to the ProviderError it means."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from backend.providers.base import ProviderError, ProviderFault

_MESSAGE_LIMIT = 300

# A 429 that no waiting clears: OpenAI's `insufficient_quota`, Cohere's monthly limit of a trial key.
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|calls? ?(/|per|a) ?month|monthly", re.I)
_WRONG_MODEL = re.compile(r"not a re-?ranker|does not support (re-?rank|embed)|model.{0,80}not (found|loaded)", re.I)

_BY_STATUS: dict[int, tuple[ProviderFault, bool]] = {
    401: (ProviderFault.AUTH, False),
    402: (ProviderFault.BILLING, False),
    403: (ProviderFault.AUTH, False),
    404: (ProviderFault.MODEL, False),
    405: (ProviderFault.MODEL, False),
    407: (ProviderFault.AUTH, False),
    408: (ProviderFault.TIMEOUT, True),
    409: (ProviderFault.SERVER, True),
    410: (ProviderFault.MODEL, False),
    424: (ProviderFault.SERVER, True),
    425: (ProviderFault.SERVER, True),
    429: (ProviderFault.RATE, True),
    499: (ProviderFault.SERVER, True),
    501: (ProviderFault.MODEL, False),
    504: (ProviderFault.TIMEOUT, True),
}


def from_status(
    status: int, *, headers: Mapping[str, str], body: str, who: str, now: float, secret: str = ""
) -> ProviderError:
    """The error of an answer whose status is not 200. `now` (Unix time) is what a Retry-After date counts from.

    `who` names the provider to people. The provider's own words are shortened, and `secret` never stays in them;
    those of a refused key are dropped, as some providers repeat a part of the key.
    """
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return ProviderError(ProviderFault.SHAPE, f"{who} answered {status} where 200 was due.")
    if status < HTTPStatus.BAD_REQUEST:
        return ProviderError(
            ProviderFault.NOT_CONFIGURED,
            f"{who} answers with a redirect ({status}); set its final address.",
        )
    if status in _BY_STATUS:
        fault, retryable = _BY_STATUS[status]
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        fault, retryable = ProviderFault.SERVER, True
    else:
        fault, retryable = ProviderFault.BAD_REQUEST, False
    if fault is ProviderFault.RATE and _QUOTA.search(body):
        fault, retryable = ProviderFault.QUOTA, False
    if status in {400, 422, 424, 500, 503} and _WRONG_MODEL.search(body):
        fault, retryable = ProviderFault.MODEL, False
    said = "" if fault is ProviderFault.AUTH else _words(body, secret=secret)
    return ProviderError(
        fault,
        f"{who} answered {status}{': ' + said if said else ''}.",
        retryable=retryable,
        wait_seconds=retry_after(headers, now=now) if retryable else None,
    )


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds asked for by `retry-after-ms` or `Retry-After` (seconds or HTTP date); None when absent or senseless."""
    lowered = {key.lower(): value for key, value in headers.items()}
    milliseconds = _number(lowered.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = lowered.get("retry-after", "").strip()
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    # A date without a zone is read as UTC: HTTP dates always are.
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _words(body: str, *, secret: str) -> str:
    """What the provider said, out of the several places where providers say it; nothing for an HTML page."""
    text = body.strip()
    try:
        data = json.loads(text)
    except ValueError:
        text = "" if text.startswith("<") else text
    else:
        if isinstance(data, dict):
            error = data.get("error")
            inner = error.get("message") if isinstance(error, dict) else error
            found = inner or data.get("message") or data.get("detail") or ""
            text = found if isinstance(found, str) else json.dumps(found)
    if secret:
        text = text.replace(secret, "***")
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _MESSAGE_LIMIT else text[:_MESSAGE_LIMIT] + "…"
