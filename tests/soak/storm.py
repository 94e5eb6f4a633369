"""Kills, flushes and restarts, one after the other, while something runs."""

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Self

from tests.e2e.cluster import Cluster

# Out of ten blows; and every twelfth is one at PostgreSQL.
_BLOWS = ["worker-search"] * 4 + ["worker-provider"] * 3 + ["worker-control"] + ["flush"] * 2
_RESTART_EVERY = 12


@dataclass(slots=True)
class Storm:
    """Until it is left, every 3 to 7 seconds of getting on: one SIGKILL of a worker with all its children, a FLUSHALL,
    or a kill of PostgreSQL. A blow falls only when there was a result since the last one: where a machine takes longer
    to start a worker than that, they would otherwise show nothing but starts."""

    cluster: Cluster
    seed: int
    blows: Counter[str] = field(default_factory=Counter)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failure: BaseException | None = None
    _fallen: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._blow)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def tend(self) -> None:
        """Called again and again by the thread that waits: what fell is started by the main thread alone, and a storm
        that broke off is told."""
        if self._failure is not None:
            raise self._failure
        if self._fallen.is_set() and self.cluster.revive():
            self._fallen.clear()

    def kills_of(self, *names: str) -> int:
        return sum(self.blows[name] for name in names)

    def _blow(self) -> None:
        try:
            chance = random.Random(self.seed)
            n = 0
            while not self._over.wait(chance.uniform(3, 7)):
                n += 1
                if n % _RESTART_EVERY == 0:
                    self._restart_database()
                else:
                    self._strike(chance.choice(_BLOWS))
                self._until_it_gets_on()
        except BaseException as failure:  # noqa: BLE001  told by the thread that waits
            self._failure = failure

    def _strike(self, what: str) -> None:
        self.blows[what] += 1
        if what == "flush":
            self.cluster.flush()
        else:
            self.cluster.restart(what)

    def _restart_database(self) -> None:
        self.blows["database"] += 1
        self.cluster.kill_database()
        self._fallen.set()
        while self._fallen.is_set() and not self._over.wait(0.1):
            pass

    def _until_it_gets_on(self) -> None:
        before = self._n_results()
        until = time.monotonic() + 90
        while not self._over.is_set() and self._n_results() == before and time.monotonic() < until:
            self._over.wait(0.5)

    def _n_results(self) -> int:
        return int(self.cluster.sql("SELECT count(*) FROM backend_result")[0][0])
