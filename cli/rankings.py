"""`rescore`, `import`: runs that are made without a search."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import choosing, output, waiting
from cli.client import Client
from cli.errors import UsageError
from cli.options import AsJson, Base
from cli.reading import record

app = typer.Typer()
_FORMS = ("trec_run", "jsonl")


@app.command()
def rescore(
    run: Annotated[str, typer.Argument(help="The run whose rankings are scored again.")],
    version: Annotated[
        str | None, typer.Option(metavar="N", help="Another version of its set: a number, or id@version.")
    ] = None,
    level: Annotated[str | None, typer.Option(help="document or passage.")] = None,
    threshold: Annotated[float | None, typer.Option(help="From which grade a result counts as relevant.")] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="How deep.")] = None,
    k: Annotated[str | None, typer.Option(metavar="K,K", help="At which ranks: 1,5,10.")] = None,
    primary_metric: Annotated[str | None, typer.Option(metavar="KEY", help="What carries verdicts.")] = None,
    metrics: Annotated[str | None, typer.Option(metavar="KEY,KEY", help="Further metrics: ndcg(gain=exp)@10.")] = None,
    label: Annotated[str | None, typer.Option(help="A note kept with the new run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score a run again by other rules: no search. What its rankings cannot answer is refused.

    Examples:

      touchstone rescore RUN --level passage
      touchstone rescore RUN --threshold 2 --k 1,5
      touchstone rescore RUN --version 3 --label 'corrected labels'
    """
    with Client() as client, waiting.progress(client):
        made = client.rescore(
            run,
            version=version,
            level=level,
            threshold=threshold,
            top_k=top_k,
            k=_cuts(k),
            primary_metric=primary_metric,
            metrics=[one.strip() for one in metrics.split(",")] if metrics else None,
            label=label,
        )
    _tell(made, as_json=as_json)


@app.command("import")
def import_rankings(
    file: Annotated[Path, typer.Argument(help="A TREC run, or JSONL: a question and its ids a line.")],
    question_set: Annotated[str, typer.Option("--set", metavar="NAME", help="The set it is scored against.")],
    knowledge_base: Base = None,
    name: Annotated[str | None, typer.Option(help="What the run is called. Default: the file's run tag.")] = None,
    level: Annotated[str | None, typer.Option(help="document or passage. Default: the set's.")] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="How deep it is scored.")] = None,
    k: Annotated[str | None, typer.Option(metavar="K,K", help="At which ranks: 1,5,10.")] = None,
    primary_metric: Annotated[str | None, typer.Option(metavar="KEY", help="What carries verdicts.")] = None,
    missing: Annotated[str | None, typer.Option(help="Questions without a ranking: not_run, or empty.")] = None,
    format: Annotated[str | None, typer.Option(metavar="FORM", help="trec_run or jsonl; told by content.")] = None,  # noqa: A002  as in the API
    label: Annotated[str | None, typer.Option(help="A note kept with the run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score a ranking that another search engine made, as a run to compare and export.

    Examples:

      touchstone import bm25.run --set golden
      touchstone import ours.jsonl --set golden --name 'old search' --missing empty
    """
    if not file.is_file():
        raise UsageError(f"There is no file {file}.")
    if format and format not in _FORMS:
        raise UsageError(f"--format is {' or '.join(_FORMS)}.")
    with Client() as client, waiting.progress(client):
        key, _, number = question_set.rpartition("@")
        wanted = client.find_question_set(key if key and number.isdigit() else question_set)
        if wanted is None:
            raise UsageError(f"There is no question set {question_set!r}.")
        base = choosing.base(client, knowledge_base)["id"] if knowledge_base else None
        made = client.import_run(
            file,
            question_set=f"{wanted['id']}@{number}" if key and number.isdigit() else wanted["id"],
            knowledge_base=base,
            name=name,
            level=level,
            top_k=top_k,
            k=k,
            primary_metric=primary_metric,
            missing=missing,
            format=format,
            label=label,
        )
    for warning in made["origin"]["warnings"]:
        output.note(warning)
    _tell(made, as_json=as_json)


def _tell(made: dict[str, Any], *, as_json: bool) -> None:
    output.answer_json(made) if as_json else output.answer(record(made))


def _cuts(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError("--k is a number, or several with commas between: 1,5,10.")
    return [int(part) for part in parts]
