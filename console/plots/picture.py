"""A plot before it is drawn: its title, what it says in words, its numbers, and how to draw them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# In units of the picture; pages scale it to their column, so that text stays readable on a phone.
WIDTH, HEIGHT = 400, 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours as the stylesheet has them. `ground` is painted in PNGs alone: an SVG lies on the page."""

    ground: str
    ink: str
    soft: str
    line: str
    main: str
    accent: str
    good: str
    bad: str


THEMES: dict[str, Theme] = {
    "light": Theme(
        ground="#ffffff",
        ink="#1d242c",
        soft="#5a6570",
        line="#dcdad3",
        main="#2b5c9e",
        accent="#b0760f",
        good="#1c6b45",
        bad="#a32a2a",
    ),
    "dark": Theme(
        ground="#1c2229",
        ink="#e7e5df",
        soft="#a0a9b2",
        line="#3a434e",
        main="#8fb6ec",
        accent="#e2a93b",
        good="#6fc79b",
        bad="#f08b86",
    ),
}

# Given the axes of the plotting library (untyped: it is imported only to draw) and the colours.
Draw = Callable[[Any, Theme], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """`head` and `rows` are the table behind the plot, `n_left_out` what it does not list. `alt` says what is to be
    seen to those who cannot."""

    name: str
    title: str
    alt: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    draw: Draw
    width: int = WIDTH
    height: int = HEIGHT
    n_left_out: int = 0


def figure(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def questions(n: int) -> str:
    return f"{n:,} question{'' if n == 1 else 's'}"
