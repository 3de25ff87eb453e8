"""The HTTP and gRPC endpoints of metad over real connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.kit.metad import SCHEMA, finished_report
from tests.kit.waiting import HANG_S, let_pass, wait_until

from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import NotFound, Unavailable
from asterism_proto.methods import CATALOG, HEARTBEATS
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings


class MetadEndpoints:
    """A running metad, an HTTP client, and a storaged s1 that uses the gRPC endpoint."""

    def __init__(self, folder: Path) -> None:
        self.metad = Metad(
            MetadSettings(
                data=folder, listen="127.0.0.1:0", http_listen="127.0.0.1:0", stop_grace_s=1
            )
        )
        self.metad.start()
        self.metad.open_ports()
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.metad.http_port}",
            timeout=HANG_S,
            # The server closes unused connections after 5 s; no request may meet that moment.
            limits=httpx.Limits(keepalive_expiry=2.0),
        )
        self.grpc = RemoteTransport(f"127.0.0.1:{self.metad.grpc_port}")

    def close(self) -> None:
        self.http.close()
        self.grpc.close()
        self.metad.stop()

    def get(self, path: str, status: int = 200) -> Any:
        reply = self.http.get(f"/api/v1{path}")
        assert reply.status_code == status, reply.text
        return reply.json()

    def post(self, path: str, content: Any = None, status: int = 202) -> Any:
        reply = self.http.post(f"/api/v1{path}", json=content)
        assert reply.status_code == status, reply.text
        return reply.json()

    def heartbeat(self, *tasks: metad_pb.TaskReport) -> None:
        self.grpc.call(
            HEARTBEATS["heartbeat"],
            metad_pb.HeartbeatRequest(
                role=metad_pb.STORAGED, uuid="s1", incarnation=1, address="s1:9779", tasks=tasks
            ),
            5,
        )

    def task_orders(self) -> list[metad_pb.TaskAssignment]:
        reply = self.grpc.call(
            HEARTBEATS["poll"],
            metad_pb.PollRequest(role=metad_pb.STORAGED, uuid="s1", incarnation=1),
            5,
        )
        assert isinstance(reply, metad_pb.PollReply)
        return list(reply.task_assignments)

    def commit_load(self, space: str = "graph") -> None:
        load = self.grpc.call(CATALOG["begin_load"], metad_pb.BeginLoadRequest(space=space), 5)
        assert isinstance(load, metad_pb.Load)
        self.grpc.call(CATALOG["commit_load"], metad_pb.CommitLoadRequest(load_id=load.load_id), 5)


@pytest.fixture(scope="module")
def shared_endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetadEndpoints]:
    endpoints = MetadEndpoints(tmp_path_factory.mktemp("metad"))
    yield endpoints
    endpoints.close()


@pytest.fixture
def endpoints(shared_endpoints: MetadEndpoints) -> Iterator[MetadEndpoints]:
    shared_endpoints.heartbeat()
    shared_endpoints.post("/spaces", {"name": "graph", "schema": SCHEMA.to_dict()}, 201)
    yield shared_endpoints
    shared_endpoints.http.delete("/api/v1/spaces/graph").raise_for_status()


def test_space_is_created_shown_and_dropped_over_http(endpoints: MetadEndpoints) -> None:
    created = endpoints.post(
        "/spaces",
        {
            "name": "other",
            "schema": {"parts": 2, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}},
        },
        201,
    )
    shown = endpoints.get("/spaces/other")
    assert shown == created
    assert (shown["version"], shown["parts"], shown["parts_by_host"]) == (
        0,
        [["s1"], ["s1"]],
        {"s1": [0, 1]},
    )
    assert list(shown["schema"]["edges"]) == ["n:to:n"]
    assert [space["name"] for space in endpoints.get("/spaces")] == ["graph", "other"]
    assert endpoints.http.delete("/api/v1/spaces/other").status_code == 204
    assert "does not exist" in endpoints.get("/spaces/other", 404)["message"]
    assert endpoints.http.delete("/api/v1/spaces/other").status_code == 404
    assert (
        endpoints.http.delete("/api/v1/spaces/other", params={"if_exists": "true"}).status_code
        == 204
    )


def test_a_job_is_followed_from_submit_to_version(endpoints: MetadEndpoints) -> None:
    endpoints.commit_load()
    job = endpoints.post("/jobs", {"space": "graph"})
    assert (job["state"], job["watermark"], job["progress"]["fraction"]) == ("RUNNING", 1, None)
    assert job["cut"] == job["watermark"]
    (order,) = endpoints.task_orders()
    time.sleep(0.25)  # a rate covers at least a fifth of a second
    endpoints.heartbeat(
        metad_pb.TaskReport(
            task_id=order.task_id,
            attempt=1,
            state=common_pb.RUNNING,
            phase="sort",
            rows_done=25,
            rows_total=100,
        )
    )
    shown = endpoints.get(f"/jobs/{job['job_id']}")
    assert (shown["tasks"][0]["phase"], shown["progress"]["fraction"]) == ("sort", 0.25)
    rate = shown["progress"]["rows_per_s"]
    assert shown["progress"]["eta_s"] == pytest.approx(75 / rate)
    endpoints.heartbeat(finished_report(order))
    finished_job = endpoints.get(f"/jobs/{job['job_id']}")
    assert (finished_job["state"], finished_job["version"], finished_job["progress"]["eta_s"]) == (
        "FINISHED",
        1,
        None,
    )
    totals = {
        total["type"]: (total["element"], total["count"], total["weight"])
        for total in endpoints.get("/spaces/graph")["totals"]
    }
    assert totals["author"] == ("node", 12, 6.0)
    assert totals["paper:cites:paper"] == ("edge", 8, 8.0)
    (version,) = endpoints.get("/spaces/graph/versions")
    assert (version["version"], version["job_id"], version["current"]) == (1, job["job_id"], True)
    assert endpoints.get("/spaces/graph/versions/1") == version


@pytest.mark.parametrize(("weight_name", "counted"), [("", 12), ("weight", 12), ("clicks", None)])
def test_row_counts_come_from_the_totals_of_a_types_weight(
    endpoints: MetadEndpoints, weight_name: str, counted: int | None
) -> None:
    endpoints.commit_load()
    endpoints.post("/jobs", {"space": "graph"})
    (order,) = endpoints.task_orders()
    endpoints.heartbeat(finished_report(order, weight_name=weight_name))
    for totals in (
        endpoints.get("/spaces/graph")["totals"],
        endpoints.get("/spaces/graph/versions")[0]["totals"],
    ):
        by_type = {total["type"]: (total["count"], total["weight"]) for total in totals}
        assert by_type.get("author") == (None if counted is None else (counted, 6.0))


def test_a_job_is_stopped_and_recovered_over_http(endpoints: MetadEndpoints) -> None:
    endpoints.commit_load()
    job = endpoints.post("/jobs", {"space": "graph", "kind": "build"})["job_id"]
    assert endpoints.post(f"/jobs/{job}/stop")["ending"] == "STOPPED"
    endpoints.heartbeat()
    assert endpoints.get(f"/jobs/{job}")["state"] == "STOPPED"
    assert endpoints.post(f"/jobs/{job}/recover")["state"] == "RUNNING"
    assert endpoints.task_orders()[0].attempt == 2
    assert (
        "only FAILED and STOPPED" in endpoints.post(f"/jobs/{job}/recover", status=409)["message"]
    )


def test_audit_over_http_reports_findings_and_failures(endpoints: MetadEndpoints) -> None:
    endpoints.commit_load()
    assert (
        "no published version"
        in endpoints.post("/jobs", {"space": "graph", "kind": "audit"}, 409)["message"]
    )
    endpoints.post("/jobs", {"space": "graph"})
    (order,) = endpoints.task_orders()
    endpoints.heartbeat(finished_report(order))
    assert (
        "version 5"
        in endpoints.post("/jobs", {"space": "graph", "kind": "audit", "version": 5}, 404)[
            "message"
        ]
    )
    assert (
        "'colour'"
        in endpoints.post(
            "/jobs", {"space": "graph", "kind": "audit", "options": {"colour": "red"}}, 400
        )["message"]
    )
    job = endpoints.post("/jobs", {"space": "graph", "kind": "audit"})
    assert (job["kind"], job["target_version"], job["options"]) == ("audit", 1, {})
    assert (
        endpoints.post("/jobs", {"space": "graph", "kind": "audit", "version": 1})["job_id"]
        == job["job_id"]
    )
    (order,) = endpoints.task_orders()
    assert (order.kind, order.version) == ("audit", 1)
    report = finished_report(order)
    report.result.audit.add(
        element=common_pb.NODE, type_id=1, count=12, positive=12, weight=6.0, table_tv=1e-17
    )
    endpoints.heartbeat(report)
    finished_job = endpoints.get(f"/jobs/{job['job_id']}")
    assert (finished_job["state"], finished_job["version"]) == ("FINISHED", 0)
    (audit,) = finished_job["tasks"][0]["result"]["audit"]
    assert (audit["element"], audit["count"], audit["table_tv"]) == ("node", 12, 1e-17)

    second_job = endpoints.post("/jobs", {"space": "graph", "kind": "audit"})
    (order,) = endpoints.task_orders()
    endpoints.heartbeat(
        metad_pb.TaskReport(
            task_id=order.task_id,
            attempt=1,
            state=common_pb.FAILED,
            cause="mebibyte 0 is not what was written",
            permanent=True,
        )
    )
    failed = endpoints.get(f"/jobs/{second_job['job_id']}")
    assert failed["state"] == "FAILED"
    assert failed["tasks"][0]["causes"] == ["attempt 1: mebibyte 0 is not what was written"]


@pytest.fixture(scope="module")
def graphd_http(shared_endpoints: MetadEndpoints) -> Iterator[httpx.Client]:
    """Return a client of a graphd's HTTP port; the graphd passes calls on to the metad."""
    to_metad = LocalTransport(shared_endpoints.metad.handlers)
    graphd = Graphd(
        GraphdSettings(listen="127.0.0.1:0", http_listen="127.0.0.1:0", stop_grace_s=1),
        to_metad,
        lambda *_: to_metad,
    )
    graphd.open_ports()
    with httpx.Client(base_url=f"http://127.0.0.1:{graphd.http_port}", timeout=HANG_S) as client:
        yield client
    graphd.stop()


