"""Sources: upload areas, and folders of the server that are read again at each sync."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from backend.core import paths
from backend.core.errors import ConflictError, ErrorCode, Fault, ValidationError
from backend.models import Document, Ingestion, KnowledgeBase, Source, SourceKind
from backend.services import documents, set_files

MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    path: str
    place: Path
    size: int
    modified_ns: int


def create(
    base: KnowledgeBase,
    *,
    name: str,
    kind: str = SourceKind.UPLOAD,
    folder: str = "",
    collection: str = "",
) -> Source:
    """An upload area, or a folder of the server. Raises ValidationError with every fault, ConflictError when the base
    has a source of that name."""
    faults = _faults(name=name, kind=kind, folder=folder, collection=collection)
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    root = os.path.realpath(folder) if kind == SourceKind.FOLDER else ""
    try:
        with transaction.atomic():
            return Source.objects.create(
                knowledge_base=base, name=name.strip(), kind=kind, folder=root, collection=collection.strip()
            )
    except IntegrityError as error:
        raise ConflictError(f"This knowledge base has a source named {name.strip()!r} already.") from error


def upload_area(base: KnowledgeBase, *, name: str = "uploads") -> Source:
    """The base's source of that name, made where there is none. Raises ConflictError when it is a folder."""
    source = Source.objects.filter(knowledge_base=base, name=name.strip()).first() or create(base, name=name)
    if source.kind != SourceKind.UPLOAD:
        raise ConflictError(f"The source {source.name!r} is a folder of the server: it is synced, not uploaded to.")
    return source


def delete(source: Source) -> None:
    """Delete a source with its documents and question-set files."""
    documents.remove_many(list(Document.objects.filter(source=source).values_list("id", flat=True)))
    source.delete()


def sync(source: Source) -> Ingestion:
    """Read a folder again: what is new or changed is indexed, what is gone is removed, the rest is not even opened.
    The question sets in its hidden folders are read as such.

    Raises ConflictError when it is no folder, cannot be read, or is being synced by somebody else.
    """
    if source.kind != SourceKind.FOLDER:
        raise ConflictError(f"The source {source.name!r} is an upload area: upload to it, there is nothing to sync.")
    root = Path(source.folder)
    fault = _folder_fault(source.folder)
    if fault:
        # Not "everything vanished": a disk that is not mounted must not empty the base.
        raise ConflictError(fault)
    with _alone(source):
        found = {one.path: one for one in _files(root)}
        there = {
            one.path: one
            for one in Document.objects.filter(source=source).only(
                "id", "path", "size", "modified_ns", "bytes_hash", "state", "code"
            )
        }
        n_removed = documents.remove_many([one.id for path, one in there.items() if path not in found])
        intake = documents.Intake(source)
        n_unchanged = 0
        for path, file in found.items():
            known = there.get(path)
            if (
                known is not None
                and (known.size, known.modified_ns) == (file.size, file.modified_ns)
                and documents.is_unchanged(known, known.bytes_hash)
            ):
                n_unchanged += 1
            else:
                _take(intake, file)
        _read_set_files(source, root)
        started = documents.store_sync(intake, n_unchanged=n_unchanged, n_removed=n_removed)
        Source.objects.filter(id=source.id).update(synced_at=timezone.now())
    return started


