"""The files of a folder that are worth sending."""

import hashlib
import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SET_FOLDERS = (".touchstone", ".metis")
SET_SUFFIXES = (".jsonl", ".json")
# What `touchstone up` keeps in a folder of the same name: addresses, perhaps with passwords in them.
_OURS = "stack.json"
_MOST_FILES, _MOST_BYTES = 50, 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """`path` is relative to the folder, with `/`, in the spelling that the service keeps (NFC)."""

    path: str
    place: Path
    size: int

    @property
    def is_set(self) -> bool:
        return self.path.startswith(tuple(f"{folder}/" for folder in SET_FOLDERS))

    def sha256(self) -> str:
        with self.place.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def files(root: Path) -> Iterator[LocalFile]:
    """All files below a folder in order (or the one file), hidden ones never, nothing that a link leads out of it to;
    and the question sets that lie in `.touchstone/` and `.metis/` at its top."""
    if root.is_file():
        yield LocalFile(path=root.name, place=root, size=root.stat().st_size)
        return
    for name in SET_FOLDERS:
        folder = root / name
        if folder.is_dir() and _stays_inside(root, folder):
            for place in sorted(folder.iterdir()):
                if place.suffix in SET_SUFFIXES and not place.name.startswith(".") and place.name != _OURS:
                    yield from _file(root, place)
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield from _file(root, Path(where, name))


def batches(found: Sequence[LocalFile]) -> Iterator[list[LocalFile]]:
    """Groups that fit one request each."""
    group: list[LocalFile] = []
    n_bytes = 0
    for file in found:
        if group and (len(group) == _MOST_FILES or n_bytes + file.size > _MOST_BYTES):
            yield group
            group, n_bytes = [], 0
        group.append(file)
        n_bytes += file.size
    if group:
        yield group


def _file(root: Path, place: Path) -> Iterator[LocalFile]:
    if place.is_file() and (not place.is_symlink() or _stays_inside(root, place)):
        # A name that is no UTF-8 is sent with a mark for what cannot be read, and told as refused.
        path = place.relative_to(root).as_posix().encode(errors="replace").decode()
        yield LocalFile(path=unicodedata.normalize("NFC", path), place=place, size=place.stat().st_size)


def _stays_inside(root: Path, place: Path) -> bool:
    return place.resolve().is_relative_to(root.resolve())
