"""A service of the module's own, with trapdoors that only count, and a stand-in reranker that takes 300 ms."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import faults
from tests.e2e.cluster import FAULTY, Cluster
from tests.standins import Script, Standin


@pytest.fixture(scope="module")
def standin() -> Iterator[Standin]:
    with Standin(Script(max_batch=64, latency_seconds=0.3)) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(standin: Standin) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ts-soak-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with Cluster(Path(folder), settings=faults.settings(standin.url), app=FAULTY) as running:
            yield running