def test_graphd_passes_jobs_on_to_metad(
    endpoints: MetadEndpoints, graphd_http: httpx.Client
) -> None:
    endpoints.commit_load()
    submitted = graphd_http.post("/api/v1/jobs", json={"space": "graph"})
    job = submitted.json()
    assert (submitted.status_code, job["state"]) == (202, "RUNNING")
    path = f"/jobs/{job['job_id']}"
    assert endpoints.get(path) == job
    stopped = graphd_http.post(f"/api/v1{path}/stop")
    assert (stopped.status_code, stopped.json()["ending"]) == (202, "STOPPED")
    endpoints.heartbeat()
    recovered = graphd_http.post(f"/api/v1{path}/recover")
    assert (recovered.status_code, recovered.json()["state"]) == (202, "RUNNING")
    (order,) = endpoints.task_orders()
    endpoints.heartbeat(finished_report(order))
    finished_job = graphd_http.get(f"/api/v1{path}").json()
    assert finished_job == endpoints.get(path)
    assert finished_job["state"] == "FINISHED"
    assert finished_job["weight_stats"]
    assert finished_job["hygiene"] == finished_job["weight_stats"]
    page = "/jobs?space=graph&state=FINISHED&limit=1"
    assert graphd_http.get(f"/api/v1{page}").json() == endpoints.get(page)
    for request in ("/jobs/999999", "/jobs/x", "/jobs?limit=0", f"/jobs?before={1 << 63}"):
        refused = graphd_http.get(f"/api/v1{request}")
        assert refused.json() == endpoints.get(request, refused.status_code)
        assert refused.status_code in (404, 422)


