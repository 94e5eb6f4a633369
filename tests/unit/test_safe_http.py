"""Addresses that a user gives lead nowhere inside, whatever they look like and whatever their names resolve to."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import httpcore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.net import safe_http
from backend.net.addresses import Policy, UnsafeUrlError
from backend.providers import transport
from backend.providers.base import ProviderError, ProviderFault

STRICT = Policy()
LOOPBACK = Policy.of(["127.0.0.1/32"])


@dataclass
class Receiver:
    port: int
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    location: str = ""
    status: int = 204


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Answers every POST; with `location` set it redirects."""
    state = Receiver(port=0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.seen.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(state.status)
            if state.location and len(state.seen) == 1:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://127.1/",
        "https://127.0.0.1./",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://0.0.0.0/",
        "https://[::]/",
        "https://10.1.2.3/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[fe80::1]/",
        "https://[fd00::1]/",
        "https://[fec0::1]/",
        "https://100.64.0.1/",
        "https://198.18.0.1/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://redis/",
        "https://metadata.google.internal/",
        "https://printer.local/",
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "//example.com/",
        "https://user@example.com/",
        "https://user:word@example.com/",
        "https://@example.com/",
        "https://example.com:5432/",
        "https://example.com:6379/",
        "https://example.com:22/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com\r\nX: y/",
        "https://exa mple.com/",
        "https://①②⑦.0.0.1/",
        "https:///nothing",
        "https://",
        "",
        "https://example.com/" + "a" * 3000,
    ],
)
def test_an_address_of_the_inside_is_refused_in_every_spelling(url: str) -> None:
    with pytest.raises(UnsafeUrlError):
        safe_http.check(url, STRICT)
    with pytest.raises(UnsafeUrlError):
        safe_http.post(url, b"", headers={}, policy=STRICT, timeout_seconds=1)


@pytest.mark.parametrize("url", ["https://example.com/hook?x=1", "https://example.com:8443/", "https://8.8.8.8/"])
def test_an_address_of_the_outside_is_taken(url: str) -> None:
    assert safe_http.check(url, STRICT).scheme == "https"


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_every_way_to_write_a_number_is_judged_as_that_number(number: int) -> None:
    address = ip_address(number)
    spellings = [
        str(address),
        str(number),
        hex(number),
        ".".join(f"0{int(part):o}" for part in str(address).split(".")),
        ".".join(hex(int(part)) for part in str(address).split(".")),
        f"[::ffff:{address}]",
        f"[64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::1]",
    ]
    for host in spellings:
        if STRICT.allows(address):
            assert safe_http.check(f"https://{host}/", STRICT)
        else:
            with pytest.raises(UnsafeUrlError):
                safe_http.check(f"https://{host}/", STRICT)


def test_nothing_private_counts_as_public() -> None:
    for text in ("10.0.0.1", "127.8.9.1", "169.254.1.1", "::1", "fe80::1", "fc00::1", "0.0.0.0", "::ffff:10.0.0.1"):
        assert not STRICT.allows(ip_address(text)), text


def test_what_the_operator_allows_is_called(receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.port}/hook"
    answer = safe_http.post(url, b"body", headers={"X-Name": "value"}, policy=LOOPBACK, timeout_seconds=5)
    assert (answer.status, receiver.seen) == (204, [("/hook", b"body")])
    with pytest.raises(UnsafeUrlError):
        safe_http.post("http://127.0.0.2/", b"", headers={}, policy=LOOPBACK, timeout_seconds=1)
    by_name = Policy.of(["localhost"])
    assert safe_http.post(f"http://localhost:{receiver.port}/", b"", headers={}, policy=by_name).status == 204


