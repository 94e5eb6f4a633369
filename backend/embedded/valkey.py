"""Valkey, the broker, on a unix socket only."""

import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from backend.embedded.programs import valkey_server
from backend.embedded.service import Service


class Valkey(Service):
    name: ClassVar[str] = "Valkey"
    key: ClassVar[str] = "valkey"
    death_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_signals: ClassVar[tuple[tuple[signal.Signals, float], ...]] = ((signal.SIGTERM, 10.0),)

    @property
    def socket(self) -> Path:
        return self.layout.run / "v.sock"

    @property
    def url(self) -> str:
        """In kombu's form; redis-py wants `unix:///path?db=0`."""
        return f"redis+socket://{self.socket}?virtual_host=0"

    def prepare(self) -> None:
        self.socket.unlink(missing_ok=True)

    def command(self) -> Sequence[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        return [
            str(valkey_server(self.layout)),
            *(word for key, value in settings.items() for word in (f"--{key}", value)),
        ]

    def answers(self) -> bool:
        """False also while it loads its file: it then answers PING with an error."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(5)
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False
