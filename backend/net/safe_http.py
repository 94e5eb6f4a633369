"""HTTP to an address that a user gave: a webhook, a provider of their own.

The name is resolved once, each of its addresses is judged, and the connection goes to the address that was judged:
a name that resolves to something else a moment later changes nothing. A redirect is judged like the first address.
"""

import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin

import httpcore

from backend.net.addresses import Policy, UnsafeUrlError, check, check_port, resolve
from backend.net.deadlines import DeadlineBackend, until

__all__ = ["Answer", "Policy", "UnsafeUrlError", "check", "post"]

MOST_REDIRECTS = 3
MOST_ANSWER_BYTES = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`body` is the beginning of it, at most MOST_ANSWER_BYTES."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def post(url: str, body: bytes, *, headers: Mapping[str, str], policy: Policy, timeout_seconds: float = 10.0) -> Answer:
    """Posts and returns the answer, whatever its status. `timeout_seconds` bounds the whole call.

    Raises UnsafeUrlError for an address that is not called, also one that a redirect leads to, and OSError or
    httpcore's errors where the network fails. A 307 or 308 sends the body on, to the same host only: its signature and
    content were meant for that one. Any other redirect is an answer like any other.
    """
    deadline = time.monotonic() + timeout_seconds
    first = check(url, policy)
    for _ in range(MOST_REDIRECTS + 1):
        answer = _once(url, body, headers=headers, policy=policy, deadline=deadline)
        to = {name.lower(): value for name, value in answer.headers.items()}.get("location")
        if answer.status not in {307, 308} or not to:
            if answer.status in _REDIRECTS and to:
                # Nobody follows it, and its target is judged all the same: a receiver that sends us inside is told so.
                check(urljoin(url, to), policy)
            return answer
        url = urljoin(url, to)
        parts = check(url, policy)
        if (parts.scheme, parts.hostname, parts.port) != (first.scheme, first.hostname, first.port):
            raise UnsafeUrlError("The address leads to another host: give that one.")
    raise UnsafeUrlError("The address leads on and on.")


class PinnedBackend(httpcore.NetworkBackend):
    """Connects to an address that was judged, and to no other. The name stays that of the certificate: httpcore takes
    it from the URL."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = resolve(host, port, self._policy)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name is not known ({type(error).__name__})") from error
        check_port(port, allowed=self._policy.knows(host) or all(map(self._policy.is_inside, addresses)))
        failed: Exception = httpcore.ConnectError("the name has no address")
        for address in addresses:
            try:
                return self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore.NetworkStream:
        raise UnsafeUrlError(f"A socket file is not called: {path[:40]}")


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Reading them takes longer than a call."""
    return ssl.create_default_context()


def _once(url: str, body: bytes, *, headers: Mapping[str, str], policy: Policy, deadline: float) -> Answer:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the call's time has passed")
    # A pool of its own for each call: no connection outlives the judgement of its address.
    with (
        until(deadline),
        httpcore.ConnectionPool(
            ssl_context=_certificates(), network_backend=DeadlineBackend(PinnedBackend(policy)), retries=0
        ) as pool,
        pool.stream(
            "POST",
            url,
            headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()],
            content=body,
            # What is left for each step; the deadline's backend takes it as a total.
            extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), left)},
        ) as answer,
    ):
        found = b""
        for part in answer.iter_stream():
            found += part
            if len(found) >= MOST_ANSWER_BYTES:
                break
        return Answer(
            status=answer.status,
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers},
            body=found[:MOST_ANSWER_BYTES],
        )
