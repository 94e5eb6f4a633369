"""One HTML file with everything in it: no script, no font, no picture from elsewhere, and its own policy says so."""

from collections.abc import Iterable, Sequence
from html import escape

from backend.core.reports import svg
from backend.core.reports.report import Line, Report, Status

MOST_LINES = 2000
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #2f6f9f; --bad: #b3261e; --ok: #1b7f4b; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.headline { font-size: 1.6rem; font-weight: 600; } .note { border-left: 4px solid var(--bar); padding-left: .8rem; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; padding: .3rem 0; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; } svg text { fill: currentColor; }
.bar, .dot { fill: var(--bar); } .range { stroke: var(--bar); stroke-width: 3; } .grid { stroke: var(--line); }
.tick { font-size: 10px; } .missed, .error { color: var(--bad); } .found { color: var(--ok); }
"""


def to_html(report: Report) -> str:
    """Headline, verdict, plots, tags, then the questions: those missed first, the first two thousand."""
    title = f"{report.name} on {report.set_name}"
    body = [
        f"<h1>{escape(title)}</h1>",
        _headline(report),
        *(f'<p class="note">{escape(note)}</p>' for note in report.notes),
        _against(report),
        _metrics(report),
        _plots(report),
        _tags(report),
        _list("Advice", report.advice),
        _table("Settings", ["", ""], [[_cell(name), _cell(value)] for name, value in report.facts]),
        _lines(report),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _headline(report: Report) -> str:
    if report.headline is None or report.headline.mean is None:
        return f'<p class="headline">n/a ({escape(report.state)})</p><p>{escape(report.reason)}</p>'
    interval = f" <small>95 % interval {report.headline.interval}</small>" if report.headline.interval else ""
    return f'<p class="headline">{escape(report.primary)} {report.headline.shown}{interval}</p>'


def _against(report: Report) -> str:
    against = report.against
    if against is None:
        return ""
    rows = [
        [_cell(key), _cell(f"{delta:+.3f}", number=True), _cell(interval, number=True)]
        for key, delta, interval in against.deltas
    ]
    return (
        f"<h2>Beside {escape(against.baseline)}: {escape(against.verdict)}</h2><p>{escape(against.sentence)}</p>"
        + "".join(f'<p class="note">{escape(one)}</p>' for one in against.warnings)
        + (_table("", ["metric", "delta", "95 % interval"], rows) if rows else "")
    )


def _metrics(report: Report) -> str:
    rows = [[_cell(one.key), _cell(one.shown, number=True), _cell(one.interval, number=True)] for one in report.metrics]
    return _table("Metrics", ["metric", "mean (scored of all)", "95 % interval"], rows)


def _plots(report: Report) -> str:
    spans = [
        (one.key, one.low, one.mean, one.high)
        for one in report.metrics
        if one.mean is not None and one.low is not None and one.high is not None
    ]
    plots = []
    if spans:
        plots.append(("Means with their 95 % intervals", svg.intervals(spans, title="Means with 95 % intervals")))
    if report.ranks:
        rows = [(name, float(n)) for name, n in report.ranks]
        plots.append(("First relevant result, questions by rank", svg.bars(rows, title="Questions by rank")))
    if report.causes:
        rows = [(name, float(n)) for name, n in report.causes.items()]
        plots.append(("Where questions were lost", svg.bars(rows, title="Questions by cause of loss")))
    return "".join(f"<h2>{escape(title)}</h2>{plot}" for title, plot in plots)


def _tags(report: Report) -> str:
    rows = [
        [
            _cell(one.tag or "(no tag)"),
            _cell(str(one.n_questions), number=True),
            _cell(one.metric.shown, number=True),
            _cell(one.metric.interval, number=True),
        ]
        for one in report.by_tag
    ]
    return _table("By tag", ["tag", "questions", report.primary, "95 % interval"], rows) if rows else ""


def _lines(report: Report) -> str:
    order = (Status.MISSED, Status.ERROR, Status.FOUND, Status.LEFT_OUT)
    lines = [line for status in order for line in report.of(status)]
    more = len(lines) - MOST_LINES
    said = f"<p>{more:,} more questions are in the run's CSV and JSON exports.</p>" if more > 0 else ""
    titles = ["#", "question", "", "rank", "why", "found, or instead"]
    return _table("Questions", titles, [_line(line) for line in lines[:MOST_LINES]]) + said


def _line(line: Line) -> list[str]:
    marks = [*(["must pass"] if line.must_pass else []), *line.tags]
    question = escape(line.question or line.key) + (f"<br><small>{escape(', '.join(marks))}</small>" if marks else "")
    kind = line.status.value.replace(" ", "-")
    return [
        _cell(str(line.number), number=True),
        f"<td>{question}</td>",
        f'<td class="{kind}">{escape(line.status.value)}</td>',
        _cell(str(line.first_rank or ""), number=True),
        _cell(line.detail),
        _cell(line.found or "\n".join(line.instead)),
    ]


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    return f"<h2>{escape(title)}</h2><ul>{''.join(f'<li>{escape(one)}</li>' for one in items)}</ul>"


def _table(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in titles)
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f"{heading}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, *, number: bool = False) -> str:
    shown = escape(text).replace("\n", "<br>")
    return f'<td class="number">{shown}</td>' if number else f"<td>{shown}</td>"
