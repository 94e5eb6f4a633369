"""Structured logs: a constant event name, fields beside it, one JSON object a line on standard error."""

from typing import Any

import structlog

PRE_CHAIN: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
PROCESSORS: list[Any] = [
    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
    structlog.processors.format_exc_info,
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
