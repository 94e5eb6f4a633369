"""The plots of one run, from its record (and its survey, where one is there): no row is read."""

from collections.abc import Callable, Mapping
from typing import Any

from backend.core import spreads
from backend.queries.runs import RunRow
from console.plots.picture import Picture, Theme, figure, questions

_FEW = 20


def recall_at_k(run: RunRow) -> Picture | None:
    """hit@k and recall@k over every k; None before there are numbers."""
    by_rank = run.counts.get("by_rank")
    if not by_rank or not by_rank["n"]:
        return None
    hits, recalls = spreads.hits(by_rank), by_rank["recall"]
    ks = list(range(1, len(hits) + 1))

    def draw(axes: Any, theme: Theme) -> None:
        marker = "o" if len(ks) <= _FEW else ""
        axes.plot(ks, hits, color=theme.main, marker=marker, markersize=4, linewidth=2)
        axes.plot(ks, recalls, color=theme.accent, marker=marker, markersize=4, linewidth=2, linestyle="--")
        axes.set_ylim(0, 1.04)
        axes.set_xlim(ks[0] - 0.3, ks[-1] + 0.3)
        axes.set_xlabel("k")
        axes.grid(axis="y", color=theme.line, linewidth=0.7)
        axes.set_axisbelow(True)
        if len(ks) <= _FEW:
            axes.set_xticks(ks)
        # Said at the lines where they part, else both in one line at the foot.
        axes.text(0.98, 0.16, "hit@k", color=theme.main, transform=axes.transAxes, ha="right")
        axes.text(0.98, 0.04, "recall@k (dashed)", color=theme.accent, transform=axes.transAxes, ha="right")

    return Picture(
        name="recall_at_k",
        title="Hit and recall over k",
        alt=(
            f"hit@k rises from {hits[0]:.3f} at 1 to {hits[-1]:.3f} at {ks[-1]}, recall@k from {recalls[0]:.3f} to "
            f"{recalls[-1]:.3f}, over {questions(by_rank['n'])}."
        ),
        head=("k", "hit@k", "recall@k"),
        rows=[(str(k), figure(hit), figure(recall)) for k, hit, recall in zip(ks, hits, recalls, strict=True)],
        draw=draw,
    )


def first_ranks(run: RunRow) -> Picture | None:
    """How many questions were first answered in each band of ranks."""
    by_rank = run.counts.get("by_rank")
    if not by_rank or not by_rank["n"]:
        return None
    bands, n = spreads.bands(by_rank), by_rank["n"]

    def draw(axes: Any, theme: Theme) -> None:
        names, counts = [name for name, _ in bands], [count for _, count in bands]
        colours = [theme.bad if name == spreads.MISS else theme.main for name in names]
        drawn = axes.bar(names, counts, color=colours, width=0.72)
        axes.bar_label(drawn, labels=[f"{count:,}" for count in counts], color=theme.ink, padding=2)
        axes.set_ylim(0, max(counts) * 1.14)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("rank of the first relevant result")

    said = ", ".join(f"{count:,} {'missed' if name == spreads.MISS else f'at {name}'}" for name, count in bands)
    return Picture(
        name="first_ranks",
        title="Where the first answer came",
        alt=f"Of {questions(n)}: {said}.",
        head=("Rank", "Questions", "Share"),
        rows=[(name, f"{count:,}", f"{count / n:.1%}") for name, count in bands],
        draw=draw,
    )


def latency(run: RunRow) -> Picture | None:
    """How long searches took, on a scale of powers; with p50 and p95."""
    counts = run.timings.get("spread")
    known = run.timings.get("latency_ms") or {}
    if not counts or not sum(counts) or not known:
        return None
    names = [*(_milliseconds(end) for end in spreads.LATENCY_ENDS), "more"]
    filled = [place for place, count in enumerate(counts) if count]
    shown = range(max(filled[0] - 1, 0), min(filled[-1] + 2, len(counts)))

    def draw(axes: Any, theme: Theme) -> None:
        axes.bar([names[place] for place in shown], [counts[place] for place in shown], color=theme.main, width=0.9)
        axes.set_ylim(0, max(counts) * 1.14)
        axes.set_xlabel(f"took at most (ms); p50 {known['p50']:,.0f}, p95 {known['p95']:,.0f}")
        axes.set_ylabel("searches")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.set_major_formatter("{x:,.0f}")

    return Picture(
        name="latency",
        title="How long a search took",
        alt=(
            f"Half took at most {known['p50']:,.0f} ms, 95 % at most {known['p95']:,.0f} ms, "
            f"of {known['n']:,} searches."
        ),
        head=("Up to (ms)", "Searches"),
        rows=[(names[place], f"{counts[place]:,}") for place in shown],
        draw=draw,
    )


