"""Fuzz every endpoint: each request gets a result or a typed error within its time limit.

The daemons keep serving.
"""

from __future__ import annotations

import contextlib
import json
import math
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kit import bodies, messages
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

from asterism_proto.errors import ALL, BY_REASON, REASON_KEY, Internal
from asterism_proto.methods import CATALOG, GRAPH, HEARTBEATS, STORE, Method
from asterism_proto.v1 import metad_pb2, storaged_pb2

TYPED = {cls.code for cls in ALL} - {Internal.code}
LIMIT_S = HANG_S
SPACE = "shop"
DAEMONS = {"metad": "metad", "storaged": "storaged-0", "graphd": "graphd-0"}

fuzzed = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


class Endpoints:
    """Channels and addresses of a running cluster, and known values for its request fields."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        with cluster.client() as client:
            manifest = client.manifest(SPACE)
        self.field_values: messages.KnownValues = {
            "space": [SPACE],
            "space_id": [manifest.space_id],
            "version": [0, manifest.version],
            "digest": [manifest.digest],
            "version_ref": [
                storaged_pb2.VersionRef(
                    space_id=manifest.space_id, version=manifest.version, digest=manifest.digest
                )
            ],
            "parts": [0, 1, 2, 3, 4, 5],
            "part": [0, 5],
            "types": [0, 1],
            "edge_types": [0, 1],
            "type_id": [0, 1],
            "node_type": [-1, 0, 1],
            "names": ["age", "price", "tags", "when", "weight"],
            "count": [0, 1, 9],
            "limit": [0, 1, 1000],
        }
        self.channels = {
            name: grpc.insecure_channel(cluster[daemon].address) for name, daemon in DAEMONS.items()
        }

    def url(self, daemon: str) -> str:
        """Return the HTTP address of a daemon."""
        return f"http://{self.cluster[DAEMONS[daemon]].http_address}"

    def send(self, daemon: str, method: Method, data: bytes) -> tuple[str, str]:
        """Send a gRPC request; return the status code's name and the error text."""
        try:
            self.channels[daemon].unary_unary(method.path)(data, timeout=LIMIT_S)
        except grpc.RpcError as raised:
            error: Any = raised
            reasons = [value for key, value in error.trailing_metadata() or () if key == REASON_KEY]
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                assert reasons, (
                    f"{error.code()}: {error.details()}: an error of gRPC's own, not one of ours"
                )
                assert BY_REASON[reasons[0]].code == error.code().name
            return error.code().name, error.details() or ""
        return "OK", ""


@pytest.fixture(scope="module")
def endpoints() -> Iterator[Endpoints]:
    with LocalCluster(storageds=1, graphds=1) as cluster:
        with cluster.client() as client:
            assert bodies.shop(client, SPACE).state == "FINISHED"
        endpoints = Endpoints(cluster)
        yield endpoints
        for channel in endpoints.channels.values():
            channel.close()


@pytest.fixture(autouse=True)
def _assert_daemons_still_serve(endpoints: Endpoints) -> Iterator[None]:
    """Check after every test that the daemons still serve the shop space."""
    yield
    with endpoints.cluster.client() as client:
        assert len(client.graph(SPACE).sample_nodes(10, "item", seed=1)) == 10


def is_harmless(method: Method, data: bytes) -> bool:
    """Return whether a request cannot drop the shop space or wait too long."""
    if method.name == "DropSpace":
        with contextlib.suppress(Exception):
            return metad_pb2.DropSpaceRequest.FromString(data).space != SPACE
    if method.name == "Poll":
        with contextlib.suppress(Exception):
            wait = metad_pb2.PollRequest.FromString(data).wait_s
            return math.isfinite(wait) and wait < LIMIT_S / 2
    return True


SERVED_METHODS = [
    *(("graphd", method) for method in (*GRAPH.values(), *CATALOG.values())),
    *(("storaged", method) for method in STORE.values()),
    *(("metad", method) for method in (*CATALOG.values(), *HEARTBEATS.values())),
]


