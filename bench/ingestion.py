"""7: chunks a second against the embedding alone, the memory it takes, and a PDF of 500 pages.

`python -m bench.ingestion [--documents N]`. Abstracts of SciFact that were never embedded before (a line is added to
each), one passage a document; then the same texts in a loop around the same model, in as many processes.
"""

import argparse
import io
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench import machine, report, service
from bench.report import Report
from tests.e2e.cluster import Cluster

GOAL = 0.85
_BATCH = 32
_PAGES = 500


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.ingestion")
    parser.add_argument("--documents", type=int, default=500)
    n = parser.parse_args(arguments).documents
    service.need_data()
    made = Report(name="ingestion", title=f"7. Ingestion: {n} abstracts, one passage each")
    with service.running() as running:
        # Each time other texts: none comes from the cache.
        mark = f"Read at {time.time():.3f}."
        some = [{**one, "text": f"{one['text']} {mark}"} for one in service.documents()[:n]]
        base = str(running.post("knowledge-bases", {"name": mark, "settings": _settings("document")})["id"])
        # The model is loaded before the clock starts, here as below.
        service.upload(running, base, service.documents()[n : n + 4])
        service.wait_indexed(running, base)
        before = service.cost(running)
        with _watched(running) as peak:
            started = time.monotonic()
            service.upload(running, base, some)
            service.wait_indexed(running, base, pause=0.25)
            took = time.monotonic() - started
        after = service.cost(running)
        cpu = {name: after[name] - before[name] for name in before}
        loop_s, loop_cpu = _bare(running, [f"{one['title']}\n\n{one['text']}" for one in some])
        report.at_least(
            made,
            "chunks a second to the bare loop's",
            loop_s / took,
            goal=GOAL,
            note=f"{n / took:.1f} and {n / loop_s:.1f} a second; load {machine.load():.0f}",
        )
        report.at_least(
            made,
            "the bare loop's processor time to ours",
            loop_cpu / sum(cpu.values()),
            goal=GOAL,
            note=f"{1000 * sum(cpu.values()) / n:.0f} and {1000 * loop_cpu / n:.0f} ms a chunk",
        )
        made.add("peak memory of the search workers (PSS)", f"{peak[0]:.0f} MiB")
        made.raw = {"documents": n, "seconds": took, "cpu": cpu, "loop_s": loop_s, "loop_cpu": loop_cpu, "mb": peak[0]}
        _large(made, running)
        running.http.delete(f"knowledge-bases/{base}")
    return made


def _settings(mode: str, *, embedder: str | None = None) -> dict[str, object]:
    found: dict[str, object] = {"chunking": {"mode": mode}, "keyword": {"language": "english"}}
    return found if embedder is None else {**found, "embedding": {"embedder": embedder}}


def _large(made: Report, running: Cluster) -> None:
    """Without vectors: what reading and cutting take."""
    pdf = _pdf(_PAGES)
    settings = _settings("structure", embedder="none")
    base = str(running.post("knowledge-bases", {"name": f"pdf {time.time():.3f}", "settings": settings})["id"])
    with _watched(running) as peak:
        started = time.monotonic()
        running.http.post(
            f"knowledge-bases/{base}/documents",
            files=[("file", ("large.pdf", pdf, "application/pdf"))],
            data={"path": ["large.pdf"]},
        ).raise_for_status()
        service.wait_indexed(running, base, pause=0.25)
        took = time.monotonic() - started
    state = running.get(f"knowledge-bases/{base}")
    made.add(
        f"a PDF of {_PAGES} pages ({len(pdf) / 1e6:.1f} MB), without vectors",
        f"{took:.1f} s",
        note=f"{state['n_indexed']} indexed, {state['n_failed']} failed; peak of the search workers {peak[0]:.0f} MiB",
    )
    made.raw["pdf"] = {"seconds": took, "mb": peak[0], "n_indexed": state["n_indexed"]}
    running.http.delete(f"knowledge-bases/{base}")


def _pdf(n_pages: int) -> bytes:
    from reportlab.pdfgen.canvas import Canvas  # of the development packages

    held = io.BytesIO()
    canvas = Canvas(held)
    words = " ".join(one["text"] for one in service.documents()[:200]).split()
    for page in range(n_pages):
        line = canvas.beginText(50, 800)
        for start in range(0, 500, 10):
            at = (page * 500 + start) % (len(words) - 10)
            line.textLine(" ".join(words[at : at + 10]).encode("latin-1", "replace").decode("latin-1"))
        canvas.drawText(line)
        canvas.showPage()
    canvas.save()
    return held.getvalue()


@contextmanager
def _watched(running: Cluster) -> Iterator[list[float]]:
    """The most memory that the search workers had, readers included; looked at twice a second."""
    peak = [0.0]

    def look() -> None:
        peak[0] = max(peak[0], machine.memory_mb([running.pid("worker-search")]))

    with machine.watched(look, every=0.5):
        yield peak


def _bare(running: Cluster, texts: Sequence[str]) -> tuple[float, float]:
    """Seconds that passed, and of the processor."""
    kept = dict(os.environ)
    os.environ.update({key: value for key, value in running.environment.items() if key != "PYTHONPATH"})
    n_processes = int(service.PRODUCTION["TOUCHSTONE_SEARCH_SLOTS"])
    try:
        with multiprocessing.get_context("spawn").Pool(n_processes, initializer=_begin) as pool:
            pids = [process.pid for process in pool._pool]  # type: ignore[attr-defined]  # noqa: SLF001
            pool.map(_embed, [["warm"]] * 4 * n_processes, chunksize=1)
            batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
            before, started = machine.spent(pids), time.monotonic()
            for _ in pool.imap_unordered(_embed, batches):
                pass
            return time.monotonic() - started, machine.spent(pids) - before
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _begin() -> None:
    import django  # only these processes

    django.setup()


def _embed(texts: Sequence[str]) -> int:
    from uuid import UUID

    from backend.search import providers  # only where Django was set up

    return len(providers.embedder("local", workspace_id=UUID(int=0)).embed_documents(texts, timeout=600).vectors)


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
