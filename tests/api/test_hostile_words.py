"""Names and texts of people who mean harm, on every page, in every file that leaves, and in the headers of both."""

import csv
import io
import re
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from backend.models import Alert, AlertTarget, Draft, Gate, Generation, Role, Run, Schedule, Token, Workspace
from console.plots.of_run import OF_RECORD, OF_SURVEY
from tests import engine
from tests.api.access_matrix import OPEN, ROWS
from tests.api.addresses import filled, ids_of, routes
from tests.api.conftest import API, World
from tests.api.test_console import client_as
from tests.integration.search_rows import Row, make_base

ROOT = Path(__file__).resolve().parents[2]
# The worker opens transactions of its own.
pytestmark = pytest.mark.django_db(transaction=True)
# Breaks out of text, of an attribute in either quotes, of a script, of a comment and of a code span.
EVIL = (
    "</title></script></textarea>--><img src=x onerror=alert(1)>`\" onmouseover=\"alert(2)' onfocus='alert(3) x=`"
    "![p](//p.example/p.png)"
)
MARKUP = "<script>alert(1)</script><b>bold</b>"


class Elements(HTMLParser):
    """What a browser would make of a page: its elements with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def faults(text: str) -> list[tuple[str, dict[str, str]]]:
    """Elements that came out of somebody's words."""
    return [
        (tag, attributes)
        for tag, attributes in Elements(text).found
        if any(name.startswith("on") for name in attributes)
        or (tag == "img" and attributes.get("src") in {"x", "//p.example/p.png"})
        or (tag == "script" and "src" not in attributes)
        or attributes.get("href", "").lower().lstrip().startswith(("javascript:", "//", "data:"))
    ]


@pytest.fixture
def evil(world: World) -> World:
    """Everything that has a name has an evil one."""
    base = make_base(
        Row(path=f"{EVIL.replace('/', '_')}.md", text=f"The leave is thirty days. {EVIL} {MARKUP}", collection=EVIL),
        workspace=world.workspace,
        name=EVIL,
        embedder="none",
        dimensions=None,
    )
    questions = [
        {"id": f"q1{EVIL}", "question": f"How long is the leave? {EVIL}", "expected": ["a.md"], "tags": [EVIL[:90]]},
        {"id": "q2", "question": MARKUP, "expected": [f"{EVIL.replace('/', '_')}.md"], "notes": EVIL},
    ]
    made = world.client.post(f"{API}/question-sets", {"name": EVIL, "questions": questions})
    assert made.status_code == 201, made.json()
    return World(workspace=world.workspace, client=world.client, base=base, set_id=made.json()["id"])


@pytest.fixture
def ids(evil: World) -> dict[str, str]:
    assert evil.evaluate().status_code == 202
    engine.drain()
    run = Run.objects.get(workspace=evil.workspace)
    found = ids_of(evil)
    Run.objects.update(label=EVIL)
    Schedule.objects.update(name=EVIL)
    Gate.objects.update(name=EVIL)
    told = {"sentences": [EVIL], "because": [EVIL], "lost": [{"id": EVIL, "question": EVIL}]}
    Alert.objects.update(title=EVIL, detail=told, recovery={"title": EVIL, **told})
    AlertTarget.objects.update(name=EVIL)
    Token.objects.update(name=EVIL)
    Draft.objects.update(question=EVIL)
    Generation.objects.update(llm=EVIL[:100])
    Workspace.objects.update(name=EVIL)
    return {**found, "run_id": str(run.id), "evaluation_id": str(run.evaluation_id)}


def test_no_page_runs_what_a_name_says(evil: World, ids: dict[str, str]) -> None:
    admin = client_as(Role.ADMIN, Workspace(id=evil.workspace.id, name="a"))
    seen = 0
    for route in routes():
        if route.startswith("api/") or ROWS[route].get("get", OPEN) == OPEN:
            continue
        path = filled(route, ids)
        for query in ({}, {"q": EVIL, "text": EVIL, "tag": EVIL, "outcome": EVIL, "metric": EVIL, "next": EVIL}):
            answer = admin.get(path, query)
            assert answer.status_code < 500, (path, query)
            if answer.status_code != 200 or "html" not in answer.headers["Content-Type"]:
                continue
            html = answer.content.decode()
            assert faults(html) == [], (path, query)
            seen += "onerror" in html
    assert seen > 20, "the words are on the pages, as words"


