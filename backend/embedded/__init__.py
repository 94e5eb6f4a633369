"""PostgreSQL and the broker started from Python packages when none is configured. Nothing starts at import."""

from backend.embedded.errors import AlreadyRunningError, EmbeddedError
from backend.embedded.paths import home_from
from backend.embedded.state import Services
from backend.embedded.supervisor import Supervisor, attach, configured, start

__all__ = [
    "AlreadyRunningError",
    "EmbeddedError",
    "Services",
    "Supervisor",
    "attach",
    "configured",
    "home_from",
    "start",
]