def test_a_job_has_no_statistics_of_a_later_space(endpoints: MetadEndpoints) -> None:
    job_ids = []
    for _ in range(2):
        endpoints.post("/spaces", {"name": "again", "schema": SCHEMA.to_dict()}, 201)
        endpoints.commit_load("again")
        job_ids.append(endpoints.post("/jobs", {"space": "again"})["job_id"])
        endpoints.heartbeat(*map(finished_report, endpoints.task_orders()))
        assert endpoints.get(f"/jobs/{job_ids[-1]}")["weight_stats"]
        endpoints.http.delete("/api/v1/spaces/again").raise_for_status()
        assert endpoints.get(f"/jobs/{job_ids[-1]}")["weight_stats"] == []
    endpoints.post("/spaces", {"name": "again", "schema": SCHEMA.to_dict()}, 201)
    endpoints.commit_load("again")
    endpoints.post("/jobs", {"space": "again"})
    endpoints.heartbeat(*map(finished_report, endpoints.task_orders()))
    assert [endpoints.get(f"/jobs/{job_id}")["weight_stats"] for job_id in job_ids] == [[], []]
    endpoints.http.delete("/api/v1/spaces/again").raise_for_status()


def test_jobs_have_one_description_at_metad_and_graphd(
    endpoints: MetadEndpoints, graphd_http: httpx.Client
) -> None:
    ours, theirs = (
        {
            path: content
            for path, content in http.get("/openapi.json").json()["paths"].items()
            if path.startswith("/api/v1/jobs")
        }
        for http in (endpoints.http, graphd_http)
    )
    assert ours == theirs
    assert len(ours) == 4


