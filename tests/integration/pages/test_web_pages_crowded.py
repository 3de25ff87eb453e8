"""graphd's web pages in Chromium with ten thousand jobs and a thousand partitions.

Pages update live and load a limited number of rows at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from tests.kit.browser import MonitoredPage
from tests.kit.crowd import (
    FAILED_CAUSE,
    HOSTS,
    JOBS,
    PARTS,
    LargeCatalog,
    finish_tasks,
    report_running,
)
from tests.kit.waiting import let_pass

pytestmark = pytest.mark.browser

PAGE_BYTES = 200_000
"""Largest reply to a page in bytes, whatever the size of the cluster."""
HIDE_PAGE = """() => {
    Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true});
    window.away = true;
    document.dispatchEvent(new Event('visibilitychange'));
}"""
"""Simulates that the user switched to another tab."""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeCatalog]:
    crowd = LargeCatalog(tmp_path_factory.mktemp("crowd") / "metad")
    yield crowd
    crowd.close()


def test_job_progress_is_live_and_hidden_pages_do_not_poll(
    crowd: LargeCatalog, page_of: Callable[..., MonitoredPage]
) -> None:
    crowd.metad_client.load("wide")
    job = crowd.metad_client.submit("wide")
    report_running(crowd.metad_client, "s0", done=100, total=1000)
    watch = page_of(crowd.address)
    page = watch.open(f"/ui/jobs/{job.job_id}")
    expect(page.locator("#tasks tbody tr").first).to_contain_text("10 %")
    expect(page.locator("#tasks tbody tr").first).to_contain_text("alias table: pair rows")
    for number, uuid in enumerate(crowd.hosts):
        report_running(crowd.metad_client, uuid, done=250 if number else 500, total=1000)
    expect(page.locator("p.big progress")).to_have_attribute("value", "28.1")
    state_box, bar_box = (
        page.locator(f"p.big {part}").bounding_box() for part in (".state", "progress")
    )
    assert state_box is not None
    assert bar_box is not None
    middles = [box["y"] + box["height"] / 2 for box in (state_box, bar_box)]
    assert abs(middles[0] - middles[1]) <= 2
    expect(page.locator("#live")).to_have_text(f"Job {job.job_id} is running, 20 percent done.")
    page.evaluate(HIDE_PAGE)
    request_count = -1
    while request_count < len(watch.requests):  # wait for the requests in flight
        request_count = len(watch.requests)
        page.wait_for_timeout(1000)
    finish_tasks(crowd.metad_client, *crowd.hosts)
    let_pass(2.5)
    assert len(watch.requests) == request_count, "a page that is not looked at asks for nothing"
    page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("p.big .state")).to_have_text("FINISHED")
    expect(page.locator("#live")).to_have_text(f"Job {job.job_id} is FINISHED.")


def test_jobs_are_stopped_and_recovered_by_keyboard(
    crowd: LargeCatalog, page_of: Callable[..., MonitoredPage]
) -> None:
    crowd.metad_client.load("wide")
    job = crowd.metad_client.submit("wide")
    for uuid in crowd.hosts:
        report_running(crowd.metad_client, uuid, done=1, total=10)
    page = page_of(crowd.address).open(f"/ui/jobs/{job.job_id}")
    stop = page.get_by_role("button", name="Stop", exact=True)
    stop.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert not crowd.metad_client.job(job.job_id).ending
    stop.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("p.big .state")).to_have_text("STOPPING")
    for uuid in crowd.hosts:
        crowd.metad_client.heartbeat(uuid)
    expect(page.locator("p.big .state")).to_have_text("STOPPED")
    page.get_by_role("button", name="Recover").click()
    page.get_by_role("button", name="Recover job").click()
    expect(page.locator("p.big .state")).to_have_text("RUNNING")
    finish_tasks(crowd.metad_client, *crowd.hosts)
    expect(page.locator("p.big .state")).to_have_text("FINISHED")


def test_ten_thousand_jobs_are_paged_and_filtered_by_server(
    crowd: LargeCatalog, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(crowd.address)
    sizes: dict[str, int] = {}
    watch.page.on(
        "response",
        lambda reply: sizes.update({reply.url: int(reply.headers.get("content-length", 0))}),
    )
    page = watch.open("/ui/jobs")
    total = int(
        re.findall(r"[\d,]+", page.locator("#jobs caption").inner_text())[0].replace(",", "")
    )
    assert total >= JOBS
    first = [int(row[0]) for row in watch.rows("jobs")]
    assert first == list(range(total, total - 50, -1))
    page.get_by_role("link", name="Older").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#jobs tbody tr").first).to_contain_text(str(total - 50))
    page.get_by_role("link", name="Newest").click()
    expect(page.locator("#jobs tbody tr").first).to_contain_text(str(total))
    page.locator("select[name=state]").select_option("FAILED")
    expect(page.locator("#jobs caption")).to_have_text(f"{JOBS // 50} jobs, newest first")
    page.locator("select[name=kind]").select_option("compact")
    expect(page.locator("#jobs caption")).to_have_text(
        f"{sum(n % 3 == 0 for n in range(50, JOBS + 1, 50))} jobs, newest first"
    )
    assert {row[3] for row in watch.rows("jobs")} == {"FAILED"}
    # Markup in the data is shown as text.
    assert watch.rows("jobs")[0][-1] == FAILED_CAUSE
    assert page.locator("main b").count() == 0
    assert max(size for url, size in sizes.items() if "/ui/api/" in url) < PAGE_BYTES


def test_thousand_partitions_are_paged_and_sorted_by_server(
    crowd: LargeCatalog, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(crowd.address, width=400)
    sizes: dict[str, int] = {}
    watch.page.on(
        "response",
        lambda reply: sizes.update({reply.url: int(reply.headers.get("content-length", 0))}),
    )
    page = watch.open("/ui/spaces/wide")
    assert [row[0] for row in watch.rows("parts")] == [str(part) for part in range(25)]
    assert len(watch.rows("holders")) == HOSTS
    page.get_by_role("link", name="Last").click()
    expect(page.locator("#parts tbody tr").first).to_contain_text("975")
    page.locator("#parts thead a", has_text="Part").click()
    expect(page.locator("#parts tbody tr").first.locator("th")).to_have_text(str(PARTS - 1))
    expect(page.locator("#parts thead th").first).to_have_attribute("aria-sort", "descending")
    page.locator("select[name=host]").select_option("s3:9779")
    expect(page.locator("nav.pager span").first).to_contain_text(f"of {PARTS // HOSTS}")
    assert {int(row[0]) % HOSTS for row in watch.rows("parts")} == {3}
    watch.page.route(
        "**/spread?*", lambda route: route.abort()
    )  # this graphd has no storageds to query
    watch.open("/ui/spaces/wide/versions/1")
    assert page.locator("#audit .dot").count() <= 2 * 250
    assert page.locator("main *").count() < 6000
    assert max(size for url, size in sizes.items() if "/ui/api/" in url) < PAGE_BYTES
    watch.complaints[:] = [
        complaint for complaint in watch.complaints if "ERR_FAILED" not in complaint
    ]
