"""The node inspector, rates and log in Chromium: they show what the calls of the client return."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.kit import cases
from tests.kit.browser import MonitoredPage
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph
from asterism_daemonkit.recent_logs import RECENT_RECORDS
from asterism_standalone.app import Standalone
from asterism_standalone.settings import StandaloneSettings

pytestmark = pytest.mark.browser

PAPER = 5


class ServedFolder:
    """A served folder with the graph of `tests.kit.cases`."""

    def __init__(self, service: Standalone, address: str, client: Client) -> None:
        self.service, self.address, self.client = service, address, client
        self.graph: Graph = client.graph("cases")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    folder = cases.copy_built_graph(tmp_path_factory.mktemp("nodes"))
    service = Standalone(folder, StandaloneSettings())
    service.start()
    endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
    with asterism.connect(endpoints.address, timeout_s=HANG_S) as client:
        yield ServedFolder(service, f"http://{endpoints.http_address}", client)
    service.stop()
    logging.getLogger().removeHandler(RECENT_RECORDS)


def neighbor_table(page: Page, caption: str) -> str:
    """Return the id of the table of neighbors with a caption that begins so."""
    table = page.locator("table", has=page.locator("caption", has_text=caption))
    return str(table.get_attribute("id"))


def test_a_node_shows_its_features_and_heaviest_neighbors(
    served: ServedFolder, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(served.address)
    page = watch.open(f"/ui/spaces/cases/node?type=paper&id={PAPER}")
    expect(page.locator("h1")).to_have_text(f"paper {PAPER}")
    features = {row[0]: row[1:] for row in watch.rows("features")}
    assert features["vec"] == ["float32[3]", f"[{3 * PAPER}, {3 * PAPER + 1}, {3 * PAPER + 2}]"]
    (words,) = [served.graph.node_features([PAPER], ["words"], "paper")["words"][1].tolist()]
    assert features["words"] == ["list<int64>", f"[{', '.join(map(str, words))}]"]
    degree = int(served.graph.degrees([PAPER], "cites", ntype="paper").reshape(-1)[0])
    top = served.graph.top_k_neighbors([PAPER], "cites", degree, ntype="paper")
    rows = watch.rows(neighbor_table(page, f"→ paper:cites:paper: {degree} neighbors"))
    assert [row[0] for row in rows] == [str(node) for node in top.nodes[0].tolist()]
    assert [float(row[1]) for row in rows] == top.weights[0].tolist()
    assert watch.findings() == []
    first = page.locator(f"#{neighbor_table(page, '→ paper:cites:paper')} tbody a").first
    target = first.inner_text()
    first.click()
    expect(page.locator("h1")).to_have_text(f"paper {target}")
    page.go_back()
    expect(page.locator("h1")).to_have_text(f"paper {PAPER}")


def test_neighbors_of_a_node_are_paged(
    served: ServedFolder, page_of: Callable[..., MonitoredPage]
) -> None:
    degrees = served.graph.degrees(range(cases.PAPERS), "writes", ntype="paper", direction="in")
    paper = int(degrees.reshape(-1).argmax())
    degree = int(degrees.reshape(-1)[paper])
    assert degree > 20
    top = served.graph.top_k_neighbors([paper], "writes", degree, ntype="paper", direction="in")
    watch = page_of(served.address)
    page = watch.open(f"/ui/spaces/cases/node?type=paper&id={paper}")
    table = neighbor_table(page, "← person:writes:paper")
    assert [row[0] for row in watch.rows(table)] == [str(i) for i in top.nodes[0, :20].tolist()]
    pager = page.get_by_role("navigation", name="incoming person:writes:paper")
    pager.get_by_role("link", name="Next").click()
    expect(pager).to_contain_text(f"21–{min(degree, 40)} of {degree}")
    assert [row[0] for row in watch.rows(table)] == [str(i) for i in top.nodes[0, 20:40].tolist()]
    expect(page.locator(f"#{table} tbody a").first).to_have_text(str(int(top.nodes[0, 20])))


def test_the_picture_has_sampled_edges_of_the_graph_and_links(
    served: ServedFolder, page_of: Callable[..., MonitoredPage]
) -> None:
    edges = {
        relation: set(zip(src.tolist(), dst.tolist(), strict=True))
        for relation, (src, dst, _) in cases.edges().items()
    }
    watch = page_of(served.address)
    page = watch.open(f"/ui/spaces/cases/node?type=paper&id={PAPER}")
    picture = page.locator("#neighborhood > svg")
    nodes = picture.locator("a")
    ties = picture.locator("line.tie")
    page.locator("#neighborhood summary").click()
    rows = watch.rows("neighborhood-edges")
    assert ties.count() == len(rows) > 6
    shown = set()
    for source, edge_type, target, _ in rows:
        ends = tuple(int(end.split()[1]) for end in (source, target))
        assert ends in edges[edge_type.split(":")[1]]
        shown |= {source, target}
    titles = nodes.locator("title").all_text_contents()
    assert {title.split(",")[0] for title in titles} == shown | {f"paper {PAPER}"}
    boxes = [nodes.nth(i).locator(".node").bounding_box() for i in range(nodes.count())]
    places = {(round(box["x"]), round(box["y"])) for box in boxes if box}
    assert len(places) == nodes.count(), "no node covers another"
    before = picture.inner_html()
    page.get_by_role("link", name="Sample again").click()
    expect(page.get_by_text("with seed 2")).to_be_visible()
    assert picture.inner_html() != before
    name = re.split(",", nodes.nth(1).locator("title").text_content() or "")[0]
    nodes.nth(1).locator(".node").click()
    expect(page.locator("h1")).to_have_text(name)


def test_a_node_is_found_by_a_form_and_a_wrong_id_is_explained(
    served: ServedFolder, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(served.address, width=400)
    page = watch.open("/ui/spaces/cases/node")
    expect(page.locator("h1")).to_have_text("Nodes of cases")
    page.locator("select[name=type]").select_option("paper")
    expect(page.get_by_text("Some nodes of type paper")).to_be_visible()
    assert watch.findings() == []
    page.locator("input[name=id]").fill("999999")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_contain_text("id=999999")
    page.locator("input[name=id]").fill("seven")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_contain_text("id='seven': expected an integer")
    page.locator("input[name=id]").fill(str(PAPER))
    page.keyboard.press("Enter")
    expect(page.locator("#features")).to_be_visible()
    expect(page.locator(".problem")).to_have_count(0)
    assert watch.findings() == []
    watch.complaints[:] = [
        complaint
        for complaint in watch.complaints
        if not re.search("status of (400|404|422)", complaint)
    ]


def test_nodes_with_string_ids_are_shown_by_name(
    served: ServedFolder, page_of: Callable[..., MonitoredPage]
) -> None:
    served.client.create_space(
        "airports",
        {"ids": "string", "nodes": {"airport": {}}, "edges": {"airport:route:airport": {}}},
    )
    graph = served.client.graph("airports")
    graph.upsert_nodes(["SFO", "JFK & Co"], "airport")
    graph.upsert_edges(["SFO"], ["JFK & Co"], "route")
    graph.build()
    page = page_of(served.address).open("/ui/spaces/airports/node?type=airport&id=SFO")
    expect(page.locator("h1")).to_have_text("airport SFO")
    page.locator(f"#{neighbor_table(page, '→ airport:route:airport')} a").click()
    expect(page.locator("h1")).to_have_text("airport JFK & Co")


def test_the_values_of_a_plot_are_read_by_pointer_and_keyboard(
    served: ServedFolder, page_of: Callable[..., MonitoredPage]
) -> None:
    rates = served.service._rates
    for calls in (3, 30, 9):
        for _ in range(calls):
            served.graph.sample_nodes(10, "person")
        rates.measure()
    watch = page_of(served.address)
    page = watch.open("/ui/rates?method=SampleNodes")
    readout = page.locator("#latency-readout")
    expect(readout).to_contain_text("p99")
    page.locator("#latency summary").click()
    columns = ("p50", "p95", "p99")
    rows = watch.rows("rates-numbers")
    page.locator("#latency > svg").focus()
    found = []
    for _ in rows:
        values = dict(re.findall(r"(p\d\d) (.+?)(?:,|$)", readout.inner_text()))
        found.append([values[name] for name in columns])
        page.keyboard.press("ArrowLeft")
    timed = [row[3:6] for row in rows]
    assert [row for row in timed if "–" not in row], "some call was measured"
    assert all(row in found for row in timed[:3])
    assert page.locator("#latency-pointer line").count() == 1
    page.locator("#throughput > svg").hover(position={"x": 80, "y": 60})
    expect(page.locator("#throughput-pointer line")).to_have_count(1)
    oldest = page.locator("#throughput-readout").inner_text()
    box = page.locator("#throughput > svg").bounding_box()
    assert box is not None
    page.locator("#throughput > svg").hover(position={"x": box["width"] - 16, "y": 60})
    expect(page.locator("#throughput-readout")).not_to_have_text(oldest)
    assert watch.findings() == []


def test_the_log_shows_the_newest_records_and_filters_by_level(
    served: ServedFolder, page_of: Callable[..., MonitoredPage]
) -> None:
    logger = logging.getLogger("storaged.test")
    logger.warning("disk_slow", extra={"read_ms": 4000, "secret": "hidden"})
    logger.error("disk_failed <b>now</b>")
    watch = page_of(served.address)
    page = watch.open("/ui/logs")
    rows = watch.rows("records")
    assert [row[1:] for row in rows[:2]] == [
        ["ERROR", "disk_failed <b>now</b>"],
        ["WARNING", "disk_slow read_ms=4000"],
    ]
    assert rows[0][0].endswith(("just now", "ago"))
    page.locator("select[name=level]").select_option("ERROR")
    expect(page.locator("#records tbody tr").first).to_contain_text("disk_failed")
    expect(page.get_by_text("disk_slow")).to_have_count(0)
    assert watch.findings() == []
    watch.open("/ui")
    assert [row[1] for row in watch.rows("log")][:2] == ["ERROR", "WARNING"]
    assert watch.findings() == []