def test_jobs_are_filtered_and_paged(endpoints: MetadEndpoints) -> None:
    for _ in range(3):
        endpoints.commit_load()
        endpoints.post("/jobs", {"space": "graph"})
    page = endpoints.get("/jobs?space=graph&limit=2&state=RUNNING&state=QUEUE")
    assert [job["state"] for job in page["jobs"]] == ["QUEUE", "QUEUE"]
    rest = endpoints.get(f"/jobs?limit=1&state=RUNNING&before={page['next_before']}")
    assert ([job["state"] for job in rest["jobs"]], rest["next_before"]) == (["RUNNING"], 0)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/jobs/999999", 404, "job 999999 does not exist; the newest is"),
        ("/jobs/0", 404, "job 0 does not exist"),
        ("/jobs/-1", 404, "job '-1' does not exist"),
        ("/jobs/abc", 404, "job 'abc' does not exist"),
        ("/jobs/" + "9" * 40, 404, "does not exist"),
        ("/jobs?state=DONE", 422, "'DONE'"),
        ("/jobs?limit=0", 422, "0"),
        ("/jobs?limit=1001", 422, "1001"),
        ("/jobs?before=x", 422, "'x'"),
        ("/jobs?space=nine", 404, "space 'nine' does not exist"),
        ("/spaces/nine", 404, "space 'nine' does not exist; there is graph"),
        ("/spaces/nine/versions", 404, "space 'nine'"),
        ("/spaces/graph/versions/7", 404, "no published version yet"),
        ("/spaces/graph/versions/0", 404, "version '0'"),
        ("/spaces/graph/versions/latest", 404, "version 'latest'"),
        ("/nothing", 404, "GET /api/v1/nothing: no such route"),
    ],
)
def test_invalid_reads_are_refused_with_the_value(
    endpoints: MetadEndpoints, path: str, status: int, words: str
) -> None:
    endpoints.commit_load()
    endpoints.post("/jobs", {"space": "graph"})
    reply = endpoints.get(path, status)
    assert words in reply["message"]
    assert reply["error"] == ("NotFound" if status == 404 else "InvalidRequest")


@pytest.mark.parametrize(
    ("path", "content", "status", "words"),
    [
        ("/jobs", {"space": "nine"}, 404, "'nine'"),
        ("/jobs", {"space": "graph", "kind": "bake"}, 400, "'bake'"),
        ("/jobs", {}, 422, "space"),
        ("/jobs", {"space": "graph", "cut": 3}, 422, "cut"),
        ("/jobs", {"space": "graph"}, 409, "no committed load"),
        ("/jobs/77777/stop", None, 404, "job 77777"),
        ("/spaces", {"name": "graph", "schema": SCHEMA.to_dict()}, 409, "exists already"),
        ("/spaces", {"name": "9", "schema": SCHEMA.to_dict()}, 400, "'9'"),
        ("/spaces", {"name": "g", "schema": {"nodes": {"n": {}}, "shards": 2}}, 400, "shards"),
        ("/spaces", {"name": "g", "schema": {"nodes": {}}}, 400, "at least one node type"),
        ("/spaces", {"name": "g", "schema": "x"}, 422, "'x'"),
    ],
)
def test_invalid_commands_are_refused_with_the_value(
    endpoints: MetadEndpoints, path: str, content: Any, status: int, words: str
) -> None:
    assert words in endpoints.post(path, content, status)["message"]


def test_bodies_are_bounded(endpoints: MetadEndpoints) -> None:
    big = {"name": "big", "schema": {"nodes": {f"n{i}" * 20: {} for i in range(40_000)}}}
    assert endpoints.http.post("/api/v1/spaces", json=big).status_code == 413
    assert (
        endpoints.http.post("/api/v1/spaces", content=iter([b"{" * 65536] * 100)).status_code == 413
    )
    assert endpoints.http.post(
        "/api/v1/spaces", content=b"\xff{", headers={"content-type": "application/json"}
    ).status_code in (400, 422)


def test_hosts_status_and_metrics_list_the_daemons(endpoints: MetadEndpoints) -> None:
    (host,) = endpoints.get("/hosts")
    assert host["last_heartbeat_ms"] == host["last_beat_ms"] > 0
    assert (host["uuid"], host["role"], host["online"], host["parts"]) == (
        "s1",
        "storaged",
        True,
        4,
    )
    status = endpoints.http.get("/status").json()
    assert (status["spaces"], status["storageds_online"], status["ready"]) == (1, 1, True)
    assert endpoints.http.get("/readyz").status_code == 200
    metrics = endpoints.http.get("/metrics").text
    assert "storageds_online 1.0" in metrics
    assert "spaces 1.0" in metrics


