"""Reports are read by machines and by people, and what others wrote comes to life in none of them."""

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from backend.core.reports import (
    Against,
    Line,
    Metric,
    Report,
    Status,
    TagFigure,
    to_html,
    to_junit,
    to_markdown,
)

EVIL = "<script>alert(1)</script> | `x` @team #1 ![a](http://e) ]]> & \x00\x0b\ud7ff 😀"
MRR = Metric(key="mrr@10", mean=0.81249, low=0.7, high=0.9, n=498, n_total=500)


def report(**changes: object) -> Report:
    plain = Report(
        run_id="r1",
        name="hybrid",
        set_name="golden@2",
        state="scored",
        reason="",
        level="document",
        k=10,
        primary="mrr@10",
        metrics=(MRR, Metric(key="hit@1", mean=None, low=None, high=None, n=0, n_total=0)),
        facts=(("mode", "hybrid"), ("label", EVIL)),
        lines=(
            Line(
                number=1, key="a", question="Found one?", status=Status.FOUND, first_rank=1, found="a.md", latency_ms=5
            ),
            Line(
                number=2,
                key="b",
                question=EVIL,
                status=Status.MISSED,
                first_rank=37,
                detail="below k",
                instead=(EVIL,),
                tags=("x",),
                must_pass=True,
            ),
            Line(number=3, key="c", question="Broken", status=Status.ERROR, detail="Timed out (PROVIDER_TIMEOUT)"),
            Line(number=4, key="d", question="None", status=Status.LEFT_OUT, detail="unanswerable"),
        ),
        ranks=(("1", 1), ("missed", 1)),
        causes={"below k": 1},
        by_tag=(TagFigure(tag=EVIL, n_questions=1, metric=MRR),),
        notes=("The documents changed.",),
        advice=("Rerank.",),
        finished_at="2026-01-31T12:00:00",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # test values


def test_a_junit_reader_finds_each_question_under_its_outcome() -> None:
    suites = JUnitXml.fromstring(to_junit(report()).encode())
    (suite,) = suites
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (4, 1, 1, 1)
    found = {case.name: [type(one) for one in case.result] for case in suite}
    assert list(found.values()) == [[], [Failure], [Error], [Skipped]]
    missed = list(suite)[1]
    assert missed.result[0].message == "first found at rank 37: below k"
    assert missed.result[0].type == "must_pass"
    told = suite.properties()  # type: ignore[no-untyped-call]  # the reader is half typed
    assert {one.name: one.value for one in told}["mrr@10"] == "0.812 (498 of 500)"


def test_junit_is_well_formed_whatever_the_questions_hold() -> None:
    every = "".join(chr(number) for number in [*range(0x20), 0x7F, 0xFFFE, 0xFFFF, 0x1F600]) + ']]>&<"'
    lines = tuple(replace(line, question=every, detail=every, key=every) for line in report().lines)
    root = ET.fromstring(to_junit(report(lines=lines, set_name=every)))
    assert len(root.findall(".//testcase")) == 4


def test_markdown_says_the_headline_over_how_many_and_keeps_others_text_in_code() -> None:
    text = to_markdown(report(against=Against(baseline="old", verdict="worse", sentence="Worse: -0.1.")))
    assert "**mrr@10 0.812 (498 of 500)**, 95 % interval 0.700 to 0.900" in text
    assert "**worse** than `old`" in text
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert "<script" not in outside
    assert not re.search(r"@team|#1\b|!\[", outside)
    rows = [line for line in text.splitlines() if line.startswith("| 2 ")]
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 6, "text does not add a column"


def test_markdown_of_many_misses_fits_a_comment_and_says_how_many_more() -> None:
    missed = replace(report().lines[1], question="long " * 100)
    text = to_markdown(report(lines=tuple(replace(missed, number=at) for at in range(5000))))
    assert len(text) < 65_536
    assert "and 4980 more" in text
    tags = tuple(TagFigure(tag="t" * 200, n_questions=1, metric=MRR) for _ in range(500))
    facts = tuple(("x" * 3000, "y") for _ in range(100))
    cut = to_markdown(report(by_tag=tags, facts=facts))
    assert len(cut) < 65_536
    assert "left out" in cut


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href", "srcset"}]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_the_page_holds_all_it_needs_and_runs_nothing() -> None:
    page = to_html(report(against=Against(baseline=EVIL, verdict="better", sentence=EVIL, warnings=(EVIL,))))
    seen = _Seen()
    seen.feed(page)
    assert (seen.addresses, seen.handlers) == ([], [])
    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)
    assert seen.tags.count("svg") == 3
    assert "default-src 'none'" in page
    assert "url(" not in page
    assert "@import" not in page
    assert "0.812 (498 of 500)" in page


def test_a_plot_is_well_formed_and_says_what_it_shows() -> None:
    page = to_html(report())
    for plot in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        root = ET.fromstring(plot)
        assert root.attrib["aria-label"]


def test_a_run_without_a_number_says_why() -> None:
    silent = report(metrics=(), state="unavailable", reason="The embedder does not answer.")
    assert "n/a" in to_html(silent)
    assert "The embedder does not answer." in to_markdown(silent)


@pytest.mark.parametrize("module", ["backend.core.reports"])
def test_reports_load_no_framework(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('django', 'celery') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "[]\n"
