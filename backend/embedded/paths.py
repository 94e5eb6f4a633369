"""Where state lives.

`home` holds what the person who runs us may read: the lock, the token, the logs. `base` holds what the services
own: data, sockets, and copies of the programs where they cannot be run in place. They are the same folder unless we
are root and the services' user cannot enter `home`.
"""

import hashlib
import os
import pwd
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from backend.embedded.errors import EmbeddedError
from backend.embedded.launch import Account, reachable

HOME_VARIABLE = "TOUCHSTONE_HOME"
DEFAULT_HOME = ".touchstone"
# sun_path holds 108 bytes with its closing zero.
SOCKET_PATH_BYTES = 107
LONGEST_SOCKET_NAME = ".s.PGSQL.5432"
# Other characters would have to be quoted in three ways: in a URL, in a PostgreSQL list and by kombu.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+@-]+\Z")
_ROOT_BASE = Path("/var/lib/touchstone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    home: Path
    base: Path
    run: Path
    account: Account | None
    """None when we are not root: the services run as we do."""

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def part(self, name: str) -> Path:
        """A folder of the services' own (0700), made when missing."""
        return _own_folder(self.base / name, account=self.account)


def home_from(environment: Mapping[str, str]) -> Path:
    return Path(environment.get(HOME_VARIABLE) or DEFAULT_HOME).expanduser().absolute()


def lock_file(home: Path) -> Path:
    return home / "stack.lock"


def processes_lock_file(home: Path) -> Path:
    return home / "processes.lock"


def state_file(home: Path) -> Path:
    return home / "stack.json"


def token_file(home: Path) -> Path:
    return home / "token"


def secret_key_file(home: Path) -> Path:
    return home / "secret_key"


def make_home(home: Path) -> Path:
    """Make the home and its logs. A folder that holds something keeps its mode: somebody has chosen it."""
    # Root's services run as another user, who must pass through; everything inside is closed by its own mode.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    try:
        if not home.is_dir():
            home.mkdir(parents=True, exist_ok=True)
        if home.stat().st_uid == os.geteuid() and next(home.iterdir(), None) is None:
            home.chmod(mode)
        (home / "logs").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(f"cannot make the state folder {home}: {error}; set {HOME_VARIABLE}") from error
    return home


def layout(home: Path) -> Layout:
    """Decide where the services' files go; makes the folders. The same home always gives the same data folder."""
    make_home(home)
    remembered = home / "base"
    base = Path(remembered.read_text().strip()) if _is_file(remembered) else home
    if os.geteuid() != 0:
        _must_be_ours(base)
        return Layout(home=home, base=base, run=_run_folder(home=home, base=base, account=None), account=None)
    account = _account(base)
    if not reachable(base, account):
        if base != home or (base / "postgres").exists():
            raise EmbeddedError(
                f"the services run as uid {account.uid}, who can no longer enter {base}, where their data is;"
                f" open its parent folders to that user, or set {HOME_VARIABLE}"
            )
        base = _root_base(home, account=account)
        remembered.write_text(f"{base}\n")
    return Layout(home=home, base=base, run=_run_folder(home=home, base=base, account=account), account=account)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError as error:
        raise EmbeddedError(
            f"{path.parent} belongs to another user; set {HOME_VARIABLE} to a folder of yours"
        ) from error


def _must_be_ours(base: Path) -> None:
    data = base / "postgres"
    try:
        ours = not data.exists() or data.stat().st_uid == os.geteuid()
    except PermissionError:
        ours = False
    if not ours:
        raise EmbeddedError(
            f"the data in {base} was made by another user (root runs the services as a user of their own);"
            f" start as that user, or set {HOME_VARIABLE} to a folder of yours"
        )


def _account(base: Path) -> Account:
    """The services' user under root: whoever has the data, else a non-root owner of the folder, else a system user."""
    for place in (base / "postgres", base):
        if place.exists() and (owner := place.stat()).st_uid != 0:
            return Account(uid=owner.st_uid, gid=owner.st_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    return Account(uid=65534, gid=65534)


def _root_base(home: Path, *, account: Account) -> Path:
    names = (f"{_short_hash(home)}{suffix}" for suffix in ("", *(f"-{number}" for number in range(2, 1000))))
    # Data already there belongs to a home that was deleted: whoever deletes a home expects an empty one next.
    base = next(_ROOT_BASE / name for name in names if not (_ROOT_BASE / name / "postgres").exists())
    try:
        for folder in (_ROOT_BASE, base):
            if not folder.is_dir():
                folder.mkdir(parents=True)
                folder.chmod(0o711)
    except OSError as error:
        raise EmbeddedError(f"cannot make {base} for the services' data: {error}; set {HOME_VARIABLE}") from error
    if not reachable(base, account):
        raise EmbeddedError(
            f"uid {account.uid}, who runs the services, can enter neither {home} nor {base}; set {HOME_VARIABLE}"
        )
    return base


def _run_folder(*, home: Path, base: Path, account: Account | None) -> Path:
    """The sockets' folder: in `base` when that path is short and plain, else a short one under the temp folder."""
    if _fits(base / "run"):
        return _own_folder(base / "run", account=account)
    for parent in dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp"))):  # noqa: S108 - owner and mode are checked
        folder = parent / f"touchstone-{_short_hash(home)}"
        if _fits(folder) and parent.is_dir() and (account is None or reachable(parent, account)):
            return _own_folder(folder, account=account)
    raise EmbeddedError(
        f"no folder for sockets: {base / 'run'} is too long or has unusual characters, and so is the temp folder;"
        f" set {HOME_VARIABLE} to a short path"
    )


def _fits(folder: Path) -> bool:
    path = str(folder / LONGEST_SOCKET_NAME)
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES and _PLAIN_PATH.match(path) is not None


def _own_folder(folder: Path, *, account: Account | None) -> Path:
    owner = os.geteuid() if account is None else account.uid
    try:
        folder.mkdir(mode=0o700)
        if account is not None:
            os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    except FileExistsError:
        found = folder.lstat()
        # A name in a shared temp folder can be guessed: take nothing that another user has put there.
        if folder.is_symlink() or not folder.is_dir() or found.st_uid not in {owner, os.geteuid()}:
            raise EmbeddedError(f"{folder} is not a folder of ours; remove it, or set {HOME_VARIABLE}") from None
        if found.st_uid != owner and account is not None:  # we were stopped between mkdir and chown
            os.chown(folder, account.uid, account.gid, follow_symlinks=False)
        if found.st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def _short_hash(home: Path) -> str:
    return hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]
