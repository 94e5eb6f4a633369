"""`sets`: question sets, listed, uploaded, shown, exported, deleted; and templates of the files."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import output
from cli.client import Client
from cli.errors import ClientError, UsageError
from cli.options import AsJson
from touchstone import program, tables

app = typer.Typer(no_args_is_help=True, help="Question sets: list, template, upload, show, export, delete.")
_TEMPLATES = {"jsonl": "evals.example.jsonl", "json": "golden.example.json"}
_MOST_SHOWN = 200
_MOST_BASES = 10


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List the question sets, newest first, and those found in sources.

    Examples:

      touchstone sets list
      touchstone sets list --json
    """
    with Client() as client:
        sets = client.question_sets()
        files = [
            {**one, "knowledge_base": base["name"]}
            for base in client.knowledge_bases()
            for one in client.set_files(base["id"])
        ]
    if as_json:
        output.answer_json({"question_sets": sets, "set_files": files})
        return
    if not sets and not files:
        output.answer(f"There are no question sets yet. `{program.name()} sets template > my.jsonl` begins one.")
        return
    parts = []
    if sets:
        rows = [[one["name"], one["latest_version"], one["n_questions"], one["id"]] for one in sets]
        parts.append(tables.grid(["set", "version", "questions", "id"], rows, right=[1, 2]))
    if files:
        rows = [
            [one["file"], one["n_questions"] if not one["code"] else one["code"], one["knowledge_base"]]
            for one in files
        ]
        parts.append(tables.grid(["found in a source", "questions", "knowledge base"], rows, right=[1]))
    output.answer("\n\n".join(parts))


@app.command()
def template(
    format: Annotated[str, typer.Option(metavar="jsonl|json", help="One question a line, or cases.")] = "jsonl",  # noqa: A002
) -> None:
    """Print a question-set file to begin with.

    Examples:

      touchstone sets template > my.jsonl
      touchstone sets template --format json > my.json
    """
    if format not in _TEMPLATES:
        raise UsageError(f"There is no template of the format {format!r}. There are: {', '.join(_TEMPLATES)}.")
    here = Path(__file__).resolve().parent
    # In a package they lie beside this file; in the repository they are examples.
    for folder in (here / "templates", here.parent / "examples"):
        if (folder / _TEMPLATES[format]).is_file():
            output.answer((folder / _TEMPLATES[format]).read_text(encoding="utf-8").rstrip("\n"))
            return
    raise ClientError("The templates are missing from this installation.")


