"""Sign-in, sessions and the page of access control over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.kit.access import AccessCluster
from tests.kit.ports import ReservedPort
from tests.kit.waiting import HANG_S, wait_until

from asterism_access.audit_log import AuditRecord, read_audit_log
from asterism_access.credentials.session_tokens import PREFIX
from asterism_access.failed_sign_ins import MAX_FAILURES, FailedSignIns
from asterism_access.roles import Role
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from graphd.app import Graphd

COOKIE = "asterism_session"
SAMPLE = ("/api/v1/spaces/shop/sample-nodes", {"n": 3, "ntype": "n"})


class Visitor:
    """A browser without scripts: a cookie jar that sends the headers of a browser."""

    def __init__(self, cluster: AccessCluster) -> None:
        self.url = cluster.http_url
        self.http = httpx.Client(base_url=self.url, timeout=HANG_S)
        self.token = ""

    def sign_in(self, credential: str) -> httpx.Response:
        reply = self.http.post(
            "/ui/api/sign-in", json={"credential": credential}, headers={"origin": self.url}
        )
        if reply.is_success:
            self.token = reply.json()["csrf_token"]
        return reply

    def post(self, path: str, body: object = None, **headers: str) -> httpx.Response:
        """Return the reply to a change that a page of this server makes."""
        usual = {"origin": self.url, "x-csrf-token": self.token}
        return self.http.post(path, json=body, headers=usual | headers)

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path)


@pytest.fixture
def visitor(cluster: AccessCluster) -> Iterator[Visitor]:
    visitor = Visitor(cluster)
    yield visitor
    visitor.http.close()


@pytest.fixture(autouse=True)
def no_failures(cluster: AccessCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin without failed sign-ins: all callers have one address here."""
    failed = _page_sign_in(cluster)
    monkeypatch.setattr(failed, "_failed", FailedSignIns())


def _page_sign_in(cluster: AccessCluster) -> object:
    assert cluster.graphd._pages is not None
    pages = cluster.graphd._pages()
    assert pages.sign_in is not None
    return pages.sign_in.session_of.__self__  # type: ignore[attr-defined]


def _audited(cluster: AccessCluster, method: str) -> list[AuditRecord]:
    log = cluster.graphd._checks.audit_log
    assert log is not None
    assert log.flush(HANG_S)
    return [
        record
        for record in read_audit_log(cluster.folder / "graphd.jsonl")
        if isinstance(record, AuditRecord) and record.method == method
    ]


def test_a_session_has_the_roles_of_its_key(cluster: AccessCluster, visitor: Visitor) -> None:
    key = cluster.create_key("simon", shop=Role.READER)
    assert visitor.get("/ui/api/session").status_code == 401
    reply = visitor.sign_in(f"  {key}\n")
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")
    assert reply.json()["principal"] == "simon"
    assert key not in reply.text
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}={PREFIX}")
    assert key not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    session = visitor.get("/ui/api/session").json()
    assert session == reply.json()
    assert (session["roles"], session["is_cluster_admin"]) == ({"shop": "reader"}, False)
    assert [space["name"] for space in visitor.get("/ui/api/spaces").json()["spaces"]] == ["shop"]
    assert visitor.post(*SAMPLE).status_code == 200
    refused = visitor.get("/ui/api/spaces/bank")
    assert (refused.status_code, refused.json()["error"]) == (403, "Forbidden")
    assert "not found, or 'simon' has no role there" in refused.json()["message"]
    build = visitor.post("/ui/api/jobs", {"space": "shop", "kind": "audit"})
    assert build.status_code == 403
    assert "expected the role builder" in build.json()["message"]


def test_a_change_needs_token_and_origin(cluster: AccessCluster, visitor: Visitor) -> None:
    key = cluster.create_key("tilda", shop=Role.READER)
    assert visitor.sign_in(key).status_code == 200
    other = Visitor(cluster)
    assert other.sign_in(key).status_code == 200
    for wrong in (
        {"x-csrf-token": ""},
        {"x-csrf-token": other.token},
        {"origin": "http://evil.example"},
        {"origin": visitor.url.replace("127.0.0.1", "localhost")},
        {"sec-fetch-site": "cross-site"},
    ):
        assert visitor.post(*SAMPLE, **wrong).status_code == 403, wrong
    bare = visitor.http.post(SAMPLE[0], json=SAMPLE[1])
    assert (bare.status_code, bare.json()["error"]) == (403, "Forbidden")
    program = other.http.post(SAMPLE[0], json=SAMPLE[1], headers={"authorization": f"Bearer {key}"})
    assert program.status_code == 200
    other.http.close()


