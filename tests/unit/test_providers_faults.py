from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from backend.providers.base import ProviderFault
from backend.providers.faults import from_status, retry_after

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("status", "body", "fault", "retryable"),
    [
        (400, "", ProviderFault.BAD_REQUEST, False),
        (401, "", ProviderFault.AUTH, False),
        (402, "", ProviderFault.BILLING, False),
        (403, "", ProviderFault.AUTH, False),
        (404, "", ProviderFault.MODEL, False),
        (408, "", ProviderFault.TIMEOUT, True),
        (413, "", ProviderFault.BAD_REQUEST, False),
        (418, "", ProviderFault.BAD_REQUEST, False),
        (422, "", ProviderFault.BAD_REQUEST, False),
        (424, '{"error":"Inference failed","error_type":"Backend"}', ProviderFault.SERVER, True),
        (424, '{"error":"model is not a re-ranker model","error_type":"Backend"}', ProviderFault.MODEL, False),
        (429, '{"error":{"code":"rate_limit_exceeded"}}', ProviderFault.RATE, True),
        (429, '{"error":{"code":"insufficient_quota"}}', ProviderFault.QUOTA, False),
        (429, '{"message":"Trial key, limited to 10 API calls / minute"}', ProviderFault.RATE, True),
        (429, '{"message":"Trial key, limited to 1000 API calls / month"}', ProviderFault.QUOTA, False),
        (498, "", ProviderFault.BAD_REQUEST, False),
        (499, "", ProviderFault.SERVER, True),
        (500, "", ProviderFault.SERVER, True),
        (501, "", ProviderFault.MODEL, False),
        (502, "<html>", ProviderFault.SERVER, True),
        (503, "", ProviderFault.SERVER, True),
        (504, "", ProviderFault.TIMEOUT, True),
        (529, "", ProviderFault.SERVER, True),
        (204, "", ProviderFault.SHAPE, False),
        (307, "", ProviderFault.NOT_CONFIGURED, False),
    ],
)
def test_each_status_is_one_fault(status: int, body: str, fault: ProviderFault, retryable: bool) -> None:
    error = from_status(status, headers={}, body=body, who="http:x", now=NOW)

    assert (error.fault, error.retryable, error.wait_seconds) == (fault, retryable, None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": format_datetime(datetime(2026, 11, 30, 12, 1, 30, tzinfo=UTC), usegmt=True)}, 90.0),
        ({"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "3", "retry-after-ms": "250"}, 0.25),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-4"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


def test_a_wait_is_kept_only_where_waiting_helps() -> None:
    limited = from_status(429, headers={"Retry-After": "7"}, body="", who="x", now=NOW)
    empty = from_status(
        429, headers={"Retry-After": "7"}, body='{"error":{"code":"insufficient_quota"}}', who="x", now=NOW
    )

    assert limited.wait_seconds == 7.0
    assert empty.wait_seconds is None


def test_the_message_holds_the_providers_words_but_never_the_key() -> None:
    error = from_status(
        400, headers={}, body='{"message": "no model for sk-secret-1"}', who="http:x", now=NOW, secret="sk-secret-1"
    )
    refused = from_status(401, headers={}, body='{"message": "bad key sk-sec***-1"}', who="http:x", now=NOW)

    assert error.message == "http:x answered 400: no model for ***."
    assert refused.message == "http:x answered 401."


def test_a_long_answer_and_an_html_page_are_not_repeated() -> None:
    long = from_status(500, headers={}, body="word " * 1000, who="x", now=NOW)
    page = from_status(502, headers={}, body="<html><body>Bad gateway</body></html>", who="x", now=NOW)

    assert len(long.message) < 350
    assert page.message == "x answered 502."
