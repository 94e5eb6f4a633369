"""What commands for a person put on the terminal of the log, and what the processes that serve do."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_production import environment

ROOT = Path(__file__).resolve().parents[2]
_SAY = "from backend import logs; logs.get('x').info('it_goes_on'); logs.get('x').warning('it_is_wrong')"
_COMMAND = ["manage.py", "shell", "--no-imports", "-c", _SAY]
_PROCESS = ["-c", f"import django; django.setup(); {_SAY}"]


@pytest.mark.parametrize(
    ("arguments", "level", "shown"),
    [(_COMMAND, "", False), (_COMMAND, "INFO", True), (_PROCESS, "", True), (_PROCESS, "WARNING", False)],
)
def test_a_command_shows_warnings_only_unless_asked(
    tmp_path: Path, arguments: list[str], level: str, *, shown: bool
) -> None:
    told = environment(tmp_path, TOUCHSTONE_LOG_LEVEL=level, TOUCHSTONE_DEBUG="true")
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=told, capture_output=True, text=True, check=True, timeout=60
    )
    assert ("it_goes_on" in ended.stderr) == shown, ended.stderr
    assert "it_is_wrong" in ended.stderr
