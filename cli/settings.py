"""Where the service is and who asks: from the environment, else from what `touchstone up` left behind."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8000"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`token` is empty where none is known. `guessed`: nothing names the address, and it is the usual one."""

    url: str
    token: str
    guessed: bool = False


def load(environment: Mapping[str, str] = os.environ, *, folder: Path | None = None) -> Settings:
    """TOUCHSTONE_URL and TOUCHSTONE_TOKEN, else the address and token in the nearest `.touchstone/`.

    That token is for the service that wrote it: it is sent to this machine and to the recorded address, nowhere else.
    """
    home = find_home(environment, folder or Path.cwd())
    recorded = _recorded_url(home)
    named = environment.get("TOUCHSTONE_URL") or recorded
    url = (named or DEFAULT_URL).rstrip("/")
    token = environment.get("TOUCHSTONE_TOKEN", "")
    if not token and home is not None and (url == recorded or is_local(url)):
        token = _read(home / "token")
    return Settings(url=url, token=token, guessed=not named and home is None)


def find_home(environment: Mapping[str, str], folder: Path) -> Path | None:
    """The state folder that TOUCHSTONE_HOME names, else the nearest one, here or above, that `up` has used."""
    named = environment.get("TOUCHSTONE_HOME")
    if named:
        return Path(named)
    for place in (folder, *folder.parents):
        home = place / ".touchstone"
        # A folder of that name may also hold question sets only.
        if (home / "token").exists():
            return home
    return None


def is_local(url: str) -> bool:
    return (urlsplit(url).hostname or "") in _LOOPBACK


def _recorded_url(home: Path | None) -> str:
    text = "" if home is None else _read(home / "stack.json")
    try:
        found = json.loads(text).get("base_url") if text else None
    except ValueError:
        return ""
    return found.rstrip("/") if isinstance(found, str) else ""


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
