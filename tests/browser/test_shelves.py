"""Documents, question sets, search and history, with the handbook that the tests before loaded and evaluated."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import Windows
from tests.browser.pages import check
from tests.browser.test_results import evaluated, handbook
from tests.e2e.cluster import Cluster

_BROKEN = (
    b'{"question": "How long is parental leave?", "expected": ["policies/parental-leave.md"]}\n'
    b'{"question": "", "expected": ["a.md"]}\n'
    b"{oops\n"
)
_PATIENCE = 60_000


@pytest.fixture
def shelf(windows: Windows, service: Cluster) -> Page:
    """A window at the handbook, in which htmx failed to load: links and forms do it all."""
    page = windows.open(htmx=False)
    handbook(page, service, with_set=False)
    page.goto("/bases")
    page.get_by_role("link", name="handbook", exact=True).click()
    return page


def test_the_pages_of_a_base(shelf: Page) -> None:
    expect(shelf.get_by_role("heading", level=1, name="handbook")).to_be_visible()
    address = shelf.url
    check(shelf, "base")
    shelf.get_by_role("link", name="Sources", exact=True).click()
    expect(shelf).to_have_url(f"{address}/sources")
    check(shelf, "")  # a picture of it would show where this machine keeps its files
    shelf.get_by_role("link", name="Indexes", exact=True).click()
    expect(shelf).to_have_url(f"{address}/indexes")
    check(shelf, "base-indexes")
    shelf.get_by_role("link", name="Settings", exact=True).click()
    shelf.get_by_label("Characters").fill("600")
    shelf.get_by_role("button", name="Save").click()
    expect(shelf.get_by_text("This builds a new Index")).to_be_visible()
    check(shelf, "base-settings")
    shelf.get_by_role("link", name="Leave it as it is").click()
    expect(shelf.get_by_label("Characters")).to_have_value("1200")
    shelf.goto(f"{address}/delete")
    check(shelf, "confirm")
    shelf.goto("/bases")
    check(shelf, "bases")


def test_a_folder_and_files_are_dropped_and_seen_to_be_indexed(page: Page, tmp_path: Path) -> None:
    (tmp_path / "docs" / "deeper").mkdir(parents=True)
    for name in ("docs/canteen.md", "docs/deeper/parking.md", "gate.md", "lift.md"):
        (tmp_path / name).write_text(f"# {name}\n\nWhat is to be known of it.")
    page.goto("/bases/new")
    page.get_by_label("Name").fill("canteen")
    page.get_by_role("button", name="Make it").click()
    _drop(page, tmp_path / "docs", tmp_path / "gate.md", tmp_path / "lift.md")
    expect(page.get_by_text("4 documents taken in")).to_be_visible()
    documents = page.get_by_role("region", name="Documents")
    for path in ("docs/canteen.md", "docs/deeper/parking.md", "gate.md", "lift.md"):
        expect(documents.get_by_text(path, exact=True)).to_be_visible()
    expect(page.locator("td .chip.good")).to_have_count(4, timeout=_PATIENCE)


def _drop(page: Page, *files: Path) -> None:
    """As a person drags them in from their own windows."""
    place = page.locator("form[data-drop]").bounding_box()
    assert place is not None
    hand = page.context.new_cdp_session(page)
    dragged = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        hand.send(
            "Input.dispatchDragEvent", {"type": kind, "x": place["x"] + 20, "y": place["y"] + 20, "data": dragged}
        )


def test_several_files_are_chosen_and_sent_with_a_plain_form(shelf: Page) -> None:
    shelf.get_by_text("Upload documents").click()
    shelf.get_by_label("Files").set_input_files(
        [FilePayload(name=f"note-{n}.md", mimeType="text/markdown", buffer=f"# Note {n}".encode()) for n in range(3)]
    )
    shelf.locator("#upload-source").fill("notes")
    shelf.get_by_role("button", name="Upload", exact=True).click()
    expect(shelf.get_by_text("3 documents taken in")).to_be_visible()


def test_a_broken_set_is_refused_with_each_fault_at_its_line(page: Page) -> None:
    page.goto("/sets/new")
    page.get_by_label("Name").fill("broken")
    page.get_by_label("File").set_input_files(
        files=[FilePayload(name="broken.jsonl", mimeType="application/json", buffer=_BROKEN)]
    )
    page.get_by_role("button", name="Make the set").click()
    expect(page.get_by_role("alert")).to_contain_text("2 things are wrong")
    expect(page.locator(".source-lines li")).to_have_count(2)
    expect(page.get_by_label("Name")).to_have_value("broken")
    check(page, "set-refused")


def test_a_search_becomes_a_question(shelf: Page) -> None:
    shelf.goto("/sets/new")
    shelf.get_by_label("Name").fill("asked here")
    shelf.get_by_label("Or write the questions down").fill(
        '{"question": "How long is parental leave?", "expected": ["policies/parental-leave.md"], "tags": ["leave"]}'
    )
    shelf.get_by_role("button", name="Make the set").click()
    shelf.set_default_timeout(_PATIENCE)  # the first search loads the model
    shelf.goto("/search")
    shelf.get_by_label("In", exact=True).select_option("handbook")
    shelf.get_by_label("Question", exact=True).fill("Who approves a trip abroad?")
    shelf.get_by_role("button", name="Search", exact=True).click()
    expect(shelf.locator("table.ranks")).to_be_visible()
    shelf.get_by_role("button", name="Search", exact=True).click()  # its times are those of a model that is there
    expect(shelf.locator("table.ranks tbody tr").first).to_contain_text("finance/travel-expenses.pdf")
    check(shelf, "search")
    shelf.get_by_role("checkbox", name="finance/travel-expenses.pdf answers it").first.check()
    shelf.get_by_label("Save this search").select_option("asked here")
    shelf.get_by_role("button", name="Go on").click()
    expect(shelf.get_by_label("What must be found")).to_have_value("finance/travel-expenses.pdf")
    check(shelf, "question-form")
    shelf.get_by_role("button", name="Add it", exact=True).click()
    expect(shelf.get_by_text("Version 2 has 2 questions.")).to_be_visible()
    shelf.get_by_role("link", name="Versions").click()
    shelf.get_by_role("button", name="Show what differs").click()
    expect(shelf.get_by_text("1 added, 0 taken out")).to_be_visible()
    check(shelf, "set-versions")
    shelf.get_by_role("link", name="Check labels").click()
    shelf.get_by_label("Against the knowledge base").select_option("handbook")
    shelf.get_by_role("button", name="Check", exact=True).click()
    expect(shelf.get_by_text("2 of 2")).to_be_visible()
    check(shelf, "set-check")


def test_what_was_measured_is_on_the_overview_and_in_the_history(windows: Windows, service: Cluster) -> None:
    service.wait(
        lambda: all(one["is_final"] for one in service.get("evaluations")["results"]), "the evaluations", seconds=240
    )
    page = windows.open()
    asked = evaluated(page, service)["question_set"]["name"].rpartition("@")[0]
    page.goto("/")
    expect(page.locator(".course .headline").first).to_be_visible()
    check(page, "overview")
    page.goto("/sets")
    check(page, "sets")
    of_handbook = page.get_by_role("link", name=re.compile("^handbook"))
    (of_handbook.first if of_handbook.count() else page.get_by_role("link", name=asked, exact=True)).click()
    expect(page.get_by_role("region", name="Questions")).to_be_visible()
    check(page, "set")
    page.goto("/history")
    names = page.get_by_label("Question set").locator("option").all_inner_texts()
    content = "handbook:.touchstone/handbook-content.json"
    page.get_by_label("Question set").select_option(content if content in names else asked)
    page.get_by_label("Knowledge base").select_option("handbook")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("region", name="Runs").locator("tbody tr").first).to_be_visible()
    check(page, "history")