def test_a_redirect_into_the_inside_is_refused(receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.port}/hook"
    for status in (301, 302, 303, 307, 308):
        for to in ("http://169.254.169.254/", "http://[::1]:1/", "file:///etc/passwd", "https://10.0.0.1/"):
            receiver.seen.clear()
            receiver.status, receiver.location = status, to
            with pytest.raises(UnsafeUrlError):
                safe_http.post(url, b"body", headers={}, policy=LOOPBACK, timeout_seconds=5)
            assert len(receiver.seen) == 1


def test_a_redirect_on_the_same_host_takes_the_body_along_and_one_to_another_does_not(receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.port}/hook"
    receiver.status, receiver.location = 307, "/other"
    assert safe_http.post(url, b"body", headers={}, policy=LOOPBACK).status == 307  # and no location the second time
    assert receiver.seen == [("/hook", b"body"), ("/other", b"body")]
    receiver.seen.clear()
    receiver.location = "https://example.com/"
    with pytest.raises(UnsafeUrlError, match="another host"):
        safe_http.post(url, b"body", headers={}, policy=LOOPBACK)


def _resolving(*answers: list[str]) -> Any:
    """A resolver that says something else each time."""
    calls: list[str] = []

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        said = answers[min(len(calls), len(answers) - 1)]
        calls.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in said]

    return getaddrinfo, calls


def test_a_name_that_leads_inside_is_refused_at_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in (["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["169.254.169.254"]):
        resolver, _ = _resolving(said)
        monkeypatch.setattr("backend.net.addresses.socket.getaddrinfo", resolver)
        safe_http.check("https://innocent.example.com/", STRICT)
        with pytest.raises(UnsafeUrlError):
            safe_http.post("https://innocent.example.com/", b"", headers={}, policy=STRICT, timeout_seconds=2)


def test_a_name_that_changes_between_check_and_connection_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judged address is connected to, not the name: the second answer is never asked for."""
    resolver, calls = _resolving(["8.8.8.8"], ["127.0.0.1"])
    monkeypatch.setattr("backend.net.addresses.socket.getaddrinfo", resolver)
    connected: list[str] = []

    def connect(_: Any, host: str, *__: Any, **___: Any) -> Any:
        connected.append(host)
        raise httpcore.ConnectError("as far as this")

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect)
    with pytest.raises(httpcore.ConnectError):
        safe_http.post("https://rebinding.example.com/", b"", headers={}, policy=STRICT, timeout_seconds=2)
    assert (connected, calls) == (["8.8.8.8"], ["rebinding.example.com"])


def test_a_provider_of_a_workspace_is_called_by_the_same_rules(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{receiver.port}/v1"
    for policy, reached in ((STRICT, 0), (LOOPBACK, 1), (None, 2)):
        with pytest.raises(ProviderError) as caught:  # the receiver answers 204, which is no result either
            transport.post_json(url, {}, timeout=5, who="theirs", key="k", policy=policy)
        assert (caught.value.fault is ProviderFault.NOT_CONFIGURED) == (policy is STRICT)
        assert len(receiver.seen) == reached
    resolver, _ = _resolving(["10.0.0.7"])
    monkeypatch.setattr("backend.net.addresses.socket.getaddrinfo", resolver)
    with pytest.raises(ProviderError, match="private or special network") as caught:
        transport.post_json("https://theirs.example.com/v1", {}, timeout=5, who="theirs", policy=STRICT)
    assert caught.value.fault is ProviderFault.NOT_CONFIGURED
    assert "10.0.0.7" not in caught.value.message


def test_a_receiver_that_drips_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not ended.wait(0.1):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises((httpcore.TimeoutException, httpcore.ProtocolError)):
            safe_http.post(
                f"http://127.0.0.1:{server.getsockname()[1]}/", b"", headers={}, policy=LOOPBACK, timeout_seconds=1
            )
        ended.set()
        thread.join()


@pytest.mark.parametrize("word", ["10.0.0.0/33", "a b", "http://x", "host:80", "10.0.0.0/8/8"])
def test_an_allow_list_that_cannot_be_read_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="neither a host's name nor a network"):
        Policy.of([word])
