"""A real Chromium, and what is looked at on every page: what a reader who does not see it, or sees
it badly, needs of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LOADED_SELECTOR = "main[aria-busy=false]"
"""There once a page has what it shows."""

FINDINGS = (Path(__file__).parent / "findings.js").read_text()
"""Gives what is wrong with a page, in words."""


def browser_path() -> str | None:
    """A Chromium of this system."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class MonitoredPage:
    """A page in a context of its own, with all that it fetches and complains of.

    Parameters
    ----------
    context : BrowserContext
    address : str
        http://host:port of the pages; whatever goes elsewhere is `foreign_requests`.
    """

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.address = context, address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    @property
    def foreign_requests(self) -> list[str]:
        """What was asked of another host."""
        host = urlsplit(self.address).netloc
        return [url for url in self.requests if urlsplit(url).netloc != host]

    def open(self, path: str) -> Page:
        """Go to a page, and wait for what it shows."""
        self.page.goto(self.address + path)
        self.page.locator(LOADED_SELECTOR).wait_for()
        return self.page

    def findings(self) -> list[str]:
        """What is wrong with the page that is shown."""
        problems: list[str] = self.page.evaluate(FINDINGS)
        return problems

    def rows(self, table: str) -> list[list[str]]:
        """The texts of a table's rows."""
        texts: list[list[str]] = self.page.locator(f"#{table} tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
        )
        return texts


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """The browser, without a window."""
    driver = sync_playwright().start()
    try:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = driver.chromium.launch(
            executable_path=path, args=[*sandbox, "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()
    finally:
        driver.stop()


@contextmanager
def monitored_page(
    browser: Browser, address: str, *, width: int = 1280, scheme: Any = "light"
) -> Iterator[MonitoredPage]:
    """A page of its own: nothing is kept from others."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    try:
        yield MonitoredPage(context, address)
    finally:
        context.close()
