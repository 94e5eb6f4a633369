"""Structured logs: a constant event name, fields beside it, one JSON object a line on standard error."""

import re
from typing import Any

import structlog

# What PostgreSQL adds to an error's first line holds the statement and the row: texts of documents and questions.
_ADDED = re.compile(
    r"(?:\n|\\n)(?:LINE \d+|DETAIL|HINT|CONTEXT|QUERY|STATEMENT):.*?(?=\n\n(?:The above|During handling)|\Z)", re.DOTALL
)


def without_rows(_logger: Any, _method: str, event: Any) -> Any:
    """A line that quotes an error of the database tells its first line only."""
    for name in ("event", "exception"):
        if isinstance(event.get(name), str):
            event[name] = _ADDED.sub("", event[name])
    return event


PRE_CHAIN: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
PROCESSORS: list[Any] = [
    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
    structlog.processors.format_exc_info,
    without_rows,
    structlog.processors.JSONRenderer(),
]


def configure() -> None:
    """Make structlog's loggers go through the standard library's handlers. Called once, from the app's ready()."""
    structlog.configure(
        processors=[*PRE_CHAIN, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def get(name: str) -> structlog.stdlib.BoundLogger:
    """A logger under `touchstone.`."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(f"touchstone.{name}")
    return logger