def causes(survey: Mapping[str, Any]) -> Picture | None:
    """How many questions each cause lost; None where none is known."""
    found = list(survey["causes"].items())
    if not found:
        return None

    def draw(axes: Any, theme: Theme) -> None:
        _bars(axes, theme, [name for name, _ in found], [float(n) for _, n in found], [f"{n:,}" for _, n in found])

    return Picture(
        name="causes",
        title="Why questions were lost",
        alt=f"Of {questions(survey['n_missed'])} missed: " + ", ".join(f"{n:,} {name}" for name, n in found) + ".",
        head=("Cause", "Questions", "Share"),
        rows=[(name, f"{n:,}", f"{n / survey['n_missed']:.1%}") for name, n in found],
        draw=draw,
        height=40 + 30 * len(found),
    )


def funnel(survey: Mapping[str, Any], *, has_reranker: bool) -> Picture | None:
    """Recall from stage to stage, with the ceiling: what the pool would give in perfect order."""
    steps = survey["funnel"]
    if steps is None:
        return None
    k, ceiling = survey["k"], survey["ceiling"]
    rows = [
        ("a leg found it", steps["leg"]),
        ("in the rerank pool" if has_reranker else "in a pool for reranking", steps["pool"]),
        (f"within {k} when fused", steps["before"]),
        *([(f"within {k} when reranked", steps["after"])] if has_reranker else []),
    ]

    def draw(axes: Any, theme: Theme) -> None:
        _bars(axes, theme, [name for name, _ in rows], [value for _, value in rows], [figure(v) for _, v in rows])
        axes.set_xlim(0, 1.16)
        if ceiling is not None:
            axes.axvline(ceiling, color=theme.accent, linestyle="--", linewidth=1.5)
            axes.set_xlabel(f"dashed: the ceiling at {k}, {ceiling:.3f}")

    said = ", ".join(f"{name} {value:.3f}" for name, value in rows)
    told = "" if ceiling is None else f" In perfect order the pool would reach recall@{k} {ceiling:.3f}."
    return Picture(
        name="funnel",
        title="From stage to stage",
        alt=f"Share of what is expected: {said}.{told}",
        head=("Stage", "Recall"),
        rows=[
            *((name, figure(value)) for name, value in rows),
            *([(f"ceiling at {k}", figure(ceiling))] if ceiling is not None else []),
        ],
        draw=draw,
        height=60 + 36 * len(rows),
    )


def _bars(axes: Any, theme: Theme, names: list[str], values: list[float], labels: list[str]) -> None:
    """Horizontal, the first on top, each with its number."""
    drawn = axes.barh(names, values, color=theme.main, height=0.66)
    axes.bar_label(drawn, labels=labels, color=theme.ink, padding=3)
    axes.invert_yaxis()
    axes.set_xlim(0, max(values) * 1.16 or 1)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)


def _milliseconds(end: float) -> str:
    return f"{end / 1000:g}k" if end >= 1000 else f"{end:g}"


OF_RECORD: dict[str, Callable[[RunRow], Picture | None]] = {
    "recall_at_k": recall_at_k,
    "first_ranks": first_ranks,
    "latency": latency,
}
OF_SURVEY: dict[str, Callable[[RunRow, Mapping[str, Any]], Picture | None]] = {
    "funnel": lambda run, survey: funnel(survey, has_reranker=bool(run.config.get("reranker"))),
    "causes": lambda _, survey: causes(survey),
}


def all_of(run: RunRow, survey: Mapping[str, Any] | None) -> list[Picture]:
    """Those that can be drawn, in the order of the page."""
    found = [build(run) for build in OF_RECORD.values()]
    if survey is not None:
        found += [build(run, survey) for build in OF_SURVEY.values()]
    return [one for one in found if one is not None]
