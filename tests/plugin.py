"""Starts PostgreSQL and the broker for the test session, before Django reads its settings.

Named with `-p` in pyproject.toml. With DATABASE_URL and REDIS_URL set, those are used instead; a run of only
`tests/unit` or `tests/browser` starts nothing.
"""

import os
import shutil
import tempfile
from pathlib import Path

import psycopg
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from backend import embedded, env

_SERVICES = "tests/e2e/"
_running: list[tuple[embedded.Supervisor, Path]] = []


def _needs_no_services(arguments: list[str]) -> bool:
    """Only unit tests, or only browser tests, which start a whole service of their own."""
    paths = [
        argument for argument in arguments if not argument.startswith("-") and Path(argument.split("::")[0]).exists()
    ]
    folders = ("tests/unit", "tests/browser")
    return bool(paths) and all(any(one in path.replace(os.sep, "/") for one in folders) for path in paths)


def never_wait_for_the_disk(database_url: str) -> None:
    """What is written is safe from a killed server, not from a crash of the machine: enough for a test's data, and
    emptying the tables after a test takes a tenth of the time."""
    parts = env.database(database_url)
    with psycopg.connect(
        host=str(parts["HOST"]), user=str(parts["USER"]), dbname=str(parts["NAME"]), autocommit=True
    ) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    home = Path(tempfile.mkdtemp(prefix="touchstone-tests-"))
    os.environ["TOUCHSTONE_HOME"] = str(home)
    # Slices run in the test's own process here: no heartbeat may open a connection of its own to the test database.
    os.environ.setdefault("TOUCHSTONE_LEASE_SECONDS", "7200")
    if _needs_no_services(args):
        _running.append((None, home))  # type: ignore[arg-type]
        return
    supervisor = embedded.start(home, postgres="DATABASE_URL" not in os.environ, broker="REDIS_URL" not in os.environ)
    _running.append((supervisor, home))
    if supervisor.services.database_url:
        os.environ.setdefault("DATABASE_URL", supervisor.services.database_url)
        never_wait_for_the_disk(supervisor.services.database_url)
    if supervisor.services.redis_url:
        os.environ.setdefault("REDIS_URL", supervisor.services.redis_url)


def pytest_unconfigure(config: pytest.Config) -> None:
    while _running:
        supervisor, home = _running.pop()
        if supervisor is not None:
            supervisor.stop()
        shutil.rmtree(home, ignore_errors=True)


class _OneServiceAtATime(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Files beside each other, but those that start whole services one after the other, by one runner."""

    def _split_scope(self, nodeid: str) -> str:
        return _SERVICES if nodeid.startswith(_SERVICES) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return _OneServiceAtATime(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole services first: they take longest, and mostly wait."""
    items.sort(key=lambda item: not item.nodeid.startswith(_SERVICES))
