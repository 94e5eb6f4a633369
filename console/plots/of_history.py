"""A metric over runs: the trend with its band and what changed, and the sparkline of it."""

from typing import Any

from backend.queries.trends import Trend
from console.plots.picture import Picture, Theme

_MARKS = {"documents": "D", "questions": "Q", "configuration": "C"}


def trend(told: Trend) -> Picture | None:
    """None without a point."""
    points = told.points
    if not points:
        return None

    def draw(axes: Any, theme: Theme) -> None:
        places = range(len(points))
        axes.fill_between(
            places,
            [one.low for one in points],
            [one.high for one in points],
            color=theme.main,
            alpha=0.18,
            linewidth=0,
        )
        if len(points) == 1:
            axes.vlines(0, points[0].low, points[0].high, color=theme.main, alpha=0.35, linewidth=5)
        axes.plot(places, [one.mean for one in points], color=theme.main, marker="o", markersize=4, linewidth=2)
        low, high = min(one.low for one in points), max(one.high for one in points)
        room = max(0.02, (high - low) * 0.2)
        top = min(1.0 + room, high + room)
        axes.set_ylim(max(0.0, low - room), top)
        axes.set_xlim(-0.5, len(points) - 0.5)
        for place, one in enumerate(points):
            if one.changed:
                axes.axvline(place, color=theme.accent, linewidth=1, linestyle=":")
                letters = "".join(_MARKS[name] for name in one.changed)
                axes.text(place, top, letters, color=theme.accent, ha="center", va="bottom", fontsize=9)
        shown = sorted({0, len(points) // 2, len(points) - 1})
        axes.set_xticks(shown, [f"{points[place].at:%Y-%m-%d}" for place in shown])
        axes.set_ylabel(told.metric)
        axes.grid(axis="y", color=theme.line, linewidth=0.7)
        axes.set_axisbelow(True)
        if any(one.changed for one in points):
            axes.set_xlabel("D documents, Q questions, C configuration changed", fontsize=9)

    first, last = points[0], points[-1]
    n_changes = sum(bool(one.changed) for one in points)
    return Picture(
        name="trend",
        title=f"{told.metric} over runs",
        alt=(
            f"{told.metric} of {told.name} over {len(points)} runs: {first.mean:.3f} on {first.at:%Y-%m-%d}, "
            f"{last.mean:.3f} (95 % interval {last.low:.3f} to {last.high:.3f}) on {last.at:%Y-%m-%d}. "
            f"Documents, questions or configuration changed {n_changes} times."
        ),
        head=("Run", told.metric, "95 % interval", "Over", "Changed"),
        rows=[
            (
                f"{one.at:%Y-%m-%d %H:%M}" + (f" {one.label}" if one.label else ""),
                f"{one.mean:.3f}",
                f"{one.low:.3f} to {one.high:.3f}",
                f"{one.n:,} of {one.n_total:,}",
                ", ".join(one.changed),
            )
            for one in reversed(points)
        ],
        draw=draw,
        width=640,
    )


def sparkline(told: Trend) -> Picture | None:
    """The same in the height of a line of text, without axes: for lists. None without a point."""
    points = told.points
    if not points:
        return None

    def draw(axes: Any, theme: Theme) -> None:
        places = range(len(points))
        axes.fill_between(
            places, [one.low for one in points], [one.high for one in points], color=theme.main, alpha=0.2, linewidth=0
        )
        axes.plot(places, [one.mean for one in points], color=theme.main, linewidth=1.5)
        axes.plot([len(points) - 1], [points[-1].mean], color=theme.accent, marker="o", markersize=3.5, linestyle="")
        axes.set_axis_off()
        axes.margins(x=0.06, y=0.15)

    values = [one.mean for one in points]
    return Picture(
        name="sparkline",
        title=told.metric,
        alt=f"{told.metric} over {len(points)} runs, from {values[0]:.3f} to {values[-1]:.3f}.",
        head=("Run", told.metric),
        rows=[(f"{one.at:%Y-%m-%d}", f"{one.mean:.3f}") for one in points],
        draw=draw,
        width=130,
        height=30,
    )


NAMES = {"trend": trend, "sparkline": sparkline}
