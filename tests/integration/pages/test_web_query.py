"""The query page in a real Chromium: its address, completion, history, cells and downloads."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect
from tests.kit.browser import MonitoredPage
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism_standalone.app import Standalone
from asterism_standalone.settings import StandaloneSettings

pytestmark = pytest.mark.browser

ITEMS, VALUES = 300, 16
LARGE_ID = (1 << 60) + 1
"""Node id that a float64 cannot represent."""
MESSAGE = (
    "storaged 72fb857b086543e1a877782e4378afc7 at storaged-1:9779: no connection; is it running?"
)


class Shop:
    """A served graph with vectors, and a second space."""

    def __init__(self, folder: Path) -> None:
        self.service = Standalone(folder, StandaloneSettings())
        self.service.start()
        endpoints = self.service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        self.address = f"http://{endpoints.http_address}"
        self.client = asterism.connect(endpoints.address, timeout_s=HANG_S)
        self.client.create_space("another", {"nodes": {"n": {}}})
        self.client.create_space(
            "shop",
            {
                "nodes": {
                    "item": {
                        "weighted": True,
                        "features": {
                            "price": "float32",
                            "vector": {"dtype": "float32", "shape": [VALUES]},
                        },
                    },
                    "user": {},
                },
                "edges": {"user:buys:item": {}},
            },
        )
        self.graph: Graph = self.client.graph("shop")
        rng = np.random.default_rng(0)
        self.vectors = rng.random((ITEMS, VALUES), dtype=np.float32)
        self.graph.upsert_nodes(
            np.arange(ITEMS),
            "item",
            weights=np.ones(ITEMS),
            features={"price": np.full(ITEMS, 26.79, np.float32), "vector": self.vectors},
        )
        self.graph.upsert_nodes([1, 5, LARGE_ID], "user")
        self.graph.upsert_edges([1, LARGE_ID], [2, 3], "buys")
        self.graph.build()

    def close(self) -> None:
        self.client.close()
        self.service.stop()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("query") / "graph")
    yield shop
    shop.close()


@pytest.fixture
def watch(shop: Shop, page_of: Callable[..., MonitoredPage]) -> MonitoredPage:
    watch = page_of(shop.address)
    watch.open("/ui/query?space=shop")
    return watch


def run_statement(page: Page, statement: str) -> None:
    page.locator("#statement").fill(statement)
    with page.expect_response("**/query"):
        page.locator("#statement").press("Control+Enter")


def address_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(page.evaluate("location.search.slice(1)"))


def test_the_address_keeps_the_form_and_runs_nothing(watch: MonitoredPage) -> None:
    page = watch.page
    page.locator("#space").select_option("another")
    page.locator("#limit").select_option("1000")
    page.locator("#parameters").fill('{"least": 3}')
    page.locator("#statement").fill("SHOW SPACES;\nSHOW HOSTS")
    assert address_of(page) == {
        "space": ["another"],
        "limit": ["1000"],
        "parameters": ['{"least": 3}'],
        "statement": ["SHOW SPACES;\nSHOW HOSTS"],
    }
    page.reload()
    expect(page.locator("#statement")).to_have_value("SHOW SPACES;\nSHOW HOSTS")
    expect(page.locator("#space")).to_have_value("another")
    expect(page.locator("#limit")).to_have_value("1000")
    expect(page.locator("#parameters")).to_have_value('{"least": 3}')
    expect(page.locator("#answer")).to_have_count(0)
    assert not any(url.endswith("/query") for url in watch.requests)
    page.locator("#nav a", has_text="Query").click()
    expect(page.locator("#statement")).to_have_value("")
    page.go_back()
    expect(page.locator("#statement")).to_have_value("SHOW SPACES;\nSHOW HOSTS")
    expect(page.locator("#space")).to_have_value("another")


def test_use_selects_the_space_for_later_statements(watch: MonitoredPage) -> None:
    run_statement(watch.page, "USE another")
    expect(watch.page.locator("#space")).to_have_value("another")
    assert address_of(watch.page)["space"] == ["another"]


@pytest.mark.parametrize("width", [1280, 400])
def test_completion_is_used_by_keyboard_and_mouse(
    shop: Shop, page_of: Callable[..., MonitoredPage], width: int
) -> None:
    watch = page_of(shop.address, width=width)
    page = watch.open("/ui/query?space=shop")
    statement, options = page.locator("#statement"), page.locator("[role=option] code")
    statement.press_sequentially("SHOW SPACES;\nsample 5 ver")
    expect(options).to_have_text(["vertices"])
    page.keyboard.press("Tab")
    expect(statement).to_have_value("SHOW SPACES;\nsample 5 vertices")
    expect(options).to_have_count(0)
    statement.press_sequentially(" ON ")
    expect(options).to_have_text(["item", "user"])
    listbox = page.locator("[role=listbox]")
    expect(page.locator("#live")).to_contain_text("2 completions")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    active = page.locator(f"#{statement.get_attribute('aria-activedescendant')}")
    expect(active).to_have_attribute("aria-selected", "true")
    expect(active).to_contain_text("user")
    assert watch.findings() == []
    area_box, list_box = statement.bounding_box(), listbox.bounding_box()
    assert area_box is not None
    assert list_box is not None
    assert list_box["x"] + list_box["width"] <= width
    assert area_box["y"] + 2 * 20 < list_box["y"] < area_box["y"] + area_box["height"]
    page.keyboard.press("Enter")
    expect(statement).to_have_value("SHOW SPACES;\nsample 5 vertices ON user")
    assert address_of(page)["statement"] == ["SHOW SPACES;\nsample 5 vertices ON user"]
    statement.press_sequentially(" ")
    page.keyboard.press("Control+Space")
    expect(options.filter(has_text="WHERE")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    statement.fill("SAMPLE 5 VERTICES ON item WHERE p")
    page.locator("[role=option]", has_text="price").click()
    expect(statement).to_have_value("SAMPLE 5 VERTICES ON item WHERE price")
    expect(statement).to_be_focused()
    statement.press_sequentially(" > 3 AND ")
    expect(listbox).to_be_visible()
    page.locator("#parameters").focus()
    expect(listbox).to_have_count(0)


def test_history_survives_a_reload_and_keeps_no_secret(watch: MonitoredPage) -> None:
    page = watch.page
    run_statement(page, "SHOW SPACES")
    run_statement(page, "SHOW HOSTS")
    page.locator("#statement").fill('FETCH PROP ON item 1 # password "hunter2"')
    page.locator("#statement").press("Control+Enter")
    expect(page.locator("h2", has_text="Result")).to_be_visible()
    page.reload()
    page.locator("#statement").fill("a draft")
    for key, expected in (
        ("ArrowUp", "SHOW HOSTS"),
        ("ArrowUp", "SHOW SPACES"),
        ("ArrowUp", "SHOW SPACES"),
        ("ArrowDown", "SHOW HOSTS"),
        ("ArrowDown", "a draft"),
    ):
        page.locator("#statement").press(f"Control+{key}")
        expect(page.locator("#statement")).to_have_value(expected)
    page.locator("#history summary").click()
    expect(page.locator("#history li button")).to_have_text(["SHOW HOSTS", "SHOW SPACES"])
    expect(page.locator("#history li").first).to_contain_text("shop")
    expect(page.locator("#history li time").first).to_have_text(re.compile("just now|ago"))
    assert watch.findings() == []
    page.get_by_role("button", name="SHOW SPACES", exact=True).last.click()
    expect(page.locator("#statement")).to_have_value("SHOW SPACES")
    page.get_by_role("button", name="Clear history").click()
    expect(page.locator("#history")).to_have_count(0)


def test_vectors_are_shortened_and_whole_on_request(shop: Shop, watch: MonitoredPage) -> None:
    page = watch.page
    run_statement(page, "FETCH PROP ON item 7 YIELD id, vector, price")
    expect(page.locator("#answer tbody tr")).to_have_count(1)
    (row,) = watch.rows("answer")
    assert row[0] == "7"
    assert row[2] == "26.79"
    short = re.fullmatch(r"\[(.+), … 16 values\]", row[1])
    assert short is not None
    assert [float(value) for value in short[1].split(", ")] == pytest.approx(
        shop.vectors[7, :4], rel=1e-2
    )
    heads = page.locator("#answer thead th")
    assert [heads.nth(i).get_attribute("class") for i in range(3)] == ["number", None, "number"]
    summary = page.locator("#answer details.cell summary")
    whole = json.loads(summary.get_attribute("title") or "")
    assert np.array_equal(np.array(whole, np.float32), shop.vectors[7])
    summary.click()
    expect(page.locator("#answer details.cell > code")).to_be_visible()
    assert json.loads(page.locator("#answer details.cell > code").inner_text()) == whole
    assert watch.findings() == []


def test_wide_results_scroll_beside_their_first_column(
    shop: Shop, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(shop.address, width=400)
    page = watch.open("/ui/query?space=shop")
    run_statement(page, "FETCH PROP ON item 7, 8, 9 YIELD id, vector, price, weight, vector AS v")
    region = page.locator(".scroll", has=page.locator("#answer"))
    expect(region).to_have_attribute("data-over", "")
    hint = "getComputedStyle(document.querySelector('#answer caption > span'), '::after').content"
    assert "scroll" in page.evaluate(hint)
    first = page.locator("#answer tbody th").first
    before = first.bounding_box()
    region.evaluate("region => { region.scrollLeft = 300; }")
    assert region.evaluate("region => region.scrollLeft") > 100
    assert first.bounding_box() == before
    assert watch.findings() == []


def test_results_are_downloaded_with_exact_values(
    shop: Shop, watch: MonitoredPage, tmp_path: Path
) -> None:
    page = watch.page
    run_statement(page, "SAMPLE 250 VERTICES ON item SEED 3 YIELD id, vector, price")
    expect(page.locator("#answer caption")).to_have_text("The first 200 of 250 rows")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV (200 rows)").click()
    download.value.save_as(tmp_path / "result.csv")
    with (tmp_path / "result.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "vector", "price"]
    sample = shop.graph.sample_nodes(250, "item", seed=3).nodes[:200]
    assert [int(row[0]) for row in rows] == sample.tolist()
    assert {row[2] for row in rows} == {"26.79"}
    vectors = np.array([json.loads(row[1]) for row in rows], np.float32)
    assert np.array_equal(vectors, shop.vectors[sample])
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").click()
    assert len(json.loads(download.value.path().read_text())["rows"]) == 200
    page.locator("#limit").select_option("10000")
    run_statement(page, "SAMPLE 5000 VERTICES ON item YIELD id")
    expect(page.locator("#answer caption")).to_have_text("The first 1,000 of 5,000 rows")
    expect(page.get_by_role("button", name="Download CSV (5,000 rows)")).to_be_visible()


def test_ids_beyond_the_range_of_doubles_are_exact(watch: MonitoredPage) -> None:
    run_statement(watch.page, f"GO FROM {LARGE_ID} ON user OVER buys YIELD src, dst")
    assert watch.rows("answer") == [[str(LARGE_ID), "3"]]


def test_a_sample_of_nothing_is_no_error(watch: MonitoredPage) -> None:
    page = watch.page
    run_statement(page, "SAMPLE 5 VERTICES ON item WHERE price > 1000")
    expect(page.locator("#nothing")).to_contain_text("0 rows")
    expect(page.locator("#nothing")).to_contain_text("price > 1000")
    expect(page.locator(".problem")).to_have_count(0)
    run_statement(page, "GO FROM 5 ON user OVER buys")
    expect(page.locator("#answer")).to_contain_text("0 rows")
    expect(page.locator(".problem")).to_have_count(0)
    run_statement(page, "SAMPLE 5 VERTICES ON itm")
    expect(page.locator("#query-problem")).to_contain_text("itm")
    expect(page.locator("#query-problem")).not_to_contain_text("dropped")
    watch.complaints[:] = [complaint for complaint in watch.complaints if "404" not in complaint]


def test_an_error_says_once_what_is_expected(watch: MonitoredPage) -> None:
    page = watch.page
    run_statement(page, "SAMPLE 5 VERTICS ON item")
    expect(page.locator("#query-problem")).to_contain_text("expected")
    assert page.locator("#query-problem").inner_text().count("NEGATIVES") == 1
    selection = "(area => area.value.slice(area.selectionStart, area.selectionEnd))"
    assert page.evaluate(f"{selection}(document.activeElement)") == "VERTICS"
    watch.complaints[:] = [complaint for complaint in watch.complaints if "400" not in complaint]


def test_an_error_names_no_host_by_its_uuid(watch: MonitoredPage) -> None:
    page = watch.page

    def refuse(route: Route) -> None:
        route.fulfill(status=503, json={"error": "Unavailable", "message": MESSAGE})

    page.route("**/query", refuse)
    run_statement(page, "SAMPLE 5 VERTICES ON item")
    expect(page.locator("#query-problem")).to_contain_text("storaged-1:9779: no connection")
    assert not re.search(r"[0-9a-f]{32}", page.locator("#query-problem").inner_text())
    watch.complaints[:] = [complaint for complaint in watch.complaints if "503" not in complaint]


def test_the_dialog_of_a_change_names_its_object(watch: MonitoredPage) -> None:
    page = watch.page
    dialogs: dict[str, Any] = {
        "DROP SPACE IF EXISTS `shop`": ("Drop space shop?", "removes the space shop"),
        "create space more": ("Create space more?", "changes the cluster"),
        "SUBMIT JOB audit": ("Submit audit job?", "Current space: shop"),
        "DROP SPACE another; DROP SPACE shop": (
            "Run 2 statements that change the cluster?",
            "DROP another, DROP shop",
        ),
    }
    for statement, (title, text) in dialogs.items():
        page.locator("#statement").fill(statement)
        page.locator("#statement").press("Control+Enter")
        expect(page.get_by_role("dialog").locator("h2")).to_have_text(title)
        expect(page.get_by_role("dialog")).to_contain_text(text)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert not any(url.endswith("/query") for url in watch.requests)


def test_an_example_runs_at_once(watch: MonitoredPage) -> None:
    page = watch.page
    page.get_by_role("button", name="SAMPLE 5 VERTICES ON item").click()
    expect(page.locator("#answer caption")).to_have_text("5 rows")
    expect(page.locator("#statement")).to_have_value("SAMPLE 5 VERTICES ON item")
