"""What a running stack tells others: one small file, believed only while the home's lock is held."""

import dataclasses
import json
import os
import time
from pathlib import Path

from backend.embedded.errors import EmbeddedError
from backend.embedded.locks import is_held
from backend.embedded.paths import HOME_VARIABLE, lock_file, state_file


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    database_url: str
    redis_url: str
    started: tuple[str, ...]
    """Those started from packages: "postgres", "valkey". The others were given by the environment."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    services: Services
    pid: int
    """For people to read; nothing decides by it."""
    run_folder: str
    base_url: str | None = None
    """None until the page answers, and for services without one."""


def write(home: Path, state: StackState) -> None:
    write_private(state_file(home), json.dumps(dataclasses.asdict(state), indent=1) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replace the file at once, readable by its owner only: it may hold a password or a token."""
    aside = path.with_name(f".{path.name}.new")
    aside.unlink(missing_ok=True)
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    aside.replace(path)


def forget(home: Path) -> None:
    state_file(home).unlink(missing_ok=True)


def is_running(home: Path) -> bool:
    try:
        return is_held(lock_file(home))
    except PermissionError as error:
        raise EmbeddedError(
            f"the state folder {home} belongs to another user; set {HOME_VARIABLE} to a folder of yours"
        ) from error


def read(home: Path) -> StackState | None:
    """None when nothing runs here or its addresses are not known yet."""
    if not is_running(home):
        return None
    try:
        fields = json.loads(state_file(home).read_text())
    except FileNotFoundError:
        return None
    services = fields.pop("services")
    return StackState(services=Services(**{**services, "started": tuple(services["started"])}), **fields)


def wait_for_page(home: Path, *, seconds: float) -> StackState | None:
    """The state of a running stack once its page answers; None when it ended or only holds services."""
    give_up_at = time.monotonic() + seconds
    while is_running(home) and time.monotonic() < give_up_at:
        found = read(home)
        if found is not None and found.base_url is not None:
            return found
        time.sleep(0.2)
    return None
