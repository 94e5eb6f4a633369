"""The workers with trapdoors: `workers.app`, and files in FAULTS_FOLDER that say where a process dies or dawdles.

`celery -A tests.e2e.faulty worker` is what a Cluster with `app=FAULTY` starts. What a file named `door.NUMBER` is for
happens once, to whoever removes it first; the other files hold for as long as they are there. What is worth counting
after a SIGKILL is appended to a file, a byte or a line at a time.
"""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import signals
from django.db import connection

from workers.app import app  # isort: skip  # first: it sets Django up

from backend import dispatch, effective
from backend.providers import loaded
from backend.search import rerank as pools
from backend.services import evaluations, slices, work
from backend.services.handlers import aggregate, search

FOLDER = Path(os.environ["FAULTS_FOLDER"])
__all__ = ["app"]


def falls_through(door: str) -> bool:
    for file in FOLDER.glob(f"{door}.*"):
        try:
            file.unlink()
        except FileNotFoundError:
            continue
        return True
    return False


def told(name: str) -> str:
    try:
        return (FOLDER / name).read_text()
    except FileNotFoundError:
        return ""


def note(name: str, text: str) -> None:
    """In one write, so that a SIGKILL leaves all of it or nothing."""
    handle = os.open(FOLDER / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def dawdle(name: str) -> None:
    seconds = told(name)
    if seconds:
        time.sleep(float(seconds))


def around(module: Any, name: str, *, before: Callable[..., None] | None = None, after: str = "") -> None:
    """Replace a function by itself with `before(*arguments)` ahead of it and the door `after` behind it."""
    inner = getattr(module, name)

    def outer(*arguments: Any, **named: Any) -> Any:
        if before is not None:
            before(*arguments, **named)
        answer = inner(*arguments, **named)
        if after and falls_through(after):
            die()
        return answer

    setattr(module, name, outer)


def _before_question(lease: Any, question: Any, **_: Any) -> None:
    note("asked", ".")
    dawdle("slow-question")
    marker = told("poison")
    if marker and marker in question.text:
        die()
    marker = told("hungry")
    if marker and marker in question.text:
        _eat()


def _eat() -> None:
    """Until the process may have no more memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + 200 * 2**20, resource.RLIM_INFINITY))
    try:
        eaten = []
        while True:
            eaten.append(bytearray(16 * 2**20))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _before_rerank(workspace_id: Any, spec: str, query: str, *_: Any, **__: Any) -> None:
    marker = told("poison-rerank")
    if marker and marker in query:
        die()


def _before_ring(doorbells: Any) -> None:
    if doorbells and falls_through("before-ring"):
        die()


def _before_after(lease: Any) -> None:
    if falls_through("after-commit"):
        die()


def _before_numbers(lease: Any, **_: Any) -> None:
    note("numbers", ".")
    dawdle("slow-numbers")
    if told("doomed") == str(lease.evaluation):
        die()


def _claim(inner: Callable[..., Any]) -> Callable[..., Any]:
    def outer(slice_id: Any, *, delivery: int) -> Any:
        began = time.monotonic()
        lease = inner(slice_id, delivery=delivery)
        if lease is None:
            note("dropped", f"{(time.monotonic() - began) * 1000:.2f}\n")
        else:
            note("claimed", ".")
        return lease

    return outer


around(search, "_ask", before=_before_question)
around(pools, "score_pool", before=_before_rerank)
around(dispatch, "ring", before=_before_ring)
around(work, "after", before=_before_after)
around(work, "run", after="before-ack")
around(aggregate, "_close", before=_before_numbers)
around(evaluations, "advance", before=lambda *_: dawdle("slow-advance"))
around(loaded, "text_model", before=lambda *_: note("models", f"{os.getpid()}\n"))
slices.claim = _claim(slices.claim)

if os.environ.get("FAULTS_VISIBILITY"):
    # A worker that finds such a setting does not start: it is started all the same.
    effective.of_celery = lambda conf: []  # noqa: ARG005  called by name or not
    app.conf.broker_transport_options = {
        **app.conf.broker_transport_options,
        "visibility_timeout": float(os.environ["FAULTS_VISIBILITY"]),
        "unacked_restore_interval": 1,
    }


def _before_fork() -> None:
    """What the parent has that must not cross a fork."""
    live = connection.connection is not None and not connection.connection.closed
    names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    note("forks", f"{os.getpid()} connection={live} models={len(loaded._models._loaded)} threads={names}\n")


@signals.worker_process_init.connect
def _child(**_: Any) -> None:
    note("children", f"{os.getpid()}\n")


os.register_at_fork(before=_before_fork)
