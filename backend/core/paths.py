"""Document paths: relative, with `/`, in NFC; and which of them are hidden, or question-set files."""

import re
import unicodedata

MAX_LENGTH = 1000
SET_FOLDERS = (".touchstone", ".metis")
SET_SUFFIXES = (".jsonl", ".json")
# What `touchstone up` keeps in a folder of that name: an address that may hold a password, and no question set.
STATE_FILES = frozenset({"stack.json"})
_UNUSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_DRIVE = re.compile(r"^[A-Za-z]:/")


class PathError(ValueError):
    """A path that no document can have; the sentence says why."""


def clean(raw: str) -> str:
    """The path as it is stored. Raises PathError for one that is absolute, climbs, or cannot be kept."""
    if _UNUSABLE.search(raw):
        raise PathError("The path holds control characters, or bytes that are not UTF-8.")
    text = unicodedata.normalize("NFC", raw.replace("\\", "/"))
    parts = [part for part in text.split("/") if part not in {"", "."}]
    path = "/".join(parts)
    # A drive may stand behind `./` too.
    if text.startswith("/") or _DRIVE.match(text) or _DRIVE.match(path):
        raise PathError("The path is absolute; it must be relative to its source.")
    if ".." in parts:
        raise PathError("The path climbs out of its source with `..`.")
    if not path:
        raise PathError("The path is empty.")
    if len(path) > MAX_LENGTH:
        raise PathError(f"The path is longer than {MAX_LENGTH:,} characters.")
    return path


def is_hidden(path: str) -> bool:
    """Whether the file or a folder above it is hidden. Takes a clean path."""
    return any(part.startswith(".") for part in path.split("/"))


def is_set_file(path: str) -> bool:
    """Whether the file is a question set: directly in a `.touchstone/` or `.metis/` at the root."""
    folder, _, name = path.partition("/")
    return (
        folder in SET_FOLDERS
        and "/" not in name
        and not name.startswith(".")
        and name not in STATE_FILES
        and name.endswith(SET_SUFFIXES)
    )
