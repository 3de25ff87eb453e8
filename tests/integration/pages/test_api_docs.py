"""The page ``/docs`` of a daemon in a real Chromium that reaches no other host."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from tests.kit.browser import MonitoredPage

from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.metrics import Metrics
from graphd.http.sampling import OPERATIONS, sampling_router

pytestmark = pytest.mark.browser

DAEMON_ROUTES = 5


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the description of the sampling routes; they have no handlers."""
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="graphd",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("graphd"),
        allowed_hosts=AllowedHosts(),
        routers=lambda: [sampling_router({}, lambda *_: pytest.fail("nothing is sampled"))],
    )
    port = server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop()


def test_the_page_of_routes_needs_no_other_host(
    address: str, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(address)
    page = watch.page
    page.context.route(lambda url: not url.startswith(address), lambda route: route.abort())
    page.goto(f"{address}/docs")
    routes = page.locator(".opblock")
    expect(routes).to_have_count(len(OPERATIONS) + DAEMON_ROUTES)
    sample_nodes = routes.filter(has_text="/sample-nodes").first
    expect(sample_nodes).to_contain_text("Sample nodes by weight or uniformly.")
    sample_nodes.locator(".opblock-summary").click()
    expect(sample_nodes).to_contain_text("price > 3")
    assert watch.foreign_requests == []
    assert watch.complaints == []
