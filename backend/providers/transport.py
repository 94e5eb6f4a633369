"""The one HTTP client of a process. A call has a total deadline and a size limit, follows no redirect, and fails
only with ProviderError.

An address that a workspace gave comes with a Policy: it is judged where it is connected to (backend/net).
"""

import json
import os
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import httpcore
import httpx

from backend.net.addresses import Policy, UnsafeUrlError
from backend.net.addresses import check as check_address
from backend.net.deadlines import DeadlineBackend, until
from backend.net.safe_http import PinnedBackend
from backend.providers.base import ProviderError, ProviderFault
from backend.providers.faults import from_status

MAX_RESPONSE_BYTES = 64 * 1024 * 1024


def post_json(
    url: str,
    payload: object,
    *,
    timeout: float,
    who: str,
    key: str = "",
    connect_timeout: float = 5.0,
    policy: Policy | None = None,
) -> Any:
    """Posts JSON and returns the decoded JSON of a 200; `timeout` seconds bound the whole call. `policy` None: the
    address is the operator's own.

    Raises ProviderError for everything else. The caller still checks the shape: a 200 promises nothing.
    """
    if timeout <= 0:
        raise named(_timed_out(), who=who)
    if not (key.isascii() and key.isprintable()):
        raise ProviderError(ProviderFault.AUTH, f"{who}: the key holds characters that no key can hold.")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        if policy is not None:
            check_address(url, policy)
        response = client(policy).post(
            url,
            content=json.dumps(payload, ensure_ascii=False, allow_nan=False).encode(),
            headers={"Content-Type": "application/json", **headers},
            timeout=httpx.Timeout(timeout, connect=connect_timeout),
        )
    except ProviderError as error:
        raise named(error, who=who) from error
    except UnsafeUrlError as error:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, f"{who}: {error}") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, f"{who}: {error}") from error
    if response.status_code != httpx.codes.OK:
        raise from_status(
            response.status_code,
            headers=response.headers,
            body=response.text[:20_000],
            who=who,
            now=time.time(),
            secret=key,
        )
    try:
        return json.loads(response.content)
    except ValueError as error:
        # A gateway's page in place of the answer; it passes, so trying again can help.
        raise ProviderError(
            ProviderFault.SHAPE, f"{who} answered 200 with something that is not JSON.", retryable=True
        ) from error


def named(error: ProviderError, *, who: str) -> ProviderError:
    """The same error with the provider's name before its sentence: the transport does not know whom it calls."""
    return ProviderError(
        error.fault,
        f"{who}: {error.message}",
        retryable=error.retryable,
        wait_seconds=error.wait_seconds,
    )


def client(policy: Policy | None = None) -> httpx.Client:
    """This process's client, with kept-alive connections; a forked child makes its own. One a policy: a connection
    that the operator's address may have is not found by a workspace's."""
    return _holder.get(policy)


class _Holder:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Not closed: after a fork its sockets are the parent's too.
        self._lock = threading.Lock()
        self._clients: dict[Policy | None, httpx.Client] = {}

    def get(self, policy: Policy | None) -> httpx.Client:
        with self._lock:
            if policy not in self._clients:
                self._clients[policy] = httpx.Client(
                    transport=_DeadlineTransport(policy),
                    follow_redirects=False,
                    trust_env=False,
                    headers={"User-Agent": "touchstone", "Accept-Encoding": "identity"},
                )
            return self._clients[policy]


_holder = _Holder()
os.register_at_fork(after_in_child=_holder.reset)


class _DeadlineTransport(httpx.BaseTransport):
    """A connection pool whose reads share the call's deadline: the request's `read` timeout, taken as a total."""

    def __init__(self, policy: Policy | None) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpcore.default_ssl_context(),
            max_connections=200,
            max_keepalive_connections=64,
            keepalive_expiry=15.0,
            network_backend=DeadlineBackend(None if policy is None else PinnedBackend(policy)),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        timeouts: Mapping[str, float | None] = request.extensions.get("timeout", {})
        deadline = time.monotonic() + (timeouts.get("read") or 60.0)
        core = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.read(),
            extensions=request.extensions,
        )
        with until(deadline), _translated():
            answer = self._pool.handle_request(core)
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_BoundedStream(answer, deadline),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _BoundedStream(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response, deadline: float) -> None:
        self._answer = answer
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        if any(name.lower() == b"content-encoding" for name, _ in self._answer.headers):
            # Asked for without: a small compressed body may hold more than any limit.
            raise ProviderError(ProviderFault.SHAPE, "The answer is compressed although that was not asked for.")
        with until(self._deadline), _translated():
            for part in self._answer.iter_stream():
                size += len(part)
                if size > MAX_RESPONSE_BYTES:
                    raise ProviderError(
                        ProviderFault.SHAPE, f"The answer is larger than {MAX_RESPONSE_BYTES // 1_048_576} MB."
                    )
                yield part

    def close(self) -> None:
        self._answer.close()


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except httpcore.TimeoutException as error:
        raise _timed_out() from error
    except httpcore.UnsupportedProtocol as error:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, "The address is neither http nor https.") from error
    except UnsafeUrlError as error:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, str(error)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        _lost(error)


def _timed_out() -> ProviderError:
    return ProviderError(ProviderFault.TIMEOUT, "The provider did not answer in time.", retryable=True)


def _lost(error: Exception) -> NoReturn:
    sentence = (
        f"The provider cannot be reached ({str(error)[:120]})."
        if isinstance(error, httpcore.ConnectError)
        else "The provider broke off the connection before its answer was complete."
    )
    raise ProviderError(ProviderFault.SERVER, sentence, retryable=True) from error
