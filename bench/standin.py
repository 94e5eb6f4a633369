"""The provider stand-in as a process of its own, as a provider is: it takes none of the bench's time."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx

from bench.service import ROOT

COHERE = "cohere:rerank-v4.0-pro"
PACED = "http:paced"
PACED_A_MINUTE = 600


class Provider:
    def __init__(self, url: str) -> None:
        self.url = url

    def settings(self) -> dict[str, str]:
        """For a service that asks this provider and no other; only `http:paced` has a limit."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "for the stand-in",
            "CO_API_KEY": "for the stand-in",
            "TOUCHSTONE_COHERE_URL": self.url,
            "TOUCHSTONE_RATE_COHERE_RERANK": "0",
            "TOUCHSTONE_RATE_HTTP_PACED": str(PACED_A_MINUTE),
            "TOUCHSTONE_RERANK_PACED_URL": self.url,
            "TOUCHSTONE_RERANK_PACED_SHAPE": "tei",
            "TOUCHSTONE_RERANK_PACED_MODEL": "standin",
        }

    def tell(self, **script: Any) -> None:
        """Change its behaviour; counts start again."""
        httpx.put(f"{self.url}/_control/script", json=script).raise_for_status()

    def statistics(self) -> dict[str, Any]:
        return dict(httpx.get(f"{self.url}/_control/statistics", timeout=60).raise_for_status().json())

    def started_at(self) -> list[float]:
        """When each call came, in order."""
        calls = httpx.get(f"{self.url}/_control/calls", timeout=120).raise_for_status().json()
        calls = calls["calls"] if isinstance(calls, dict) else calls
        return sorted(float(one["started_at"]) for one in calls if "rerank" in one["path"])


@contextlib.contextmanager
def running(host: str = "127.0.0.1") -> Iterator[Provider]:
    command = [sys.executable, "-m", "tests.standins", "--host", host]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None:
            raise SystemExit("the stand-in says nothing")
        yield Provider(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait(timeout=20)
