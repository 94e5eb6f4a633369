"""The frame of all pages: in, around, and out."""

from playwright.sync_api import expect

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
