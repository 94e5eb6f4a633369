"""The plots of two runs, question by question."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from backend.core.comparison import QuestionDelta, Transitions
from console.plots.picture import Picture, Theme, questions

_MOST_ROWS = 40
_TIE = 1e-9
# More bars than the picture has points cannot be told apart: then each stands for the mean of its neighbours.
_MOST_BARS = 200
_MOST_POINTS = 3000


def deltas(found: Sequence[QuestionDelta], *, metric: str) -> Picture | None:
    """A bar for each question, from the largest loss to the largest gain."""
    if not found:
        return None
    ordered = sorted(found, key=lambda one: (one.delta, one.key))
    n_up = sum(one.delta > _TIE for one in ordered)
    n_down = sum(one.delta < -_TIE for one in ordered)
    bars = _thinned([one.delta for one in ordered])

    def draw(axes: Any, theme: Theme) -> None:
        # Two areas of steps and not a bar each: some hundred shapes take seconds to lay out.
        starts = [place for place, value in enumerate(bars) if not place or value != bars[place - 1]]
        steps = [bars[place] for place in starts]
        gains, losses = [max(one, 0.0) for one in steps], [min(one, 0.0) for one in steps]
        for colour, values in ((theme.good, gains), (theme.bad, losses)):
            axes.fill_between([*starts, len(bars)], [*values, values[-1]], step="post", color=colour, linewidth=0)
        axes.axhline(0, color=theme.soft, linewidth=1)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_ylabel(f"change of {metric}")
        axes.set_xlabel(f"{questions(len(ordered))}, losses to gains")
        axes.margins(x=0.01)

    listed = [one for one in ordered if abs(one.delta) > _TIE]
    half = _MOST_ROWS // 2
    shown = listed if len(listed) <= _MOST_ROWS else [*listed[:half], *listed[-half:]]
    return Picture(
        name="deltas",
        title="Each question's change, sorted",
        alt=f"{n_up:,} of {questions(len(ordered))} gained, {n_down:,} lost, {len(ordered) - n_up - n_down:,} stayed.",
        head=("Question", "Baseline", "Candidate", "Change"),
        rows=[(one.key, f"{one.baseline:.3f}", f"{one.candidate:.3f}", f"{one.delta:+.3f}") for one in shown],
        draw=draw,
        n_left_out=len(ordered) - len(shown),
    )


def scatter(found: Sequence[QuestionDelta], *, metric: str) -> Picture | None:
    """The candidate's value over the baseline's; points that fall together are drawn larger."""
    if not found:
        return None
    counted: dict[tuple[float, float], int] = {}
    for one in found:
        at = (round(one.baseline, 3), round(one.candidate, 3))
        counted[at] = counted.get(at, 0) + 1
    points = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:_MOST_POINTS]

    def draw(axes: Any, theme: Theme) -> None:
        axes.plot([0, 1], [0, 1], color=theme.soft, linewidth=1, linestyle="--")
        most = max(n for _, n in points)
        colours = [theme.good if y > x else theme.bad if y < x else theme.soft for (x, y), _ in points]
        axes.scatter(
            [at[0] for at, _ in points],
            [at[1] for at, _ in points],
            s=[14 + 300 * math.sqrt(n / most) if most > 1 else 20 for _, n in points],
            c=colours,
            alpha=0.6,
            linewidths=0,
            clip_on=False,
        )
        axes.set_xlim(-0.05, 1.05)
        axes.set_ylim(-0.05, 1.05)
        axes.set_aspect("equal")
        axes.set_xlabel(f"baseline, {metric}")
        axes.set_ylabel(f"candidate, {metric}")

    n_above = sum(n for (x, y), n in counted.items() if y > x)
    n_below = sum(n for (x, y), n in counted.items() if y < x)
    rows = [(f"{x:.3f}", f"{y:.3f}", f"{n:,}") for (x, y), n in points[:_MOST_ROWS]]
    return Picture(
        name="scatter",
        title="Baseline against candidate",
        alt=f"{n_above:,} of {questions(len(found))} lie above the diagonal (better), {n_below:,} below it.",
        head=("Baseline", "Candidate", "Questions"),
        rows=rows,
        draw=draw,
        height=320,
        n_left_out=max(0, len(counted) - len(rows)),
    )


def transitions(matrix: Transitions) -> Picture:
    """How many questions went from each band of ranks to each other: the baseline's down, the candidate's across."""
    labels, counts = list(matrix.labels), matrix.counts

    def draw(axes: Any, theme: Theme) -> None:
        most = max((n for row in counts for n in row), default=0) or 1
        for down, row in enumerate(counts):
            for across, n in enumerate(row):
                if not n:
                    continue
                colour = theme.soft if down == across else theme.good if across < down else theme.bad
                share = 0.12 + 0.55 * math.sqrt(n / most)
                axes.fill_between(
                    [across - 0.48, across + 0.48], down - 0.48, down + 0.48, color=colour, alpha=share, linewidth=0
                )
                axes.text(across, down, f"{n:,}", ha="center", va="center", color=theme.ink)
        axes.set_xlim(-0.5, len(labels) - 0.5)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_yticks(range(len(labels)), labels)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("first rank in the candidate")
        axes.set_ylabel("in the baseline")
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_visible(False)

    return Picture(
        name="transitions",
        title="Where the first answer moved",
        alt=f"{matrix.n_up:,} questions moved up, {matrix.n_down:,} down, {matrix.n_same:,} kept their rank.",
        head=("Baseline \\ candidate", *labels),
        rows=[(label, *(f"{n:,}" for n in row)) for label, row in zip(labels, counts, strict=True)],
        draw=draw,
        height=280,
    )


def _thinned(values: Sequence[float]) -> list[float]:
    if len(values) <= _MOST_BARS:
        return list(values)
    edges = [round(place * len(values) / _MOST_BARS) for place in range(_MOST_BARS + 1)]
    return [math.fsum(values[low:high]) / (high - low) for low, high in pairwise(edges) if high > low]


NAMES = ("deltas", "scatter", "transitions")
