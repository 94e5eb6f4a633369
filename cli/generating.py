"""`generate`: questions made from documents, drafts listed, accepted ones put into a set."""

import sys
from typing import Annotated, Any

import typer

from cli import choosing, output
from cli.client import Client
from cli.errors import UsageError
from cli.options import AsJson, Base, Collection, Source, words
from touchstone import program, rules, tables
from touchstone.progress import Bar

app = typer.Typer()
Json = dict[str, Any]
_MOST_SHOWN = 200


@app.command()
def generate(
    knowledge_base: Base = None,
    size: Annotated[int, typer.Option("--size", "-n", min=1, help="How many passages to ask about.")] = 50,
    llm: Annotated[
        str, typer.Option(metavar="PROVIDER:MODEL", help="Such as openai:gpt-4o-mini; local needs no key.")
    ] = "",
    kinds: Annotated[
        str | None,
        typer.Option(metavar="KIND,KIND", help="fact, paraphrase, keyword, several, unanswerable."),
    ] = None,
    source: Source = "",
    collection: Collection = "",
    language: Annotated[str, typer.Option(help="Only passages in this language, such as english.")] = "",
    prompt: Annotated[str, typer.Option(help="Instructions of your own in place of ours.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other passages.")] = 0,
    accept_all: Annotated[
        str | None,
        typer.Option("--accept-all", metavar="SET", help="Accept what no filter dropped, unseen, into this new set."),
    ] = None,
    follow: Annotated[str | None, typer.Option(metavar="ID", help="Wait for this one instead.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the end and list the drafts.")] = True,
    as_json: AsJson = False,
) -> None:
    """Make questions from the documents of a knowledge base.

    A person should accept, edit or reject each draft: on the page, under
    Drafts. Ctrl-C ends the waiting, not the making.

    Examples:

      touchstone generate -n 40
      touchstone generate -b handbook --llm openai:gpt-4o-mini --kinds fact,unanswerable
      touchstone generate --follow 0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11
    """
    if accept_all is not None and not wait:
        raise UsageError("--accept-all needs --wait: there is nothing to accept yet.")
    with Client() as client:
        client.on_silence = output.note
        if follow:
            made = client.generation(follow)
        else:
            scope = choosing.scope(
                client,
                knowledge_base=knowledge_base,
                documents=None,
                workspace=None,
                source="",
                collection="",
            )
            made = client.generate(
                scope["knowledge_base"],
                sample_size=size,
                llm=llm,
                kinds=words(kinds),
                source=source,
                collection=collection,
                language=language,
                prompt=prompt,
                seed=seed,
            )
        if wait:
            try:
                made = _wait(client, made)
            except KeyboardInterrupt:
                output.note(f"It goes on: {program.name()} generate --follow {made['id']}")
                output.end(rules.INTERRUPTED)
        drafts = list(client.drafts(made["id"])) if wait else []
        version = _accept(client, made, drafts, accept_all) if accept_all is not None else None
    if as_json:
        output.answer_json({**made, "drafts": drafts, **({} if version is None else {"accepted_into": version})})
    else:
        output.answer(_shown(made, drafts))
        if version is not None:
            output.answer(f"Next: {program.name()} evaluate {version['id']} -b {made['knowledge_base']}")
    job = made["job"]
    if wait and job is not None and job["state"] != "completed":
        output.note(f"It is {job['state']}. {job['reason']} {job['code']}".strip())
        output.end(rules.COULD_NOT_RUN)


def _wait(client: Client, made: Json) -> Json:
    with Bar("drafts", stream=sys.stderr) as bar:
        return client.generation_done(
            made["id"], on_progress=lambda job: bar.show(job["n_done"], job["n_total"], note=job["state"])
        )


def _accept(client: Client, made: Json, drafts: list[Json], name: str) -> Json:
    for draft in drafts:
        if draft["state"] == "pending":
            client.review(draft["id"], "accept")
    return client.put_into_set(made["id"], name=name)


def _shown(made: Json, drafts: list[Json]) -> str:
    """The drafts with what was said of each, and the counts."""
    rows = [
        [one["ordinal"] + 1, tables.fitted(one["question"] or "–", 60), one["kind"], one["state"], _said(one)]
        for one in drafts[:_MOST_SHOWN]
    ]
    parts = [tables.grid(["#", "question", "kind", "state", "said of it"], rows)] if rows else []
    if len(drafts) > _MOST_SHOWN:
        parts.append(f"and {len(drafts) - _MOST_SHOWN} more; --json prints all")
    counts = ", ".join(f"{n} {state}" for state, n in made["counts"].items() if n)
    parts.append(f"{made['n_drawn']} drawn by {made['llm']}: {counts or 'nothing yet'}.")
    if made["is_local"]:
        parts.append(
            "Made without a model, from headings and sentences: they show the flow and measure little, since their "
            "words are the documents' own."
        )
    parts.append(f"Follow: {program.name()} generate --follow {made['id']}")
    return "\n\n".join(parts)


def _said(draft: Json) -> str:
    flagged = [one["filter"] for one in draft["verdicts"] if one["action"] == "flag"]
    return tables.fitted(draft["reason"] or ", ".join(flagged), 60)