@pytest.mark.parametrize(
    ("daemon", "method"),
    SERVED_METHODS,
    ids=[f"{daemon}.{method.name}" for daemon, method in SERVED_METHODS],
)
def test_any_bytes_get_a_result_or_a_typed_error_in_time(
    endpoints: Endpoints, daemon: str, method: Method
) -> None:
    field_values: messages.KnownValues = (
        endpoints.field_values
        if method.is_framed
        else {}
        if method.name == "DropSpace"
        else {"space": [SPACE]}
    )

    @fuzzed
    @given(messages.payloads(method, field_values).filter(lambda data: is_harmless(method, data)))
    def check(data: bytes) -> None:
        code, text = endpoints.send(daemon, method, data)
        assert code == "OK" or code in TYPED, f"{code}: {text}"
        assert code != "DEADLINE_EXCEEDED", f"no answer within {LIMIT_S} s"
        assert code == "OK" or text, f"{code} without a word"

    check()


def test_a_method_that_does_not_exist_is_an_error_and_no_crash(endpoints: Endpoints) -> None:
    for channel in endpoints.channels.values():
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary("/asterism.v1.Graph/NoSuchMethod")(b"", timeout=LIMIT_S)
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


JSON_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=20),
    messages.WORDS,
)
JSON = st.recursive(
    JSON_SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(messages.WORDS, inner, max_size=3)
    ),
    max_leaves=8,
)
PATH_SEGMENTS = st.one_of(
    st.sampled_from(["nope", "0", "1", "-1", "99999999999999999999", "..", "%00", "é", "x" * 500]),
    st.text(min_size=1, max_size=10),
)


def resolve_schema(openapi: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return openapi["components"]["schemas"][reference.rpartition("/")[2]] if reference else schema


def request_bodies(
    openapi: Mapping[str, Any], operation: Mapping[str, Any]
) -> st.SearchStrategy[Any]:
    """Return a strategy for JSON bodies with an operation's fields and arbitrary values."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return st.none()
    names = list(resolve_schema(openapi, content["schema"]).get("properties", {}))
    return st.one_of(JSON, st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON)))


def fuzz_route(client: httpx.Client, openapi: Mapping[str, Any], verb: str, path: str) -> None:
    """Send generated requests to one route."""
    operation = openapi["paths"][path][verb]
    parameter_names = {
        kind: [p["name"] for p in operation.get("parameters", []) if p["in"] == kind]
        for kind in ("path", "query")
    }
    path_values = st.fixed_dictionaries(dict.fromkeys(parameter_names["path"], PATH_SEGMENTS))
    query = st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(parameter_names["query"], st.one_of(PATH_SEGMENTS, messages.WORDS)),
    )

    @settings(fuzzed, max_examples=25)
    @given(
        path_values,
        query,
        request_bodies(openapi, operation),
        st.one_of(st.none(), st.binary(max_size=30)),
    )
    def check(
        path_values: dict[str, str], query: dict[str, str], body: object, garbage: bytes | None
    ) -> None:
        target = path.format(
            **{name: urllib.parse.quote(value, safe="") for name, value in path_values.items()}
        )
        content = (
            garbage if garbage is not None else None if body is None else json.dumps(body).encode()
        )
        response = client.request(
            verb,
            target,
            params=query,
            content=content,
            headers={"content-type": "application/json"},
        )
        assert response.status_code != 500, f"{verb} {target} {query} {content!r}: {response.text}"
        if response.status_code >= 400 and path != "/readyz":
            assert set(response.json()) >= {"error", "message"}, f"{verb} {target}: {response.text}"

    check()


@pytest.mark.parametrize("daemon", ["metad", "storaged", "graphd"])
def test_no_request_to_a_route_is_answered_with_500(endpoints: Endpoints, daemon: str) -> None:
    with httpx.Client(base_url=endpoints.url(daemon), timeout=LIMIT_S) as client:
        openapi = client.get("/openapi.json").json()
        assert {"/status", "/readyz", "/healthz", "/metrics", "/flags"} <= set(openapi["paths"])
        for path, verbs in openapi["paths"].items():
            for verb in verbs:
                fuzz_route(client, openapi, verb, path)


@pytest.mark.parametrize("daemon", ["metad", "storaged", "graphd"])
def test_unknown_routes_methods_and_large_bodies_are_refused(
    endpoints: Endpoints, daemon: str
) -> None:
    with httpx.Client(base_url=endpoints.url(daemon), timeout=LIMIT_S) as client:
        assert client.get("/no/such/route").status_code == 404
        assert client.delete("/status").status_code == 405
        assert client.post("/status", content=b"x" * (2 << 20)).status_code in (405, 413)
        assert client.get("/healthz").status_code == 200
