"""How passages moved from stage to stage, as a drawing: a column for each stage, a line for each passage.

Written by hand and not plotted: it is part of the page, whose stylesheet colours it, and its boxes are links.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.queries.asked import Place

_BOX, _GAP, _ROW, _HEAD = 224, 76, 30, 26
_CHARACTERS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """`y` of its middle. `deep`: it stands below the list, with its rank told."""

    x: int
    y: int
    rank: int
    name: str
    title: str
    anchor: str
    is_expected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    x1: int
    y1: int
    x2: int
    y2: int
    kind: str

    @property
    def path(self) -> str:
        bend = (self.x2 - self.x1) // 2
        return f"M{self.x1} {self.y1}C{self.x1 + bend} {self.y1} {self.x2 - bend} {self.y2} {self.x2} {self.y2}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """`said` tells it in words. `heads`: stage and x."""

    width: int
    height: int
    heads: Sequence[tuple[str, int]]
    boxes: Sequence[Box]
    lines: Sequence[Line]
    said: str
    box_width: int = _BOX
    row_height: int = _ROW


def drawing(places: Sequence[Place], stages: Sequence[str], *, most: int) -> Drawing | None:
    """The first `most` of each stage, and under them what was expected and came deeper. None with fewer than two
    stages: nothing moved."""
    if len(stages) < 2 or not places:
        return None
    boxes: list[Box] = []
    lines: list[Line] = []
    at: dict[tuple[str, str], Box] = {}
    depth = 0
    for column, stage in enumerate(stages):
        x = column * (_BOX + _GAP)
        there = sorted((place for place in places if stage in place.ranks), key=lambda one: one.ranks[stage])
        shown = [one for one in there if one.ranks[stage] <= most]
        deeper = [one for one in there if one.ranks[stage] > most and one.satisfies][:3]
        for row, place in enumerate([*shown, *deeper]):
            # A hole of a thinned ranking stays a hole; what is deeper follows after a blank row.
            slot = place.ranks[stage] - 1 if row < len(shown) else most + 1 + row - len(shown)
            box = Box(
                x=x,
                y=_HEAD + slot * _ROW + _ROW // 2,
                rank=place.ranks[stage],
                name=_cut(place.path),
                title=place.path,
                anchor=f"passage-{place.ranks['final']}",
                is_expected=bool(place.satisfies),
            )
            boxes.append(box)
            at[stage, place.passage] = box
            depth = max(depth, slot + 1)
    # The legs run side by side, so a leg's passage goes on to the first later stage that knows it.
    for place in places:
        for column, stage in enumerate(stages):
            start = at.get((stage, place.passage))
            follower = next(
                (one for one in stages[column + 1 :] if not _are_legs(stage, one) and one in place.ranks), None
            )
            end = at.get((follower, place.passage)) if follower is not None else None
            if start is None or end is None:
                continue
            kind = "up" if end.rank < start.rank else "down" if end.rank > start.rank else "same"
            lines.append(
                Line(
                    x1=start.x + _BOX,
                    y1=start.y,
                    x2=end.x,
                    y2=end.y,
                    kind=f"{kind} expected" if place.satisfies else kind,
                )
            )
    return Drawing(
        width=len(stages) * (_BOX + _GAP) - _GAP,
        height=_HEAD + depth * _ROW + 4,
        heads=[(stage, column * (_BOX + _GAP)) for column, stage in enumerate(stages)],
        boxes=boxes,
        lines=lines,
        said=_said(places, stages),
    )


def _are_legs(one: str, other: str) -> bool:
    return {one, other} == {"meaning", "words"}


def _said(places: Sequence[Place], stages: Sequence[str]) -> str:
    expected = [place for place in places if place.satisfies]
    if not expected:
        return f"Nothing that was expected is in any of {', '.join(stages)}."
    best = min(expected, key=lambda one: one.ranks["final"])
    ranks = ", ".join(
        f"{best.ranks[stage]} in {stage}" if stage in best.ranks else f"none in {stage}" for stage in stages
    )
    return f"The expected passage of {best.path} has rank {ranks}."


def _cut(text: str) -> str:
    """The end of a path says more than its beginning."""
    return text if len(text) <= _CHARACTERS else "…" + text[-(_CHARACTERS - 1) :]
