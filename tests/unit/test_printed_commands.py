"""The commands that pages print are commands that there are."""

import html
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.main import app

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "console" / "templates"
# In a line of a page a command stands in <code>, in what Python says between backticks.
_OF_TEMPLATES, _OF_PYTHON = re.compile(r"<code>(touchstone\b[^<]*)</code>"), re.compile(r"`(touchstone [^`]*)`")


def printed() -> list[tuple[str, str]]:
    """Where, and the command; what a template fills in is a word of it."""
    found = []
    for pattern, files in (
        (_OF_TEMPLATES, TEMPLATES.rglob("*.html")),
        (_OF_PYTHON, (ROOT / "console").rglob("*.py")),
        (_OF_PYTHON, (ROOT / "backend").rglob("*.py")),
    ):
        for file in sorted(files):
            text = re.sub(r"\{[{%].*?[%}]\}", "X", file.read_text())
            found += [(str(file.relative_to(ROOT)), html.unescape(one)) for one in pattern.findall(text)]
    return found


def fault_of(command: str) -> str:
    """Why there is no such command; empty where there is one."""
    words = shlex.split(command)[1:]
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands") and words and not words[0].startswith("-"):
        name, *words = words
        if name not in found.commands:
            return f"no command {name}"
        found = found.commands[name]
    known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
    wrong = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    return f"no option {', '.join(wrong)}" if wrong else ""


def test_pages_print_commands() -> None:
    assert {command for _, command in printed()} >= {"touchstone up", 'touchstone ingest ./docs --name "X"'}


@pytest.mark.parametrize(("where", "command"), printed())
def test_a_printed_command_is_there_with_its_options(where: str, command: str) -> None:
    assert fault_of(command) == "", f"{where}: {command}"


def test_a_command_or_an_option_that_is_not_there_is_found() -> None:
    assert fault_of('touchstone ingest ./docs --base "mine"') == "no option --base"
    assert fault_of("touchstone sets shwo golden") == "no command shwo"
    assert fault_of("touchstone evaluate my.jsonl --jsno") == "no option --jsno"
    assert fault_of("touchstone evaluate my.jsonl --json") == ""
