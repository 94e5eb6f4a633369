"""`runs`, `show`, `compare`, `export`, `status`: what is known."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import choosing, evaluating, output, sets, waiting
from cli.client import Client
from cli.errors import UsageError
from cli.options import AsJson, Base
from touchstone import program, rules, tables

app = typer.Typer()
Json = dict[str, Any]
_METRICS = ("hit", "recall", "precision", "mrr", "map", "ndcg", "judged")


@app.command()
def runs(
    knowledge_base: Base = None,
    question_set: Annotated[str | None, typer.Option("--set", metavar="NAME", help="Only runs of this set.")] = None,
    mode: Annotated[str | None, typer.Option(help="Only this mode.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Only since then: 2026-01-31[T12:00:00Z].")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first, with their primary metric.

    Examples:

      touchstone runs
      touchstone runs -b handbook --mode hybrid --limit 10
      touchstone runs --set golden --json
    """
    with Client() as client:
        base = choosing.base(client, knowledge_base)["id"] if knowledge_base else None
        wanted = client.find_question_set(question_set) if question_set else None
        if question_set and wanted is None:
            raise UsageError(f"There is no question set {question_set!r}.")
        found = list(
            client.runs(
                limit=limit, knowledge_base=base, question_set=wanted["id"] if wanted else None, mode=mode, since=since
            )
        )
    if as_json:
        output.answer_json(found)
        return
    if not found:
        output.answer(f"There are no runs yet. `{program.name()} evaluate my.jsonl` makes some.")
        return
    rows = [
        [
            run["id"],
            run["created_at"][:16].replace("T", " "),
            tables.fitted(run["question_set"]["name"], 40),
            tables.fitted(run["knowledge_base"]["name"] or "several", 24),
            run["name"],
            run["primary_metric"],
            _value(run["headline"]) if run["headline"] else run["code"] or run["state"],
            run["label"],
        ]
        for run in found
    ]
    output.answer(tables.grid(["run", "made (UTC)", "set", "base", "mode", "metric", "value", "label"], rows))


