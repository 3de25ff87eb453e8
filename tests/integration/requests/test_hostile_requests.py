"""Wrong requests to client-facing services: a result or a typed error, never Internal.

No request causes a crash or a hang.
"""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases, sampling_bodies
from tests.kit.fuzzing import campaign, client_requests, http_requests
from tests.kit.fuzzing.metad_requests import FuzzedMetad
from tests.kit.metad import InProcessMetad
from tests.kit.waiting import HANG_S

import asterism
from asterism.calls.query import bind_parameter
from asterism_proto.errors import AsterismError, InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_standalone.app import Standalone

UNAVAILABLE = (503, 504)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Run the three daemons in this process.

    The space has filters, zero weights, times, indexes and ragged features.
    """
    standalone = Standalone(tmp_path_factory.mktemp("service"))
    standalone.start()
    yield standalone
    standalone.stop()


@pytest.fixture(scope="module")
def corpus(service: Standalone) -> list[client_requests.Request]:
    """Record a request of every shape that a client sends to the Graph service."""
    recorder = client_requests.Recorder(service.handlers)
    client = asterism.Client(recorder, timeout_s=HANG_S)
    graph = cases.load(client, "cases")
    for call in cases.calls(graph).values():
        call()
    graph.find_nodes([1, 2, 10**12], "paper")
    graph.explain.sample_nodes(5, "person")
    graph.upsert_nodes([1000, 1001], "paper", features={"vec": np.zeros((2, 3), np.float32)})
    graph.upsert_edges([1, 2], [3, 4], "cites", weights=[0.0, 2.0])
    graph.delete_edges([1], [3], "cites")
    graph.delete_nodes([1001], "paper")
    recorder.call(GRAPH["get_routes"], Frame(graphd_pb.GetRoutesRequest(), {}), HANG_S)
    # Record kinds without rows, a string-keyed space and text values, which mutations use in
    # filters.
    client.create_space(
        "strings",
        {
            "ids": "string",
            "parts": 2,
            "nodes": {"user": {"weighted": True}, "empty": {}},
            "edges": {"user:knows:user": {}},
        },
    )
    string_graph = client.graph("strings")
    string_graph.upsert_nodes(["a", "b", "Zoë"], "user", weights=[0.0, 1.0, 3.0])
    string_graph.upsert_edges(["a"] * 2 + ["b"], ["b", "Zoë", "a"], "knows")
    string_graph.build(timeout_s=HANG_S)
    string_graph.sample_neighbors(["a", "unknown"], "knows", 3, seed=1)
    string_graph.node_names(string_graph.sample_nodes(3, "user", seed=1).nodes, "user")
    methods = {method.path for method in GRAPH.values()}
    return [request for request in recorder.requests if request.method.path in methods]


def test_every_method_of_graph_is_recorded(corpus: list[client_requests.Request]) -> None:
    assert {request.method.name for request in corpus} == {method.name for method in GRAPH.values()}


@pytest.mark.filterwarnings(
    "ignore:overflow encountered in cast"
)  # mutations convert large numbers to small types
@pytest.mark.parametrize(
    ("count", "seed"), [(2500, 1), pytest.param(100_000, 2, marks=pytest.mark.slow)]
)
def test_graph_refuses_hostile_requests(
    service: Standalone, corpus: list[client_requests.Request], count: int, seed: int
) -> None:
    outcome = campaign.run(
        corpus, client_requests.make_sender(service.handlers), count=count, seed=seed
    )
    print(outcome.table())
    assert outcome.faults == {}
    assert (
        sum(number for (_, name), number in outcome.counts.items() if name == "answered")
        > count // 10
    )
    assert service.ready() == []


@pytest.mark.parametrize(
    ("count", "seeds"), [(1500, 2), pytest.param(6000, 20, marks=pytest.mark.slow)]
)
def test_metad_refuses_hostile_requests(count: int, seeds: int) -> None:
    for seed in range(seeds):
        desk = FuzzedMetad()
        requests = desk.requests
        assert {request.method.name for request in requests} == {
            method.name for method in (*CATALOG.values(), *ACCESS.values(), *HEARTBEATS.values())
        }
        outcome = campaign.run(
            requests, client_requests.make_sender(desk.handlers, 0.15), count=count, seed=seed
        )
        assert outcome.faults == {}
        desk.advance_clock(1)  # accepted data can be stored and read again
        InProcessMetad(desk.store)


HTTP_VALUES = {
    "name": "cases",
    "space": "cases",
    "version": "1",
    "job_id": "1",
    "type_id": "0",
    "element": "node",
    "weight": "weight",
    "limit": "5",
    "offset": "0",
    "sort": "name",
    "order": "asc",
    "method": "SampleNodes",
}
JOB = {"space": "cases", "kind": "compact", "options": {}, "version": 0}
SPACE = {
    "parts": 2,
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "int32", "shape": [2]}}}},
    "edges": {"n:e:n": {}},
}
STATEMENTS = [
    ("SAMPLE 5 VERTICES ON person WHERE age > $least YIELD id, age", {"least": 3}, "ngql"),
    ("SAMPLE 5 NEIGHBORS FROM $a OVER writes YIELD src, dst", {"a": [3, 7]}, "ngql"),
    (
        "GO 2 STEPS FROM $a ON paper OVER * BIDIRECT YIELD src, dst | LIMIT $n",
        {"a": [1, 2], "n": 5},
        "ngql",
    ),
    ("FETCH PROP ON paper $a YIELD vec, words; SHOW SPACES", {"a": [1, 2]}, "ngql"),
    ("v($nodes).sampleNB(writes, $n).as(nb)", {"nodes": [3], "n": 4}, "euler"),
]
HTTP_BODIES: dict[str, list[dict[str, Any]]] = {
    "/api/v1/jobs": [JOB],
    "/ui/api/jobs": [JOB],
    "/api/v1/spaces": [{"name": "victim", "schema": SPACE, "if_not_exists": True}],
    "/verify": [{"space": "cases", "draws": 1000, "timeout_s": 0.01, "seed": 1}],
    "/ui/api/completions": [
        {
            "statement": text,
            "space": "cases",
            "language": language,
            "parameters": list(parameters),
        }
        for text, parameters, language in STATEMENTS
    ],
    "/query": [
        {
            "statement": text,
            "parameters": parameters,
            "space": "cases",
            "language": language,
            "rows": 10,
            "timeout_s": 20,
        }
        for text, parameters, language in STATEMENTS
    ],
    **{
        f"/api/v1/spaces/{{space}}/{method.replace('_', '-')}": [
            {**body, "timeout_s": 20} for body in bodies
        ]
        for method, bodies in sampling_bodies.BODIES.items()
    },
}


@pytest.mark.parametrize(
    ("count", "seed"), [(150, 1), pytest.param(4000, 2, marks=pytest.mark.slow)]
)
def test_http_routes_refuse_hostile_requests(
    service: Standalone, corpus: list[client_requests.Request], count: int, seed: int
) -> None:
    assert corpus  # creates the spaces
    address = _http_address(service)
    connection = http.client.HTTPConnection(address, timeout=campaign.HANG_S)
    connection.request("GET", "/openapi.json")
    document = json.load(connection.getresponse())
    statuses: Counter[int] = Counter()
    faults = []
    stream = http_requests.requests(
        document, np.random.default_rng(seed), values=HTTP_VALUES, bodies=HTTP_BODIES
    )
    for _ in range(count):
        request = next(stream)
        status, content = http_requests.send_request(connection, request)
        statuses[status] += 1
        if status >= 500 and status not in UNAVAILABLE:
            faults.append(f"{request.description}: {status} {content[:200]!r}")
    connection.close()
    print(dict(statuses))
    assert faults == []
    assert statuses[200] > count // 20


_ADDRESSES: dict[int, str] = {}


def _http_address(service: Standalone) -> str:
    if id(service) not in _ADDRESSES:
        _ADDRESSES[id(service)] = service.open_ports(
            listen="127.0.0.1:0", http_listen="127.0.0.1:0"
        ).http_address
    return _ADDRESSES[id(service)]


def test_statements_refuse_hostile_parameters(
    service: Standalone, corpus: list[client_requests.Request]
) -> None:
    assert corpus
    outcome = campaign.Outcome()
    values = [
        value
        for value in http_requests.VALUES
        if "\ud800" not in json.dumps(value, ensure_ascii=False)
    ]
    for text, parameters, language in STATEMENTS:
        for name in parameters:
            for value in values:
                head, arrays = (
                    graphd_pb.QueryRequest(statement=text, space="cases", language=language),
                    {},
                )
                try:
                    for key, parameter in {**parameters, name: value}.items():
                        bind_parameter(key, parameter, head, arrays)
                except AsterismError:
                    continue
                description = f"{text} with {name}={str(value)[:60]}"
                outcome.observe(
                    "Query",
                    description,
                    lambda h=head, a=arrays: client_requests.send(
                        service.handlers, GRAPH["query"], h, a, 20
                    ),
                )
    assert outcome.faults == {}
    assert outcome.requests > 100


def test_http_refuses_lone_surrogates(service: Standalone) -> None:
    connection = http.client.HTTPConnection(_http_address(service), timeout=campaign.HANG_S)
    for path, body in (
        ("/verify", {"space": "\ud800"}),
        ("/api/v1/jobs", {"space": "cases", "kind": "index", "options": {"type": "\udfff"}}),
    ):
        request = http_requests.HttpRequest(
            method="POST", target=path, body=json.dumps(body).encode(), description=path
        )
        status, content = http_requests.send_request(connection, request)
        assert (status, b"lone surrogate" in content and b"body['" in content) == (422, True), (
            content
        )
    connection.close()
    with pytest.raises(InvalidRequest, match=r"\$a: expected a number"):
        bind_parameter("a", [[1], [2, 3]], graphd_pb.QueryRequest(), {})


@pytest.mark.parametrize("page", ["weights", "audit", "spread"])
def test_http_refuses_version_numbers_beyond_64_bits(service: Standalone, page: str) -> None:
    connection = http.client.HTTPConnection(_http_address(service), timeout=campaign.HANG_S)
    target = f"/ui/api/spaces/cases/versions/{10**30}/{page}"
    request = http_requests.HttpRequest(method="GET", target=target, body=b"", description=page)
    status, content = http_requests.send_request(connection, request)
    connection.close()
    assert status == 422, content