def test_a_revoked_key_ends_the_session(cluster: AccessCluster, visitor: Visitor) -> None:
    key = cluster.create_key("ulla", shop=Role.READER)
    session = visitor.sign_in(key).json()
    root = Visitor(cluster)
    assert root.sign_in(cluster.root()).json()["is_cluster_admin"]
    revoked = root.post(f"/ui/api/access/keys/{session['credential_id']}/revoke", {})
    assert revoked.json()["revoked_ms"] > 0
    wait_until(lambda: visitor.get("/ui/api/spaces").status_code == 401, "the session ends")
    assert "revoked" in visitor.get("/ui/api/spaces").json()["message"]
    assert visitor.sign_in(key).status_code == 401
    root.http.close()


def test_sign_out_ends_a_copied_session(cluster: AccessCluster, visitor: Visitor) -> None:
    visitor.sign_in(cluster.create_key("vera", shop=Role.READER))
    copy = {"cookie": f"{COOKIE}={visitor.http.cookies[COOKIE]}"}
    assert visitor.post("/ui/api/sign-out", **{"x-csrf-token": ""}).status_code == 403
    assert httpx.get(f"{visitor.url}/ui/api/session", headers=copy).status_code == 200
    reply = visitor.post("/ui/api/sign-out")
    assert reply.status_code == 204
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert COOKIE not in visitor.http.cookies
    after = httpx.get(f"{visitor.url}/ui/api/session", headers=copy)
    assert (after.status_code, after.json()["message"]) == (
        401,
        "session: signed out; sign in again",
    )


def test_sign_out_ends_a_copied_session_at_all_graphds(
    cluster: AccessCluster, visitor: Visitor
) -> None:
    """One that runs, and one that starts afterwards, as the same graphd would."""
    others = [cluster.new_graphd("graphd2"), cluster.new_graphd("graphd3")]

    def status(graphd: Graphd) -> int:
        url = f"http://127.0.0.1:{graphd.http_port}/ui/api/session"
        return httpx.get(url, headers=copy, timeout=HANG_S).status_code

    try:
        start(others[0])
        visitor.sign_in(cluster.root())
        copy = {"cookie": f"{COOKIE}={visitor.http.cookies[COOKIE]}"}
        assert status(others[0]) == 200
        assert visitor.post("/ui/api/sign-out").status_code == 204
        wait_until(lambda: status(others[0]) == 401, "the other graphd knows of the sign-out")
        start(others[1])
        assert status(others[1]) == 401
    finally:
        for graphd in others:
            graphd.stop()


def start(graphd: Graphd) -> None:
    """Start a graphd and wait until it is ready."""
    graphd.start()
    graphd.open_ports()
    wait_until(lambda: not graphd.ready(), lambda: f"nothing is missing: {graphd.ready()}")