@app.command()
def show(
    run: Annotated[str, typer.Argument(help="A run's id, or an evaluation's.")],
    outcome: Annotated[str | None, typer.Option(help="Also the questions: found, missed, error, empty, ok.")] = None,
    k: Annotated[int | None, typer.Option(min=1, help="At which rank found and missed part.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many questions.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show a run: its settings, every metric with its interval, and what became of questions.

    Of an evaluation both tables are shown.

    Examples:

      touchstone show 0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11
      touchstone show 0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11 --outcome missed --k 3
    """
    with Client() as client:
        found = choosing.run_or_evaluation(client, run)
        if "runs" in found:
            output.answer_json(found) if as_json else output.answer(evaluating.shown(client, found))
            return
        rows = []
        if outcome:
            pages = client.results(run, outcome=outcome, k=k)
            rows = [row for row, _ in zip(pages, range(limit), strict=False)]
        # Before the numbers are final there is nothing to explain.
        has_numbers = bool(found["metrics"]) and not found["partial"]
        lost = client.diagnosis(run, k=k) if has_numbers else None
        advice = client.advice(run) if has_numbers else []
    if as_json:
        told = {**found, "diagnosis": lost, "advice": advice}
        output.answer_json({**told, "results": rows} if outcome else told)
        return
    output.answer(record(found))
    if lost is not None:
        output.answer(_diagnosis(lost, advice))
    if outcome:
        output.answer("\n" + "\n".join(_question(row) for row in rows) if rows else f"\nNo question is {outcome}.")


@app.command()
def compare(
    baseline: Annotated[str, typer.Argument(help="The run (or evaluation) before.")],
    candidates: Annotated[list[str], typer.Argument(help="The runs (or the evaluation) after.")],
    metric: Annotated[str | None, typer.Option(help="What carries the verdict. Default: the baseline's own.")] = None,
    questions: Annotated[bool, typer.Option("--questions", help="Also list the questions that differ.")] = False,
    as_json: AsJson = False,
) -> None:
    """Did a change help? Compare runs question by question, with a paired test.

    Two evaluations are compared mode by mode.

    Examples:

      touchstone compare BASELINE_RUN CANDIDATE_RUN
      touchstone compare BASELINE_RUN RUN RUN --metric ndcg@10
      touchstone compare EVALUATION_BEFORE EVALUATION_AFTER
    """
    with Client() as client, waiting.progress(client):
        pairs = _pairs(client, baseline, candidates)
        told = [client.compare(before, after, primary_metric=metric) for before, after in pairs]
    if as_json:
        output.answer_json(told[0] if len(told) == 1 else told)
    else:
        output.answer("\n\n".join(_comparison(one, with_questions=questions) for one in told))
    if all(one["verdict"] == "not comparable" for comparison in told for one in comparison["candidates"]):
        output.end(rules.COULD_NOT_RUN)


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="The run's id.")],
    format: Annotated[  # noqa: A002  the name in the API
        str, typer.Option(metavar="FORM", help="json, jsonl, csv, trec_run, trec_qrels, junit, markdown, html.")
    ] = "json",
    baseline: Annotated[
        str | None, typer.Option(metavar="RUN", help="Also the verdict beside this run: junit, markdown, html.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: printed.")] = None,
) -> None:
    """Write a run for other programs and for people: JSON, a spreadsheet, trec_eval, JUnit, Markdown, HTML.

    Examples:

      touchstone export RUN > run.json
      touchstone export RUN --format trec_run -o hybrid.run
      touchstone export RUN --format csv -o questions.csv
      touchstone export RUN --format markdown --baseline BEFORE > comment.md
    """
    with Client() as client, waiting.progress(client):
        data = client.export(run, format=format, baseline=baseline)
    if to is None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    to.write_bytes(data)
    output.note(f"{to}: {len(data):,} bytes")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Is the service ready, what does it hold, and what is being measured?

    Ends with 0 when it is ready, else 1.

    Examples:

      touchstone status
      touchstone status --json
    """
    with Client() as client:
        ready = client.ready()
        bases = client.knowledge_bases()
        open_ = [one for one in client.evaluations(limit=50) if not one["is_final"]]
        url = client.url
    if as_json:
        output.answer_json({"url": url, **ready, "knowledge_bases": bases, "open_evaluations": open_})
    else:
        lines = [f"{url} is {ready['status']}"]
        lines += [f"  {name}: {check['detail']}" for name, check in ready["checks"].items() if not check["ok"]]
        if bases:
            rows = [
                [one["name"], one["state"], one["n_documents"], one["n_failed"], one["n_chunks"], _quality(one)]
                for one in bases
            ]
            titles = ["knowledge base", "state", "documents", "failed", "passages", "latest"]
            lines += ["", tables.grid(titles, rows, right=[2, 3, 4])]
        else:
            lines += ["", f"No knowledge base yet: {program.name()} ingest ./docs"]
        if open_:
            rows = [[one["id"], one["state"], one["question_set"]["name"], one["n_questions"]] for one in open_]
            lines += ["", tables.grid(["evaluation", "state", "set", "questions"], rows, right=[3])]
        output.answer("\n".join(lines))
    if ready["status"] != "ready":
        output.end(rules.COULD_NOT_RUN)


def _pairs(client: Client, baseline: str, candidates: list[str]) -> list[tuple[str, list[str]]]:
    """Runs as they are; of two evaluations the runs of one name, by mode. Raises UsageError for a mixture."""
    before = choosing.run_or_evaluation(client, baseline)
    after = [choosing.run_or_evaluation(client, key) for key in candidates]
    if any(("runs" in one) != ("runs" in before) for one in after):
        raise UsageError("Compare runs with runs, or evaluations with evaluations.")
    if "runs" not in before:
        return [(baseline, candidates)]
    pairs = []
    for run in before["runs"]:
        others = [other["id"] for one in after for other in one["runs"] if other["name"] == run["name"]]
        if others:
            pairs.append((run["id"], others))
    if not pairs:
        raise UsageError("The two evaluations have no run of the same name.")
    return pairs


def record(run: Json) -> str:
    told = [
        ("run", f"{run['id']}  {run['label']}".rstrip()),
        ("mode", run["name"] if run["name"] == run["mode"] else f"{run['name']} ({run['mode']})"),
        ("set", run["question_set"]["name"]),
        ("base", run["knowledge_base"]["name"] or "several"),
        ("level", f"{run['level']}, top {run['top_k']}"),
        ("state", f"{run['state']}{' (partial figures)' if run['partial'] else ''}"),
    ]
    if run.get("kind") == "rescored":
        told.append(("scored", f"again, from run {run['origin']['run']} ({run['origin']['set']})"))
    if reused := tables.taken_over([run]):
        told.append(("reused", reused))
    if run["code"]:
        told.append(("because", f"{run['reason']} ({run['code']})"))
    if run["corpus_changed"]:
        told.append(("note", "the documents changed while it ran"))
    if run.get("caution"):
        told.append(("note", run["caution"]))
    told.append(("settings", _settings(run["config"])))
    counts = {name.removeprefix("n_"): n for name, n in run["counts"].items() if isinstance(n, int) and n}
    told.append(("questions", ", ".join(f"{n} {name}" for name, n in counts.items())))
    latency = run["timings"].get("latency_ms") or {}
    if latency:
        measured = f"{latency['p50']:.0f} ms at the median, {latency['p95']:.0f} ms at 95 %"
        told.append(("latency", f"{measured}{', as the earlier run measured it' if reused else ''}"))
    lines = [f"{name:<10}{value}" for name, value in told]
    rows = [[key, _value(metric), _interval(metric)] for key, metric in sorted(run["metrics"].items(), key=_order)]
    if rows:
        lines += ["", tables.grid(["metric", "mean", "95 % interval"], rows)]
    if run.get("answers"):
        lines += ["", *_answers(run["answers"])]
    return "\n".join(lines)


def _answers(told: Json) -> list[str]:
    """The figures of judged answers, in a table of their own."""
    ends = ("judged", "failed", "skipped", "cancelled", "not_run")
    counts = ", ".join(f"{told[f'n_{end}']} {end}" for end in ends if told[f"n_{end}"])
    rows = [[name, _value(metric), _interval(metric)] for name, metric in told["metrics"].items()]
    itself = " (the model judged its own answers)" if told["judges_itself"] else ""
    head = f"Answers by {told['llm']}, judged by {told['judge']}{itself}: {counts}"
    return [head, *([tables.grid(["score", "mean", "95 % interval"], rows)] if rows else [])]


def _diagnosis(told: Json, advice: list[Json]) -> str:
    overall = told["overall"]
    lines = ["", f"Missed at {told['k']}: {overall['n_missed']} of {overall['n']}"]
    lines += [f"  {n:>5}  {cause}" for cause, n in overall["causes"].items()]
    if overall["n_wrong_passage"]:
        lines.append(f"  {overall['n_wrong_passage']:>5}  of these: right document, wrong passage")
    if told["ceiling"] is not None and told["recall"] is not None:
        lines.append(f"Recall {told['recall']:.3f}; the pool in perfect order would reach {told['ceiling']:.3f}")
    if told["lift"]:
        moved = told["lift"]
        lines.append(f"Reranker: {moved['n_up']} up, {moved['n_down']} down, {moved['n_unchanged']} unchanged")
    if told["corpus_changed"]:
        lines.append("(The documents changed since: labels are told as they resolve today.)")
    if advice:
        lines += ["", "Advice", *(f"  - {one['sentence']}" for one in advice)]
    return "\n".join(lines)


def _settings(config: Json) -> str:
    """On one line: fusion's own settings in brackets."""
    said = []
    for name, value in config.items():
        if name in {"name", "mode"}:
            continue
        inner = _settings(value) if isinstance(value, dict) else value
        said.append(f"{name} ({inner})" if isinstance(value, dict) else f"{name} {inner}")
    return ", ".join(said)


def _order(item: tuple[str, Any]) -> tuple[int, str, int]:
    """By metric as people list them, then by k."""
    name, _, k = item[0].rpartition("@")
    plain = name.partition("(")[0]
    return (_METRICS.index(plain) if plain in _METRICS else len(_METRICS), name, int(k))


def _question(row: Json) -> str:
    said = {True: ["found"], False: ["missed"]}.get(row["found"], [])
    if row["first_rank"]:
        said.append(f"rank {row['first_rank']}")
    elif row["code"] or row["outcome"] != "ok" or not said:
        said.append(row["code"] or row["outcome"])
    lines = [f"#{row['ordinal'] + 1} {row['question'] or row['key']}", f"    {', '.join(said)}"]
    if not row["found"] and row["expect"]:
        lines.append(f"    expected {sets.expected(row)}")
    if row["reason"]:
        lines.append(f"    {row['reason']}")
    lines += [f"    instead  {place['rank']}. {place['path']}" for place in row["found_instead"]]
    return "\n".join(lines)


def _comparison(told: Json, *, with_questions: bool) -> str:
    lines = [f"{_named(told['baseline'])} is the baseline; {told['primary_metric']} carries the verdict."]
    for one in told["candidates"]:
        lines += ["", f"{_named(one['run'])}: {one['verdict']}", f"  {one['sentence']}"]
        lines += [f"  Note: {warning}" for warning in one["warnings"]]
        paired = [one["primary"], *one["others"]] if one["primary"] else []
        rows = [_paired(metric) for metric in paired if metric["n"]]
        if rows:
            titles = ["metric", "baseline", "candidate", "delta", "95 % interval", "wins", "ties", "losses"]
            lines += ["", tables.grid(titles, rows, right=[1, 2, 3, 5, 6, 7])]
        if one["transitions"]:
            moved = one["transitions"]
            lines.append(f"Questions: {moved['n_up']} up, {moved['n_down']} down, {moved['n_same']} at the same rank.")
        if with_questions:
            differing = sorted((delta for delta in one["deltas"] if abs(delta["delta"]) > 1e-9), key=_delta)
            rows = [[f"{each['delta']:+.3f}", tables.fitted(each["question"] or each["key"], 90)] for each in differing]
            lines += ["", tables.grid(["delta", "question"], rows, right=[0])] if rows else []
    return "\n".join(lines)


def _delta(one: Json) -> float:
    return float(one["delta"])


def _paired(metric: Json) -> list[str]:
    return [
        metric["metric"],
        f"{metric['baseline_mean']:.3f}",
        f"{metric['candidate_mean']:.3f}",
        f"{metric['mean_delta']:+.3f}",
        f"{metric['low']:+.3f} to {metric['high']:+.3f}",
        str(metric["n_wins"]),
        str(metric["n_ties"]),
        str(metric["n_losses"]),
    ]


def _named(run: Json) -> str:
    return f"{run['name']} {run['label'] or run['id']} ({run['question_set']['name']})"


def _value(metric: Json) -> str:
    if metric["mean"] is None:
        return tables.NOT_AVAILABLE
    return f"{metric['mean']:.3f} ({metric['n']} of {metric['n_total']})"


def _interval(metric: Json) -> str:
    return "" if metric["low"] is None else f"{metric['low']:.3f} to {metric['high']:.3f}"


def _quality(base: Json) -> str:
    quality = base["quality"]
    if not quality or quality["value"] is None:
        return ""
    return f"{quality['mode']} {quality['metric']} {quality['value']:.3f} of {quality['set_name']}"