@app.command()
def upload(
    path: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file in any of the known formats.")],
    name: Annotated[str, typer.Option(help="The set's name. Default: the file's.")] = "",
    format: Annotated[str, typer.Option(help="Instead of recognising it by content.")] = "",  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Upload a file as a question set; as the next version where there is a set of that name.

    A faulty file is refused with all its faults, by line.

    Examples:

      touchstone sets upload my.jsonl
      touchstone sets upload judgements.csv --name golden
    """
    with Client() as client:
        reference = client.upload_question_set(path, name=name, format=format)
        made = client.get(f"question-sets/{reference.partition('@')[0]}")
        bases = [] if as_json else client.knowledge_bases()
    if as_json:
        output.answer_json(made)
        return
    version = made["version"]
    output.answer(
        f"{made['name']}, version {version['number']}: {made['n_questions']} questions ({version['format']})."
    )
    for warning in version["warnings"]:
        output.note(warning)
    output.answer(_next(reference, [base["name"] for base in bases]))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A set's name, id or id@version.")],
    as_json: AsJson = False,
) -> None:
    """Show a set's questions and what each expects.

    Examples:

      touchstone sets show golden
      touchstone sets show golden@2 --json
    """
    with Client() as client:
        found, version = _find(client, name)
        questions = list(client.questions(found["id"], version=version))
    if as_json:
        output.answer_json({**found, "questions": questions})
        return
    rows = [
        [number, tables.fitted(one["question"], 70), tables.fitted(expected(one), 70)]
        for number, one in enumerate(questions[:_MOST_SHOWN], start=1)
    ]
    output.answer(tables.grid(["#", "question", "expects"], rows))
    if len(questions) > _MOST_SHOWN:
        output.note(f"and {len(questions) - _MOST_SHOWN} more; --json prints all")


@app.command()
def delete(
    name: Annotated[str, typer.Argument(help="A set's name or id.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also while a schedule, baseline or open evaluation uses it.")
    ] = False,
) -> None:
    """Delete a set with all its versions; runs outlive it.

    Examples:

      touchstone sets delete golden
      touchstone sets delete golden --force
    """
    with Client() as client:
        found, _ = _find(client, name)
        client.delete_question_set(found["id"], force=force)
    output.answer(f"{found['name']} is deleted.")


def _next(reference: str, bases: list[str]) -> str:
    """A command to paste. Of several bases nothing is guessed when it runs, so it names one: the newest."""
    evaluate = f"{program.name()} evaluate {reference}"
    if not bases:
        return f"Next: {program.name()} ingest ./docs\nThen: {evaluate}"
    lines = [f"Next: {evaluate} -b {shlex.quote(bases[0])}"]
    if len(bases) > 1:
        more = f" and {len(bases) - _MOST_BASES - 1} more" if len(bases) > _MOST_BASES + 1 else ""
        lines.append(f"Other knowledge bases: {', '.join(bases[1 : _MOST_BASES + 1])}{more}")
    return "\n".join(lines)


def _find(client: Client, name: str) -> tuple[dict[str, Any], int | None]:
    found = client.find_question_set(name)
    if found is not None:
        return found, None
    key, _, version = name.rpartition("@")
    found = client.find_question_set(key) if key and version.isascii() and version.isdigit() else None
    if found is None:
        raise UsageError(f"There is no question set {name!r}. `{program.name()} sets list` shows those there are.")
    return found, int(version)


def expected(question: dict[str, Any]) -> str:
    """What a question of the full form expects, in one line."""
    if question.get("unanswerable"):
        return "nothing (unanswerable)"
    return "; ".join(_expectation(one) for one in question["expect"])


def _expectation(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    alternatives = one.get("any_of") or [one]
    said = []
    for alternative in alternatives:
        where = alternative.get("path") or alternative.get("document") or alternative.get("passage") or ""
        source = f"{alternative['source']}:" if alternative.get("source") else ""
        content = alternative.get("content_contains") or alternative.get("text") or ""
        words = " or ".join(content) if isinstance(content, list) else content
        said.append(" ".join(filter(None, [f"{source}{where}", f"“{words}”" if words else ""])))
    return " or ".join(said)


@app.command()
def export(
    name: Annotated[str, typer.Argument(help="The set's name or id, with @version for an older one.")],
    format: Annotated[  # noqa: A002  the name in the API
        str, typer.Option(metavar="FORM", help="full, jsonl, csv, beir, qrels, topics.")
    ] = "full",
    lossy: Annotated[bool, typer.Option("--lossy", help="Leave out what the form cannot hold.")] = False,
    to: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: printed.")] = None,
) -> None:
    """Write a question set as a file. `full` holds everything and comes back the same.

    Examples:

      touchstone sets export golden > golden.jsonl
      touchstone sets export golden@2 --format csv -o golden.csv
    """
    with Client() as client:
        bare, _, number = name.rpartition("@")
        is_version = bool(bare) and number.isdigit()
        found = client.find_question_set(bare if is_version else name)
        if found is None:
            raise UsageError(f"There is no question set {name!r}.")
        data = client.export_question_set(
            found["id"], format=format, version=int(number) if is_version else None, lossy=lossy
        )
    if to is None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    to.write_bytes(data)
    output.note(f"{to}: {len(data):,} bytes")
