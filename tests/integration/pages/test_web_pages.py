"""graphd's web pages in a real Chromium: correct content, accessibility, protection.

Pages of other origins cannot use them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from tests.kit import cases
from tests.kit.browser import ContextPool, MonitoredPage, monitored_page
from tests.kit.waiting import HANG_S

import asterism
from asterism_standalone.app import Standalone
from asterism_standalone.settings import StandaloneSettings

pytestmark = pytest.mark.browser


class ServedGraph:
    """A served folder with a graph, one version of which is pinned."""

    def __init__(self, folder: Path) -> None:
        self.service = Standalone(folder, StandaloneSettings())
        self.service.start()
        endpoints = self.service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        self.address = f"http://{endpoints.http_address}"
        self.client = asterism.connect(endpoints.address, timeout_s=HANG_S)
        cases.load(self.client, "cases")
        self.graph = self.client.graph("cases")
        self._pin_stack = ExitStack()
        self._pin_stack.enter_context(self.graph.pin(owner="trainer-3 (pid 4711)"))
        self.client.create_space("spare", {"nodes": {"n": {}}})

    def close(self) -> None:
        self._pin_stack.close()
        self.client.close()
        self.service.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedGraph]:
    server = ServedGraph(tmp_path_factory.mktemp("pages") / "graph")
    yield server
    server.close()


# -- accessibility ---------------------------------------------------------------------------------

PAGES = [
    "/ui",
    "/ui/hosts",
    "/ui/spaces",
    "/ui/spaces/cases",
    "/ui/spaces/cases/versions/1",
    "/ui/jobs",
    "/ui/jobs/1",
    "/ui/logs",
    "/ui/rates",
    "/ui/query",
    "/ui/nowhere",
]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_pages_are_accessible_without_horizontal_scroll(
    server: ServedGraph, page_of: Callable[..., MonitoredPage], width: int, scheme: str
) -> None:
    watch = page_of(server.address, width=width, scheme=scheme)
    findings = {}
    for path in PAGES:
        watch.open(path)
        findings[path] = watch.findings()
    assert {path: problems for path, problems in findings.items() if problems} == {}
    watch.complaints[:] = [complaint for complaint in watch.complaints if "404" not in complaint]
    dark = watch.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", dark)[:3])) < 150) == (scheme == "dark")


def test_the_theme_is_chosen_by_a_button_and_kept(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(server.address)
    page = watch.open("/ui")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    expect(page.locator("#theme")).to_have_text("Theme: system")
    page.locator("#theme").click()
    page.locator("#theme").click()
    expect(page.locator("#theme")).to_have_text("Theme: dark")
    dark = page.evaluate(background)
    assert dark != light
    watch.open("/ui/spaces")
    assert page.evaluate(background) == dark
    assert watch.findings() == []


def test_a_page_finds_nothing_that_an_earlier_page_stored(
    server: ServedGraph, contexts: ContextPool
) -> None:
    stored = """() => [
        localStorage.getItem('kept'), sessionStorage.getItem('kept'), document.cookie]"""
    with contexts.monitored_page(server.address) as first:
        page = first.open("/ui")
        page.evaluate("""() => {
            localStorage.setItem('kept', '1');
            sessionStorage.setItem('kept', '2');
            document.cookie = 'kept=3';
        }""")
        assert page.evaluate(stored) == ["1", "2", "kept=3"]
        first.context.set_offline(True)
    with contexts.monitored_page(server.address) as later:
        assert later.context is first.context
        assert later.open("/ui").evaluate(stored) == [None, None, ""]


NUMBER_FOCUSABLE = """() => [...document.querySelectorAll(
        'a[href], button:not(:disabled), select, input, textarea, summary, [tabindex="0"]')]
    .filter((node) => node.checkVisibility()
        && !(node.closest('details:not([open])') && node.nodeName !== 'SUMMARY'))
    .map((node, i) => (node.dataset.n = i))"""
"""Numbers the focusable elements in document order."""
FOCUS_STATE = """() => {
    const node = document.activeElement, style = getComputedStyle(node),
        box = node.getBoundingClientRect();
    return [Number(node.dataset.n ?? -1),
        style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight];
}"""
"""Number of the focused element, and whether its outline and box are visible."""


@pytest.mark.parametrize("path", ["/ui/spaces/cases", "/ui/spaces/cases/versions/1", "/ui/query"])
def test_a_page_is_worked_by_the_keyboard_alone(
    server: ServedGraph, page_of: Callable[..., MonitoredPage], path: str
) -> None:
    page = page_of(server.address, width=400).open(path)
    if "versions" in path:  # the plot loads last and has numbers that can be expanded
        page.locator("#spread").wait_for()
    focusable = page.evaluate(NUMBER_FOCUSABLE)
    focus_order = []
    for _ in focusable:
        page.keyboard.press("Tab")
        number, outline, inside = page.evaluate(FOCUS_STATE)
        focus_order.append(number)
        assert outline, f"nothing shows that {number} has the focus"
        assert inside, f"{number} has the focus out of view"
    assert focus_order == list(range(len(focusable)))


def test_skip_link_and_navigation_move_the_focus(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    page = page_of(server.address).open("/ui")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("#nav a", has_text="Spaces").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Spaces")
    expect(page.locator("h1")).to_be_focused()
    expect(page).to_have_title("Spaces · Asterism")
    expect(page.locator("#nav a[aria-current=page]")).to_have_text("Spaces")
    page.go_back()
    expect(page.locator("h1")).to_have_text("Overview")


# -- content ---------------------------------------------------------------------------------------


def test_host_and_space_pages_show_placement(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(server.address)
    watch.open("/ui/hosts")
    (storaged,) = [host for host in server.client.hosts() if host.role == "STORAGED"]
    row = next(row for row in watch.rows("hosts") if "storaged" in row[0])
    assert storaged.parts >= cases.PARTS
    assert row[1] == "online"
    assert re.fullmatch(r"[\d.]+ [KMG]iB\nof [\d.]+ [KMG]iB", row[3]), "memory is measured"
    assert f"cases {cases.PARTS}" in row[4]
    assert re.fullmatch(r"[\d.]+ [KMG]iB", row[5]), "bytes held are measured"
    assert re.fullmatch(r"\d\.\d s ago", row[7])
    assert row[8].endswith(("just now", "ago"))
    watch.open("/ui/spaces")
    row = next(row for row in watch.rows("spaces") if row[0] == "cases")
    assert row[1:5] == [
        "1",
        f"{cases.PEOPLE + cases.PAPERS:,}",
        f"{cases.WRITES + 2 * cases.CITES:,}",
        str(cases.PARTS),
    ]
    watch.open("/ui/spaces/cases")
    types = {row[0]: row for row in watch.rows("nodes")}
    assert types["person"][1] == str(cases.PEOPLE)
    assert "age: int16" in types["person"][6]
    assert "trainer-3 (pid 4711), expires" in watch.rows("versions")[0][4]
    parts = watch.rows("parts")
    assert [row[0] for row in parts] == [str(part) for part in range(cases.PARTS)]
    assert sum(int(row[1]) for row in parts) == cases.PEOPLE + cases.PAPERS


def test_a_versions_weights_are_plotted_as_they_are(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(server.address)
    page = watch.open("/ui/spaces/cases/versions/1?weights=edge%3A0%3A")
    expect(page.locator("select[name=weights]")).to_have_value("edge:0:")
    weights = cases.edges()["writes"][2]
    page.locator("#spread summary").click()
    bars = watch.rows("spread-numbers")
    assert sum(int(row[2].replace(",", "")) for row in bars) == int((weights > 0).sum())
    assert page.locator("#spread .bar").count() == len(bars)
    heaviest = float(bars[-1][0].replace(",", ""))
    assert int(bars[-1][2]) == int((weights >= np.float32(heaviest) * 0.9999).sum())
    assert (
        f"{int((weights > 0).sum()):,} rows of positive weight"
        in page.locator("#spread-desc").text_content()
    )  # type: ignore[operator]
    page.locator("#audit summary").click()
    audit_rows = watch.rows("audit-numbers")
    assert [row[0] for row in audit_rows] == [str(part) for part in range(cases.PARTS)]
    assert all(0 <= float(row[3]) < 1e-9 for row in audit_rows)
    assert max(float(row[3]) for row in audit_rows) > 0, (
        "tables of skewed weights are not exact to the last bit"
    )
    assert page.locator("#audit .dot").count() == 2 * cases.PARTS
    assert page.locator("#audit .legend circle").count() == 1
    assert page.locator("#audit .legend rect").count() == 1
    # Repeat with weights from an expression that the user selects.
    page.locator("select[name=weights]").focus()
    page.locator("select[name=weights]").select_option("node:0:aged")
    expect(page.locator("#spread figcaption")).to_contain_text("node person, by aged")
    assert page.url.endswith("weights=node%3A0%3Aaged")
    expect(page.locator("select[name=weights]")).to_be_focused()


def test_rates_are_those_of_the_calls_that_were_made(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    rates = server.service._rates
    rates.measure()
    for _ in range(20):
        server.graph.sample_nodes(10, "person")
    with pytest.raises(asterism.NotFound):
        server.graph.neighbors([1], "unknown")
    rates.measure()
    watch = page_of(server.address)
    page = watch.open("/ui/rates?method=SampleNodes")
    row = next(row for row in watch.rows("methods") if row[0] == "SampleNodes")
    assert int(row[1]) >= 20
    page.locator("#latency summary").click()
    newest = watch.rows("rates-numbers")[0]
    per_s = [
        step.by_method["SampleNodes"].calls / step.seconds
        if "SampleNodes" in step.by_method
        else 0.0
        for step in rates.intervals()
    ]
    assert max(per_s) > 0
    assert any(
        float(newest[1].replace(",", "")) == pytest.approx(one, rel=0.01) for one in per_s[-3:]
    )  # another interval may have ended meanwhile
    assert page.locator("#latency path.line").count() == 3


def test_unreachable_server_is_reported_and_retried(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(server.address)
    page = watch.open("/ui/hosts")
    watch.context.set_offline(True)
    expect(page.locator("#banner")).to_contain_text("The server is not responding")
    expect(page.locator("#banner")).to_have_attribute("role", "alert")
    expect(page.locator("#hosts tbody tr")).to_have_count(2)  # known data stays on the page
    watch.context.set_offline(False)
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator("#live")).to_have_text("The server is responding again.")
    watch.complaints[:] = [
        complaint for complaint in watch.complaints if "ERR_INTERNET_DISCONNECTED" not in complaint
    ]


def test_server_error_is_shown_with_a_remedy(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(server.address)
    refusal = {"error": "Deadline", "message": "list_jobs: no answer within 10 s"}
    watch.page.route("**/ui/api/jobs?*", lambda route: route.fulfill(status=504, json=refusal))
    page = watch.open("/ui/jobs")
    expect(page.locator(".problem")).to_contain_text("no answer within 10 s")
    expect(page.locator(".problem")).to_contain_text("Request less")
    assert watch.findings() == []
    watch.complaints[:] = [complaint for complaint in watch.complaints if "504" not in complaint]


# -- the query box ---------------------------------------------------------------------------------


def test_a_statement_is_run_and_its_table_shown(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(server.address)
    page = watch.open("/ui/query?space=cases")
    page.locator("#statement").fill("SAMPLE $many VERTICES ON person SEED 7 YIELD id, age")
    page.locator("#parameters").fill('{"many": 300}')
    page.locator("#statement").focus()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answer caption")).to_have_text("The first 200 of 300 rows")
    sample = server.graph.sample_nodes(300, "person", seed=7)
    assert [int(row[0]) for row in watch.rows("answer")] == sample.nodes[:200].tolist()
    expect(page.locator("#live")).to_contain_text("300 rows in")
    assert watch.findings() == []
    page.locator("#statement").fill("SHOW SPACES;\nSAMPLE 5 VERTICS")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#query-problem")).to_contain_text("line 2, column 10")
    expect(page.locator("#query-problem")).to_contain_text("VERTICES")
    expect(page.locator("#statement")).to_be_focused()
    assert page.evaluate("document.activeElement.selectionStart") == len("SHOW SPACES;\nSAMPLE 5 ")
    assert watch.findings() == []
    watch.complaints[:] = [complaint for complaint in watch.complaints if "400" not in complaint]


def test_a_statement_runs_on_the_chosen_space_and_keeps_the_choices(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(server.address)
    page = watch.open("/ui/query?space=cases")
    run_button = page.get_by_role("button", name="Run", exact=True)
    for space, rows, statement in (
        ("spare", "50", "SHOW SPACES"),
        ("cases", "50", "SAMPLE 300 VERTICES ON person SEED 7"),
        ("cases", "1000", "SAMPLE 300 VERTICES ON person SEED 7"),
    ):
        page.locator("#space").select_option(space)
        page.locator("#limit").select_option(rows)
        page.locator("#statement").fill(statement)
        with page.expect_response("**/query") as response:
            run_button.click()
        body = response.value.request.post_data_json
        assert (body["space"], body["rows"], body["language"]) == (space, int(rows), "ngql")
        expect(run_button).to_be_visible()  # the button has another label until the result is shown
        assert page.locator("#space").input_value() == space
        assert page.locator("#limit").input_value() == rows
    expect(page.locator("#answer caption")).to_have_text("300 rows")
    page.locator("#language").select_option("euler")
    page.locator("#parameters").fill('{"all": -1, "count": 4}')
    page.locator("#statement").fill("sampleN(all, count).as(s)")
    with page.expect_response("**/query") as response:
        page.locator("#statement").press("Control+Enter")
    assert response.value.request.post_data_json["language"] == "euler"
    expect(page.locator("#query-problem")).to_contain_text("ids are per type here")
    assert page.locator("#language").input_value() == "euler"
    assert watch.findings() == []
    watch.complaints[:] = [complaint for complaint in watch.complaints if "400" not in complaint]


def test_changing_statement_needs_confirmation(
    server: ServedGraph, page_of: Callable[..., MonitoredPage]
) -> None:
    server.client.create_space("gone", {"nodes": {"n": {}}}, if_not_exists=True)
    page = page_of(server.address).open("/ui/query")
    for statement in (
        "DROP SPACE gone",
        "SHOW SPACES; /* so */ drop\nspace gone",
        "# a remark; \n drop space gone",
    ):
        page.locator("#statement").fill(statement)
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("This cannot be undone")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert "gone" in [space.name for space in server.client.spaces()]
    page.locator("#statement").fill('SHOW SPACES # "; drop space gone')
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#answer")).to_be_visible()
    page.locator("#statement").fill("DROP SPACE gone")
    page.get_by_role("button", name="Run", exact=True).click()
    with page.expect_response("**/query") as response:
        page.get_by_role("button", name="Drop space").click()
    assert response.value.ok
    assert "gone" not in [space.name for space in server.client.spaces()]


# -- pages of other origins change nothing ---------------------------------------------------------

FORGED_HEADERS = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://127.0.0.1:1"},
]


@pytest.mark.parametrize("headers", FORGED_HEADERS, ids=lambda headers: "=".join(*headers.items()))
def test_cross_origin_request_changes_nothing(server: ServedGraph, headers: dict[str, str]) -> None:
    before = len(server.client.jobs(limit=1000))
    with httpx.Client(base_url=server.address, timeout=HANG_S) as http:
        for path, body in (
            ("/ui/api/jobs", {"space": "cases", "kind": "audit"}),
            ("/api/v1/jobs", {"space": "cases", "kind": "audit"}),
            ("/query", {"statement": "DROP SPACE spare"}),
            ("/ui/api/jobs/1/stop", None),
        ):
            reply = http.post(path, json=body, headers=headers)
            assert (reply.status_code, reply.json()["error"]) == (403, "InvalidRequest"), path
        assert http.request("DELETE", "/api/v1/spaces/spare", headers=headers).status_code == 403
        assert http.get("/ui/api/spaces", headers=headers).status_code == 200
    assert len(server.client.jobs(limit=1000)) == before
    assert "spare" in [space.name for space in server.client.spaces()]


def test_dns_rebinding_reads_and_changes_nothing(server: ServedGraph) -> None:
    with httpx.Client(base_url=server.address, timeout=HANG_S) as http:
        for headers in (
            {"host": "rebound.example:19669"},
            {
                "host": "rebound.example",
                "origin": "http://rebound.example",
                "sec-fetch-site": "same-origin",
            },
        ):
            for path in (
                "/ui",
                "/ui/api/spaces",
                "/ui/static/main.js",
                "/status",
                "/flags",
                "/api/v1/spaces",
                "/openapi.json",
            ):
                reply = http.get(path, headers=headers)
                assert (reply.status_code, reply.json()["error"]) == (403, "InvalidRequest"), path
                assert "rebound.example" in reply.json()["message"]
            assert (
                http.post(
                    "/query", json={"statement": "DROP SPACE spare"}, headers=headers
                ).status_code
                == 403
            )
            assert http.get("/healthz", headers=headers).status_code == 200
        for name in ("localhost", "127.0.0.1:19669", "[::1]:19669", "graphd-0:19669"):
            assert http.get("/ui/api/spaces", headers={"host": name}).status_code == 200, name
    assert "spare" in [space.name for space in server.client.spaces()]


def test_requests_without_preflight_are_refused(server: ServedGraph, browser: Browser) -> None:
    with httpx.Client(base_url=server.address, timeout=HANG_S) as http:
        for kind in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "",
        ):
            reply = http.post(
                "/query",
                content=b'{"statement": "DROP SPACE spare"}',
                headers={"content-type": kind},
            )
            assert reply.status_code == 415, kind
            assert "application/json" in reply.json()["message"]
    elsewhere = server.address.replace("127.0.0.1", "localhost")  # another origin to a browser
    with monitored_page(browser, elsewhere) as watch:
        watch.page.goto(f"{elsewhere}/status")
        script = """async (address) => {
            const body = '{"statement": "DROP SPACE spare"}';
            const post = (type, mode) => fetch(
                address + '/query', {method: 'POST', mode, headers: {'content-type': type}, body});
            const outcome = (promise) => promise.then((reply) => reply.type, () => 'refused');
            return [
                await outcome(post('text/plain', 'no-cors')),
                await outcome(post('application/json', 'cors'))];
        }"""
        assert watch.page.evaluate(script, server.address) == ["opaque", "refused"]
    assert "spare" in [space.name for space in server.client.spaces()]


def test_content_security_policy_blocks_foreign_code(server: ServedGraph, browser: Browser) -> None:
    with monitored_page(browser, server.address) as watch:
        page = watch.open("/ui")
        page.evaluate("""() => {
            const script = document.createElement('script');
            try { script.textContent = 'window.planted = 1'; } catch {}
            document.body.append(script);
            const image = new Image();
            image.src = 'http://elsewhere.invalid/x.png';
            document.body.append(image);
            try { document.body.insertAdjacentHTML('beforeend', '<p id=planted>'); } catch {}
        }""")
        page.wait_for_timeout(100)
        assert page.evaluate("[window.planted, document.getElementById('planted')]") == [None, None]
        assert any("Content Security Policy" in complaint for complaint in watch.complaints)
    reply = httpx.get(f"{server.address}/ui")
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert (
        httpx.get(
            f"{server.address}/ui/static/app.js",
            headers={
                "if-none-match": httpx.get(f"{server.address}/ui/static/app.js").headers["etag"]
            },
        ).status_code
        == 304
    )
    assert httpx.get(f"{server.address}/ui/static/..%2fapp.py").status_code == 404
    assert httpx.get(f"{server.address}/", follow_redirects=True).text == reply.text


def test_openapi_describes_every_route_of_the_pages(server: ServedGraph) -> None:
    openapi = httpx.get(f"{server.address}/openapi.json").json()
    page_routes = {path for path in openapi["paths"] if path.startswith("/ui/")}
    assert {
        "/ui/api/overview",
        "/ui/api/hosts",
        "/ui/api/spaces/{name}/versions/{version}/spread",
        "/ui/api/jobs/{job_id}/stop",
    } <= page_routes
    for path in page_routes:
        for operation in openapi["paths"][path].values():
            assert operation.get("description"), path
