"""`schedule` and `alerts`: what runs by itself, and what it had to say."""

from typing import Annotated, Any

import typer

from cli import choosing, output
from cli.client import Client
from cli.errors import UsageError
from cli.options import AsJson, Base, Cache, Collection, Modes, Reranker, Source, TopK, Workspace, words
from touchstone import program, tables

app = typer.Typer()
schedule = typer.Typer(help="Evaluations that run by themselves.", no_args_is_help=True)
Json = dict[str, Any]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name or id.")]


@schedule.command("list")
def list_schedules(as_json: AsJson = False) -> None:
    """List schedules with their next time and what came of the last one.

    Examples:

      touchstone schedule list
    """
    with Client() as client:
        found = client.schedules()
    if as_json:
        output.answer_json(found)
        return
    if not found:
        output.answer(f"There are no schedules yet: {program.name()} schedule create --help")
        return
    rows = [
        [
            one["name"],
            f"{one['cron']} ({one['time_zone']})",
            one["set_name"],
            one["base_name"],
            _time(one["next_run_at"]) if one["enabled"] else "off",
            _last(one["last"]),
            one["n_open_alerts"] or "",
        ]
        for one in found
    ]
    output.answer(tables.grid(["schedule", "when", "set", "base", "next (UTC)", "last", "alerts"], rows))


@schedule.command()
def create(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    questions: Annotated[str, typer.Option("--set", metavar="SET", help="A set's name or id (its latest), or id@N.")],
    cron: Annotated[str, typer.Option(metavar="FIELDS", help="minute hour day month weekday: '0 2 * * *'.")],
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Such as Europe/Berlin.")] = "UTC",
    knowledge_base: Base = None,
    workspace: Workspace = None,
    source: Source = "",
    collection: Collection = "",
    modes: Modes = None,
    top_k: TopK = None,
    reranker: Reranker = None,
    cache: Cache = True,
    grace: Annotated[
        float | None, typer.Option(metavar="HOURS", help="How late a slot may still be caught up. Default: 6.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a schedule.

    A night that nothing has changed for takes over the results of an earlier
    run; with --no-cache every night asks everything, and measures latency.

    Examples:

      touchstone schedule create nightly --set golden -b handbook --cron '0 2 * * *' --time-zone Europe/Berlin
      touchstone schedule create weekdays --set golden --cron '30 6 * * 1-5' --modes hybrid,hybrid_rerank
    """
    with Client() as client:
        evaluation = {
            **choosing.questions(client, questions),
            "scope": choosing.scope(
                client,
                knowledge_base=knowledge_base,
                documents=None,
                workspace=workspace,
                source=source,
                collection=collection,
            ),
            "modes": words(modes),
            "top_k": top_k,
            "reranker": reranker,
            "cache": None if cache else False,
        }
        made = client.create_schedule(
            name,
            cron=cron,
            evaluation={key: value for key, value in evaluation.items() if value is not None},
            time_zone=time_zone,
            grace_seconds=None if grace is None else round(grace * 3600),
        )
    if as_json:
        output.answer_json(made)
        return
    times = ", ".join(_time(one) for one in made["upcoming"])
    output.answer(f"{made['name']} ({made['id']}) runs at {times} UTC")


@schedule.command()
def history(
    name: _Name,
    limit: Annotated[int, typer.Option(min=1, help="How many slots.")] = 20,
    as_json: AsJson = False,
) -> None:
    """What came of each slot, the latest first.

    Examples:

      touchstone schedule history nightly --limit 30
    """
    with Client() as client:
        found = list(client.history(_find(client, name)["id"], limit=limit))
    if as_json:
        output.answer_json(found)
        return
    if not found:
        output.answer("No slot has come yet.")
        return
    rows = [
        [
            _time(one["slot_at"]),
            "by hand" if one["manual"] else "",
            one["state"] + (f" x{one['n_slots']}" if one["n_slots"] > 1 else ""),
            one["evaluation_state"] or "",
            ", ".join(f"{gate}: {outcome}" for gate, outcome in one["outcomes"].items()),
            one["evaluation"] or "",
            one["reason"],
        ]
        for one in found
    ]
    output.answer(tables.grid(["slot (UTC)", "", "state", "evaluation", "gates", "id", "because"], rows))


@schedule.command("run-now")
def run_now(name: _Name, as_json: AsJson = False) -> None:
    """Run a schedule now; its slots stay as they are.

    Examples:

      touchstone schedule run-now nightly
    """
    with Client() as client:
        told = client.run_schedule(_find(client, name)["id"])
    if as_json:
        output.answer_json(told)
        return
    output.answer(f"Evaluation {told['evaluation']}: {program.name()} evaluate --follow {told['evaluation']}")


@schedule.command()
def enable(name: _Name) -> None:
    """Switch a schedule on; it catches up nothing.

    Examples:

      touchstone schedule enable nightly
    """
    with Client() as client:
        told = client.change_schedule(_find(client, name)["id"], enabled=True)
    output.answer(f"{told['name']} runs at {_time(told['next_run_at'])} UTC")


@schedule.command()
def disable(name: _Name) -> None:
    """Switch a schedule off.

    Examples:

      touchstone schedule disable nightly
    """
    with Client() as client:
        told = client.change_schedule(_find(client, name)["id"], enabled=False)
    output.answer(f"{told['name']} is off")


@schedule.command()
def delete(name: _Name) -> None:
    """Delete a schedule with its history; the evaluations it started stay.

    Examples:

      touchstone schedule delete nightly
    """
    with Client() as client:
        found = _find(client, name)
        client.delete_schedule(found["id"])
    output.note(f"{found['name']} is gone.")


@app.command()
def alerts(
    every: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """What people have to know: rules that broke, nights that were missed, providers that died.

    Examples:

      touchstone alerts
      touchstone alerts --all --json
    """
    with Client() as client:
        found = list(client.alerts(state=None if every else "open", limit=limit))
    if as_json:
        output.answer_json(found)
        return
    if not found:
        output.answer("Nothing is wrong." if not every else "Nothing was ever wrong.")
        return
    blocks = []
    for one in found:
        state = f"resolved {_time(one['resolved_at'])}" if one["resolved_at"] else "open"
        lines = [f"{one['title']}  ({_time(one['opened_at'])} UTC, {state})"]
        lines += [f"  {sentence}" for sentence in one["sentences"]]
        if one["because"]:
            lines.append(f"  since it was well: {'; '.join(one['because'])}")
        if one["lost"]:
            more = f" and {len(one['lost']) - 10} more" if len(one["lost"]) > 10 else ""
            lines.append(f"  lost: {', '.join(one['lost'][:10])}{more}")
        blocks.append("\n".join(lines))
    output.answer("\n\n".join(blocks))


def _find(client: Client, name: str) -> Json:
    found = client.find_schedule(name)
    if found is None:
        raise UsageError(f"There is no schedule {name!r}.")
    return found


def _time(text: str | None) -> str:
    return text[:16].replace("T", " ") if text else ""


def _last(firing: Json | None) -> str:
    if firing is None:
        return ""
    return f"{_time(firing['slot_at'])} {firing['evaluation_state'] or firing['state']}"
