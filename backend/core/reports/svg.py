"""Small plots as SVG text: they need no script, and print. Each has a title that says it in words."""

from collections.abc import Sequence
from html import escape

_WIDTH, _LABEL, _ROW = 640, 200, 24


def bars(rows: Sequence[tuple[str, float]], *, title: str, unit: str = "") -> str:
    """Horizontal bars, each with its value, scaled to the largest."""
    most = max((value for _, value in rows), default=0) or 1
    span = _WIDTH - _LABEL - 60
    parts = [
        f'<text x="{_LABEL - 8}" y="{y + 16}" text-anchor="end">{escape(_cut(name))}</text>'
        f'<rect class="bar" x="{_LABEL}" y="{y + 3}" width="{max(value / most * span, 1):.1f}" height="{_ROW - 6}"/>'
        f'<text x="{_LABEL + value / most * span + 6:.1f}" y="{y + 16}">{value:g}{unit}</text>'
        for y, (name, value) in zip(_places(rows), rows, strict=True)
    ]
    return _svg(parts, n_rows=len(rows), title=title)


def intervals(rows: Sequence[tuple[str, float, float, float]], *, title: str) -> str:
    """Means between 0 and 1 with their intervals: name, low, mean, high."""
    span = _WIDTH - _LABEL - 60

    def at(value: float) -> float:
        return _LABEL + value * span

    axis = [
        f'<line class="grid" x1="{at(tick):.1f}" y1="0" x2="{at(tick):.1f}" y2="{len(rows) * _ROW}"/>'
        f'<text class="tick" x="{at(tick):.1f}" y="{len(rows) * _ROW + 14}" text-anchor="middle">{tick:g}</text>'
        for tick in (0, 0.25, 0.5, 0.75, 1)
    ]
    parts = [
        f'<text x="{_LABEL - 8}" y="{y + 16}" text-anchor="end">{escape(_cut(name))}</text>'
        f'<line class="range" x1="{at(low):.1f}" y1="{y + 12}" x2="{at(high):.1f}" y2="{y + 12}"/>'
        f'<circle class="dot" cx="{at(mean):.1f}" cy="{y + 12}" r="5"/>'
        f'<text x="{_WIDTH - 52}" y="{y + 16}">{mean:.3f}</text>'
        for y, (name, low, mean, high) in zip(_places(rows), rows, strict=True)
    ]
    return _svg([*axis, *parts], n_rows=len(rows) + 1, title=title)


def _places(rows: Sequence[object]) -> range:
    return range(0, len(rows) * _ROW, _ROW)


def _svg(parts: Sequence[str], *, n_rows: int, title: str) -> str:
    height = max(n_rows, 1) * _ROW
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def _cut(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"
