"""`touchstone ingest`: a folder's files sent, and followed until each is indexed or has a reason why not."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli import folder
from cli.client import FINAL_INGESTIONS, Client
from cli.errors import ClientError, UsageError
from cli.folder import LocalFile
from touchstone.progress import Bar

Json = dict[str, Any]
_SILENCE_SECONDS = 15.0


@dataclass(slots=True, kw_only=True)
class Sent:
    """What became of a folder, or of one file, whose `path` is set. `copies`: documents that are in the base in another
    place too, each with what it is `like`."""

    base: Json
    source: str
    path: str = ""
    n_files: int = 0
    n_unchanged: int = 0
    n_sent: int = 0
    n_pruned: int = 0
    missing: list[Json] = field(default_factory=list)
    skipped: list[Json] = field(default_factory=list)
    failed: list[Json] = field(default_factory=list)
    set_files: list[Json] = field(default_factory=list)
    copies: list[Json] = field(default_factory=list)


def base_for(client: Client, name: str, *, settings: Json | None) -> Json:
    """The base of that name, made where there is none. Settings of a base that is there are not changed quietly."""
    found = client.find_knowledge_base(name)
    if found is None:
        return client.create_knowledge_base(name, settings=settings)
    if settings:
        raise UsageError(
            f"The knowledge base {name!r} is there already, with settings of its own. Leave --settings out, or make"
            " another base with --name."
        )
    return found


def send(
    client: Client, root: Path, *, base: Json, source: str, collection: str = "", prune: bool = False, wait: bool = True
) -> Sent:
    """Send what the source lacks; files whose bytes are there already are not even sent. Raises ClientError."""
    found = list(folder.files(root))
    if not any(not file.is_set for file in found):
        raise ClientError(f"There are no files in {root} (hidden ones are never read).")
    sent = Sent(base=base, source=source, n_files=sum(not file.is_set for file in found))
    there = _documents(client, base["id"], source)
    lacking = [file for file in found if file.is_set or not _is_there(file, there, collection)]
    sent.n_unchanged = sent.n_files - sum(not file.is_set for file in lacking)
    if not root.is_dir():
        sent.path = found[0].path
    paths = {file.path for file in found}
    sent.missing = [document for path, document in there.items() if path not in paths] if root.is_dir() else []
    if prune:
        for document in sent.missing:
            client.delete_document(base["id"], document["id"])
        sent.n_pruned, sent.missing = len(sent.missing), []
    new = [file for file in lacking if not file.is_set and file.path not in there]
    sent.copies = _copies(client, base["id"], new, source=source, by_name=not root.is_dir())
    ingestions: list[str] = []
    with Bar("sending", stream=sys.stderr) as bar:
        n_done = 0
        bar.show(0, len(lacking))
        for group in folder.batches(lacking):
            ingestions += _send(client, group, sent=sent, collection=collection)
            n_done += len(group)
            bar.show(n_done, len(lacking))
    if wait:
        _follow(client, base["id"], ingestions)
    source_id = _source_id(client, base["id"], source)
    if source_id:
        sent.failed = list(client.documents(base["id"], source=source_id, state="failed"))
    sent.set_files = [one for one in client.set_files(base["id"]) if one["source"] == source]
    sent.base = client.find_knowledge_base(base["id"]) or base
    return sent


def _send(client: Client, group: Sequence[LocalFile], *, sent: Sent, collection: str) -> list[str]:
    """The ingestion that the files began, if any."""
    try:
        added = client.upload(
            sent.base["id"], [(file.path, file.place) for file in group], source=sent.source, collection=collection
        )
    except OSError as error:
        raise ClientError(f"{error.filename} cannot be read: {error.strerror}.") from error
    sent.n_sent += sum(not file.is_set for file in group)
    sent.skipped += added["skipped"]
    return [added["ingestion"]["id"]] if added["ingestion"] else []


def _follow(client: Client, base_id: str, ingestions: Sequence[str]) -> None:
    """Until all rounds have ended; tells when there are no workers to do it."""
    open_ = set(ingestions)
    done: dict[str, Json] = {}
    since, last, told = time.monotonic(), -1, False
    if not open_:
        return
    with Bar("documents", stream=sys.stderr) as bar:
        for found in client.looks(lambda: {one: client.ingestion(base_id, one) for one in open_}):
            if found is None:
                since = time.monotonic()
                continue
            done |= found
            open_.difference_update(key for key, one in found.items() if one["state"] in FINAL_INGESTIONS)
            n_done = sum(one["n_documents"] - one["n_pending"] for one in done.values())
            bar.show(n_done, sum(one["n_documents"] for one in done.values()))
            if n_done != last:
                since, last = time.monotonic(), n_done
            elif not told and time.monotonic() - since > _SILENCE_SECONDS:
                told = True
                tell_missing_workers(client)
            if not open_:
                return


def tell_missing_workers(client: Client) -> None:
    workers = client.ready().get("checks", {}).get("workers", {})
    if not workers.get("ok", True):
        sys.stderr.write(f"Nothing moves: {workers.get('detail', 'no workers')}. Are the worker processes running?\n")


def _documents(client: Client, base_id: str, source: str) -> dict[str, Json]:
    source_id = _source_id(client, base_id, source)
    return {one["path"]: one for one in client.documents(base_id, source=source_id)} if source_id else {}


def _copies(client: Client, base_id: str, new: Sequence[LocalFile], *, source: str, by_name: bool) -> list[Json]:
    """The new files whose content is in the base already, in another source or under another path; `by_name` also
    those whose file's name is."""
    if not new:
        return []
    found: dict[str, Json] = {}
    names = {file.path.rpartition("/")[2]: file for file in new}
    sizes: dict[int, list[LocalFile]] = {}
    for file in new:
        sizes.setdefault(file.size, []).append(file)
    for document in client.documents(base_id):
        like = [file for file in sizes.get(document["size"], ()) if file.sha256() == document["bytes_hash"]]
        named = names.get(document["path"].rpartition("/")[2])
        if by_name and named is not None:
            like.append(named)
        for file in like:
            place = {"source": document["source"], "path": document["path"]}
            if place != {"source": source, "path": file.path}:
                found.setdefault(file.path, {"path": file.path, "like": place})
    return list(found.values())


def _source_id(client: Client, base_id: str, source: str) -> str:
    return next((str(one["id"]) for one in client.sources(base_id) if one["name"] == source), "")


def _is_there(file: LocalFile, there: dict[str, Json], collection: str) -> bool:
    """One that failed is sent again: the fault may have been the service's."""
    document = there.get(file.path)
    return (
        document is not None
        and document["state"] != "failed"
        and document["size"] == file.size
        and (not collection or document["collection"] == collection)
        and document["bytes_hash"] == file.sha256()
    )
