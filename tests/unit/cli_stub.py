"""A small HTTP server in this process that answers what a test tells it to, and remembers what was asked."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[int, Any]


class Stub:
    """`answers` by "METHOD /path" (without /api/v1/ and the query): a (status, body), a list of them, or a function."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    def on(self, what: str, status: int = 200, body: Any = None) -> Self:
        self.answers[what] = (status, body)
        return self

    def problem(self, what: str, status: int, code: str, detail: str, **more: Any) -> Self:
        return self.on(
            what, status, {"type": "x", "title": "t", "status": status, "detail": detail, "code": code, **more}
        )

    def find(self, method: str, path: str) -> Answer:
        bare = path.partition("?")[0].removeprefix("/api/v1/")
        answer: Any = self.answers.get(f"{method} {bare}")
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Callable):  # type: ignore[arg-type]  # the check is what matters
            answer = answer()
        return answer or (404, {"detail": f"There is nothing at {method} {bare}.", "code": "NOT_FOUND"})


@contextmanager
def serve() -> Iterator[tuple[Stub, str]]:
    """The stub and its address."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            stub.asked.append((self.command, self.path, dict(self.headers), body))
            status, value = stub.find(self.command, self.path)
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/problem+json" if status >= 400 else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815  the base class's names

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield stub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def page(*rows: Any, next_: str | None = None) -> dict[str, Any]:
    return {"results": list(rows), "next": next_}
