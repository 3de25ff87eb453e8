"""Web pages of a space with a thousand partitions, built and read from a thousand images."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.kit.browser import MonitoredPage
from tests.kit.waiting import HANG_S, QUICK_S

import asterism
from asterism import Graph
from asterism_standalone.app import Standalone
from asterism_standalone.settings import StandaloneSettings

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PARTS, NODES = 1000, 5000


@pytest.fixture(scope="module")
def address_and_graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Graph]]:
    service = Standalone(tmp_path_factory.mktemp("wide"), StandaloneSettings())
    service.start()
    endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
    with asterism.connect(endpoints.address, timeout_s=HANG_S) as client:
        client.create_space("wide", {"parts": PARTS, "nodes": {"n": {"weighted": True}}})
        graph = client.graph("wide")
        graph.upsert_nodes(np.arange(NODES), "n", weights=np.arange(1, NODES + 1))
        graph.build(timeout_s=HANG_S)
        yield f"http://{endpoints.http_address}", graph
    service.stop()


def test_thousand_real_partitions_are_shown_quickly(
    address_and_graph: tuple[str, Graph], page_of: Callable[..., MonitoredPage]
) -> None:
    address, graph = address_and_graph
    watch = page_of(address, width=400)
    sizes: dict[str, int] = {}
    watch.page.on(
        "response",
        lambda reply: sizes.update({reply.url: int(reply.headers.get("content-length", 0))}),
    )
    started = time.monotonic()
    page = watch.open("/ui/spaces/wide")
    assert [row[0] for row in watch.rows("parts")] == [str(part) for part in range(25)]
    page.get_by_role("link", name="Last").click()
    expect(page.locator("#parts tbody tr").first).to_contain_text(str(PARTS - 25))
    assert time.monotonic() - started < QUICK_S
    counts = [int(row[2].replace(",", "")) for row in watch.rows("parts")]
    assert len(counts) == 25
    page.locator("#parts thead a", has_text="Part").click()
    expect(page.locator("#parts tbody tr").first.locator("th")).to_have_text(str(PARTS - 1))
    started = time.monotonic()
    watch.open("/ui/spaces/wide/versions/1")
    expect(page.locator("#audit .dot").first).to_be_visible()
    assert time.monotonic() - started < QUICK_S
    assert 0 < page.locator("#audit .dot").count() <= 2 * 250
    assert page.locator("main *").count() < 6000
    totals = page.locator("#totals, table").first.inner_text()
    assert f"{NODES:,}" in totals
    assert max(size for url, size in sizes.items() if "/ui/api/" in url) < 200_000
    assert watch.findings() == []
    assert len(graph.query("SHOW PARTS")) == PARTS