def test_no_plot_runs_what_a_name_says(evil: World, ids: dict[str, str]) -> None:
    """An SVG is a document of its own, and a name is no formula to set."""
    Run.objects.update(name="$\\frac{$ " + EVIL[:90], label="$x^")
    admin = client_as(Role.ADMIN, Workspace(id=evil.workspace.id, name="a"))
    drawn = 0
    for name in (*OF_RECORD, *OF_SURVEY):
        answer = admin.get(f"/runs/{ids['run_id']}/plots/{name}.svg")
        assert answer.status_code in {200, 404}, name
        if answer.status_code == 200:
            drawn += 1
            assert faults(answer.getvalue().decode()) == [], name
    assert drawn


FORMATS = ("json", "csv", "jsonl", "trec_run", "trec_qrels", "junit", "markdown", "html")


def test_no_file_that_leaves_runs_what_a_name_says(evil: World, ids: dict[str, str]) -> None:
    for form in FORMATS:
        answer = evil.client.get(f"{API}/runs/{ids['run_id']}/export", {"format": form})
        if form == "trec_qrels":
            assert answer.status_code == 422, "its columns are parted by spaces: these ids cannot be said"
            continue
        assert answer.status_code == 200, form
        text = answer.getvalue().decode()
        shown = {"html": text, "markdown": MarkdownIt("gfm-like", {"linkify": False}).render(text)}.get(form, "")
        assert faults(shown) == [], form
        assert form not in {"html", "markdown"} or "onerror" in shown
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        told = Message()
        told["Content-Disposition"] = answer.headers["Content-Disposition"]
        assert re.fullmatch(r"[\w.-]+", told.get_filename() or ""), told["Content-Disposition"]
        assert told["Content-Disposition"].startswith("attachment"), "no file is a page of ours"
    for form in ("full", "csv"):
        answer = evil.client.get(f"{API}/question-sets/{evil.set_id}/export", {"format": form, "lossy": "true"})
        assert answer.status_code == 200, answer.getvalue()
        assert re.fullmatch(r'attachment; filename="[\w.-]+"', answer.headers["Content-Disposition"])


FORMULAS = ("=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1", '=HYPERLINK("https://x.example")', " =1")


def test_no_cell_that_leaves_is_a_formula(world: World) -> None:
    base = make_base(
        *(Row(path=f"{formula.strip()}.md", text=f"leave {formula}") for formula in ("=1+1", "@SUM(A1)")),
        workspace=world.workspace,
        name="formulas",
        embedder="none",
        dimensions=None,
    )
    questions = [
        {"id": f"{formula}{number}", "question": f"{formula} leave", "expected": ["=1+1.md"], "tags": ["=1+1", "@tag"]}
        for number, formula in enumerate(FORMULAS)
    ]
    made = world.client.post(f"{API}/question-sets", {"name": "=set", "questions": questions})
    assert made.status_code == 201, made.json()
    evil = World(workspace=world.workspace, client=world.client, base=base, set_id=made.json()["id"])
    assert evil.evaluate().status_code == 202
    engine.drain()
    run = Run.objects.get(workspace=world.workspace)
    for path in (f"runs/{run.id}", f"question-sets/{evil.set_id}"):
        text = world.client.get(f"{API}/{path}/export", {"format": "csv"}).getvalue().decode()
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert any("SUM" in cell for cell in cells), path
        # A negative number is one.
        risky = [one for one in cells if one.strip()[:1] in {*"=+-@", "\uff1d"} and not re.fullmatch(r"-?[\d.]+", one)]
        assert risky == [], path


def test_a_name_that_turns_the_writing_around_turns_only_itself(world: World) -> None:
    """Such as `invoice\u202etxt.exe`: blocks keep it to themselves anyway, what stands within a line has a rule."""
    style = (ROOT / "console" / "static" / "console" / "style.css").read_text()
    isolated = re.search(r"([^{}]*)\{ unicode-bidi: isolate; \}", style)
    assert isolated
    assert {"a", "code", "span", "strong", "small"} <= {one.strip() for one in isolated[1].split("*/")[-1].split(",")}
    turned = "invoice\u202etxt.exe\u2066"
    made = world.client.post(
        f"{API}/knowledge-bases", {"name": turned, "settings": {"embedding": {"embedder": "none"}}}
    )
    assert made.status_code == 201
    page = client_as(Role.VIEWER, world.workspace).get("/bases").content.decode()
    (tag,) = set(re.findall(rf"<(\w+)[^<>]*>\s*{turned}", page))
    assert tag in {"a", "code", "span", "strong", "small", "td", "h2", "h3", "p", "li"}
