"""The process that opens strangers' files: started by parent.py, one document after another until told to end."""

import os
import resource
import socket
import sys
from typing import Any

from backend.core.errors import DocumentError, ErrorCode
from backend.readers import isolation, reading, wire
from backend.readers.building import ReadLimits


def main(arguments: list[str]) -> None:
    """`arguments`: the socket's descriptor, the memory limit in bytes, the parent's process id."""
    descriptor, memory_bytes, parent_pid = map(int, arguments)
    # NumPy would start threads and reserve gigabytes; the libraries that look for it do without.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    connection = socket.socket(fileno=descriptor)
    walls = isolation.enter(memory_bytes=memory_bytes, parent_pid=parent_pid)
    # What the kernel says of a process begins with the size of the one that started it.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wire.send(connection, {"ready": walls.as_dict(), "pid": os.getpid(), "ru_maxrss": inherited})
    while True:
        try:
            request, data = wire.receive(connection, most_body_bytes=memory_bytes)
        except wire.WireClosedError:
            return
        except MemoryError:
            _refuse(connection, reading.too_much_memory())
            return
        header, body = _answer(request, data)
        del data
        wire.send(connection, header, body)
        if header.get("spent"):
            return


def _answer(request: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        extracted = reading.read(data, path=str(request["path"]), limits=ReadLimits(**request["limits"]))
        header: dict[str, Any] = {
            "reader": extracted.reader,
            "warnings": extracted.warnings,
            "marks": [(mark.start, mark.heading, mark.page) for mark in extracted.marks],
        }
        return header, extracted.text.encode()
    except DocumentError as error:
        out_of_memory = isinstance(error.__cause__, MemoryError)
        return {"error": error.code.value, "message": error.message, "spent": out_of_memory}, b""
    except MemoryError:
        message = reading.too_much_memory()
        return {"error": ErrorCode.DOCUMENT_TOO_LARGE.value, "message": message, "spent": True}, b""


def _refuse(connection: socket.socket, message: str) -> None:
    wire.send(connection, {"error": ErrorCode.DOCUMENT_TOO_LARGE.value, "message": message, "spent": True})
