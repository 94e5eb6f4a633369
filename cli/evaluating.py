"""`evaluate` and `cancel`."""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import choosing, ingesting, output, preflight
from cli.client import Client
from cli.errors import UnreachableError, UsageError
from cli.options import (
    AsJson,
    Base,
    Cache,
    Collection,
    Documents,
    Level,
    Modes,
    Reranker,
    Source,
    TopK,
    Workspace,
    words,
)
from touchstone import program, rules, tables
from touchstone.progress import Bar, eta, waiting
from touchstone.rules import Rule, RuleError

app = typer.Typer()
Json = dict[str, Any]
_MOST_QUESTIONS = 200
_SILENCE_SECONDS = 10.0


@app.command()
def evaluate(
    questions: Annotated[
        str | None,
        typer.Argument(metavar="FILE_OR_SET", help="A file; a set's name, id or id@version; or <source>:<path>."),
    ] = None,
    knowledge_base: Base = None,
    documents: Documents = None,
    workspace: Workspace = None,
    source: Source = "",
    collection: Collection = "",
    modes: Modes = None,
    configurations: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A JSON file: a list of configurations, as in the API."),
    ] = None,
    top_k: TopK = None,
    k: Annotated[str | None, typer.Option(metavar="K,K", help="At which ranks. Default: those of 1,3,5,10.")] = None,
    level: Level = None,
    reranker: Reranker = None,
    primary_metric: Annotated[str | None, typer.Option(help="What carries the verdict, such as ndcg@10.")] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Answer each question from what is found, and judge the answers.")
    ] = False,
    llm: Annotated[str | None, typer.Option(help="The answering model, such as openai:gpt-4o-mini.")] = None,
    judge: Annotated[str | None, typer.Option(help="The judging model; another one than llm is better.")] = None,
    label: Annotated[str | None, typer.Option(help="A note kept with the runs.")] = None,
    cache: Cache = True,
    as_json: AsJson = False,
    wait: Annotated[bool, typer.Option(help="Wait for the end and print the tables.")] = True,
    follow: Annotated[str | None, typer.Option(metavar="ID", help="Wait for this evaluation instead.")] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="End with 3 below it: 'mrr@10=0.70' or 'hybrid:mrr@10=0.70'."),
    ] = None,
) -> None:
    """Measure search modes with a question set.

    The questions are asked in the background: Ctrl-C ends the waiting, not
    the evaluation.

    Exit codes: 0 done, or every rule kept; 1 could not run; 2 wrong usage;
    3 a rule broke; 4 only questions failed; 130 interrupted.

    Examples:

      touchstone evaluate my.jsonl
      touchstone evaluate golden -b handbook --modes semantic,keyword,hybrid,hybrid_rerank
      touchstone evaluate handbook:.touchstone/handbook.jsonl --top-k 5 --json
      touchstone evaluate golden.json --fail-under 'hybrid:mrr@10=0.70'
      touchstone evaluate --follow 0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11
    """
    wanted = _rules(fail_under or [])
    if wanted and not wait:
        raise UsageError("--fail-under needs --wait: without the end there is nothing to check.")
    if bool(questions) == bool(follow):
        raise UsageError("Name a question-set file or a set (or --follow ID). --help shows examples.")
    with Client() as client:
        client.on_silence = output.note
        scope: Json = {}
        if follow:
            started = client.evaluation(follow)
            _check_modes(wanted, [run["name"] for run in started["runs"]])
        else:
            given_ks, given_modes = words(k), words(modes)
            given_configurations = _configurations(configurations)
            _check_modes(wanted, rules.run_names(given_modes, given_configurations))
            scope = choosing.scope(
                client,
                knowledge_base=knowledge_base,
                documents=documents,
                workspace=workspace,
                source=source,
                collection=collection,
            )
            started = client.evaluate(
                **choosing.questions(client, questions or ""),
                scope=scope,
                modes=given_modes,
                configurations=given_configurations,
                top_k=top_k,
                k=_ks(given_ks, wanted, top_k),
                level=level,
                reranker=reranker,
                primary_metric=primary_metric or _unusual(wanted),
                evaluate_answers=True if answers else None,
                llm=llm,
                judge=judge,
                label=label,
                cache=None if cache else False,
            )
        if not wait:
            if scope:
                preflight.tell(client, started, scope=scope)
            output.answer_json(started) if as_json else output.answer(_how(started["id"]))
            return
        counted = tables.counted(started["n_questions"], "question"), tables.counted(len(started["runs"]), "run")
        output.note(f"Evaluation {started['id']}: {', '.join(counted)}")
        try:
            if scope:
                preflight.tell(client, started, scope=scope)
            ended = _wait(client, started["id"])
        except KeyboardInterrupt:
            output.note(f"The evaluation goes on. {_how(started['id'])}")
            output.end(rules.INTERRUPTED)
        except UnreachableError:
            output.note(f"The evaluation goes on once its service runs. {_how(started['id'])}")
            raise
        _tell(client, ended, wanted, as_json=as_json)


