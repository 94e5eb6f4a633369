"""The environment, read once and typed. A value that cannot be used is an error that names its variable."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class EnvError(ValueError):
    """An environment variable holds something that cannot be used; the sentence says which and what to write."""


def text(name: str, default: str = "", *, env: Mapping[str, str] = os.environ) -> str:
    """The variable's value; with `NAME_FILE` set, the content of that file (how secrets are mounted)."""
    file = env.get(f"{name}_FILE")
    if file:
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            raise EnvError(f"{name}_FILE names {file}, which cannot be read: {error.strerror}.") from error
    return env.get(name, "") or default


def flag(name: str, *, default: bool = False, env: Mapping[str, str] = os.environ) -> bool:
    value = text(name, env=env).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise EnvError(f"{name} is {value!r}; write true or false.")


def number(name: str, default: float, *, low: float = 0, env: Mapping[str, str] = os.environ) -> float:
    value = text(name, env=env)
    if not value:
        return default
    try:
        parsed = float(value)
    except ValueError:
        raise EnvError(f"{name} is {value!r}; write a number.") from None
    if not low <= parsed < float("inf"):
        raise EnvError(f"{name} is {value}; the lowest value is {low:g}.")
    return parsed


def whole(name: str, default: int, *, low: int = 0, env: Mapping[str, str] = os.environ) -> int:
    value = number(name, default, low=low, env=env)
    if value != int(value):
        raise EnvError(f"{name} is {value}; write a whole number.")
    return int(value)


def money(name: str, *, env: Mapping[str, str] = os.environ) -> Decimal | None:
    """An amount, exact; None where nothing is set."""
    value = text(name, env=env)
    if not value:
        return None
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise EnvError(f"{name} is {value!r}; write an amount such as 50 or 49.90.") from None
    if not amount.is_finite() or amount < 0:
        raise EnvError(f"{name} is {value}; the lowest value is 0.")
    return amount


def words(name: str, default: str = "", *, env: Mapping[str, str] = os.environ) -> list[str]:
    """A list separated by commas; empty parts dropped."""
    return [part.strip() for part in text(name, default, env=env).split(",") if part.strip()]


def table(name: str, *, env: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """A JSON object."""
    value = text(name, env=env)
    try:
        parsed = json.loads(value) if value else {}
    except ValueError as error:
        raise EnvError(f"{name} is not JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise EnvError(f"{name} is a JSON object, not {value}.")
    return parsed


def sealing_key(secret: str) -> str:
    """A key for TOUCHSTONE_SECRET_KEYS out of another secret of the installation."""
    digest = hashlib.sha256(b"touchstone: sealed keys of workspaces\x00" + secret.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()


def database(url: str) -> dict[str, object]:
    """A Django DATABASES entry from `postgresql://user:password@host:port/name?host=/socket/folder&sslmode=…`."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise EnvError(f"DATABASE_URL must begin with postgresql://, not {parts.scheme or 'nothing'}://.")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    host = query.pop("host", "") or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "touchstone",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "OPTIONS": query,
    }


def redis_for_celery(url: str) -> str:
    """Celery's spelling of a Redis address: kombu writes sockets as `redis+socket://`."""
    if url.startswith("unix://"):
        parts = urlsplit(url)
        db = parse_qs(parts.query).get("db", ["0"])[-1]
        return f"redis+socket://{parts.path}?virtual_host={db}"
    return url


def redis_for_client(url: str) -> str:
    """redis-py's spelling of the same address."""
    if url.startswith("redis+socket://"):
        parts = urlsplit(url)
        db = parse_qs(parts.query).get("virtual_host", ["0"])[-1]
        return f"unix://{parts.path}?db={db}"
    return url
