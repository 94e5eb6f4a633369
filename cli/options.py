"""Options that several commands have."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in the shape of the API.")]
Base = Annotated[
    str | None, typer.Option("--knowledge-base", "-b", metavar="NAME", help="Name or id. Default: the only one.")
]
Documents = Annotated[str | None, typer.Option(metavar="ID,ID", help="Search only these documents.")]
Workspace = Annotated[str | None, typer.Option(metavar="ID", help="Search every ready base of this workspace.")]
Source = Annotated[str, typer.Option(metavar="NAME", help="Only what comes from this source.")]
Collection = Annotated[str, typer.Option(metavar="NAME", help="Only this collection.")]
# Where a help text names a default, the command leaves the value to the service.
Modes = Annotated[
    str | None,
    typer.Option(
        metavar="MODE,MODE", help="semantic, keyword, hybrid, each with _rerank. Default: hybrid_rerank,hybrid."
    ),
]
TopK = Annotated[int | None, typer.Option(min=1, help="How many results. Default: 10.")]
Level = Annotated[str | None, typer.Option(metavar="document|passage", help="Instead of the set's own.")]
Cache = Annotated[
    bool, typer.Option(help="Use what is known already: embeddings, scores, and results that nothing has changed for.")
]
Reranker = Annotated[str | None, typer.Option(help="For the _rerank modes, such as http:NAME or local.")]


def words(text: str | None) -> list[str] | None:
    """What stands between commas."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
