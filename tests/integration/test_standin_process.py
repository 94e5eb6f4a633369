import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]


def test_the_stand_in_runs_as_a_process_and_is_steered_over_http() -> None:
    script = json.dumps({"order": "reverse"})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.standins", "--script", script],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with httpx.Client(base_url=url, trust_env=False) as client:
            body = {"query": "leave", "texts": ["a", "b"]}
            assert [entry["index"] for entry in client.post("/rerank", json=body).json()] == [1, 0]
            assert client.get("/_control/statistics").json()["by_path"] == {"/rerank": 1}
            assert client.get("/_control/calls").json()[0]["body"] == body

            changed = client.put("/_control/script", json={"fault": "status", "status": 429, "retry_after": "3"})
            assert changed.status_code == 200
            refused = client.post("/rerank", json=body)
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "3")
            assert client.get("/_control/statistics").json()["by_status"] == {"429": 1}
            assert client.put("/_control/script", json={"falt": "status"}).status_code == 400
            assert client.get("/info").json()["max_client_batch_size"] == 32
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()

    assert process.returncode == 0
