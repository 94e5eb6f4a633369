"""`gate`: does a run keep its rules? And `baselines`: what it is compared with."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import choosing, output
from cli.client import Client
from cli.errors import UsageError
from cli.options import AsJson
from touchstone import program, rules, tables
from touchstone.rules import RuleError

app = typer.Typer()
baselines = typer.Typer(help="The runs that others are compared with.", no_args_is_help=True)
Json = dict[str, Any]
_SAID = {
    "passed": "passed",
    "broken": "a rule broke",
    "unchecked": "a rule could not be checked",
    "uncovered": "questions have no result",
}


@app.command()
def gate(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN_OR_EVALUATION", help="A run's id, or an evaluation's: all of its runs.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--gate", metavar="NAME", help="The rules of this gate, by name or id.")
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="'mrr@10=0.70' for every run, 'hybrid:mrr@10=0.70' for one."),
    ] = None,
    max_drop: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="How far below the baseline: 'mrr@10=0.02'.")
    ] = None,
    no_significant_drop: Annotated[
        bool, typer.Option("--no-significant-drop", help="No fall below the baseline that a paired test shows.")
    ] = False,
    must_pass: Annotated[bool, typer.Option("--must-pass", help="Every must-pass question is found.")] = False,
    min_coverage: Annotated[
        float | None, typer.Option(min=0, max=1, help="The share of questions with a result. Default: all.")
    ] = None,
    max_latency: Annotated[float | None, typer.Option(min=0, metavar="MS", help="95 % of the searches.")] = None,
    max_spend: Annotated[float | None, typer.Option(min=0, metavar="MONEY", help="Of the evaluation.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="ID", help="A run, evaluation or baseline, instead of what was approved.")
    ] = None,
    past: Annotated[
        int | None, typer.Option(min=1, max=100, help="Instead: what --gate would have said of this many evaluations.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write Markdown, for a comment on a pull request.")
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the evaluation to end first.")] = True,
    as_json: AsJson = False,
) -> None:
    """Does a run keep its rules? What cannot be shown to be kept is not.

    --no-significant-drop alone asks the other way round: it breaks where a
    fall is shown, which takes at least six questions that differ. On a small
    set, or against any fall, give --max-drop.

    Compared with the approved baseline of the run's set, scope and
    configuration name, or with --baseline.

    Exit codes: 0 passed; 3 a rule broke; 4 only results are missing; 1 could
    not run, or could not be checked; 2 wrong usage.

    Examples:

      touchstone gate EVALUATION --fail-under 'mrr@10=0.70' --no-significant-drop
      touchstone gate EVALUATION --max-drop 'mrr@10=0.02'
      touchstone gate RUN --gate merge --junit out.xml --markdown out.md
      touchstone gate --gate merge --past 20
    """
    given = _rules(
        fail_under=fail_under or [],
        max_drop=max_drop or [],
        no_significant_drop=no_significant_drop,
        must_pass=must_pass,
        min_coverage=min_coverage,
        max_latency=max_latency,
        max_spend=max_spend,
    )
    if bool(name) == bool(given):
        raise UsageError("Name a --gate, or give rules such as --fail-under 'mrr@10=0.70'. --help shows examples.")
    if (run is None) == (past is None):
        raise UsageError("Name a run or an evaluation, or ask with --past.")
    with Client() as client:
        client.on_silence = output.note
        kept = _gate(client, name) if name else None
        if past is not None:
            _tell_past(client, kept, past, as_json=as_json)
            return
        what = _what(client, run or "", wait=wait)
        include = [form for form, file in (("junit", junit), ("markdown", markdown)) if file is not None]
        told = client.check(
            **what,
            gate=kept["id"] if kept else None,
            rules=given or None,
            baseline=baseline,
            include=include or None,
        )
    for file, form in ((junit, "junit"), (markdown, "markdown")):
        if file is not None:
            file.write_text(told.pop(form), encoding="utf-8")
            output.note(f"{file}: {form}")
    output.answer_json(told) if as_json else output.answer(shown(told))
    if told["exit_code"]:
        output.end(told["exit_code"])


@baselines.command("list")
def list_baselines(
    retired: Annotated[bool, typer.Option("--retired", help="Also those that were.")] = False, as_json: AsJson = False
) -> None:
    """List what runs are compared with.

    Examples:

      touchstone baselines list
      touchstone baselines list --retired --json
    """
    with Client() as client:
        found = client.baselines(retired=retired)
    if as_json:
        output.answer_json(found)
        return
    if not found:
        output.answer(f"No run has been approved yet: {program.name()} baselines approve RUN")
        return
    rows = [
        [
            one["id"],
            one["name"],
            one["label"],
            one["set_name"],
            f"{one['primary_metric']} {one['headline']['mean']:.3f}" if one["headline"] else "n/a",
            one["approved_at"][:16].replace("T", " "),
            one["approved_by"],
            f"{one['state']}{': ' + one['why'] if one['why'] and one['state'] != 'retired' else ''}",
        ]
        for one in found
    ]
    output.answer(tables.grid(["baseline", "run", "label", "set", "value", "approved (UTC)", "by", "state"], rows))


@baselines.command()
def approve(
    run: Annotated[str, typer.Argument(help="The run's id, or an evaluation's: all of its runs.")],
    label: Annotated[str, typer.Option(help="What people call it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Approve a run as the baseline of its set, scope and configuration name.

    Only complete runs over documents that stayed as they were.

    Examples:

      touchstone baselines approve RUN --label 'release 4'
    """
    with Client() as client:
        found = choosing.run_or_evaluation(client, run)
        made = [client.approve(one["id"], label=label) for one in found.get("runs", [found])]
    if as_json:
        output.answer_json(made)
        return
    for one in made:
        output.answer(f"{one['name']} on {one['set_name']} is the baseline now ({one['id']})")


