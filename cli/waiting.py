"""A bar while a call waits for a job of the service."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cli import output
from cli.client import Client, Json
from touchstone.progress import Bar


@contextmanager
def progress(client: Client) -> Iterator[Client]:
    """On stderr, and only if a call of the block is answered with a job."""
    with ExitStack() as stack:
        bars: dict[str, Bar] = {}

        def look(job: Json) -> None:
            if job["id"] not in bars:
                bars[job["id"]] = stack.enter_context(Bar(job["kind"], stream=sys.stderr))
            bars[job["id"]].show(job["n_done"], job["n_total"], note=job["state"])

        client.on_job, client.on_silence = look, output.note
        yield client
