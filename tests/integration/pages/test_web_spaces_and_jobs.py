"""Pages of spaces, versions and jobs in Chromium: widths, words, times, and what does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, Route, expect
from tests.kit import banned_words, cases
from tests.kit.browser import MonitoredPage, monitored_page
from tests.kit.waiting import HANG_S

import asterism
from asterism_standalone.app import Standalone
from asterism_standalone.settings import StandaloneSettings

pytestmark = pytest.mark.browser

PAGES = [
    "/ui/spaces",
    "/ui/spaces/cases",
    "/ui/spaces/cases/versions/1",
    "/ui/jobs",
    "/ui/jobs/1",
    "/ui/query",
]
PRIVATE_WORDS = re.compile(
    r"\b(Made|Odd|Left|Took)\b|came to nothing|As even as|rows' own|all 1\b|Its jobs"
)


class ServedCases:
    """The case graph, served, with a pinned version."""

    def __init__(self, folder: Path) -> None:
        self.service = Standalone(folder, StandaloneSettings())
        self.service.start()
        endpoints = self.service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        self.address = f"http://{endpoints.http_address}"
        self.client = asterism.connect(endpoints.address, timeout_s=HANG_S)
        cases.load(self.client, "cases")
        self._pin = ExitStack()
        self._pin.enter_context(self.client.graph("cases").pin(owner="trainer-3 (pid 4711)"))

    def close(self) -> None:
        self._pin.close()
        self.client.close()
        self.service.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCases]:
    served = ServedCases(tmp_path_factory.mktemp("pages") / "graph")
    yield served
    served.close()


WIDTHS = """() => [...document.querySelectorAll('.scroll')]
    .filter((region) => region.clientWidth)
    .map((region) => [
        region.querySelector('table').id,
        region.scrollWidth - region.clientWidth,
        getComputedStyle(region.querySelector('caption > span'), '::after').content])"""
"""Tables, their hidden width in pixels, and the text after their caption."""


class ReadPage(NamedTuple):
    """Content of a page on a laptop."""

    text: str
    widths: list[tuple[str, int, str]]
    """Result of `WIDTHS`."""


@pytest.fixture(scope="module")
def laptop_pages(served: ServedCases, browser: Browser) -> dict[str, ReadPage]:
    """Return every page as a laptop shows it; each is opened once."""
    pages = {}
    with monitored_page(browser, served.address) as watch:
        for path in PAGES:
            page = watch.open(path)
            pages[path] = ReadPage(page.locator("body").inner_text(), page.evaluate(WIDTHS))
        assert (watch.complaints, watch.foreign_requests) == ([], [])
    return pages


@pytest.mark.parametrize("path", PAGES[:-1])
def test_tables_fit_a_laptop(laptop_pages: dict[str, ReadPage], path: str) -> None:
    assert laptop_pages[path].widths
    assert [table for table, hidden, _ in laptop_pages[path].widths if hidden > 1] == []


def test_tables_of_a_narrow_screen_say_that_they_scroll(
    served: ServedCases, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(served.address, width=400)
    for path in PAGES[:-1]:
        widths = watch.open(path).evaluate(WIDTHS)
        assert widths, path
        for table, hidden, hint in widths:
            assert ("scroll" in hint) == (hidden > 1), (path, table)


@pytest.mark.parametrize("path", PAGES)
def test_pages_use_standard_terms(laptop_pages: dict[str, ReadPage], path: str) -> None:
    text = laptop_pages[path].text
    assert [*banned_words.find(text), *PRIVATE_WORDS.findall(text)] == []


def test_times_are_relative_with_the_exact_time_on_hover(
    served: ServedCases, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(served.address)
    exact = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
    for path, table in (("/ui/spaces", "spaces"), ("/ui/jobs", "jobs"), ("/ui/jobs/1", "tasks")):
        time = watch.open(path).locator(f"#{table} time").first
        expect(time).to_have_text(re.compile(r"just now|\d+ (s|min|h) ago"))
        expect(time).to_have_attribute("title", exact)
    page = watch.open("/ui/spaces/cases")
    expect(page.locator("#versions li time")).to_have_text(re.compile(r"in \d+ (s|min|h)"))
    expect(page.locator("dl.facts")).to_contain_text(exact)


def test_terms_of_a_job_are_the_usual_ones(
    served: ServedCases, page_of: Callable[..., MonitoredPage]
) -> None:
    page = page_of(served.address).open("/ui/jobs/1")
    heads = page.locator("#tasks thead th").all_inner_texts()
    assert {"ETA", "Rows/s", "Attempt", "Partitions", "Ended"} <= set(heads)
    assert page.locator("h2").all_inner_texts() == ["Tasks", "Failed attempts", "Results"]
    expect(page.locator("h2", has_text="Failed attempts").locator("+ p")).to_have_text("None")


MISSING = [
    ("/ui/nowhere", "Page not found", "/ui/jobs"),
    ("/ui/jobs/999999", "Job 999999 not found", "/ui/jobs"),
    ("/ui/jobs/abc", "Job abc not found", "/ui/jobs"),
    ("/ui/spaces/none", "Space “none” not found", "/ui/spaces"),
    ("/ui/spaces/cases/versions/77", "Version 77 of cases not found", "/ui/spaces/cases"),
]
"""Path of a page that does not exist, its title, and the address of a link on it."""


def test_missing_objects_have_status_404_and_a_page_that_helps(
    served: ServedCases, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(served.address)
    for path, title, link in MISSING:
        reply = watch.page.goto(served.address + path)
        assert reply is not None
        assert reply.status == 404, path
        watch.page.locator("main[aria-busy=false]").wait_for()
        expect(watch.page.locator("h1")).to_have_text(title)
        expect(watch.page.locator(f"main a[href='{link}']")).to_be_visible()
        expect(watch.page.locator("main .problem")).to_have_count(0)
        assert watch.findings() == [], path
        watch.page.locator(f"main a[href='{link}']").click()
        expect(watch.page.locator("main table").first).to_be_visible()
        watch.complaints[:] = [
            complaint for complaint in watch.complaints if not re.search("404|422", complaint)
        ]
        assert watch.complaints == [], path


def test_addresses_of_pages_have_status_200(served: ServedCases) -> None:
    for path in (*PAGES, "/ui", "/ui/", "/ui/hosts", "/ui/rates", "/ui/jobs/1/"):
        reply = httpx.get(served.address + path)
        assert reply.status_code == 200, path
        assert "etag" in reply.headers
    assert httpx.get(f"{served.address}/ui/jobs/{'9' * 30}").status_code == 404


def test_a_space_with_offline_partitions_says_so_first(
    served: ServedCases, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(served.address)

    def lose_host(route: Route) -> None:
        reply = route.fetch()
        space = reply.json()
        space["unavailable_parts"] = 3
        space["holders"][0] |= {"address": "storaged-1:9779", "online": False}
        route.fulfill(response=reply, json=space)

    watch.page.route("**/ui/api/spaces/cases", lose_host)
    page = watch.open("/ui/spaces/cases")
    alert = page.locator("h1 + .problem")
    expect(alert).to_contain_text("3 of")
    expect(alert).to_contain_text("storaged-1:9779 is offline")
    assert watch.findings() == []


def test_the_list_of_spaces_shows_their_state(
    served: ServedCases, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(served.address)
    page = watch.open("/ui/spaces")
    assert page.locator("#spaces thead th").all_inner_texts()[-2:] == ["State", "Created"]
    expect(page.locator("#spaces .state")).to_have_text("available")
    watch.open("/ui/spaces?q=zzz")
    expect(page.locator("#spaces .none")).to_have_text("No name contains “zzz”.")
