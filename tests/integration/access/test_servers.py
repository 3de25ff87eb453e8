"""Access control over gRPC, HTTP and the binary RPC endpoint, with real credentials."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest
from tests.kit.access import AccessCluster, call_as, principal
from tests.kit.waiting import HANG_S, wait_until

from asterism_access.audit_log import AuditRecord, read_audit_log
from asterism_access.principals import Principal
from asterism_access.roles import EVERY_SPACE, Role
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_io.control_groups import available_cores
from asterism_proto.errors import (
    AsterismError,
    Forbidden,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS, STORE
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb


def _get(
    url: str, credential: str, path: str, body: object = None, *, method: str | None = None
) -> tuple[int, Any]:
    """Return the status and the JSON body of a request of HTTP; no credential if it is empty."""
    headers = {"authorization": f"Bearer {credential}"} if credential else {}
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers["content-type"] = "application/json"
    request = urllib.request.Request(url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=HANG_S) as reply:
            return reply.status, json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_the_first_administrator_creates_keys_and_grants_roles(cluster: AccessCluster) -> None:
    root = RemoteTransport(cluster.address, credentials=cluster.root)
    grant = metad_pb.RoleGrant(principal="first", space="shop", role=metad_pb.READER)
    root.call(ACCESS["grant_role"], grant, HANG_S)
    request = metad_pb.CreateApiKeyRequest(principal="first")
    key = root.call(ACCESS["create_api_key"], request, HANG_S)
    assert isinstance(key, metad_pb.CreateApiKeyReply)
    with cluster.connect(key.secret) as client:
        assert [space.name for space in client.spaces()] == ["shop"]
        assert len(client.graph("shop").sample_nodes(3, "n", seed=1).nodes) == 3
        with pytest.raises(Forbidden, match="space='bank': not found, or 'first' has no role"):
            client.graph("bank").sample_nodes(3, "n", seed=1)
        with pytest.raises(Forbidden, match="expected the role writer or a higher one"):
            client.begin_load("shop", source="x")
        root.call(ACCESS["revoke_api_key"], metad_pb.RevokeApiKeyRequest(key_id=key.key.key_id), 10)
        with pytest.raises(Unauthenticated, match="revoked"):
            client.spaces()
    root.close()


def test_refused_credentials_are_counted_by_every_daemon(cluster: AccessCluster) -> None:
    daemons = {"graphd": cluster.graphd, "metad": cluster.metad, "storaged": cluster.storaged}
    unknown = "ak_AAAAAAAAAAAA_" + "A" * 43
    for name, daemon in daemons.items():
        url = f"http://127.0.0.1:{daemon.http_port}"
        assert _get(url, unknown, "/status")[0] == _get(url, "", "/status")[0] == 401
        transport = RemoteTransport(
            f"127.0.0.1:{daemon.grpc_port}", role=name, credentials=lambda: unknown
        )
        method = STORE["find_binary_endpoint"] if name == "storaged" else CATALOG["list_spaces"]
        with pytest.raises(Unauthenticated):
            transport.call(method, method.request(), HANG_S)
        transport.close()
        with urllib.request.urlopen(f"{url}/metrics", timeout=HANG_S) as reply:
            text = reply.read().decode()
        for port, reason in (("http", "unknown"), ("http", "missing"), ("grpc", "unknown")):
            labels = f'{{daemon="{name}",port="{port}",reason="{reason}"}}'
            assert f"asterism_credentials_refused_total{labels}" in text, name
    log = cluster.graphd._checks.audit_log
    assert log is not None
    assert log.flush(HANG_S)
    records = [
        record
        for record in read_audit_log(cluster.folder / "graphd.jsonl")
        if isinstance(record, AuditRecord) and record.method == "GET /status"
    ]
    assert {(record.kind, record.outcome) for record in records} == {
        ("anonymous", "Unauthenticated")
    }
    assert "api_key='AAAAAAAAAAAA': expected the id and the secret" in records[0].detail


@pytest.mark.parametrize("credential", [None, "ak_AAAAAAAAAAAA_" + "A" * 43, "tk_x_y"])
def test_calls_without_accepted_credentials_are_refused(
    cluster: AccessCluster, credential: str | None
) -> None:
    with cluster.connect(credential) as client, pytest.raises(Unauthenticated):
        client.spaces()


def test_a_writer_and_a_builder_publish_a_version(cluster: AccessCluster) -> None:
    writer = cluster.create_key("wendy", shop=Role.WRITER)
    builder = cluster.create_key("bob", shop=Role.BUILDER)
    with cluster.connect(writer) as client:
        load = client.begin_load("shop", source="more nodes")
        load.write_nodes(0, "n", np.arange(10, 20), weights=np.ones(10))
        load.commit()
        with pytest.raises(Forbidden, match="expected the role builder"):
            client.submit_job("shop")
    with cluster.connect(builder) as client:
        job = client.wait(client.submit_job("shop").job_id, timeout_s=HANG_S)
        assert job.state == "FINISHED", job.cause
        assert all(job.space == "shop" for job in client.jobs())


def test_metad_takes_keys_too_and_the_names_of_others_from_daemons_only(
    cluster: AccessCluster,
) -> None:
    key = cluster.create_key("mia", bank=Role.READER)
    mia = RemoteTransport(cluster.metad_address, credentials=lambda: key)
    spaces = mia.call(CATALOG["list_spaces"], common_pb.Empty(), HANG_S)
    assert isinstance(spaces, metad_pb.SpaceList)
    assert [space.name for space in spaces.spaces] == ["bank"]
    with pytest.raises(Forbidden, match="expected a daemon of the cluster"):
        mia.call(HEARTBEATS["poll"], metad_pb.PollRequest(), HANG_S)
    forged = mia.on_behalf_of(principal("root", **{EVERY_SPACE: Role.ADMIN}))
    with pytest.raises(Forbidden, match="as the forwarder of another principal's call"):
        forged.call(CATALOG["list_spaces"], common_pb.Empty(), HANG_S)
    mia.close()


def test_a_ticket_of_routes_opens_its_spaces_at_storageds_only(cluster: AccessCluster) -> None:
    key = cluster.create_key("tess", shop=Role.READER)
    graphd = RemoteTransport(cluster.address, credentials=lambda: key)
    reply = graphd.call(GRAPH["get_routes"], Frame(graphd_pb.GetRoutesRequest()), HANG_S)
    assert isinstance(reply, Frame)
    assert isinstance(reply.head, graphd_pb.GetRoutesReply)
    assert [route.space.name for route in reply.head.desired_state.spaces] == ["shop"]
    assert 0 < reply.head.ticket_s <= 300
    ticket = reply.head.ticket
    graphd.close()
    address = cluster.storaged.address
    storaged = TcpTransport(
        address,
        RemoteTransport(address, credentials=lambda: ticket),
        credentials=lambda: ticket,
    )

    def read(space: str) -> None:
        version = storaged_pb.VersionRef(space_id=cluster.space_id(space), version=1, digest="x")
        head = storaged_pb.ReadNodeTypesRequest(version_ref=version)
        request = Frame(head, {"ids": np.arange(3)})
        storaged.call(STORE["read_node_types"], request, HANG_S)

    with pytest.raises(AsterismError) as wrong_digest:
        read("shop")
    assert not isinstance(wrong_digest.value, Forbidden | Unauthenticated)
    with pytest.raises(Forbidden, match="not found, or 'tess' has no role there"):
        read("bank")
    write = storaged_pb.WriteBlocksRequest(space_id=cluster.space_id("shop"), load_id=1)
    with pytest.raises(Forbidden, match="expected the role writer"):
        storaged.call(STORE["write_blocks"], Frame(write), HANG_S)
    assert len(cluster.storaged._stream._connections) > 0
    storaged.close()
    with cluster.connect(ticket) as client, pytest.raises(Unauthenticated, match="for storageds"):
        client.spaces()


def test_http_serves_the_spaces_of_its_caller(cluster: AccessCluster) -> None:
    key = cluster.create_key("hana", shop=Role.READER)
    url = cluster.http_url
    for path in ("/status", "/flags", "/ui", "/ui/api/spaces", "/api/v1/jobs", "/docs", "/"):
        assert _get(url, "", path)[0] == 401
        assert _get(url, "ak_wrong", path)[0] == 401
    assert list(_get(url, key, "/status")[1]["spaces"]) == ["shop"]
    sample = {"n": 3, "ntype": "n"}
    shop, bank, none = (f"/api/v1/spaces/{name}/sample-nodes" for name in ("shop", "bank", "none"))
    assert _get(url, key, shop, sample)[0] == 200
    refusals = [_get(url, key, path, sample) for path in (bank, none)]
    assert [status for status, _ in refusals] == [403, 403]
    texts = {
        json.dumps(refusals[i][1]).replace(name, "x") for i, name in ((0, "bank"), (1, "none"))
    }
    assert len(texts) == 1
    jobs = _get(url, key, "/api/v1/jobs")[1]
    assert {job["space"] for job in jobs["jobs"]} == {"shop"}
    assert jobs["total"] == len(jobs["jobs"])
    build = {"space": "shop", "kind": "build"}
    assert _get(url, key, "/api/v1/jobs", build)[0] == 403
    assert _get(url, key, "/query", {"statement": "SHOW SPACES"})[1]["rows"][0][0] == "shop"
    assert _get(url, key, "/query", {"statement": "USE bank"})[0] == 403
    test = {"space": "shop", "draws": 1000}
    assert _get(url, key, "/verify", test)[0] == 200
    assert _get(url, key, "/verify", {"space": "bank", "draws": 1000})[0] == 403


def test_pages_show_the_spaces_of_their_caller_and_no_logs(cluster: AccessCluster) -> None:
    key = cluster.create_key("paul", shop=Role.READER)
    url = cluster.http_url
    spaces = _get(url, key, "/ui/api/spaces")
    assert spaces[0] == 200
    assert "bank" not in json.dumps(spaces[1])
    assert "bank" not in json.dumps(_get(url, key, "/ui/api/overview")[1])
    assert _get(url, key, "/ui/api/spaces/bank")[0] == 403
    assert _get(url, key, "/ui/api/logs")[0] == 403
    assert _get(url, cluster.root(), "/ui/api/logs")[0] == 200
    assert "bank" in json.dumps(_get(url, cluster.root(), "/ui/api/spaces")[1])


def test_the_http_port_of_metad_checks_roles(cluster: AccessCluster) -> None:
    key = cluster.create_key("mona", shop=Role.READER)
    url = f"http://127.0.0.1:{cluster.metad.http_port}"
    assert _get(url, "", "/api/v1/spaces")[0] == 401
    assert [space["name"] for space in _get(url, key, "/api/v1/spaces")[1]] == ["shop"]
    for path in ("/api/v1/spaces/bank", "/api/v1/spaces/bank/versions/1/weight-stats"):
        assert _get(url, key, path)[0] == 403
    assert _get(url, key, "/api/v1/spaces/shop", method="DELETE")[0] == 403
    assert _get(url, key, "/api/v1/spaces", {"name": "x", "schema": {}})[0] in (403, 422)


def test_a_reader_of_a_space_sees_nothing_of_a_dropped_namesake(cluster: AccessCluster) -> None:
    cluster.publish("twice")
    client = cluster.client
    old_job = client.jobs(space="twice")[0].job_id
    old_load = client.begin_load("twice", source="open")
    old_pin = LocalTransport(cluster.metad.handlers).call(
        CATALOG["pin_version"], metad_pb.PinVersionRequest(space="twice", owner="old"), HANG_S
    )
    assert isinstance(old_pin, metad_pb.Pin)
    client.drop_space("twice")
    cluster.publish("twice")
    new_job = client.jobs(space="twice")[0].job_id
    reader = principal("ria", twice=Role.READER)
    everywhere = principal("eva", **{EVERY_SPACE: Role.READER})
    listing = metad_pb.ListJobsRequest(space="twice")
    for daemon in ("graphd", "metad"):
        handlers = cluster.handlers()[daemon]

        def call(caller: Principal, name: str, request: Any, handlers: Any = handlers) -> Any:
            return handlers[CATALOG[name].path](request, call_as(caller))

        for name, old in (
            ("get_job", metad_pb.JobRequest(job_id=old_job)),
            ("get_load", metad_pb.LoadRequest(load_id=old_load.load_id)),
            ("renew_pin", metad_pb.PinRequest(pin_id=old_pin.pin_id)),
        ):
            with pytest.raises(Forbidden, match="'ria' has no role in its space"):
                call(reader, name, old)
        for request in (listing, metad_pb.ListJobsRequest()):
            page = call(reader, "list_jobs", request)
            assert [job.job_id for job in page.jobs if job.space == "twice"] == [new_job]
            assert page.total == 1
        assert [job.job_id for job in call(everywhere, "list_jobs", listing).jobs] == [
            new_job,
            old_job,
        ]
        assert call(reader, "get_job", metad_pb.JobRequest(job_id=new_job)).job_id == new_job
        assert call(everywhere, "get_job", metad_pb.JobRequest(job_id=old_job)).space == "twice"
    client.drop_space("twice")


def test_a_daemon_without_roles_yet_is_unavailable(cluster: AccessCluster) -> None:
    key = cluster.create_key("early", shop=Role.READER)
    graphd = cluster.new_graphd("late")
    graphd.open_ports()
    try:
        assert "no roles from metad yet" in graphd.ready()
        transport = RemoteTransport(f"127.0.0.1:{graphd.grpc_port}", credentials=lambda: key)
        url = f"http://127.0.0.1:{graphd.http_port}"
        with pytest.raises(Unavailable, match="has not received the roles yet"):
            transport.call(CATALOG["list_spaces"], common_pb.Empty(), HANG_S)
        assert _get(url, key, "/status")[0] == 503
        assert _get(url, "", "/status")[0] == 401
        graphd.start()
        wait_until(lambda: not graphd.ready(), lambda: f"ready: {graphd.ready()}")
        assert _get(url, key, "/status")[0] == 200
        transport.call(CATALOG["list_spaces"], common_pb.Empty(), HANG_S)
        transport.close()
    finally:
        graphd.stop()


def test_a_full_space_takes_no_writes_until_its_limit_is_raised(cluster: AccessCluster) -> None:
    cluster.publish("full")
    space_id = cluster.space_id("full")
    admin = cluster.create_key("fay", full=Role.ADMIN)

    def limit(stored_bytes: int) -> None:
        cluster.client.set_access_limits("*", "full", stored_bytes=stored_bytes)

    def known_bytes() -> int:
        return cluster.metad.components.cluster.stored_bytes().get(space_id, 0)

    cluster.storaged._garbage_collector.measure()
    wait_until(lambda: known_bytes() > 0, "the storaged reports the size of the space")
    with cluster.connect(admin) as client:
        graph = client.graph("full")
        limit(1)
        full = f"stored_bytes={known_bytes()}: expected less than 1, the limit of space 'full'"
        with pytest.raises(QuotaExceeded, match=full):
            client.begin_load("full", source="more")
        with pytest.raises(QuotaExceeded, match=full):
            graph.upsert_nodes([77], "n", weights=[1.0])
        assert len(graph.sample_nodes(3, "n", seed=1).nodes) == 3
        limit(1 << 40)
        graph.upsert_nodes([77], "n", weights=[1.0])
    limit(0)
    cluster.client.drop_space("full")


def test_calls_that_compute_are_bounded_except_at_metad(cluster: AccessCluster) -> None:
    """Calls of metad wait for each other and for changes, and compute little."""
    held: dict[str, Any] = {
        "graphd": cluster.graphd._grpc._pool._slots,
        "storaged": cluster.storaged._grpc._pool._slots,
        "binary endpoint": cluster.storaged._stream._slots,
        "metad": cluster.metad._grpc._pool._slots,
    }
    bounds = {name: slots._queue._cores for name, slots in held.items()}
    assert bounds == {**dict.fromkeys(held, available_cores()), "metad": 0}


def test_a_new_role_holds_for_the_next_call(cluster: AccessCluster) -> None:
    key = cluster.create_key("nora", shop=Role.READER)
    with cluster.connect(key) as client:
        assert [space.name for space in client.spaces()] == ["shop"]
        cluster.create_key("nora", bank=Role.READER)
        assert [space.name for space in client.spaces()] == ["shop", "bank"]
    wait_until(lambda: not cluster.graphd.ready(), "the graphd stays ready")


def test_limits_and_the_audit_log_hold_for_every_handler(cluster: AccessCluster) -> None:
    key = cluster.create_key("lena", shop=Role.WRITER)
    root = RemoteTransport(cluster.address, credentials=cluster.root)
    with cluster.connect(key) as client:
        graph = client.graph("shop")
        graph.sample_nodes(3, "n", seed=1)
        load = client.begin_load("shop", source="audited")
        load.abandon()
        with pytest.raises(Forbidden):
            client.drop_space("bank")
        limits = metad_pb.AccessLimits(principal="lena", space="*", rows_per_s=1)
        root.call(ACCESS["set_access_limits"], limits, HANG_S)
        graph.sample_nodes(1000, "n", seed=1)  # more than a second's rows, which the next call pays
        with pytest.raises(QuotaExceeded, match="'lena'"):
            graph.sample_nodes(1000, "n", seed=1)
    root.close()

    def audited() -> dict[tuple[str, str], str]:
        log = read_audit_log(cluster.folder / "graphd.jsonl")
        return {
            (record.method, record.space): record.outcome
            for record in log
            if isinstance(record, AuditRecord) and record.principal == "lena"
        }

    wait_until(lambda: ("DropSpace", "bank") in audited(), "the audit log is written")
    assert audited()["BeginLoad", "shop"] == "OK"
    assert audited()["DropSpace", "bank"] == "Forbidden"
    assert ("SampleNodes", "shop") not in audited()


def test_changes_over_http_pass_the_same_checks(cluster: AccessCluster) -> None:
    url = f"http://127.0.0.1:{cluster.metad.http_port}"
    ticket = cluster.key.root_ticket(HANG_S)
    body = {"name": "by_http", "schema": {"nodes": {"n": {}}}}
    assert _get(url, ticket, "/api/v1/spaces", body)[0] == 201
    assert _get(url, ticket, "/api/v1/spaces/by_http", method="DELETE")[0] == 204
    changes = {
        record.method: (record.space, record.outcome, record.peer.startswith("ipv4:127.0.0.1:"))
        for record in read_audit_log(cluster.folder / "metad.jsonl")
        if isinstance(record, AuditRecord) and record.space == "by_http"
    }
    assert changes == dict.fromkeys(("CreateSpace", "DropSpace"), ("by_http", "OK", True))
