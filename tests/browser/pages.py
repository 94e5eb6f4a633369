"""What is asked of every page: no serious fault of accessibility, nothing wider than the window, and its picture."""

import os
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Page

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
WIDTHS = (1280, 390)
_TALLEST = 2400
_THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# The other theme has other colours, and all else of it is the same.
_OF_COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


def check(page: Page, name: str) -> None:
    """All of it, in both themes and at both widths; without a picture where `name` is empty. The window is left as it
    was."""
    before = page.viewport_size
    page.wait_for_load_state()  # a click returns when the answer begins: there may be no document yet
    for theme in _THEMES:
        page.emulate_media(color_scheme=theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if theme == _THEMES[0]:
                check_fits(page)
            if width == WIDTHS[0]:
                check_axe(page, **({} if theme == _THEMES[0] else _OF_COLOURS))
            _shoot(page, f"{name}-{theme}-{width}")
    page.emulate_media(color_scheme="light")
    if before is not None:
        page.set_viewport_size(before)


def check_axe(page: Page, **options: Any) -> None:
    """No fault that axe calls serious or critical."""
    found = Axe().run(page, options={"resultTypes": ["violations"], **options})
    serious: list[dict[str, Any]] = [
        one for one in found.response["violations"] if one["impact"] in {"serious", "critical"}
    ]
    told = [f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in serious]
    assert told == [], f"{page.url}\n" + "\n".join(told)


def check_fits(page: Page) -> None:
    """Nothing makes the page itself scroll sideways."""
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"{page.url} is {wider} px wider than its window of {page.viewport_size}"


def _shoot(page: Page, name: str) -> None:
    """For docs/images/; only where TOUCHSTONE_SHOTS is set."""
    if not os.environ.get("TOUCHSTONE_SHOTS") or name.startswith("-"):
        return
    # Plots further down are drawn when they are looked at, for each theme.
    page.evaluate("document.querySelectorAll('img').forEach(one => { one.loading = 'eager'; })")
    if page.locator("picture").count():
        page.wait_for_load_state("networkidle")
    page.evaluate("Promise.all([...document.images].map(one => one.decode().catch(() => null)))")
    # As the script does when a page is opened that narrow.
    page.evaluate(
        "document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })"
    )
    height = min(_TALLEST, int(page.evaluate("document.documentElement.scrollHeight")))
    width = int(page.evaluate("document.documentElement.clientWidth"))
    data = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    IMAGES.mkdir(parents=True, exist_ok=True)
    # 128 colours are enough for a page, and a fifth of the bytes.
    Image.open(BytesIO(data)).convert("RGB").quantize(128).save(IMAGES / f"{name}.png", optimize=True)
