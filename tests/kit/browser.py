"""A Chromium browser, and accessibility checks for every page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.kit.waiting import QUICK_S

NAMES = (
    "chromium-headless-shell",
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
)
"""Commands of browsers.

The first one is Chromium without its windows, which takes less than half the processor time.
"""
LOADED_SELECTOR = "main[aria-busy=false]"
"""Selector that matches once a page has rendered its content."""

expect.set_options(timeout=1000 * QUICK_S)  # in place of 5 s, too short on a busy machine

FINDINGS = (Path(__file__).parent / "findings.js").read_text()
"""Script that returns the accessibility problems of a page as text."""


def browser_path() -> str | None:
    """Return the path of a Chromium on this system, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class MonitoredPage:
    """A page in its own context, with the record of its requests and errors.

    Parameters
    ----------
    context : BrowserContext
    address : str
        http://host:port of the pages; `foreign_requests` lists requests to other hosts.
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
        """URLs requested from other hosts."""
        host = urlsplit(self.address).netloc
        return [url for url in self.requests if urlsplit(url).netloc != host]

    def open(self, path: str) -> Page:
        """Open a page, and wait until it has rendered its content."""
        self.page.goto(self.address + path)
        self.page.locator(LOADED_SELECTOR).wait_for()
        return self.page

    def findings(self) -> list[str]:
        """Return the problems of the current page."""
        problems: list[str] = self.page.evaluate(FINDINGS)
        return problems

    def rows(self, table: str) -> list[list[str]]:
        """Return the texts of the rows of a table."""
        texts: list[list[str]] = self.page.locator(f"#{table} tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
        )
        return texts


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """Start a headless browser."""
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
    """Open a page in a fresh context, which shares no state with others."""
    context = new_context(browser, width, scheme)
    try:
        yield MonitoredPage(context, address)
    finally:
        context.close()


def new_context(browser: Browser, width: int, scheme: Any) -> BrowserContext:
    """Return a context for a screen of a width in pixels, with a light or dark color scheme."""
    return browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )


class ContextPool:
    """Contexts of a browser, which pages use one after the other.

    A page finds what was cached of HTTP, as at a later visit, and nothing else: its context was
    new, or what earlier pages stored was removed.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[tuple[int, str], list[BrowserContext]] = {}

    @contextmanager
    def monitored_page(
        self, address: str, *, width: int = 1280, scheme: str = "light"
    ) -> Iterator[MonitoredPage]:
        """Open a page in a context that no other page uses."""
        free = self._free.setdefault((width, scheme), [])
        context = free.pop() if free else new_context(self._browser, width, scheme)
        watch = MonitoredPage(context, address)
        yield watch
        if watch.page.is_closed():  # nothing is left to remove what it stored
            context.close()
            return
        context.unroute_all()
        context.set_offline(False)
        context.clear_cookies()
        url = urlsplit(address)
        context.new_cdp_session(watch.page).send(
            "Storage.clearDataForOrigin",
            {"origin": f"{url.scheme}://{url.netloc}", "storageTypes": "all"},
        )
        watch.page.close()
        free.append(context)
