"""The stand-in itself: a threaded HTTP/1.1 server on the loopback address."""

import json
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.standins import wire
from tests.standins.script import Call, Fault, Script

_HTML = b"<!doctype html><title>Maintenance</title><p>Back soon."


class Standin:
    """Starts on `__enter__` (or `start`), stops on `__exit__` (or `stop`). Its script may be changed at any time."""

    def __init__(self, script: Script | None = None, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._lock = threading.Lock()
        self._host = host
        self._server = _Server((host, port), _Handler)
        self._server.standin = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.scorer = wire.Scorer()
        self.ending = threading.Event()
        self.set_script(script or Script())

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    @property
    def script(self) -> Script:
        return self._script

    @property
    def calls(self) -> list[Call]:
        """The calls that have ended, in the order in which they came."""
        with self._lock:
            return sorted(self._calls, key=lambda call: call.number)

    @property
    def max_in_flight(self) -> int:
        return self._max_in_flight

    def set_script(self, script: Script) -> None:
        """Changes the behaviour and forgets all calls, so that counts start at 0 again."""
        with self._lock:
            self._script = script
            self._calls: list[Call] = []
            self._n_begun = 0
            self._n_in_flight = 0
            self._max_in_flight = 0
            self._age = getattr(self, "_age", 0) + 1

    def statistics(self) -> dict[str, Any]:
        calls = self.calls
        with self._lock:
            return {
                "n_calls": len(calls),
                "n_begun": self._n_begun,
                "n_in_flight": self._n_in_flight,
                "max_in_flight": self._max_in_flight,
                "by_path": dict(Counter(call.path for call in calls)),
                "by_status": {str(key): n for key, n in Counter(call.status for call in calls).items()},
                "first_started_at": min((call.started_at for call in calls), default=None),
                "last_ended_at": max((call.ended_at for call in calls), default=None),
            }

    def begin(self) -> tuple[int, int]:
        """The number of a call that begins, and the age of the script it runs under."""
        with self._lock:
            number = self._n_begun
            self._n_begun += 1
            self._n_in_flight += 1
            self._max_in_flight = max(self._max_in_flight, self._n_in_flight)
            return number, self._age

    def end(self, call: Call, *, age: int) -> None:
        with self._lock:
            if age == self._age:
                self._n_in_flight -= 1
                self._calls.append(call)

    def ranked(self, route: Any, body: Any, *, script: Script, fault: Fault | None) -> Any:
        with self._lock:
            return route(body, script=script, fault=fault, scorer=self.scorer)

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.cut_off()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True
    request_queue_size = 256
    standin: Standin

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def cut_off(self) -> None:
        """Wakes the threads that wait on kept-alive connections."""
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that leaves in mid-answer is what many tests want."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Silent."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/_control/statistics":
            self._send(200, self.server.standin.statistics())
        elif path == "/_control/calls":
            self._send(200, [call.to_json() for call in self.server.standin.calls])
        elif path == "/_control/script":
            self._send(200, self.server.standin.script.to_json())
        elif path == "/info":
            self._send(200, wire.info(self.server.standin.script))
        elif path == "/health":
            self._send(200, {})
        elif path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": "standin", "object": "model"}]})
        else:
            self._send(404, {"error": "not found"})

    def do_PUT(self) -> None:
        body = self._body()
        if urlsplit(self.path).path != "/_control/script":
            self._send(404, {"error": "not found"})
            return
        try:
            self.server.standin.set_script(Script.from_json(body))
        except (TypeError, ValueError) as error:
            self._send(400, {"error": str(error)})
            return
        self._send(200, self.server.standin.script.to_json())

    def do_POST(self) -> None:
        standin = self.server.standin
        script = standin.script
        path = urlsplit(self.path).path
        started_at = time.time()
        number, age = standin.begin()
        body: Any = None
        status = 0
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                call = Call(
                    number=number,
                    path=path,
                    body=body,
                    headers={key.lower(): value for key, value in self.headers.items()},
                    started_at=started_at,
                    ended_at=time.time(),
                    status=status,
                )
                standin.end(call, age=age)

        try:
            body = self._body()
            script = script.of_call(body)
            if script.latency_seconds:
                standin.ending.wait(script.latency_seconds)
            fault = script.fault_of(number)
            # A call is recorded before the client can see its end, so that the client finds it in the statistics.
            if fault is Fault.RESET or (script.die_after is not None and number >= script.die_after):
                end()
                self._reset()
                return
            if self._broken(fault):
                return
            status, answer, headers = self._answer(path, body, number=number, script=script)
            payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            end()
            self._send_bytes(status, payload, headers=headers, fault=fault)
        finally:
            end()

    def _answer(self, path: str, body: Any, *, number: int, script: Script) -> tuple[int, Any, dict[str, str]]:
        route = wire.ROUTES.get(path)
        fault = script.fault_of(number)
        if fault is Fault.STATUS:
            headers = {"Retry-After": script.retry_after} if script.retry_after is not None else {}
            error = script.body.encode() if script.body is not None else wire.error_body(path, script.status)
            return script.status, error, headers
        if fault is Fault.REDIRECT:
            return 307, b"", {"Location": "/elsewhere"}
        if fault is Fault.HTML:
            return 200, _HTML, {"Content-Type": "text/html"}
        if fault is Fault.NOT_THE_SHAPE:
            return 200, {"error": "Unexpected endpoint or method."}, {}
        if route is None:
            return 404, wire.error_body(path, 404), {}
        if script.key is not None and self.headers.get("Authorization") != f"Bearer {script.key}":
            return 401, wire.error_body(path, 401), {}
        try:
            return 200, self.server.standin.ranked(route, body, script=script, fault=fault), {}
        except wire.RefusedError as refused:
            return refused.status, refused.body, {}

    def _broken(self, fault: Fault | None) -> bool:
        """Plays the faults that end without an answer; whether there was one."""
        ending = self.server.standin.ending
        if fault is Fault.HANG:
            ending.wait(600)
            self._reset()
        elif fault is Fault.DRIP_HEADERS:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            self._drip()
        elif fault is Fault.DRIP:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6000\r\n\r\n")
            self._drip()
        else:
            return False
        self.close_connection = True
        return True

    def _drip(self) -> None:
        for _ in range(6000):
            if self.server.standin.ending.wait(0.1):
                return
            try:
                self.wfile.write(b" ")
            except OSError:
                return

    def _reset(self) -> None:
        """Closes with a TCP reset, as a killed process does to what it has not answered."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The socket itself, not a shutdown: only closing with linger 0 sends the reset.
        self.rfile.close()
        self.connection.close()

    def _body(self) -> Any:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            return json.loads(raw) if raw else {}
        except ValueError:
            return {}

    def _send(self, status: int, answer: Any) -> None:
        self._send_bytes(status, json.dumps(answer).encode(), headers={}, fault=None)

    def _send_bytes(self, status: int, payload: bytes, *, headers: dict[str, str], fault: Fault | None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(payload)))
        if fault is Fault.TRUNCATED:
            self.close_connection = True
            payload = payload[: len(payload) // 2]
        self.end_headers()
        self.wfile.write(payload)
        self.wfile.flush()
