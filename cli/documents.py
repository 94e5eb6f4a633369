"""`ingest` and `search`."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import choosing, ingesting, output
from cli.client import Client
from cli.errors import UsageError
from cli.ingesting import Sent
from cli.options import AsJson, Base, Collection, Level, Reranker, Source, words
from touchstone import program, rules, tables

app = typer.Typer()
_MOST_SHOWN = 50
_MOST_COPIES = 10


@app.command()
def ingest(
    path: Annotated[Path, typer.Argument(exists=True, help="A folder (with all below it), or one file.")],
    name: Annotated[
        str | None, typer.Option(metavar="BASE", help="The knowledge base. Default: the folder's name.")
    ] = None,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="The source. Default: the folder's name.")] = None,
    collection: Annotated[str, typer.Option(metavar="NAME", help="A collection for these documents.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP.NAME=VALUE", help="A setting of a new base; may be repeated."),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove what the folder does not have any more.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until every document is indexed or has a reason.")] = True,
    as_json: AsJson = False,
) -> None:
    """Send a folder's documents to a knowledge base, made where there is none.

    Sub-folders are sent, hidden files never; question sets in `.touchstone/` or `.metis/` are found and listed. Files
    that are there already are not sent again.

    Examples:

      touchstone ingest ./docs
      touchstone ingest ./docs --name handbook --settings keyword.language=english
      touchstone ingest ./docs --settings chunking.size=800 --settings chunking.overlap=100
    """
    default = (path.resolve() if path.is_dir() else path.resolve().parent).name or "documents"
    with Client() as client:
        client.on_silence = output.note
        base = ingesting.base_for(client, name or default, settings=_settings(settings or []))
        sent = ingesting.send(
            client, path, base=base, source=source or default, collection=collection, prune=prune, wait=wait
        )
    if as_json:
        output.answer_json({name: getattr(sent, name) for name in sent.__dataclass_fields__})
    else:
        output.answer(_told(sent, waited=wait))
        _tell_copies(sent)
    n_indexed = sent.base["n_indexed"]
    if wait and sent.base["state"] == "failed":
        output.note(f"{sent.base['reason']} ({sent.base['code']})")
    if wait and (sent.failed or sent.skipped):
        output.end(rules.NOT_COVERED if n_indexed else rules.COULD_NOT_RUN)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    knowledge_base: Base = None,
    modes: Annotated[
        str, typer.Option(metavar="MODE,MODE", help="semantic, keyword, hybrid, each with _rerank.")
    ] = "hybrid",
    top_k: Annotated[int, typer.Option(min=1, help="How many results.")] = 5,
    level: Level = None,
    reranker: Reranker = None,
    source: Source = "",
    collection: Collection = "",
    as_json: AsJson = False,
) -> None:
    """Ask one question, and see why each result came.

    Examples:

      touchstone search "how many days of leave"
      touchstone search "E-4127" --modes semantic,keyword,hybrid --top-k 3
      touchstone search "leave" -b handbook --collection policies --json
    """
    with Client() as client:
        scope = choosing.scope(
            client, knowledge_base=knowledge_base, documents=None, workspace=None, source=source, collection=collection
        )
        found = client.search(query, scope=scope, modes=words(modes), top_k=top_k, level=level, reranker=reranker)
    if as_json:
        output.answer_json(found)
        return
    for warning in found["warnings"]:
        output.note(warning)
    output.answer("\n\n".join(_mode(mode) for mode in found["modes"]))
    if all(mode["failure"] for mode in found["modes"]):
        output.end(rules.COULD_NOT_RUN)


def _settings(given: list[str]) -> dict[str, Any] | None:
    """`chunking.size=800` as {"chunking": {"size": 800}}; a value is JSON, else a text. Raises UsageError."""
    out: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        group, _, field = name.strip().partition(".")
        if not equals or not group:
            raise UsageError(f"{text!r} is no setting. Write GROUP.NAME=VALUE, such as keyword.language=english.")
        try:
            read = json.loads(value)
        except ValueError:
            read = value.strip()
        if not field:
            out[group] = read
        elif isinstance(out.setdefault(group, {}), dict):
            out[group][field] = read
        else:
            raise UsageError(f"{group} is given twice, once as a whole.")
    return out or None


def _told(sent: Sent, *, waited: bool) -> str:
    base = sent.base
    where = f"source {sent.source}" + (f", path {sent.path}" if sent.path else "")
    said = [f"{sent.n_sent} of {sent.n_files} documents sent to {base['name']} ({where})"]
    if sent.n_unchanged:
        said.append(f"{sent.n_unchanged} unchanged")
    if sent.n_pruned:
        said.append(f"{sent.n_pruned} removed")
    lines = [", ".join(said) + "."]
    if waited:
        lines.append(
            f"The knowledge base is {base['state']}: {base['n_indexed']} documents indexed, {base['n_failed']} failed,"
            f" {base['n_chunks']} passages."
        )
    lines += [f"  failed   {one['path']}: {one['reason']} ({one['code']})" for one in sent.failed[:_MOST_SHOWN]]
    if len(sent.failed) > _MOST_SHOWN:
        lines.append(f"  and {len(sent.failed) - _MOST_SHOWN} more that failed")
    lines += [f"  skipped  {one['path']}: {one['reason']}" for one in sent.skipped[:_MOST_SHOWN]]
    if sent.missing:
        lines.append(
            f"  {len(sent.missing)} documents of this source are not in the folder any more (--prune removes them)"
        )
    for one in sent.set_files:
        what = f"{one['n_questions']} questions" if not one["code"] else f"{one['reason']} ({one['code']})"
        lines.append(f"  questions  {one['file']}: {what}")
    usable = [one["file"] for one in sent.set_files if not one["code"]]
    what = shlex.quote(usable[0]) if usable else "my.jsonl"
    lines.append(f"Next: {program.name()} evaluate {what} -b {shlex.quote(base['name'])}")
    return "\n".join(lines)


def _tell_copies(sent: Sent) -> None:
    """A second copy competes with the first one in every search, and the first one is not refreshed by it."""
    for one in sent.copies[:_MOST_COPIES]:
        like = one["like"]
        output.note(
            f"{one['path']} is in {sent.base['name']} already, as {like['path']} of the source {like['source']}."
        )
    if len(sent.copies) > _MOST_COPIES:
        output.note(f"and {len(sent.copies) - _MOST_COPIES} more")
    if sent.copies:
        first = sent.copies[0]["like"]
        base, source = shlex.quote(sent.base["name"]), shlex.quote(first["source"])
        output.note(
            "The base holds both now. To refresh a document, send the whole folder that it came from:"
            f" {program.name()} ingest FOLDER --name {base} --source {source}"
        )


def _mode(mode: dict[str, Any]) -> str:
    timings = ", ".join(f"{step} {ms:.0f} ms" for step, ms in mode["timings_ms"].items())
    title = f"{mode['name']}: {mode['n_results']} results ({timings})"
    if mode["failure"]:
        return f"{mode['name']}: {mode['failure']['reason']} ({mode['failure']['code']})"
    lines = [title + (" — answered by less than was asked for" if mode["degraded"] else "")]
    for result in mode["results"]:
        document, passage = result["document"], result["passage"]
        place = " > ".join(filter(None, [document["path"], passage["heading"]]))
        page = f", page {passage['page']}" if passage["page"] is not None else ""
        stages = ", ".join(
            f"{stage} #{one['rank']} ({one['score']:.3g})" for stage, one in result["stages"].items() if one
        )
        lines += [
            f"{result['rank']:>3}  {place}{page}",
            f"     {tables.fitted(_marked(result['snippet']), 160)}",
            f"     {result['reason']} [{stages}]",
        ]
    return "\n".join(lines)


def _marked(snippet: dict[str, Any]) -> str:
    """The words that matched between «»."""
    text, out, last = str(snippet["text"]), "", 0
    for start, end in snippet["marks"]:
        out += f"{text[last:start]}«{text[start:end]}»"
        last = end
    return out + text[last:]
