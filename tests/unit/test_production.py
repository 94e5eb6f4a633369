"""What a service for others is refused for, and what every answer carries."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from backend import production

ROOT = Path(__file__).resolve().parents[2]
STRONG = secrets.token_urlsafe(48)


@pytest.mark.parametrize(
    "key",
    ["", "short", "a" * 64, "abababab" * 8, "changeme-changeme-0123456789-abcdefgh", "django-insecure-" + STRONG],
    # Every runner of the tests must call them the same.
    ids=["none", "short", "one letter", "two letters", "an example", "made for development"],
)
def test_a_weak_secret_is_refused_and_says_how_to_make_one(key: str) -> None:
    told = production.fault(key=key, is_kept=True, debug=False)
    assert "is weak" in told
    assert "token_urlsafe" in told
    assert key == "" or key not in told


def test_a_random_secret_is_taken_a_missing_one_is_not_and_debugging_needs_none() -> None:
    for key in (STRONG, secrets.token_hex(32), secrets.token_hex(16)):
        assert production.fault(key=key, is_kept=True, debug=False) == ""
    assert "is not set" in production.fault(key=STRONG, is_kept=False, debug=False)
    assert production.fault(key="", is_kept=False, debug=True) == ""


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
    return {**kept, "DJANGO_SETTINGS_MODULE": "backend.settings", "TOUCHSTONE_HOME": str(home), **more}


def started(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(home, **more),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_web_process_does_not_start_without_a_secret_but_does_with_that_of_up(tmp_path: Path) -> None:
    serve = ("-c", "import api.wsgi")
    refused = started(tmp_path, *serve)
    assert refused.returncode != 0
    assert "TOUCHSTONE_SECRET_KEY is not set" in refused.stderr
    (tmp_path / "secret_key").write_text(STRONG)
    assert started(tmp_path, *serve).returncode == 0


def test_the_deployment_check_is_clean(tmp_path: Path) -> None:
    done = started(
        tmp_path,
        *("manage.py", "check", "--deploy", "--fail-level", "WARNING"),
        TOUCHSTONE_SECRET_KEY=STRONG,
        TOUCHSTONE_HTTPS="true",
        TOUCHSTONE_HOSTS="touchstone.example.com",
    )
    assert done.returncode == 0, done.stderr


def test_keys_and_allow_lists_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    done = started(
        tmp_path,
        *("manage.py", "check"),
        TOUCHSTONE_SECRET_KEY="a" * 50,
        TOUCHSTONE_SECRET_KEYS="no-key",
        TOUCHSTONE_URL_ALLOW="http://x",
    )
    assert done.returncode != 0
    for code in ("touchstone.E050", "touchstone.E051", "touchstone.E052"):
        assert code in done.stderr
    assert "no-key" not in done.stderr


def audit(tmp_path: Path, said: str, *, ended: int = 0) -> subprocess.CompletedProcess[str]:
    """The audit's script, with what pip-audit answers."""
    uv = tmp_path / "uv"
    (tmp_path / "said").write_text(said)
    uv.write_text(f"#!/bin/sh\necho 'a word of its own' >&2\ncat {tmp_path / 'said'}\nexit {ended}\n")
    uv.chmod(0o755)
    return subprocess.run(
        [ROOT / ".ci" / "audit.sh"],
        env={**os.environ, "UV": str(uv), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )


GOOD = {"name": "good", "version": "1", "vulns": []}
WEAK = {"name": "weak", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "left", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "ended", "words"),
    [
        ([GOOD], 0, ["1 of 1 packages audited: 0 with"]),
        ([GOOD, WEAK], 1, ["1 with known", "weak 2: PYSEC-1, mended in 3"]),
        ([GOOD, SKIPPED], 0, ["1 of 2 packages audited", "Not audited: left"]),
        # pip-audit ends well, and says that there are none.
        ([SKIPPED, SKIPPED], 0, ["Not audited: none of the 2 packages was looked at"]),
    ],
)
def test_an_audit_says_what_it_looked_at_and_fails_for_what_it_found(
    packages: list[dict[str, object]], ended: int, words: list[str], tmp_path: Path
) -> None:
    done = audit(tmp_path, json.dumps({"dependencies": packages}), ended=ended)
    assert done.returncode == ended, done.stderr
    assert all(word in done.stdout for word in words), done.stdout


def test_an_audit_that_cannot_be_made_says_so_and_stops_no_build(tmp_path: Path) -> None:
    done = audit(tmp_path, "ConnectionError: cannot connect", ended=1)
    assert done.returncode == 0
    assert "Not audited: the audit could not be made here" in done.stdout
    assert "a word of its own" in done.stdout
