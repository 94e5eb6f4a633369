"""Plots: what they say in words, the table behind them, and pictures that a strict page may show."""

import re
import struct
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from backend.core.comparison import QuestionDelta, transitions
from backend.queries.runs import RunRow
from backend.queries.trends import Point, Trend
from console.plots import canvas, of_comparison, of_history, of_run
from console.plots.picture import Picture

RUN = cast(
    "RunRow",
    SimpleNamespace(
        counts={"by_rank": {"n": 10, "first": [4, 2, 0, 1], "recall": [0.4, 0.6, 0.6, 0.7]}},
        timings={"spread": [0, 3, 6, 0, 0, 1, *[0] * 8], "latency_ms": {"p50": 2.5, "p95": 30.0, "n": 10}},
        config={"reranker": "local"},
    ),
)
SURVEY: dict[str, Any] = {
    "k": 4,
    "n_missed": 3,
    "causes": {"not indexed": 1, "no leg found it": 2},
    "ceiling": 0.8,
    "funnel": {"n": 10, "leg": 0.9, "pool": 0.8, "before": 0.65, "after": 0.7},
}


def deltas(*changes: float) -> list[QuestionDelta]:
    return [
        QuestionDelta(key=f"q$x_{place}$<b>", baseline=0.5, candidate=0.5 + change, delta=change)
        for place, change in enumerate(changes)
    ]


def trend(*means: float, changed: tuple[str, ...] = ()) -> Trend:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    points = tuple(
        Point(
            run_id=UUID(int=place),
            at=begin + timedelta(days=place),
            label="",
            mean=mean,
            low=mean - 0.05,
            high=mean + 0.05,
            n=9,
            n_total=10,
            changed=changed if place == 1 else (),
        )
        for place, mean in enumerate(means)
    )
    return Trend(metric="mrr@10", name="hybrid", points=points)


def every() -> list[Picture]:
    ranks: dict[str, int | None] = {"a": 1, "b": 3, "c": None}
    found = [
        *of_run.all_of(RUN, SURVEY),
        of_comparison.deltas(deltas(0.5, -0.25, 0), metric="mrr@10"),
        of_comparison.scatter(deltas(0.5, -0.25, 0), metric="mrr@10"),
        of_comparison.transitions(transitions(ranks, {"a": 2, "b": 1, "c": None}, top_k=10)),
        of_history.trend(trend(0.5, 0.7, changed=("documents", "questions"))),
        of_history.sparkline(trend(0.5, 0.7)),
    ]
    return [one for one in found if one is not None]


def test_every_plot_has_words_a_table_and_a_picture_without_styles_or_scripts() -> None:
    pictures = every()
    assert [one.name for one in pictures] == [
        *("recall_at_k", "first_ranks", "latency", "funnel", "causes"),
        *("deltas", "scatter", "transitions", "trend", "sparkline"),
    ]
    for one in pictures:
        assert one.alt.endswith("."), one.name
        assert all(len(row) == len(one.head) for row in one.rows), one.name
        drawn = canvas.render(one, form="svg", theme="dark").decode()
        assert "<text" in drawn or one.name == "sparkline"
        assert not re.search(r"style|<script|\son\w+=", drawn), one.name
        assert f'width="{one.width}" height="{one.height}"' in drawn


def test_a_picture_is_the_same_bytes_each_time_and_its_own_in_each_theme() -> None:
    picture = of_run.first_ranks(RUN)
    assert picture is not None
    light = canvas.render(picture, form="svg", theme="light")
    assert light == canvas.render(picture, form="svg", theme="light")
    assert light != canvas.render(picture, form="svg", theme="dark")
    png = canvas.render(picture, form="png", theme="light")
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (picture.width * 192 // 72, picture.height * 192 // 72)


def test_words_and_tables_tell_the_numbers() -> None:
    found = {one.name: one for one in every()}
    assert found["first_ranks"].alt == "Of 10 questions: 4 at 1, 2 at 2, 0 at 3, 1 at 4, 3 missed."
    assert found["recall_at_k"].rows[-1] == ("4", "0.700", "0.700")
    assert found["causes"].rows == [("not indexed", "1", "33.3%"), ("no leg found it", "2", "66.7%")]
    assert ("ceiling at 4", "0.800") in found["funnel"].rows
    assert found["deltas"].alt == "1 of 3 questions gained, 1 lost, 1 stayed."
    assert [row[3] for row in found["deltas"].rows] == ["-0.250", "+0.500"]
    assert found["transitions"].alt == "1 questions moved up, 1 down, 1 kept their rank."
    assert found["trend"].rows[0][-1] == "documents, questions"


def test_without_a_reranker_the_funnel_has_no_stage_of_one() -> None:
    picture = of_run.funnel(SURVEY, has_reranker=False)
    assert picture is not None
    assert [row[0] for row in picture.rows][-2:] == ["within 4 when fused", "ceiling at 4"]


def test_ten_thousand_bars_are_drawn_as_some_hundred_and_the_rest_is_counted() -> None:
    picture = of_comparison.deltas(deltas(*([0.5, -0.25, 0.0, 0.125] * 2500)), metric="mrr@10")
    assert picture is not None
    assert (len(picture.rows), picture.n_left_out) == (40, 9960)
    assert len(canvas.render(picture, form="svg", theme="light")) < 60_000


@pytest.mark.parametrize(
    "nothing",
    [
        lambda: of_run.recall_at_k(cast("RunRow", SimpleNamespace(counts={}, timings={}, config={}))),
        lambda: of_run.latency(cast("RunRow", SimpleNamespace(counts={}, timings={}, config={}))),
        lambda: of_run.causes({"causes": {}, "n_missed": 0}),
        lambda: of_run.funnel({**SURVEY, "funnel": None}, has_reranker=True),
        lambda: of_comparison.deltas([], metric="mrr@10"),
        lambda: of_comparison.scatter([], metric="mrr@10"),
        lambda: of_history.trend(trend()),
        lambda: of_history.sparkline(trend()),
    ],
)
def test_where_there_are_no_numbers_there_is_no_plot(nothing: Any) -> None:
    assert nothing() is None
