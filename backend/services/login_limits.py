"""Failed logins are counted, and too many have to wait: per name and address, per address, and per name.

In PostgreSQL: the count holds over processes and restarts. A try is counted before its password is looked at, so that
many at once get no more than one after another. Names are kept as hashes: people type passwords into the wrong field.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from backend.core.errors import ErrorCode, TouchstoneError
from backend.models import LoginFailures

WINDOW = timedelta(minutes=15)
# A name from everywhere gets many more: else whoever knows a name could keep its owner out.
MOST_PER_NAME_AND_ADDRESS, MOST_PER_ADDRESS, MOST_PER_NAME = 10, 100, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    key: str
    most: int


def count(name: str, address: str, *, now: datetime) -> None:
    """Count a try. Raises TouchstoneError RATE_LIMITED after too many: its password is not to be looked at."""
    waits = [_counted(subject, now) for subject in _subjects(name, address)]
    wait = max(waits)
    if wait > timedelta(0):
        minutes = max(1, round(wait.total_seconds() / 60))
        raise TouchstoneError(
            ErrorCode.RATE_LIMITED,
            f"Too many logins failed. Wait {minutes} minutes, or ask an admin of your workspace for a login link.",
        )


def succeeded(name: str, address: str) -> None:
    """Forget the failures of this name from this address, and this try of the others."""
    both, *others = _subjects(name, address)
    LoginFailures.objects.filter(subject=both.key).delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE backend_loginfailures SET n_failed = GREATEST(n_failed - 1, 0) WHERE subject = ANY(%s)",
            [[one.key for one in others]],
        )


def forget(*, now: datetime) -> int:
    """Delete what is too old to count. For the daily cleaning."""
    return LoginFailures.objects.filter(last_at__lt=now - WINDOW).delete()[0]


def _subjects(name: str, address: str) -> list[_Subject]:
    name = name.strip().casefold()
    return [
        _Subject(key=_hash("both", name, address), most=MOST_PER_NAME_AND_ADDRESS),
        _Subject(key=_hash("address", address), most=MOST_PER_ADDRESS),
        _Subject(key=_hash("name", name), most=MOST_PER_NAME),
    ]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()


def _counted(subject: _Subject, now: datetime) -> timedelta:
    """How long to wait; nothing while it may go on. The window begins with the first failure and is not moved by
    tries that are refused."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO backend_loginfailures AS f (subject, n_failed, first_at, last_at)
            VALUES (%(subject)s, 1, %(now)s, %(now)s)
            ON CONFLICT (subject) DO UPDATE SET
                n_failed = CASE WHEN f.first_at <= %(begin)s THEN 1 ELSE LEAST(f.n_failed + 1, %(most)s + 1) END,
                first_at = CASE WHEN f.first_at <= %(begin)s THEN %(now)s ELSE f.first_at END,
                last_at = %(now)s
            RETURNING n_failed, first_at
            """,
            {"subject": subject.key, "now": now, "begin": now - WINDOW, "most": subject.most},
        )
        n_failed, first_at = cursor.fetchone()
    end: timedelta = first_at + WINDOW - now
    return end if n_failed > subject.most else timedelta(0)
