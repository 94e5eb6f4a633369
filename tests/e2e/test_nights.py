"""A night, compressed: real clocks, workers and a receiver on this machine; then the gate as a shell sees it."""

import hashlib
import hmac
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from markdown_it import MarkdownIt

from tests.e2e.cluster import ROOT, Cluster
from tests.receiver import Receiver

pytestmark = pytest.mark.slow
WORDS = ["heron", "otter", "badger", "lynx", "marten", "stoat"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ts-nights-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        settings = {
            "TOUCHSTONE_URL_ALLOW": "127.0.0.1",
            "TOUCHSTONE_ALERT_RETRY_SECONDS": "0.5",
            "TOUCHSTONE_RERANK_DOWN_URL": "http://127.0.0.1:9",
            "TOUCHSTONE_RERANK_DOWN_SHAPE": "tei",
            "TOUCHSTONE_PROVIDER_STALL_SECONDS": "1",
            "TOUCHSTONE_PROVIDER_PROBE_SECONDS": "1",
        }
        with Cluster(Path(folder), settings=settings) as running:
            yield running


@pytest.fixture
def more_clocks(cluster: Cluster) -> Iterator[None]:
    """Two beats beside the one there is."""
    beat = ["celery", "-A", "workers.app", "beat", "--pidfile="]
    clocks = [
        subprocess.Popen(
            [sys.executable, "-m", *beat, "--schedule", str(cluster.folder / f"beat-{number}")],
            env=cluster.environment,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in (2, 3)
    ]
    yield
    for clock in clocks:
        assert clock.poll() is None, "a second beat died"
        clock.terminate()
        clock.wait(timeout=20)


def upload(cluster: Cluster, base: str, *words: str) -> None:
    answer = cluster.http.post(
        f"knowledge-bases/{base}/documents",
        files=[("file", (f"{word}.txt", f"All about the {word}.".encode(), "text/plain")) for word in words],
        data={"path": [f"{word}.txt" for word in words]},
    )
    assert answer.status_code == 202, answer.text
    settle(cluster, base)


def settle(cluster: Cluster, base: str) -> None:
    def done() -> bool:
        found = cluster.get(f"knowledge-bases/{base}/ingestions")["results"]
        return bool(found) and all(one["state"] == "completed" for one in found)

    cluster.wait(done, "the documents to be read", seconds=240)


def night(cluster: Cluster, schedule: str, n: int) -> Any:
    """A slot comes, and what it started has ended and was checked; it is the n-th."""
    cluster.sql("UPDATE backend_schedule SET next_run_at = now() WHERE id = %s", schedule)
    history: list[Any] = []

    def checked() -> bool:
        history[:] = cluster.get(f"schedules/{schedule}/history")["results"]
        return len(history) == n and bool(history[0]["outcomes"])

    cluster.wait(checked, f"night {n} to be checked", seconds=240)
    return history[0]


def test_a_night_alerts_with_the_cause_and_the_questions_and_tells_when_they_are_back(
    cluster: Cluster, more_clocks: None
) -> None:
    base = cluster.post("knowledge-bases", {"name": "animals", "settings": {"embedding": {"embedder": "none"}}})["id"]
    upload(cluster, base, *WORDS)
    questions = [{"id": word, "question": f"the {word}", "expected": [f"{word}.txt"]} for word in WORDS]
    golden = cluster.post("question-sets", {"name": "animals", "questions": questions})["id"]
    evaluation = {"question_set": golden, "scope": {"knowledge_base": base}, "modes": ["keyword"]}
    schedule = cluster.post("schedules", {"name": "nightly", "cron": "0 2 * * *", "evaluation": evaluation})["id"]
    rules = [{"rule": "floor", "metric": "hit@10", "least": 0.9}]
    cluster.post("gates", {"name": "merge", "rules": rules, "schedule": schedule})
    with Receiver() as receiver:
        target = cluster.post("alert-targets", {"name": "hook", "kind": "webhook", "address": receiver.url})
        well = night(cluster, schedule, 1)
        assert well["outcomes"] == {"merge": "passed"}
        assert receiver.received == [], "nothing happened, and nothing is said"
        found = cluster.get(f"knowledge-bases/{base}/documents")["results"]
        for document in found:
            if document["path"] in {"heron.txt", "lynx.txt"}:
                cluster.http.delete(f"knowledge-bases/{base}/documents/{document['id']}").raise_for_status()
        settle(cluster, base)
        broken = night(cluster, schedule, 2)
        assert broken["outcomes"] == {"merge": "broken"}
        cluster.wait(lambda: len(receiver.received) == 1, "the alert", seconds=120)
        told = receiver.received[0].json
        assert (told["event"], told["kind"], told["schedule"]) == ("opened", "gate", "nightly")
        assert told["because"] == ["corpus -2 documents", "labels same", "configuration same"]
        assert told["lost"] == [{"id": "heron"}, {"id": "lynx"}]
        receiver.stop()
        upload(cluster, base, "heron", "lynx")
        assert night(cluster, schedule, 3)["outcomes"] == {"merge": "passed"}
        attempts = "SELECT n_attempts FROM backend_delivery WHERE event = 'resolved' AND state = 'pending'"
        cluster.wait(lambda: bool(cluster.sql(attempts)) and cluster.sql(attempts)[0][0] >= 2, "attempts", seconds=120)
        receiver.start()
        cluster.wait(lambda: len(receiver.received) == 2, "the news, late", seconds=120)
        assert receiver.received[1].json["event"] == "resolved"
        secret = cluster.post(f"alert-targets/{target['id']}/secret", {})["secret"]
        for one in receiver.received:
            signed = f"{one.headers['Touchstone-Timestamp']}.".encode() + one.body
            expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
            assert one.headers["Touchstone-Signature"] == f"v1={expected}"
    slots = cluster.sql("SELECT slot_at, state FROM backend_firing")
    assert len(slots) == len({slot for slot, _ in slots}) == 3
    assert cluster.sql("SELECT count(*) FROM backend_evaluation") == [(3,)], "three clocks, and one run a slot"


def test_the_gate_ends_a_shell_script_with_its_four_codes(cluster: Cluster, tmp_path: Path) -> None:
    history = cluster.get("schedules")["results"][0]
    nights = cluster.get(f"schedules/{history['id']}/history")["results"]
    well, broken = nights[0]["evaluation"], nights[1]["evaluation"]
    request = {**history["evaluation"], "modes": ["keyword", "keyword_rerank"], "reranker": "http:down"}
    failed = cluster.finished(cluster.post("evaluations", request)["id"])["id"]
    script = f"""
        touchstone baselines approve {well} --label first
        touchstone gate {well} --fail-under hit@10=0.9 --max-drop hit@10=0.05; echo "ended passed $?"
        touchstone gate {broken} --max-drop hit@10=0.05 --junit out.xml --markdown out.md; echo "ended broken $?"
        touchstone gate {well} --must-pass; echo "ended unchecked $?"
        touchstone gate {failed} --fail-under keyword:hit@10=0.9; echo "ended uncovered $?"
        touchstone gate; echo "ended usage $?"
    """
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TOUCHSTONE_URL": cluster.url,
        "TOUCHSTONE_TOKEN": cluster.token,
    }
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    codes = [line.removeprefix("ended ") for line in done.stdout.splitlines() if line.startswith("ended ")]
    assert codes == ["passed 0", "broken 3", "unchecked 1", "uncovered 4", "usage 2"], done.stdout + done.stderr
    suite = next(iter(JUnitXml.fromfile(str(tmp_path / "out.xml"))))
    assert (suite.tests, suite.failures, suite.errors) == (2, 1, 0)
    html = MarkdownIt("gfm-like", {"linkify": False}).render((tmp_path / "out.md").read_text())
    assert "<h3>Search quality on <code>animals@1</code>: failed: a rule broke</h3>" in html
    assert "<td><code>heron</code></td>" in html


def test_a_clock_that_was_dead_catches_up_what_is_fresh_and_reports_the_rest(cluster: Cluster) -> None:
    """The beat process is killed over the slot, and started again ten minutes, five hours and a week after it."""
    now = datetime.now(UTC)
    # Due eight hours ago each day: what a week left behind ends with a slot that is past its grace.
    daily = {"cron": f"0 {(now - timedelta(hours=8)).hour} * * *", "time_zone": "UTC"}
    schedule = cluster.get("schedules")["results"][0]["id"]
    cluster.http.patch(f"schedules/{schedule}", json=daily).raise_for_status()
    told = []
    for away in (timedelta(minutes=10), timedelta(hours=5), timedelta(days=7)):
        before = len(cluster.get(f"schedules/{schedule}/history")["results"])
        cluster.kill("beat")
        slot = now - away
        cluster.sql("UPDATE backend_schedule SET next_run_at = %s WHERE id = %s", slot, schedule)
        assert len(cluster.get(f"schedules/{schedule}/history")["results"]) == before, "nobody looks at the clock"
        cluster.start("beat")

        def looked(before: int = before) -> bool:
            history = cluster.get(f"schedules/{schedule}/history")["results"]
            # The next one would be skipped while this one runs.
            return len(history) > before and (history[0]["state"] == "missed" or bool(history[0]["outcomes"]))

        cluster.wait(looked, f"what came of a slot {away} ago", seconds=240)
        latest = cluster.get(f"schedules/{schedule}/history")["results"][0]
        told.append((latest["state"], latest["caught_up"], latest["n_slots"]))
    assert told == [("started", True, 1), ("started", True, 1), ("missed", False, 8)]
    (missed,) = (one for one in cluster.get("alerts")["results"] if one["kind"] == "missed")
    assert missed["state"] == "open"


def test_the_walk_through_of_an_improvement_runs_as_it_is_written(cluster: Cluster) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "TOUCHSTONE_URL": cluster.url,
        "TOUCHSTONE_TOKEN": cluster.token,
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "walkthrough.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "better" in done.stdout
