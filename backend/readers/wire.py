"""Frames between the service and its reader child: two lengths, a JSON header, bytes."""

import json
import select
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

_LENGTHS = struct.Struct(">IQ")
MOST_HEADER_BYTES = 64_000_000
# 20 million characters of four bytes, and a little.
MOST_BODY_BYTES = 100_000_000
_PIECE = 1 << 20


class WireClosedError(Exception):
    """The other side is gone, or sent what is no frame."""


class WireTimeoutError(Exception):
    """The other side did not answer in time."""


def send(
    connection: socket.socket, header: Mapping[str, Any], body: bytes = b"", *, deadline: float | None = None
) -> None:
    """`deadline` is a reading of time.monotonic(); it needs a non-blocking socket."""
    encoded = json.dumps(header, separators=(",", ":")).encode()
    for part in (_LENGTHS.pack(len(encoded), len(body)) + encoded, body):
        view = memoryview(part)
        while view:
            _wait(connection, deadline, writing=True)
            try:
                view = view[connection.send(view[:_PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise WireClosedError from error


def receive(
    connection: socket.socket, *, deadline: float | None = None, most_body_bytes: int | None = MOST_BODY_BYTES
) -> tuple[dict[str, Any], bytes]:
    n_header, n_body = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size, deadline))
    if n_header > MOST_HEADER_BYTES or (most_body_bytes is not None and n_body > most_body_bytes):
        raise WireClosedError("a frame larger than is allowed")
    encoded = _exactly(connection, n_header, deadline)
    body = _exactly(connection, n_body, deadline)
    try:
        header = json.loads(encoded)
    except ValueError as error:
        raise WireClosedError("a frame whose header is no JSON") from error
    if not isinstance(header, dict):
        raise WireClosedError("a frame whose header is no object")
    return header, body


def _exactly(connection: socket.socket, n_bytes: int, deadline: float | None) -> bytes:
    pieces: list[bytes] = []
    while n_bytes:
        _wait(connection, deadline, writing=False)
        try:
            piece = connection.recv(min(n_bytes, _PIECE))
        except BlockingIOError:
            continue
        except OSError as error:
            raise WireClosedError from error
        if not piece:
            raise WireClosedError
        pieces.append(piece)
        n_bytes -= len(piece)
    return b"".join(pieces)


def _wait(connection: socket.socket, deadline: float | None, *, writing: bool) -> None:
    if deadline is None:
        return
    poller = select.poll()  # select() cannot watch descriptors above 1023, of which a busy worker has many
    poller.register(connection, select.POLLOUT if writing else select.POLLIN)
    left = deadline - time.monotonic()
    if left <= 0 or not poller.poll(left * 1000):
        raise WireTimeoutError
