"""Sign-in on the web pages in a real Chromium, and attacks through a browser with a session."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect
from tests.kit.access import AccessCluster
from tests.kit.browser import MonitoredPage, browser_path, monitored_page
from tests.kit.waiting import HANG_S

from asterism_access.roles import Role
from asterism_proto.errors import InvalidRequest

pytestmark = pytest.mark.browser

MARKUP = "<img src=x onerror=window.planted=1>"
SCRIPT = "\"'><script>window.planted=1</script>{{7*7}}"


def expected_statuses(watch: MonitoredPage, *statuses: str) -> None:
    """Remove the complaints of the browser about replies that a test expects."""
    watch.complaints[:] = [
        complaint
        for complaint in watch.complaints
        if not any(f"status of {status}" in complaint for status in statuses)
    ]


def sign_in(watch: MonitoredPage, credential: str, path: str = "/ui") -> Page:
    """Open a page as a visitor who signs in for it."""
    page = watch.page
    page.goto(watch.address + path)
    page.locator("main[aria-busy=false] #credential").fill(credential)
    page.keyboard.press("Enter")
    page.wait_for_url(watch.address + path)
    page.locator("main[aria-busy=false]").wait_for()
    page.locator("#who").wait_for()
    expected_statuses(watch, "401")
    return page


def test_try_it_out_of_the_api_docs_uses_the_session(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(cluster.http_url)
    page = sign_in(watch, cluster.create_key("dora", shop=Role.READER))
    page.goto(f"{watch.address}/docs")
    route = page.locator(
        "#operations-sampling-sample_nodes_api_v1_spaces__space__sample_nodes_post"
    )
    route.locator(".opblock-summary").click()
    route.get_by_role("button", name="Try it out").click()
    route.locator("input[placeholder=space]").fill("shop")
    route.locator("textarea").fill('{"n": 3, "ntype": "n"}')
    route.get_by_role("button", name="Execute").click()
    expect(route.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    assert watch.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_visitor_signs_in_and_returns_to_the_address(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage], width: int, scheme: str
) -> None:
    key = cluster.create_key("iris", shop=Role.READER)
    watch = page_of(cluster.http_url, width=width, scheme=scheme)
    path = "/ui/spaces/shop?sort=nodes&order=desc"
    page = watch.open(path)
    assert page.url == f"{watch.address}/ui/sign-in?next={quote(path, safe='/')}"
    expect(page.locator("#credential")).to_be_focused()
    assert page.locator("#credential").get_attribute("type") == "password"
    assert watch.findings() == []
    page.locator("#credential").fill("hunter2")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#problem")).to_contain_text("expected after 'Bearer' an API key")
    expect(page.locator("#credential")).to_be_focused()
    assert watch.findings() == []
    page.locator("#credential").fill(key)
    page.keyboard.press("Enter")
    page.wait_for_url(watch.address + path)
    expect(page.locator("h1")).to_have_text("Space shop")
    expect(page.locator("#who")).to_contain_text("iris")
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    (cookie,) = watch.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert key not in cookie["value"]
    assert watch.findings() == []
    page.reload()
    expect(page.locator("#who")).to_contain_text("iris")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{watch.address}/ui/sign-in")
    assert watch.context.cookies() == []
    page.goto(f"{watch.address}/ui/jobs")
    page.wait_for_url(f"{watch.address}/ui/sign-in?next=/ui/jobs")
    page.locator("main[aria-busy=false]").wait_for()
    expected_statuses(watch, "401")


def test_pages_offer_what_the_roles_allow(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    reader = page_of(cluster.http_url)
    page = sign_in(reader, cluster.create_key("ronja", shop=Role.READER), "/ui/spaces/shop")
    expect(page.get_by_role("link", name="Query", exact=True).first).to_be_visible()
    assert page.get_by_role("button", name="Build a version").count() == 0
    assert page.get_by_role("link", name="Access").count() == 0
    reader.open("/ui")
    assert page.get_by_role("heading", name="Log").count() == 0
    reader.open("/ui/spaces/bank")
    expect(page.locator(".problem")).to_contain_text("not found, or 'ronja' has no role there")
    reader.open("/ui/logs")
    expect(page.locator(".problem")).to_contain_text("expected an administrator of the cluster")
    page.close()  # its polls end before their refusals are forgotten
    expected_statuses(reader, "403")
    builder = page_of(cluster.http_url)
    page = sign_in(builder, cluster.create_key("bill", shop=Role.BUILDER), "/ui/spaces/shop")
    page.get_by_role("button", name="Audit the current version").click()
    page.get_by_role("button", name="Audit", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Submitted the audit as job")
    page.locator("main a", has_text=re.compile(r"^job \d+$")).first.click()
    expect(page.locator("h1")).to_contain_text("Job")
    builder.open("/ui/query?space=shop")
    page.locator("#statement").fill("SAMPLE 3 VERTICES ON n SEED 1")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answer caption")).to_have_text("3 rows")


def test_an_ended_session_leads_to_the_sign_in_page(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(cluster.http_url)
    page = sign_in(watch, cluster.create_key("eva", shop=Role.READER), "/ui/jobs?space=shop")
    watch.context.clear_cookies()
    page.wait_for_url("**/ui/sign-in?next=*", timeout=60_000)  # with the next poll
    page.locator("main[aria-busy=false]").wait_for()
    assert page.url.endswith("/ui/sign-in?next=%2Fui%2Fjobs%3Fspace%3Dshop")
    expected_statuses(watch, "401")


def test_an_administrator_creates_a_key_that_is_shown_once(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(cluster.http_url)
    page = sign_in(watch, cluster.root())
    page.get_by_role("link", name="Access").click()
    expect(page.locator("h1")).to_have_text("Access")
    expect(page.locator("#nav a[aria-current=page]")).to_have_text("Access")
    form = page.get_by_role("form", name="Create an API key")
    form.get_by_label("Principal").fill("kim")
    form.get_by_label("Description").fill("laptop")
    form.get_by_label("Days").fill("7")
    form.get_by_role("button", name="Create key").click()
    secret = page.locator("#new-key").inner_text()
    key_id = secret[3:15]
    assert watch.findings() == []
    page.locator(f"#keys-{key_id}").wait_for()
    row = next(row for row in watch.rows("keys") if row[0] == key_id)
    assert row[1:3] == ["kim", "laptop"]
    page.get_by_role("button", name="Hide the key").click()
    expect(page.locator("#new-key")).to_have_count(0)
    assert secret not in page.content()
    form = page.get_by_role("form", name="Grant a role")
    form.get_by_label("Principal").fill("kim")
    form.get_by_label("Space").fill("shop")
    form.get_by_label("Role").select_option("writer")
    form.get_by_role("button", name="Grant role").click()
    expect(page.get_by_role("status")).to_contain_text("kim is writer in shop now.")
    with cluster.connect(secret) as client:
        assert [space.name for space in client.spaces()] == ["shop"]
    page.get_by_role("button", name="Revoke the role of kim in shop").click()
    page.get_by_role("button", name="Revoke role", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Revoked the role of kim in shop.")
    page.get_by_role("button", name=f"Revoke the key {key_id}").click()
    page.get_by_role("button", name="Revoke key", exact=True).click()
    expect(page.locator(f"#keys-{key_id}")).to_contain_text("revoked")
    assert watch.findings() == []
    page.set_viewport_size({"width": 400, "height": 900})
    page.reload()
    page.locator("#keys").wait_for()
    assert watch.findings() == []


def test_an_administrator_changes_limits(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(cluster.http_url)
    page = sign_in(watch, cluster.root(), "/ui/access")
    form = page.get_by_role("form", name="Set limits")

    def label(text: str) -> Locator:
        return form.get_by_label(text, exact=True)

    assert label("Principal").input_value() == "*"
    label("Principal").fill("lars")
    label("Space").fill("shop")
    label("Calls per second").fill("0.5")
    label("Jobs").fill("3")
    form.get_by_role("button", name="Set limits").click()
    expect(page.get_by_role("status")).to_contain_text("Set the limits of lars in shop.")
    change = page.get_by_role("button", name="Change the limits of lars in shop")
    change.wait_for()
    (row,) = [row for row in watch.rows("limits") if row[0] == "lars"]
    assert row[1:3] == ["shop", "calls_per_s 0.5, jobs 3"]
    assert watch.findings() == []
    page.reload()
    change.click()
    assert label("Principal").input_value() == "lars"
    assert label("Calls per second").input_value() == "0.5"
    label("Calls per second").fill("")
    form.get_by_role("button", name="Set limits").click()
    expect(page.locator("#limits")).not_to_contain_text("calls_per_s 0.5")
    page.get_by_role("button", name="Remove the limits of lars in shop").click()
    page.get_by_role("button", name="Remove limits", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("lars has no limits of its own in shop now.")
    expect(page.locator("#limits")).not_to_contain_text("lars")
    label("Principal").fill("p" * 200)
    label("Pins").fill("1")
    label("Space").fill("nowhere")
    form.get_by_role("button", name="Set limits").click()
    expect(page.get_by_role("alert")).to_contain_text("space 'nowhere' does not exist")
    expected_statuses(watch, "404")
    page.set_viewport_size({"width": 400, "height": 900})
    assert watch.findings() == []


def test_a_page_of_another_origin_changes_nothing(cluster: AccessCluster, browser: Browser) -> None:
    """One of this site, which gets the cookie, and one of another, which does not."""
    key = cluster.create_key("cleo", shop=Role.BUILDER)
    with monitored_page(browser, cluster.http_url) as watch:
        page = sign_in(watch, key)
        before = len(cluster.client.jobs(limit=1000))
        cookies: list[str] = []

        def keep_cookie(request: Request) -> None:
            if request.url.startswith(cluster.http_url) and request.method == "POST":
                cookies.append(request.all_headers().get("cookie", ""))

        page.on("requestfinished", keep_cookie)
        for host in ("127.0.0.1", "localhost"):
            page.goto(f"http://{host}:{cluster.metad.http_port}/healthz")
            outcomes = page.evaluate(
                """async (address) => {
                    const body = '{"space": "shop", "kind": "audit"}';
                    const post = (path, type, mode, headers = {}) => fetch(address + path, {
                        method: 'POST', mode, body, credentials: 'include',
                        headers: {'content-type': type, ...headers}});
                    const outcome = (promise) =>
                        promise.then((reply) => reply.type, () => 'refused');
                    return [
                        await outcome(post('/ui/api/jobs', 'text/plain', 'no-cors')),
                        await outcome(post('/ui/api/jobs', 'application/json', 'cors')),
                        await outcome(post('/ui/api/jobs', 'application/json', 'cors',
                            {'x-csrf-token': 'x'})),
                        await outcome(post('/ui/api/sign-out', 'text/plain', 'no-cors')),
                        await outcome(fetch(address + '/ui/api/session',
                            {credentials: 'include'})),
                    ];
                }""",
                cluster.http_url,
            )
            assert outcomes == ["opaque", "refused", "refused", "opaque", "refused"]
            page.evaluate(
                """(address) => {
                    const form = document.createElement('form');
                    form.action = address + '/ui/api/jobs';
                    form.method = 'post';
                    form.enctype = 'text/plain';
                    const field = document.createElement('input');
                    field.name = '{"space": "shop", "kind": "audit", "x": "';
                    field.value = '"}';
                    form.append(field);
                    document.body.append(form);
                    form.submit();
                }""",
                cluster.http_url,
            )
            page.wait_for_url(f"{cluster.http_url}/ui/api/jobs")
            assert re.search("expected this server's own address|no credentials", page.content())
        assert any("asterism_session" in cookie for cookie in cookies)
        assert any("asterism_session" not in cookie for cookie in cookies)
        assert len(cluster.client.jobs(limit=1000)) == before
        page.goto(f"http://localhost:{cluster.metad.http_port}/healthz")
        page.evaluate("(address) => { location.href = address; }", f"{watch.address}/ui/jobs")
        page.wait_for_url(f"{watch.address}/ui/jobs")  # by way of the sign-in page
        expect(page.locator("#who")).to_contain_text("cleo")


def test_names_and_ids_are_shown_as_text(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    client = cluster.client
    with pytest.raises(InvalidRequest, match="expected a letter"):
        client.create_space(MARKUP, {"nodes": {"n": {}}})
    client.create_space("strings", {"parts": 1, "ids": "string", "nodes": {"n": {}}})
    load = client.begin_load("strings", source=MARKUP)
    load.write_nodes(0, "n", [MARKUP, SCRIPT])
    load.commit()
    job = client.wait(client.submit_job("strings").job_id, timeout_s=HANG_S)
    assert job.state == "FINISHED", job.cause
    cluster.create_key(f"{MARKUP} eve", strings=Role.READER)
    watch = page_of(cluster.http_url)
    page = sign_in(watch, cluster.create_key(SCRIPT, **{"*": Role.ADMIN}))
    expect(page.locator("#who")).to_contain_text(SCRIPT)
    markup, script = (quote(text, safe="") for text in (MARKUP, SCRIPT))
    for path, text in (
        (f"/ui/spaces/{markup}", MARKUP),
        (f"/ui/spaces?q={markup}", MARKUP),
        (f"/ui/{script}", SCRIPT),
        (f"/ui/spaces/strings/node?type=n&id={script}", SCRIPT),
        (f"/ui/spaces/strings/node?type=n&id={markup}", MARKUP),
        ("/ui/access", f"{MARKUP} eve"),
        (f"/ui/access?q={script}", SCRIPT),
    ):
        watch.open(path)
        shown = page.locator("main").inner_text() + page.evaluate(
            "[...document.querySelectorAll('input')].map((one) => one.value).join()"
        )
        assert text in shown or quote(text, safe="") in shown, path
    watch.open("/ui/query?space=strings")
    page.locator("#statement").fill("SAMPLE 9 VERTICES ON n SEED 1")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answer")).to_contain_text(SCRIPT)
    assert page.evaluate("window.planted") is None
    assert page.locator("img[onerror], main script").count() == 0
    expected_statuses(watch, "400", "404", "422")


def test_a_rebound_name_reaches_nothing(cluster: AccessCluster, browser: Browser) -> None:
    path = browser_path()
    assert path is not None
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    rebinding = browser.browser_type.launch(
        executable_path=path,
        args=[
            *sandbox,
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP rebound.example 127.0.0.1",
        ],
    )
    try:
        page = rebinding.new_page()
        origin = f"http://rebound.example:{cluster.graphd.http_port}"
        for path in ("/ui/sign-in", "/ui", "/ui/api/session", "/ui/static/style.css"):
            reply = page.goto(origin + path)
            assert reply is not None
            assert reply.status == 403, path
            assert "not a name of this server" in page.content()
        statuses = page.evaluate(
            """async (credential) => {
                const post = (path, body) => fetch(path, {method: 'POST',
                    headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
                return [
                    (await post('/ui/api/sign-in', {credential})).status,
                    (await post('/ui/api/jobs', {space: 'shop', kind: 'audit'})).status,
                    (await fetch('/ui/api/spaces')).status];
            }""",
            cluster.root(),
        )
        assert statuses == [403, 403, 403]
        assert page.context.cookies() == []
    finally:
        rebinding.close()


FOREIGN = [
    "https://evil.invalid/",
    "//evil.invalid/",
    "///evil.invalid/",
    "/\\evil.invalid/",
    "\\\\evil.invalid/",
    "/\t/evil.invalid/",
    "/.//evil.invalid/",
    "/%09/evil.invalid/",
    "javascript:window.planted=1",
    "data:text/html,x",
    "@evil.invalid/",
    ".evil.invalid/",
    "evil.invalid/",
    "/ui/sign-in",
    "http:evil.invalid",
    "",
]


def test_a_sign_in_returns_to_no_other_server(
    cluster: AccessCluster, page_of: Callable[..., MonitoredPage]
) -> None:
    watch = page_of(cluster.http_url)
    page = sign_in(watch, cluster.create_key("olga", shop=Role.READER))
    for address in FOREIGN:
        page.goto(f"{watch.address}/ui/sign-in?next={quote(address, safe='')}", wait_until="commit")
        # The page that it leads to need not be loaded.
        page.wait_for_url(lambda url: "/ui/sign-in" not in url, wait_until="commit")
        assert page.url.startswith(f"{watch.address}/"), address
        assert page.evaluate("window.planted") is None
    page.goto(f"{watch.address}/ui/sign-in?next=/ui/jobs")
    page.wait_for_url(f"{watch.address}/ui/jobs")
    watch.complaints.clear()  # of paths that do not exist
