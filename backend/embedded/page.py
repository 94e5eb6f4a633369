"""The page's address: is the port free, does it answer."""

import http.client
import socket

from backend.embedded.errors import EmbeddedError

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on


def free_port(*, host: str, port: int) -> int:
    """The port itself, or a free one for 0. Raises EmbeddedError when it is taken."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As the web server does: connections that are still closing are no reason to refuse.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return int(probe.getsockname()[1])
    except OSError as error:
        raise EmbeddedError(
            f"cannot listen on port {port} of {host} ({error.strerror}); choose another with --port"
        ) from error


def for_url(host: str) -> str:
    """How to write it in an address; "everywhere" is this machine."""
    reached = _EVERYWHERE.get(host, host)
    return f"[{reached}]" if ":" in reached else reached


def answers(*, host: str, port: int) -> bool:
    """Whether it says anything below 500 on its first page."""
    connection = http.client.HTTPConnection(_EVERYWHERE.get(host, host), port, timeout=10)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
