"""The frame of all pages, and the first visit: three presses to an evaluation."""

from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import Windows
from tests.browser.pages import check


def test_the_way_in_is_a_page_of_its_own(windows: Windows) -> None:
    page = windows.open(logged_in=False)
    page.goto("/bases")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    check(page, "login")


def test_the_keyboard_reaches_the_content_first(windows: Windows) -> None:
    page = windows.open()
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_the_first_evaluation_is_three_presses_from_the_first_visit(windows: Windows) -> None:
    page = windows.open()
    page.goto("/")
    check(page, "first-visit")
    page.get_by_role("button", name="Load the sample handbook").click()
    expect(page.get_by_role("heading", level=1, name="handbook")).to_be_visible()
    page.get_by_role("button", name="Evaluate .touchstone/handbook.jsonl").click()
    expect(page.get_by_role("heading", name="New evaluation")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/evaluations/*-*")


def test_without_scripts_the_first_steps_are_the_same(windows: Windows) -> None:
    page = windows.open(java_script_enabled=False)
    page.goto("/")
    page.get_by_role("link", name="Knowledge bases").click()
    page.get_by_role("link", name="handbook", exact=True).click()
    page.get_by_text("Upload documents").click()
    page.get_by_label("Files").set_input_files(
        files=[FilePayload(name="note.md", mimeType="text/markdown", buffer=b"# A note\n\nThe canteen opens at noon.")]
    )
    page.locator("#upload-source").fill("notes")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text("1 document taken in")).to_be_visible()
