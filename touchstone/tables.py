"""The tables that the commands print: lines of text from the values that the API answers. Imports nothing of ours.

Runs and results are mappings in the shape of `GET runs/{id}` and `GET runs/{id}/results`.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

Values = Mapping[str, Any]

NOT_AVAILABLE, MISS, ERROR, NO_FIGURE = "n/a", "miss", "error", "-"
# What a run that scored nothing is called: a mode that could not run at all.
_WITHOUT_NUMBERS = frozenset({"unavailable", "failed"})
_SHOWN_HITS = (1, 3, 5)
_QUERY_WIDTH = 60
_MOST_REASONS = 5


def questions(runs: Sequence[Values], results: Sequence[Sequence[Values]], *, query_width: int = _QUERY_WIDTH) -> str:
    """A line per question with the rank of its first correct result in each run; `results` in the order of `runs`.

    A cell is the rank, `miss`, `error`, or what else became of the question; a mode that could not run is `n/a`.
    """
    by_ordinal = [{row["ordinal"]: row for row in rows} for rows in results]
    asked: dict[int, str] = {}
    for rows in by_ordinal:
        for ordinal, row in rows.items():
            asked.setdefault(ordinal, _asked(row))
    ordinals = sorted(asked)
    cells = [[cell(run, rows.get(ordinal)) for run, rows in zip(runs, by_ordinal, strict=True)] for ordinal in ordinals]
    queries = [fitted(asked[ordinal], query_width) for ordinal in ordinals]
    widths = [
        max(len(run["name"]), *(len(row[index]) for row in cells), 8) if cells else len(run["name"])
        for index, run in enumerate(runs)
    ]
    width = max([len("query"), *map(_width, queries)])
    number = max(4, len(str(len(ordinals))) + 2)
    lines = [_question_line("#", "query", [run["name"] for run in runs], widths, number=number, width=width)]
    for ordinal, query, line in zip(ordinals, queries, cells, strict=True):
        lines.append(_question_line(str(ordinal + 1), query, line, widths, number=number, width=width))
    notes = [*_errors(runs, by_ordinal), *_legend(cells)]
    return "\n".join([*lines, *(["", *notes] if notes else [])])


def aggregate(runs: Sequence[Values]) -> str:
    """A line per run with its means, over how many questions, and why a run has none."""
    if not runs:
        return ""
    first = runs[0]
    correct = "document" if first["level"] == "document" else "chunk"
    hits = [k for k in _SHOWN_HITS if k in first["ks"]] or list(first["ks"])
    columns = [(f"hit@{k}", f"hit@{k}", 2) for k in hits if k <= first["top_k"]]
    reciprocal = f"mrr@{min(10, first['top_k'])}"
    columns.append(("MRR", reciprocal, 3))
    if first["primary_metric"] not in {key for _, key, _ in columns}:
        columns.append((first["primary_metric"], first["primary_metric"], 3))
    name_width = max(13, *(len(run["name"]) for run in runs))
    evaluated = [_evaluated(run) for run in runs]
    last = max(len("evaluated"), *map(len, evaluated))
    lines = [
        f"Aggregate metrics (rank of first correct {correct}):",
        f"{'mode':<{name_width}}"
        + "".join(f"{title:>{max(5, len(title)) + 3}}" for title, _, _ in columns)
        + f"  {'evaluated':>{last}}",
    ]
    for run, n in zip(runs, evaluated, strict=True):
        figures = [(title, figure(run["metrics"].get(key), decimals=decimals)) for title, key, decimals in columns]
        line = f"{run['name']:<{name_width}}" + "".join(f"{text:>{max(5, len(title)) + 3}}" for title, text in figures)
        lines.append(f"{line}  {n:>{last}}{_reason(run)}".rstrip())
    return "\n".join(lines)


def taken_over(runs: Sequence[Values]) -> str:
    """The sentence for results that earlier runs gave, which nothing has changed for since; empty where all were
    asked for."""
    n_reused = sum(int(run["cost"].get("reused", 0)) for run in runs)
    if not n_reused:
        return ""
    earlier = list(dict.fromkeys(run["origin"]["reused_from"] for run in runs if run["origin"].get("reused_from")))
    where = f"{'run' if len(earlier) == 1 else 'runs'} {', '.join(earlier)}" if earlier else "an earlier run"
    n_all = sum(run["n_questions"] for run in runs)
    return (
        f"{n_reused} of {n_all} results were taken over from {where}: nothing has changed since. Ask again with"
        " --no-cache."
    )


def cell(run: Values, result: Values | None) -> str:
    """What became of one question in one run, in a word."""
    if run["state"] in _WITHOUT_NUMBERS:
        return NOT_AVAILABLE
    if result is None or result["outcome"] == "not_run":
        return "not run"
    outcome = result["outcome"]
    if outcome in {"error", "cancelled"}:
        return str(outcome)
    if result["found"] is None:
        return NO_FIGURE
    return str(result["first_rank"]) if result["found"] else MISS


def figure(metric: Values | None, *, decimals: int) -> str:
    """A mean, rounded for people; `n/a` where nothing was scored."""
    if metric is None or metric["mean"] is None:
        return NOT_AVAILABLE
    return f"{metric['mean']:.{decimals}f}"


def grid(titles: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> str:
    """Columns as wide as they need to be; those numbered in `right` are set to the right."""
    texts = [[str(value) for value in row] for row in rows]
    widths = [max(_width(column[index]) for column in [list(titles), *texts]) for index in range(len(titles))]
    lines = []
    for row in [list(titles), *texts]:
        parts = [
            " " * (width - _width(text)) + text if index in right else text + " " * (width - _width(text))
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def counted(n: int, noun: str) -> str:
    """`1 question`, `2 questions`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def fitted(text: str, width: int) -> str:
    """The text on one line, cut with an ellipsis where it is wider than `width` columns of a terminal."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if _width(text) <= width:
        return text
    kept, used = "", 0
    for char in text:
        used += _width(char)
        if used > width - 1:
            break
        kept += char
    return f"{kept.rstrip()}…"


def _question_line(
    number_text: str, query: str, cells: Sequence[str], widths: Sequence[int], *, number: int, width: int
) -> str:
    padded = query + " " * (width - _width(query))
    shown = "  ".join(f"{text:>{wide}}" for text, wide in zip(cells, widths, strict=True))
    return f"{number_text:<{number}}{padded} {shown}".rstrip()


def _asked(row: Values) -> str:
    """A deleted set leaves its questions' keys only."""
    return str(row["question"] if row["question"] is not None else row["key"])


