"""A bench's figures: a small table for people, a line of JSON for machines. Nothing is asserted: a miss is told."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench import machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `holds` None where there is no goal, or nothing was measured."""

    what: str
    seen: str
    goal: str = ""
    holds: bool | None = None
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Report:
    """`raw` is what the figures were made of."""

    name: str
    title: str
    figures: list[Figure] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, seen: str, *, goal: str = "", holds: bool | None = None, note: str = "") -> None:
        self.figures.append(Figure(what=what, seen=seen, goal=goal, holds=holds, note=note))

    def table(self) -> str:
        """In Markdown, as docs/measured.md has it."""
        rows = [
            f"| {one.what} | {one.seen} | {one.goal} | {_WORDS[one.holds] if one.goal else ''} | {one.note} |"
            for one in self.figures
        ]
        return "\n".join([f"### {self.title}", "", "| what | seen | goal | | |", "|---|---|---|---|---|", *rows])


_WORDS = {True: "holds", False: "**missed**", None: "not measured"}


def at_most(report: Report, what: str, value: float, *, goal: float, unit: str = "×", note: str = "") -> None:
    report.add(what, f"{value:.2f} {unit}", goal=f"at most {goal:g} {unit}", holds=value <= goal, note=note)


def at_least(report: Report, what: str, value: float, *, goal: float, unit: str = "×", note: str = "") -> None:
    report.add(what, f"{value:.2f} {unit}", goal=f"at least {goal:g} {unit}", holds=value >= goal, note=note)


def main(run: Callable[[Sequence[str]], Report], arguments: Sequence[str]) -> None:
    """What `python -m bench.NAME` does."""
    told = run(arguments)
    print(told.table())
    print(json.dumps({"bench": told.name, "machine": machine.described(), **told.raw}))
