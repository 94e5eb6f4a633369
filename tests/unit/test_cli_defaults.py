"""The defaults that help texts name are those that hold."""

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from backend.core import configs, metric_keys
from backend.management.commands import up
from backend.services import schedules
from cli import main


def _commands(command: Any, name: str = "touchstone") -> Iterator[tuple[str, Any]]:
    if not isinstance(command, TyperGroup):
        yield name, command
        return
    for part, inner in command.commands.items():
        yield from _commands(inner, f"{name} {part}")


COMMANDS = dict(_commands(typer.main.get_command(main.app)))
OPTIONS = {
    f"{name} {option.opts[0]}": option
    for name, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, TyperOption)
}


def _named(option: str) -> str:
    found = re.search(r"Default: ([\w.,]+?)\.$", OPTIONS[option].help or "")
    return found[1] if found else ""


def test_no_help_text_names_a_default_beside_the_one_of_the_command() -> None:
    assert len(COMMANDS) > 25
    both = [
        name
        for name, option in OPTIONS.items()
        if "default" in (option.help or "").lower() and option.default not in (None, "")
    ]
    assert both == []


def test_the_defaults_of_the_service_are_named_as_they_are() -> None:
    for command in ("evaluate", "schedule create"):
        assert _named(f"touchstone {command} --modes") == ",".join(configs.DEFAULT_MODES)
        assert _named(f"touchstone {command} --top-k") == str(metric_keys.DEFAULT_TOP_K)
    assert _named("touchstone schedule create --grace") == str(schedules.GRACE_SECONDS // 3600)
    served = up.Command().create_parser("manage.py", "up")
    assert _named("touchstone up --port") == str(served.get_default("port"))
    assert _named("touchstone up --host") == served.get_default("host")