def _evaluated(run: Values) -> str:
    """How many of the questions that can be scored were."""
    counts = run["counts"]
    n_scored = counts.get("n_scored", 0)
    if run["metrics"]:
        one = run["metrics"].get(run["primary_metric"]) or next(iter(run["metrics"].values()))
        return f"{one['n']:,} of {one['n_total']:,}"
    return f"{n_scored:,} of {counts.get('n_eligible') or run['n_questions']:,}"


def _reason(run: Values) -> str:
    if run["state"] in _WITHOUT_NUMBERS:
        reason = fitted(run["reason"].strip().rstrip(".") or "nothing could be scored", 200)
        return f"   {reason} ({run['code']})" if run["code"] else f"   {reason}"
    notes = [run["state"]] if run["state"] in {"cancelled", "pending", "running"} else []
    if run["corpus_changed"]:
        notes.append("the documents changed while it ran")
    return f"   ({'; '.join(notes)})" if notes else ""


def _errors(runs: Sequence[Values], results: Sequence[Mapping[int, Values]]) -> list[str]:
    """For each run that has them: which questions ended in an error, by code and reason."""
    lines = []
    for run, rows in zip(runs, results, strict=True):
        if run["state"] in _WITHOUT_NUMBERS:
            continue
        groups: dict[tuple[str, str], list[int]] = {}
        for ordinal, row in sorted(rows.items()):
            if row["outcome"] in {"error", "not_run"} and row["code"]:
                groups.setdefault((row["code"], row["reason"]), []).append(ordinal + 1)
        ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1]))
        for (code, reason), numbers in ordered[:_MOST_REASONS]:
            shown = ", ".join(f"#{number}" for number in numbers[:8]) + (", …" if len(numbers) > 8 else "")
            lines.append(f"{run['name']}: {len(numbers)} × {code} ({shown})  {fitted(reason, 160)}".rstrip())
        if len(ordered) > _MOST_REASONS:
            lines.append(f"{run['name']}: and {len(ordered) - _MOST_REASONS} more reasons")
    return lines


def _legend(cells: Sequence[Sequence[str]]) -> list[str]:
    if any(text == NO_FIGURE for row in cells for text in row):
        return [f"{NO_FIGURE}  nothing is expected of this question: it is in no figure"]
    return []


def _width(text: str) -> int:
    """Columns of a terminal: combining marks take none, East Asian wide characters two."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