@baselines.command()
def retire(baseline: Annotated[str, typer.Argument(help="The baseline's id.")]) -> None:
    """Retire a baseline; its run may be retried and deleted again.

    Examples:

      touchstone baselines retire BASELINE
    """
    with Client() as client:
        client.retire(baseline)
    output.note("It is in force no more.")


def shown(told: Json) -> str:
    lines = [f"{one['status']:<10}{one['sentence']}" for one in told["results"]]
    for run in told["runs"]:
        if run["lost"]:
            lines += ["", f"{run['name']} lost {tables.counted(len(run['lost']), 'question')} beside its baseline:"]
            lines += [f"  {one['id']}  {one['question'] or ''}".rstrip() for one in run["lost"][:20]]
            if len(run["lost"]) > 20:
                lines.append(f"  and {len(run['lost']) - 20} more")
    return "\n".join([*lines, "", f"gate: {_SAID[told['outcome']]}"])


def _tell_past(client: Client, kept: Json | None, past: int, *, as_json: bool) -> None:
    if kept is None:
        raise UsageError("--past asks what a gate would have said: name it with --gate.")
    checks = client.dry_run(kept["id"], limit=past)
    if as_json:
        output.answer_json(checks)
        return
    if not checks:
        output.answer("No evaluation has ended yet.")
        return
    rows = [
        [one["evaluation"], one["outcome"], next((r["sentence"] for r in one["results"] if r["status"] != "kept"), "")]
        for one in checks
    ]
    output.answer(tables.grid(["evaluation", "outcome", "because"], rows))


def _what(client: Client, key: str, *, wait: bool) -> Json:
    """`evaluation` or `run`, once it has ended."""
    found = choosing.run_or_evaluation(client, key)
    is_run = "runs" not in found
    if wait and (is_run or not found["is_final"]):
        client.wait(found["evaluation_id"] if is_run else key)
    return {"run": key} if is_run else {"evaluation": key}


def _gate(client: Client, name: str) -> Json:
    found = client.find_gate(name)
    if found is None:
        raise UsageError(f"There is no gate {name!r}.")
    return found


def _rules(
    *,
    fail_under: list[str],
    max_drop: list[str],
    no_significant_drop: bool,
    must_pass: bool,
    min_coverage: float | None,
    max_latency: float | None,
    max_spend: float | None,
) -> list[Json]:
    found: list[Json] = []
    for kind, limit, texts in (("floor", "least", fail_under), ("drop", "most", max_drop)):
        for text in texts:
            try:
                rule = rules.parse(text)
            except RuleError as error:
                raise UsageError(str(error)) from error
            found.append(
                {"rule": kind, "metric": rule.metric, limit: rule.least, **({"run": rule.mode} if rule.mode else {})}
            )
    if no_significant_drop:
        found.append({"rule": "significant_drop"})
    if must_pass:
        found.append({"rule": "must_pass"})
    for kind, limit, value in (
        ("coverage", "least", min_coverage),
        ("latency", "most", max_latency),
        ("spend", "most", max_spend),
    ):
        if value is not None:
            found.append({"rule": kind, limit: value})
    return found