def test_a_sign_out_that_metad_misses_is_no_success(
    cluster: AccessCluster, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.sign_in(cluster.create_key("viola", shop=Role.READER))
    copy = {"cookie": f"{COOKIE}={visitor.http.cookies[COOKIE]}"}
    with ReservedPort() as port:
        away = RemoteTransport(port.address, role="metad")
        monkeypatch.setattr(cluster.graphd._sign_outs, "_metad", away)
        reply = visitor.post("/ui/api/sign-out")
        away.close()
    assert (reply.status_code, reply.json()["error"]) == (503, "Unavailable")
    assert "other graphds accept copies of it until it expires" in reply.json()["message"]
    assert COOKIE not in visitor.http.cookies
    assert httpx.get(f"{visitor.url}/ui/api/session", headers=copy).status_code == 401
    assert _audited(cluster, "SignOut")[-1].outcome == "Unavailable"


def test_wrong_sign_ins_show_no_credential(cluster: AccessCluster, visitor: Visitor) -> None:
    key = cluster.create_key("wanda", shop=Role.READER)
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    for credential in (wrong, "hunter2", cluster.key.daemon_ticket("graphd"), ""):
        reply = visitor.sign_in(credential)
        assert (reply.status_code, reply.json()["error"]) == (401, "Unauthenticated")
        assert "set-cookie" not in reply.headers
        assert not credential or credential not in reply.text
    for body in ({"apikey": key}, {"credential": key, "x": 1}, [key], key, {"credential": [key]}):
        reply = visitor.post("/ui/api/sign-in", body)
        assert (reply.status_code, reply.json()["error"]) == (400, "InvalidRequest"), body
        assert key not in reply.text
    foreign = visitor.http.post(
        "/ui/api/sign-in", json={"credential": key}, headers={"origin": "http://evil.example"}
    )
    assert foreign.status_code == 403
    form = visitor.http.post("/ui/api/sign-in", data={"credential": key})
    assert form.status_code == 415
    assert COOKIE not in visitor.http.cookies


def test_failed_sign_ins_of_an_address_are_limited(
    cluster: AccessCluster, visitor: Visitor
) -> None:
    key = cluster.create_key("xena", shop=Role.READER)
    before = len(_audited(cluster, "SignIn"))
    statuses = [visitor.sign_in("hunter2").status_code for _ in range(MAX_FAILURES + 3)]
    assert statuses == [401] * MAX_FAILURES + [429] * 3
    reply = visitor.sign_in(key)
    assert (reply.status_code, reply.json()["error"]) == (429, "QuotaExceeded")
    assert 0 < int(reply.headers["retry-after"]) <= 6
    assert len(_audited(cluster, "SignIn")) - before == MAX_FAILURES
    program = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{visitor.url}/ui/api/session", headers=program).status_code == 200


def test_sign_ins_are_audited_with_the_address(cluster: AccessCluster, visitor: Visitor) -> None:
    key = cluster.create_key("yoko", shop=Role.READER)
    visitor.sign_in(f"{key[:-6]}000000")
    key_id = visitor.sign_in(key).json()["credential_id"]
    visitor.post("/ui/api/jobs", {"space": "shop", "kind": "audit"})
    visitor.post("/ui/api/sign-out")
    failed, signed_in = _audited(cluster, "SignIn")[-2:]
    assert (failed.principal, failed.kind, failed.outcome) == (
        "",
        "anonymous",
        "Unauthenticated",
    )
    assert key_id in failed.detail
    assert (signed_in.principal, signed_in.kind, signed_in.credential_id, signed_in.outcome) == (
        "yoko",
        "api_key",
        key_id,
        "OK",
    )
    (signed_out,) = [r for r in _audited(cluster, "SignOut") if r.principal == "yoko"]
    (refused,) = [r for r in _audited(cluster, "SubmitJob") if r.principal == "yoko"]
    assert (signed_out.outcome, refused.outcome) == ("OK", "Forbidden")
    for record in (failed, signed_in, signed_out, refused):
        assert record.peer.startswith("ipv4:127.0.0.1:")
    log = (cluster.folder / "graphd.jsonl").read_text()
    assert key not in log
    assert PREFIX not in log


def test_browsers_without_a_session_sign_in_first(cluster: AccessCluster, visitor: Visitor) -> None:
    html = {"accept": "text/html"}
    for path in ("/", "/ui", "/ui/spaces/shop?offset=25", "/docs", "/status"):
        reply = visitor.http.get(path, headers=html)
        assert reply.status_code == 303, path
        assert reply.headers["location"].startswith("/ui/sign-in?next=/"), path
    page = visitor.http.get("/ui/sign-in?next=/ui", headers=html)
    assert page.status_code == 200
    assert "form-action 'none'" in page.headers["content-security-policy"]
    for name in ("api.js", "dom.js", "icon.svg", "sign-in.js", "style.css", "theme.js"):
        assert visitor.get(f"/ui/static/{name}").status_code == 200
        assert name in page.text or name in ("api.js", "dom.js")
    for path in ("/ui/static/app.js", "/ui/static/index.html", "/ui/api/sign-out"):
        assert visitor.get(path).status_code == 401, path
    rebound = visitor.http.get("/ui/sign-in", headers={"host": "rebound.example"} | html)
    assert rebound.status_code == 403


def test_administrators_manage_keys_and_roles(cluster: AccessCluster, visitor: Visitor) -> None:
    visitor.sign_in(cluster.root())
    made = visitor.post(
        "/ui/api/access/keys", {"principal": "zelda", "description": "web", "expires_days": 2}
    )
    secret, key_id = made.json()["secret"], made.json()["key"]["key_id"]
    assert made.headers["cache-control"] == "no-store"
    assert secret.startswith(f"ak_{key_id}_")
    granted = visitor.post(
        "/ui/api/access/grants", {"principal": "zelda", "space": "shop", "role": "builder"}
    )
    assert granted.json() == {"principal": "zelda", "space": "shop", "role": "builder"}
    view = visitor.get("/ui/api/access?q=zelda").json()
    assert view["principals"] == [
        {"name": "zelda", "valid_keys": 1, "role_everywhere": "", "spaces": 1}
    ]
    assert view["grants"] == [granted.json()]
    (key,) = view["keys"]
    assert (key["key_id"], key["description"], key["revoked_ms"]) == (key_id, "web", 0)
    assert key["expires_ms"] - key["created_ms"] == 2 * 86_400_000
    assert secret not in visitor.get("/ui/api/access").text
    visitor.post("/ui/api/access/grants/revoke", {"principal": "zelda", "space": "shop"})
    visitor.post(f"/ui/api/access/keys/{key_id}/revoke", {})
    view = visitor.get("/ui/api/access?q=zelda").json()
    assert (view["grants"], view["keys"][0]["revoked_ms"] > 0) == ([], True)
    whole = visitor.post(f"/ui/api/access/keys/{secret}/revoke", {})
    assert whole.status_code == 400
    assert secret not in whole.text
    methods = {"CreateApiKey", "GrantRole", "RevokeRole", "RevokeApiKey"}
    for method in methods:
        record = _audited(cluster, method)[-1]
        assert (record.principal, record.kind) == ("root", "ticket")
        assert record.peer.startswith("ipv4:127.0.0.1:")


def test_administrators_set_and_remove_limits(cluster: AccessCluster, visitor: Visitor) -> None:
    visitor.sign_in(cluster.root())
    body = {"principal": "zoe", "space": "shop", "calls_per_s": 0.5, "jobs": 2}
    assert visitor.post("/ui/api/access/limits", body, **{"x-csrf-token": ""}).status_code == 403
    assert visitor.get("/ui/api/access?q=zoe").json()["limits"] == []
    made = visitor.post("/ui/api/access/limits", body)
    assert made.json() == {
        "principal": "zoe",
        "space": "shop",
        "limits": {"calls_per_s": 0.5, "jobs": 2},
    }
    assert visitor.get("/ui/api/access?q=zoe").json()["limits"] == [made.json()]
    for wrong, status in (({"jobs": 1.5}, 422), ({"pins": -1}, 422), ({"share": 1e6}, 400)):
        refused = visitor.post("/ui/api/access/limits", body | wrong)
        assert (refused.status_code, refused.json()["error"]) == (status, "InvalidRequest")
    record = _audited(cluster, "SetAccessLimits")[-2]
    assert (record.principal, record.outcome, "zoe" in record.detail) == ("root", "OK", True)
    key = cluster.create_key("zoe", shop=Role.READER)
    other = Visitor(cluster)
    assert other.sign_in(key).status_code == 200
    assert other.post("/ui/api/access/limits", body).status_code == 403
    assert [other.post(*SAMPLE).status_code for _ in range(2)] == [200, 429]
    removed = visitor.post("/ui/api/access/limits", {"principal": "zoe", "space": "shop"})
    assert removed.json()["limits"] == {}
    assert [other.post(*SAMPLE).status_code for _ in range(2)] == [200, 200]
    assert visitor.get("/ui/api/access?q=zoe").json()["limits"] == []
    other.http.close()


def test_others_see_and_grant_what_they_administer(
    cluster: AccessCluster, visitor: Visitor
) -> None:
    visitor.sign_in(cluster.create_key("aaron", shop=Role.ADMIN))
    cluster.create_key("bella", bank=Role.READER)
    view = visitor.get("/ui/api/access").json()
    assert (view["is_cluster_admin"], view["keys"]) == (False, [])
    assert {grant["space"] for grant in view["grants"]} == {"shop"}
    grant = {"principal": "bella", "role": "reader"}
    assert visitor.post("/ui/api/access/grants", grant | {"space": "shop"}).status_code == 200
    for space in ("bank", "none", "*"):
        assert visitor.post("/ui/api/access/grants", grant | {"space": space}).status_code == 403
    assert visitor.post("/ui/api/access/keys", {"principal": "aaron"}).status_code == 403
    assert visitor.post("/ui/api/access/keys/AAAAAAAAAAAA/revoke", {}).status_code == 403
