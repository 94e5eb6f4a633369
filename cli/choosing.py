"""What people name on the command line, found in the service."""

from pathlib import Path
from typing import Any

from cli.client import Client
from cli.errors import ApiError, UsageError
from touchstone import program

Json = dict[str, Any]


def base(client: Client, name_or_id: str | None) -> Json:
    """The knowledge base of that name or id; the only one there is where none is named. Raises UsageError."""
    if name_or_id:
        found = client.find_knowledge_base(name_or_id)
        if found is None:
            raise UsageError(f"There is no knowledge base {name_or_id!r}. {_there(client)}")
        return found
    bases = client.knowledge_bases()
    if len(bases) == 1:
        return bases[0]
    if not bases:
        raise UsageError(f"There is no knowledge base yet. Make one: {program.name()} ingest ./docs")
    raise UsageError(f"Say which knowledge base: --knowledge-base NAME. {_there(client)}")


def questions(client: Client, name: str, *, format: str = "") -> dict[str, str]:  # noqa: A002  as in the API
    """The request's field for a file of this machine (uploaded as a set, or its next version), for a file found in a
    source, `<source>:<path>`, or for a set by name, id or id@version. Raises UsageError."""
    path = Path(name)
    if path.is_file():
        return {"question_set": client.upload_question_set(path, format=format)}
    # A file of a source before the set that was once made of it: the file may have changed since.
    if ":" in name and _is_in_a_source(client, name):
        return {"file": name}
    key, _, version = name.rpartition("@")
    found = client.find_question_set(name) or (client.find_question_set(key) if key else None)
    if found is not None:
        return {"question_set": found["id"] if name in {found["id"], found["name"]} else f"{found['id']}@{version}"}
    if ":" in name:
        return {"file": name}
    if path.is_dir():
        raise UsageError(f"{name!r} is a folder. Name the file with the questions.")
    there = ", ".join(one["name"] for one in client.question_sets()[:10])
    raise UsageError(
        f"There is no file {name!r}, and no question set of that name. Sets: {there or 'none yet'}. "
        f"`{program.name()} sets template` shows what a file looks like."
    )


def scope(
    client: Client,
    *,
    knowledge_base: str | None,
    documents: str | None,
    workspace: str | None,
    source: str,
    collection: str,
) -> Json:
    """The scope of a request. Raises UsageError where it names two roots."""
    if sum(map(bool, (knowledge_base, documents, workspace))) > 1:
        raise UsageError("Name one of --knowledge-base, --documents and --workspace.")
    where: Json
    if documents:
        where = {"documents": [part.strip() for part in documents.split(",") if part.strip()]}
    elif workspace:
        where = {"workspace": workspace}
    else:
        where = {"knowledge_base": base(client, knowledge_base)["id"]}
    narrowed = {"source": source, "collection": collection}
    return where | {name: value for name, value in narrowed.items() if value}


def run_or_evaluation(client: Client, key: str) -> Json:
    """The run or the evaluation of that id: an evaluation has `runs`. Raises ApiError where it is neither."""
    for find in (client.run, client.evaluation):
        try:
            return find(key)
        except ApiError as error:
            if error.code != "NOT_FOUND":
                raise
            refused = error
    raise ApiError(
        f"There is no run and no evaluation {key[:60]} in this workspace.",
        status=refused.status,
        code=refused.code,
        request_id=refused.request_id,
    ) from refused


def _is_in_a_source(client: Client, name: str) -> bool:
    return any(one["file"] == name for base_ in client.knowledge_bases() for one in client.set_files(base_["id"]))


def _there(client: Client) -> str:
    names = ", ".join(one["name"] for one in client.knowledge_bases()[:20])
    return f"There are: {names}." if names else f"There is none yet: {program.name()} ingest ./docs makes one."