@app.command()
def cancel(
    evaluation: Annotated[str, typer.Argument(help="The evaluation's id.")],
    as_json: AsJson = False,
) -> None:
    """Stop an evaluation; questions that are finished are kept.

    Examples:

      touchstone cancel 0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11
    """
    with Client() as client:
        told = client.cancel(evaluation)
    if as_json:
        output.answer_json(told)
        return
    progress = told["progress"]
    output.answer(f"{told['state']}: {progress['n_done']} of {progress['n_questions']} questions are finished.")


def shown(client: Client, evaluation: Json) -> str:
    """Both tables; of a large set the means only."""
    runs = evaluation["runs"]
    parts = []
    if evaluation["n_questions"] <= _MOST_QUESTIONS:
        parts.append(tables.questions(runs, [list(client.results(run["id"])) for run in runs]))
    parts.append(tables.aggregate(runs))
    if told := tables.taken_over(runs):
        parts.append(told)
    if evaluation["state"] != "completed":
        code = f" ({evaluation['code']})" if evaluation["code"] else ""
        parts.append(f"This evaluation is {evaluation['state']}. {evaluation['reason']}{code}".strip())
    width = max(len(run["name"]) for run in runs)
    parts.append("\n".join(f"{run['name']:<{width}}  run {run['id']}" for run in runs))
    return "\n\n".join(parts)


def _wait(client: Client, evaluation_id: str) -> Json:
    since, last, told = time.monotonic(), -1, False

    with Bar("questions", stream=sys.stderr) as bar:

        def look(found: Json) -> None:
            nonlocal since, last, told
            progress = found["progress"]
            bar.show(progress["n_results"], progress["n_results_total"], note=_note(found))
            if progress["n_results"] != last:
                since, last = time.monotonic(), progress["n_results"]
            elif not told and time.monotonic() - since > _SILENCE_SECONDS:
                told = True
                ingesting.tell_missing_workers(client)

        return client.wait(evaluation_id, on_progress=look)


def _note(found: Json) -> str:
    """What stands beside the bar: what it waits for, else how long it takes."""
    return waiting(found.get("waiting_for", ()), now=datetime.now(UTC)) or eta(found["eta_seconds"])


def _tell(client: Client, ended: Json, wanted: list[Rule], *, as_json: bool) -> None:
    if as_json:
        with_results = [{**run, "results": list(client.results(run["id"]))} for run in ended["runs"]]
        output.answer_json({**ended, "runs": with_results})
    else:
        output.answer(shown(client, ended))
    _check_modes(wanted, [run["name"] for run in ended["runs"]])
    try:
        rules.check_metrics(wanted, ended["runs"])
    except RuleError as error:
        raise UsageError(str(error)) from error
    for sentence in rules.broken(wanted, ended["runs"]):
        output.note(f"rule broken: {sentence}")
    code = rules.exit_code(wanted, ended)
    if code == rules.NOT_COVERED:
        for sentence in rules.uncovered(ended["runs"]):
            output.note(sentence)
    if code:
        output.end(code)


def _rules(given: list[str]) -> list[Rule]:
    try:
        return [rules.parse(text) for text in given]
    except RuleError as error:
        raise UsageError(str(error)) from error


def _check_modes(wanted: list[Rule], names: list[str]) -> None:
    try:
        rules.check_modes(wanted, names)
    except RuleError as error:
        raise UsageError(str(error)) from error


def _ks(given: list[str] | None, wanted: list[Rule], top_k: int | None) -> list[int] | None:
    """The ks asked for, or the usual ones, and those that rules need."""
    try:
        ks = None if given is None else [int(k) for k in given]
    except ValueError as error:
        raise UsageError(f"--k is whole numbers between commas, not {','.join(given or [])!r}.") from error
    return rules.cutoffs(wanted, top_k=top_k, given=ks)


def _unusual(wanted: list[Rule]) -> str | None:
    return rules.unusual_metric(wanted) or None


def _configurations(path: Path | None) -> list[Json] | None:
    if path is None:
        return None
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(read, list) or not all(isinstance(one, dict) for one in read):
        raise UsageError(f'{path} is no list of configurations, such as [{{"mode": "hybrid"}}].')
    return read


def _how(evaluation_id: str) -> str:
    return f"Follow it with: {program.name()} evaluate --follow {evaluation_id}"