@contextmanager
def _alone(source: Source) -> Iterator[None]:
    """One sync of a source at a time. A lock of the session and not of a row: reading a large folder takes a while,
    and no transaction should be open meanwhile."""
    key = int.from_bytes(source.id.bytes[8:], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        if not cursor.fetchone()[0]:
            raise ConflictError(f"The source {source.name!r} is being synced already.")
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


def _take(intake: documents.Intake, file: _File) -> None:
    """A file that vanished or cannot be opened meanwhile is left for the next sync."""
    try:
        if file.size <= settings.MAX_DOCUMENT_BYTES:
            intake.take(file.path, file.place.read_bytes(), modified_ns=file.modified_ns)
            return
        with file.place.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        intake.take_oversized(file.path, digest, size=file.size, modified_ns=file.modified_ns)
    except OSError:
        return


def _read_set_files(source: Source, root: Path) -> None:
    seen = set()
    for folder in paths.SET_FOLDERS:
        if not (root / folder).is_dir():
            continue
        for place in sorted((root / folder).iterdir()):
            path = f"{folder}/{place.name}"
            if not paths.is_set_file(path) or not _stays_inside(root, place) or not place.is_file():
                continue
            with place.open("rb") as stream:
                # One byte above the limit tells that it is too large; the rest need not be in memory.
                data = stream.read(settings.MAX_SET_BYTES + 1)
            set_files.record(source, path, data)
            seen.add(path)
    set_files.forget_others(source, seen)


def _files(root: Path) -> Iterator[_File]:
    """The files below a folder, sorted; no hidden ones, nothing that a link leads out of it to."""
    taken, closed = set(), _not_for_reading()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and Path(folder, name).resolve() not in closed
        )
        for name in sorted(names):
            place = Path(folder, name)
            if name.startswith(".") or (place.is_symlink() and not _stays_inside(root, place)):
                continue
            try:
                path = paths.clean(place.relative_to(root).as_posix())
                found = place.stat()
            except (paths.PathError, OSError):
                continue
            # Two names that differ only in how their accents are written: the first counts.
            if path not in taken and place.is_file():
                taken.add(path)
                yield _File(path=path, place=place, size=found.st_size, modified_ns=found.st_mtime_ns)


def _stays_inside(root: Path, place: Path) -> bool:
    return place.resolve().is_relative_to(root)


def _not_for_reading() -> tuple[Path, ...]:
    """Ours (keys, tokens, the database), and files that are windows into processes and devices."""
    return (settings.HOME.resolve(), Path("/proc"), Path("/sys"), Path("/dev"))


def _faults(*, name: Any, kind: Any, folder: Any, collection: Any) -> list[Fault]:
    faults = []

    def tell(message: str, field: str) -> None:
        faults.append(Fault(code=ErrorCode.VALIDATION, message=message, field=field))

    if not isinstance(name, str) or not name.strip() or len(name.strip()) > MAX_NAME or "\x00" in name:
        tell(f"name is a text of 1 to {MAX_NAME} characters.", "name")
    if not isinstance(collection, str) or len(collection) > MAX_NAME or "\x00" in collection:
        tell(f"collection is a text of at most {MAX_NAME} characters.", "collection")
    if kind not in list(SourceKind):  # a list: what came need not be hashable
        tell(f"kind is one of {', '.join(SourceKind)}, not {kind!r}.", "kind")
    elif kind == SourceKind.FOLDER:
        fault = _folder_fault(folder) if isinstance(folder, str) else "folder is a text."
        if fault:
            tell(fault, "folder")
    elif folder:
        tell("Only a source of the kind `folder` has a folder.", "folder")
    return faults


def _folder_fault(folder: str) -> str:
    """Why a folder cannot be a source; empty when it can."""
    if not folder or "\x00" in folder or not Path(folder).is_absolute():
        return "folder is the absolute path of a folder on the server."
    if len(folder) > 1000:
        return "folder is longer than 1,000 characters."
    # Before anything is looked at: what is there outside of the roots is nobody's to know.
    roots = [Path(root).resolve() for root in settings.FOLDER_ROOTS]
    real = Path(folder).resolve()
    if roots and not any(real.is_relative_to(root) for root in roots):
        return f"{folder} is not below a folder that may be read here (TOUCHSTONE_FOLDER_ROOTS)."
    if not roots and settings.SECURE_SSL_REDIRECT:
        # A service for others: what the server can read is not what each of its users may.
        return "No folders may be read here: whoever runs this service names them in TOUCHSTONE_FOLDER_ROOTS."
    if any(real.is_relative_to(one) for one in _not_for_reading()):
        return f"{folder} holds the service's own files, or the system's: it cannot be a source."
    if not Path(folder).is_dir():
        return f"There is no folder {folder} on the server."
    if not os.access(folder, os.R_OK | os.X_OK):
        return f"The server may not read {folder}."
    return ""
