"""One service and one stand-in for the tests of a module: starting them costs more than most tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.e2e import faults, oracle
from tests.e2e.cluster import FAULTY, Cluster
from tests.e2e.shelf import Shelf, fill
from tests.standins import Script, Standin


@pytest.fixture(scope="module")
def standin() -> Iterator[Standin]:
    with Standin(Script()) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(standin: Standin) -> Iterator[Cluster]:
    """Rerankers: `http:near` and `http:wide` are the stand-in, `http:down` a port where nobody listens."""
    with tempfile.TemporaryDirectory(prefix="ts-e2e-", ignore_cleanup_errors=True) as folder:
        settings = {
            "TOUCHSTONE_RERANK_NEAR_URL": standin.url,
            "TOUCHSTONE_RERANK_NEAR_SHAPE": "tei",
            # The same server, given a whole pool in one call.
            "TOUCHSTONE_RERANK_WIDE_URL": standin.url,
            "TOUCHSTONE_RERANK_WIDE_SHAPE": "tei",
            "TOUCHSTONE_RERANK_WIDE_BATCH": "64",
            "TOUCHSTONE_RERANK_DOWN_URL": "http://127.0.0.1:9",
            "TOUCHSTONE_RERANK_DOWN_SHAPE": "tei",
            "TOUCHSTONE_PROVIDER_STALL_SECONDS": "2",
            "TOUCHSTONE_PROVIDER_PROBE_SECONDS": "1",
            "OPENAI_BASE_URL": f"{standin.url}/v1",
            "OPENAI_API_KEY": "for the stand-in",
        }
        Path(folder).chmod(0o755)
        with Cluster(Path(folder), settings=settings) as running:
            yield running


@pytest.fixture(scope="module")
def shelf(cluster: Cluster) -> Shelf:
    """A base of small documents and a set of 300 questions over them."""
    return fill(cluster, name="shelf", n_documents=120, n_questions=300)


def _fault_scope(fixture_name: str, config: pytest.Config) -> Literal["session", "module"]:
    """One service for all of `make chaos`; one a file where files run beside each other."""
    return "module" if "not chaos" in str(config.getoption("-m")) else "session"


@pytest.fixture(scope=_fault_scope)
def _faulty_provider() -> Iterator[Standin]:
    with Standin(Script()) as running:
        yield running


@pytest.fixture(scope=_fault_scope)
def _faulty(_faulty_provider: Standin) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ts-e2e-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with Cluster(Path(folder), settings=faults.settings(_faulty_provider.url), app=FAULTY) as running:
            yield running


@pytest.fixture
def provider(_faulty_provider: Standin) -> Standin:
    """The reranker of a faulty service: it answers in 50 ms."""
    _faulty_provider.set_script(Script(max_batch=64, latency_seconds=0.05))
    return _faulty_provider


@pytest.fixture
def faulty(_faulty: Cluster, provider: Standin) -> Iterator[Cluster]:
    """A service whose workers have trapdoors, all shut, and whose processes all run."""
    _faulty.close_doors()
    faults.all_start(_faulty)
    yield _faulty
    _faulty.close_doors()


@pytest.fixture(scope=_fault_scope)
def small(_faulty: Cluster) -> Shelf:
    """60 questions over a base without an embedder: what dies here is no model."""
    settings = {"embedding": {"embedder": "none"}}
    return fill(_faulty, name="small", n_documents=40, n_questions=faults.N_QUESTIONS, settings=settings)


@pytest.fixture(scope=_fault_scope)
def undisturbed(_faulty: Cluster, small: Shelf, _faulty_provider: Standin) -> str:
    """An evaluation in faults.MODES that nothing happened to."""
    _faulty_provider.set_script(Script(max_batch=64))
    evaluation = oracle.submit(_faulty, small, **faults.MODES)
    assert _faulty.finished(evaluation)["state"] == "completed"
    found = oracle.check_whole(_faulty, evaluation, small, n_runs=2)
    assert [run["counts"]["n_scored"] for run in found["runs"]] == [faults.N_QUESTIONS] * 2
    return evaluation
