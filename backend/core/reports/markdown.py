"""Markdown that fits a comment on a pull request (65,536 characters is the narrowest limit)."""

from collections.abc import Iterable, Sequence

from backend.core.reports.report import Line, Report, Status

MOST_CHARACTERS = 60_000
_MOST_QUESTIONS = 20
_LONGEST = 160


def to_markdown(report: Report) -> str:
    """The headline and the verdict first; lists are cut, and say by how much."""
    parts = [
        f"### {code(report.name)} on {code(report.set_name)}",
        _headline(report),
        *(_against(report)),
        table(["metric", "mean", "95 % interval"], [[code(m.key), m.shown, m.interval] for m in report.metrics]),
    ]
    if report.by_tag:
        rows = [[code(one.tag or "(no tag)"), str(one.n_questions), one.metric.shown] for one in report.by_tag[:20]]
        parts.append(folded("By tag", table(["tag", "questions", report.primary], rows)))
    if report.causes:
        parts.append(
            folded(
                "Where it was lost",
                table(["cause", "questions"], [[cause, str(n)] for cause, n in report.causes.items()]),
            )
        )
    for title, status in (("Missed", Status.MISSED), ("Errors", Status.ERROR)):
        parts.append(_questions(title, report.of(status)))
    if report.advice:
        parts.append("\n".join(["**Advice**", "", *(f"- {text(one)}" for one in report.advice)]))
    parts.append(folded("Settings", table(["", ""], [[text(name), code(value)] for name, value in report.facts])))
    return fitted(part for part in parts if part)


def _headline(report: Report) -> str:
    if report.headline is None or report.headline.mean is None:
        return f"**n/a** ({report.state}). {text(report.reason)}".rstrip()
    interval = f", 95 % interval {report.headline.interval}" if report.headline.interval else ""
    notes = "".join(f"\n\n> {text(note)}" for note in report.notes)
    return f"**{report.primary} {report.headline.shown}**{interval}{notes}"


def _against(report: Report) -> list[str]:
    against = report.against
    if against is None:
        return []
    said = [
        f"**{against.verdict}** than {code(against.baseline)}"
        if against.verdict in {"better", "worse"}
        else f"**{against.verdict}**, beside {code(against.baseline)}",
        "",
        text(against.sentence),
    ]
    said += [f"\n> {text(one)}" for one in against.warnings]
    rows = [[code(key), f"{delta:+.3f}", interval] for key, delta, interval in against.deltas]
    return ["\n".join(said), folded("Differences", table(["metric", "delta", "95 % interval"], rows)) if rows else ""]


def _questions(title: str, lines: Sequence[Line]) -> str:
    if not lines:
        return ""
    # Those that must not be missed come first.
    ordered = sorted(lines, key=lambda line: not line.must_pass)
    rows = [
        [
            str(line.number),
            ("**must pass** " if line.must_pass else "") + code(line.question or line.key),
            str(line.first_rank or ""),
            text(line.detail),
            code(line.instead[0]) if line.instead else "",
        ]
        for line in ordered[:_MOST_QUESTIONS]
    ]
    more = len(lines) - len(rows)
    shown = table(["#", "question", "rank", "why", "instead"], rows)
    return folded(f"{title}: {len(lines)}", shown + (f"\n\nand {more} more" if more else ""))


def fitted(parts: Iterable[str]) -> str:
    out = ""
    for part in parts:
        if len(out) + len(part) > MOST_CHARACTERS:
            return out + "\nThe rest is left out: it would not fit a comment.\n"
        out += part + "\n\n"
    return out.rstrip() + "\n"


def folded(title: str, body: str) -> str:
    return f"<details><summary>{text(title)}</summary>\n\n{body}\n\n</details>"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(given: str) -> str:
    """Text of other people: in a code span no mention, link, image or tag of theirs comes to life."""
    plain = " ".join(given.split()).replace("`", "'").replace("|", "\\|")
    if len(plain) > _LONGEST:
        plain = plain[: _LONGEST - 1].rstrip("\\") + "…"
    return f"`{plain}`" if plain else ""


def text(given: str) -> str:
    plain = " ".join(given.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "\\|`*_[]":
        plain = plain.replace(sign, "\\" + sign)
    return plain.replace("@", "@\u200b").replace("#", "#\u200b")