def test_openapi_describes_every_route_and_its_refusals(endpoints: MetadEndpoints) -> None:
    document = endpoints.http.get("/openapi.json").json()
    api_paths = {
        path: content for path, content in document["paths"].items() if path.startswith("/api/v1")
    }
    assert set(api_paths) == {
        f"/api/v1{path}"
        for path in (
            "/jobs",
            "/jobs/{job_id}",
            "/jobs/{job_id}/stop",
            "/jobs/{job_id}/recover",
            "/spaces",
            "/spaces/{name}",
            "/spaces/{name}/versions",
            "/spaces/{name}/versions/{version}",
            "/spaces/{name}/versions/{version}/hygiene",
            "/spaces/{name}/versions/{version}/weight-stats",
            "/hosts",
        )
    }
    for path, methods in api_paths.items():
        for method, content in methods.items():
            assert content["description"], f"{method} {path} has no description"
            assert {"404", "422"} <= set(content["responses"]), (
                f"{method} {path} hides its refusals"
            )
    job = document["components"]["schemas"]["JobView"]
    assert (
        job["properties"]["watermark"]["description"]
        == "Commit watermark: the space's last commit at submission. A build contains it."
    )


def test_grpc_errors_have_the_same_messages(endpoints: MetadEndpoints) -> None:
    with pytest.raises(NotFound, match="job 999999 does not exist"):
        endpoints.grpc.call(CATALOG["get_job"], metad_pb.JobRequest(job_id=999999), 5)


def test_stopping_metad_ends_parked_polls(tmp_path: Path) -> None:
    endpoints = MetadEndpoints(tmp_path / "m")
    endpoints.heartbeat()
    current_reply = endpoints.grpc.call(
        HEARTBEATS["poll"],
        metad_pb.PollRequest(role=metad_pb.STORAGED, uuid="s1", incarnation=1),
        5,
    )
    assert isinstance(current_reply, metad_pb.PollReply)
    request = metad_pb.PollRequest(
        role=metad_pb.STORAGED,
        uuid="s1",
        incarnation=1,
        known_revision=current_reply.revision,
        wait_s=30,
    )
    pending = endpoints.grpc.start(HEARTBEATS["poll"], request, 40)
    time.sleep(0.1)
    endpoints.metad.stop()
    with pytest.raises(Unavailable):  # if the poll ran to its time limit, it would return a reply
        pending.result()
    endpoints.close()


def test_parked_poll_ends_when_its_caller_disconnects(
    endpoints: MetadEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "metad.heartbeats_api._MAX_WAIT_S", 3 * HANG_S
    )  # the poll must not end on its own while `wait_until` waits
    current_reply = endpoints.grpc.call(
        HEARTBEATS["poll"],
        metad_pb.PollRequest(role=metad_pb.STORAGED, uuid="s1", incarnation=1),
        5,
    )
    assert isinstance(current_reply, metad_pb.PollReply)
    request = metad_pb.PollRequest(
        role=metad_pb.STORAGED,
        uuid="s1",
        incarnation=1,
        known_revision=current_reply.revision,
        wait_s=3 * HANG_S,
    )
    waiting = endpoints.metad.components.change_feed._changed._waiters  # type: ignore[attr-defined]
    pending = endpoints.grpc.start(HEARTBEATS["poll"], request, 3 * HANG_S)
    wait_until(lambda: waiting, "the poll is parked")
    pending.abandon()
    wait_until(lambda: not waiting, "the poll is gone")


def test_an_idle_http_server_does_not_wake(
    endpoints: MetadEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks: list[int] = []
    server = type(endpoints.metad._http._server)  # type: ignore[union-attr]
    original = server.on_tick

    async def record_tick(self: Any, counter: int) -> bool:
        ticks.append(counter)
        return bool(await original(self, counter))

    monkeypatch.setattr(server, "on_tick", record_tick)
    let_pass(2.0)
    assert ticks == []


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/spaces", "/nowhere"])
def test_a_response_has_the_date_of_its_request(endpoints: MetadEndpoints, path: str) -> None:
    let_pass(1.5)  # a date cached at the start would be older than a second
    started_at = int(time.time())
    dates = endpoints.http.get(path).headers.get_list("date")
    assert len(dates) == 1
    assert started_at <= parsedate_to_datetime(dates[0]).timestamp() <= time.time()
