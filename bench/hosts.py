"""10: one worker host against two, each in a network namespace of its own and with a share of a core.

`python -m bench.hosts [--questions N] [--share 0.4]`. As root, on Linux with `ip` and the cpu cgroup: PostgreSQL, the
broker and the provider are reached by TCP over a bridge. The share is small, so that what both hosts use together is
less than the machine has: what then keeps two from being twice as fast is PostgreSQL, the broker, or each other.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from backend import env
from backend.embedded import postgres
from bench import machine, report, service, standin
from bench.report import Report
from tests.e2e.cluster import Cluster

GOAL = 1.8
_BRIDGE, _SERVER = "tsbench0", "10.99.77.1"
_HOSTS = ("tsbench1", "tsbench2")
_BROKER_PORT = 56379
_CGROUP = Path("/sys/fs/cgroup/cpu")
_PERIOD = 100_000


def run(arguments: Sequence[str] = ()) -> Report:
    parser = argparse.ArgumentParser(prog="bench.hosts")
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--reranked", type=int, default=300)
    parser.add_argument("--share", type=float, default=0.4, help="of a core, for each host")
    given = parser.parse_args(arguments)
    service.need_data()
    if os.geteuid() != 0 or shutil.which("ip") is None or not (_CGROUP / "cpu.shares").exists():
        raise SystemExit("bench.hosts makes network namespaces and cpu cgroups: it needs root, ip and cgroup v1.")
    # The service's own PostgreSQL answers on its socket alone.
    postgres._SETTINGS["listen_addresses"] = _SERVER  # noqa: SLF001
    made = Report(name="hosts", title=f"10. Two worker hosts, each with {given.share:.0%} of a core")
    with _network(), standin.running(_SERVER) as provider, service.running(provider.settings()) as running:
        _listen(running)
        base = service.scifact(running, n_documents=500)
        scope = {"scope": {"knowledge_base": base}, "cache": False}
        words = {**scope, "modes": ["keyword"], "question_set": service.question_set(running, given.questions)}
        pools = {
            **scope,
            "configurations": [{"mode": "keyword_rerank", "reranker": standin.COHERE, "rerank_depth": 10}],
            "question_set": service.question_set(running, given.reranked),
        }
        provider.tell(latency_seconds=0.3)
        for name, kind, body, n in (
            ("searches", "worker-search", words, given.questions),
            ("rerank calls of 300 ms, 4 slots a host", "worker-provider", pools, given.reranked),
        ):
            _compare(made, running, kind, body, name=name, n=n, share=given.share)
    return made


def _compare(
    made: Report, running: Cluster, kind: str, body: dict[str, Any], *, name: str, n: int, share: float
) -> None:
    running.kill(kind)
    seen = {}
    for n_hosts in (1, 2):
        with contextlib.ExitStack() as stack:
            pids = [stack.enter_context(_worker(running, kind, host, share=share)) for host in _HOSTS[:n_hosts]]
            _wait_for_workers(running, n_hosts)
            service.evaluate(running, {**body, "question_set": service.question_set(running, 100)})
            before, told = machine.spent(pids), _broker_commands(running)
            done = service.evaluate(running, body)
            seen[n_hosts] = {
                "rate": n / done["seconds"],
                "workers_ms": 1000 * (machine.spent(pids) - before) / n,
                "postgres_ms": 1000 * done["cpu"]["postgres"] / n,
                "broker_ms": 1000 * done["cpu"]["broker"] / n,
                "commands": (_broker_commands(running) - told) / n,
                "connections": _connections(running) / n_hosts,
            }
    running.start(kind)
    one, two = seen[1], seen[2]
    report.at_least(
        made,
        f"{name}: two hosts to one",
        two["rate"] / one["rate"],
        goal=GOAL,
        note=f"{one['rate']:.0f} and {two['rate']:.0f} questions a second",
    )
    made.add(
        f"{name}: processor time a question",
        f"{two['workers_ms']:.1f} ms of the workers",
        note=f"PostgreSQL {two['postgres_ms']:.1f} ({one['postgres_ms']:.1f} with one host), broker "
        f"{two['broker_ms']:.2f} ms and {two['commands']:.1f} commands; {two['connections']:.0f} connections a host",
    )
    made.raw[kind] = seen


# ---- a network of our own
@contextlib.contextmanager
def _network() -> Iterator[None]:
    _tear_down()
    _ip("link", "add", _BRIDGE, "type", "bridge")
    try:
        _ip("addr", "add", f"{_SERVER}/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        for number, host in enumerate(_HOSTS, start=2):
            _ip("netns", "add", host)
            _ip("link", "add", f"{host}o", "type", "veth", "peer", "name", f"{host}i")
            _ip("link", "set", f"{host}i", "netns", host)
            _ip("link", "set", f"{host}o", "master", _BRIDGE, "up")
            inside = ("netns", "exec", host, "ip")
            _ip(*inside, "addr", "add", f"10.99.77.{number}/24", "dev", f"{host}i")
            _ip(*inside, "link", "set", f"{host}i", "up")
            _ip(*inside, "link", "set", "lo", "up")
        yield
    finally:
        _tear_down()


def _tear_down() -> None:
    for host in _HOSTS:
        subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)
    subprocess.run(["ip", "link", "del", _BRIDGE], check=False, capture_output=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _listen(running: Cluster) -> None:
    """PostgreSQL and the broker also by TCP, for this network alone."""
    file = Path(running.sql("SHOW hba_file")[0][0])
    line = "host all all 10.99.77.0/24 trust"
    if line not in file.read_text():
        with file.open("a") as written:
            written.write(f"\n{line}\n")
    running.sql("SELECT pg_reload_conf()")
    with running.broker() as client:
        client.config_set("bind", _SERVER)
        client.config_set("protected-mode", "no")
        client.config_set("port", _BROKER_PORT)


@contextlib.contextmanager
def _worker(running: Cluster, kind: str, host: str, *, share: float) -> Iterator[int]:
    """One worker process with its children: in its namespace, in its share of a core."""
    group = _CGROUP / host
    group.mkdir(exist_ok=True)
    (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
    (group / "cpu.cfs_quota_us").write_text(str(int(share * _PERIOD)))
    lane = kind.removeprefix("worker-")
    pool = ["-c", "1"] if lane == "search" else ["--pool", "threads", "-c", "4"]
    parts = env.database(running.database_url)
    environment = {
        **running.environment,
        "DATABASE_URL": f"postgresql://{parts['USER']}@{_SERVER}:{_postgres_port(running)}/{parts['NAME']}",
        "REDIS_URL": f"redis://{_SERVER}:{_BROKER_PORT}/0",
        "TOUCHSTONE_SEARCH_SLOTS": "1",
        "TOUCHSTONE_PROVIDER_SLOTS": "4",
    }
    command = ["celery", "-A", "workers.app", "worker", "-Q", lane, *pool, "-n", f"{lane}@{host}"]
    log = (running.folder / f"{kind}-{host}.log").open("ab")
    process = subprocess.Popen(
        ["ip", "netns", "exec", host, *command, "--without-gossip", "--without-mingle"],
        env=environment,
        cwd=service.ROOT,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    (group / "cgroup.procs").write_text(str(process.pid))
    try:
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)
        log.close()
        running.sql("DELETE FROM backend_pulse WHERE name LIKE %s", f"worker:{lane}@{host}%")
        time.sleep(0.5)
        group.rmdir()


def _postgres_port(running: Cluster) -> int:
    return int(running.sql("SHOW port")[0][0])


def _wait_for_workers(running: Cluster, n: int) -> None:
    running.wait(lambda: service.n_workers(running, "worker:%@tsbench%") >= n, "the hosts' workers", seconds=120)


def _broker_commands(running: Cluster) -> int:
    with running.broker() as client:
        return int(client.info("stats")["total_commands_processed"])


def _connections(running: Cluster) -> int:
    rows = running.sql("SELECT count(*) FROM pg_stat_activity WHERE client_addr IS NOT NULL")
    return int(rows[0][0])


if __name__ == "__main__":
    report.main(run, sys.argv[1:])
