"""The one HTTP client of a process. A call has a total deadline and a size limit, follows no redirect, and fails
only with ProviderError.

httpx counts its timeouts per read, so a server that drips a byte a second never times out. Here each read, of
headers as of body, gets what is left of the call's deadline.
"""

import json
import os
import ssl
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import httpcore
import httpx

from backend.providers.base import ProviderError, ProviderFault
from backend.providers.faults import from_status

MAX_RESPONSE_BYTES = 64 * 1024 * 1024

_local = threading.local()


def post_json(
    url: str, payload: object, *, timeout: float, who: str, key: str = "", connect_timeout: float = 5.0
) -> Any:
    """Posts JSON and returns the decoded JSON of a 200; `timeout` seconds bound the whole call.

    Raises ProviderError for everything else. The caller still checks the shape: a 200 promises nothing.
    """
    if timeout <= 0:
        raise named(_timed_out(), who=who)
    if not (key.isascii() and key.isprintable()):
        raise ProviderError(ProviderFault.AUTH, f"{who}: the key holds characters that no key can hold.")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        response = client().post(
            url,
            content=json.dumps(payload, ensure_ascii=False, allow_nan=False).encode(),
            headers={"Content-Type": "application/json", **headers},
            timeout=httpx.Timeout(timeout, connect=connect_timeout),
        )
    except ProviderError as error:
        raise named(error, who=who) from error
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


def client() -> httpx.Client:
    """This process's client, with kept-alive connections; a forked child makes its own."""
    return _holder.get()


class _Holder:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Not closed: after a fork its sockets are the parent's too.
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def get(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(
                    transport=_DeadlineTransport(),
                    follow_redirects=False,
                    trust_env=False,
                    headers={"User-Agent": "touchstone", "Accept-Encoding": "identity"},
                )
            return self._client


_holder = _Holder()
os.register_at_fork(after_in_child=_holder.reset)


class _DeadlineTransport(httpx.BaseTransport):
    """A connection pool whose reads share the call's deadline: the request's `read` timeout, taken as a total."""

    def __init__(self) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpcore.default_ssl_context(),
            max_connections=200,
            max_keepalive_connections=64,
            keepalive_expiry=15.0,
            network_backend=_DeadlineBackend(),
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
        with _until(deadline), _translated():
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
        with _until(self._deadline), _translated():
            for part in self._answer.iter_stream():
                size += len(part)
                if size > MAX_RESPONSE_BYTES:
                    raise ProviderError(
                        ProviderFault.SHAPE, f"The answer is larger than {MAX_RESPONSE_BYTES // 1_048_576} MB."
                    )
                yield part

    def close(self) -> None:
        self._answer.close()


class _DeadlineBackend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        bound = _left(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(self._inner.connect_tcp(host, port, bound, local_address, socket_options))


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        bound = _left(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, bound))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@contextmanager
def _until(deadline: float) -> Generator[None]:
    # A thread has one call under way, and the pool reads in the calling thread.
    before = getattr(_local, "deadline", None)
    _local.deadline = deadline
    try:
        yield
    finally:
        _local.deadline = before


def _left(timeout: float | None, expired: type[Exception]) -> float | None:
    deadline = getattr(_local, "deadline", None)
    if deadline is None:
        return timeout
    left: float = deadline - time.monotonic()
    if left <= 0:
        raise expired("the call's deadline has passed")
    return left if timeout is None else min(left, timeout)


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except httpcore.TimeoutException as error:
        raise _timed_out() from error
    except httpcore.UnsupportedProtocol as error:
        raise ProviderError(ProviderFault.NOT_CONFIGURED, "The address is neither http nor https.") from error
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
