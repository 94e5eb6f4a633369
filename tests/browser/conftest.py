"""A real service and a real browser, once for the session; for each test a window of somebody who is logged in.

Every window is watched: an error on the browser's console, which is also where a breach of the content security policy
is told, fails the test.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.e2e.cluster import Cluster

CHROMIUM = shutil.which("chromium") or ""
# Nothing that asks anybody for anything, and no sandbox, which needs rights that a container has not.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_LOGIN = (
    "import django; django.setup(); from django.contrib.auth.models import User; from django.utils import timezone; "
    "from backend.services import workspaces; "
    "print(workspaces.login_link(User.objects.get(username='admin'), timezone.now()))"
)
_HTMX = re.compile(r"/htmx[^/]*\.js")
# A page that answers 404 or 422 on purpose is told by the browser as well.
_EXPECTED = "Failed to load resource: the server responded with a status of 4"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not CHROMIUM:
                item.add_marker(pytest.mark.skip(reason="There is no chromium here."))


@pytest.fixture(scope="session")
def service() -> Iterator[Cluster]:
    """Reranker `http:down`: a port where nobody listens."""
    with tempfile.TemporaryDirectory(prefix="ts-browser-", ignore_cleanup_errors=True) as folder:
        settings = {
            "TOUCHSTONE_RERANK_DOWN_URL": "http://127.0.0.1:9",
            "TOUCHSTONE_RERANK_DOWN_SHAPE": "tei",
            "TOUCHSTONE_SECRET_KEYS": Fernet.generate_key().decode(),
            "TOUCHSTONE_PROVIDER_STALL_SECONDS": "2",
            "TOUCHSTONE_PROVIDER_PROBE_SECONDS": "1",
        }
        Path(folder).chmod(0o755)
        with Cluster(Path(folder), settings=settings) as running:
            yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def login(service: Cluster, browser: Browser) -> Any:
    """The cookies of somebody who came in by a login link."""
    context = browser.new_context(base_url=service.url)
    page = context.new_page()
    page.goto(service.python("-c", _LOGIN).strip().splitlines()[-1])
    assert page.url.rstrip("/") == service.url
    kept = context.storage_state()
    context.close()
    return kept


class Windows:
    """Opens windows and keeps what their consoles said."""

    def __init__(self, browser: Browser, url: str, login: Any) -> None:
        self._browser, self._url, self._login = browser, url, login
        self._open: list[BrowserContext] = []
        self.errors: list[str] = []

    def open(self, *, logged_in: bool = True, htmx: bool = True, **options: Any) -> Page:
        """A new window; `java_script_enabled=False` for one without scripts, `htmx=False` where it fails to load."""
        context = self._browser.new_context(
            base_url=self._url,
            viewport={"width": 1280, "height": 900},
            reduced_motion="reduce",  # no colour is on its way to another while contrasts are measured
            **({"storage_state": self._login} if logged_in else {}),
            **options,
        )
        context.set_default_timeout(15_000)
        self._open.append(context)
        page = context.new_page()
        if not htmx:
            context.route(_HTMX, lambda route: route.abort())
        page.on("console", lambda message: self._heard(message, htmx=htmx))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def close(self) -> None:
        for context in self._open:
            context.close()

    def _heard(self, message: ConsoleMessage, *, htmx: bool) -> None:
        if message.type != "error" or message.text.startswith(_EXPECTED):
            return
        if htmx or "net::ERR_FAILED" not in message.text:
            self.errors.append(message.text)


@pytest.fixture
def windows(service: Cluster, browser: Browser, login: Any) -> Iterator[Windows]:
    opened = Windows(browser, service.url, login)
    yield opened
    opened.close()
    assert opened.errors == [], "the browser's console"


@pytest.fixture
def page(windows: Windows) -> Page:
    return windows.open()
