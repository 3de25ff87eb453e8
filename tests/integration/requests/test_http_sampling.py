"""Sampling over HTTP returns what gRPC returns, and refuses what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.kit import cases
from tests.kit.sampling_bodies import BODIES, PEOPLE, WITHOUT_EDGES
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism_proto.errors import AsterismError
from asterism_standalone.app import Standalone
from graphd.http import sampling_results
from graphd.http.sampling import OPERATIONS

CASES = [
    pytest.param(method, body, id=f"{method}-{number}")
    for method, several in BODIES.items()
    for number, body in enumerate(several)
]


class HttpSampling:
    """A served folder, with a connection by gRPC and one by HTTP."""

    def __init__(self, folder: Path) -> None:
        self.service = Standalone(folder)
        self.service.start()
        endpoints = self.service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        self.client = asterism.connect(endpoints.address, timeout_s=HANG_S)
        self.http = httpx.Client(base_url=f"http://{endpoints.http_address}", timeout=HANG_S)
        self.graph = cases.load(self.client, "cases")
        self.client.create_space(
            "names",
            {
                "ids": "string",
                "parts": 2,
                "nodes": {"user": {"weighted": True}},
                "edges": {"user:knows:user": {}},
            },
        )
        self.names = self.client.graph("names")
        self.names.upsert_nodes(["ann", "bob", "cid"], "user")
        self.names.upsert_edges(["ann", "ann", "bob"], ["bob", "cid", "cid"], "knows")
        self.names.build()

    def close(self) -> None:
        self.http.close()
        self.client.close()
        self.service.stop()

    def post(
        self, method: str, body: Mapping[str, Any], space: str = "cases", status: int = 200
    ) -> Any:
        path = f"/api/v1/spaces/{space}/{method.replace('_', '-')}"
        reply = self.http.post(path, json=body)
        assert reply.status_code == status, reply.text
        return reply.json()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpSampling]:
    served = HttpSampling(tmp_path_factory.mktemp("http") / "graphs")
    yield served
    served.close()


def call_over_grpc(graph: Graph, method: str, body: Mapping[str, Any]) -> Any:
    (operation,) = (operation for operation in OPERATIONS if operation.method == method)
    arguments = dict(body)
    if method == "sample_negatives" and "exclude" in body:  # lists of nodes
        indptr = np.cumsum([0, *map(len, body["exclude"])])
        arguments["exclude"] = (indptr, np.concatenate(body["exclude"]))
    return operation.call(graph, **arguments)


def assert_same(value: Any, record: Any, path: str) -> None:
    """Check that a JSON value has everything that a record has, bit by bit."""
    if is_dataclass(record):
        assert set(value) == {field.name for field in fields(record)}, path
        for field in fields(record):
            expected = getattr(record, field.name)
            expected = str(expected) if field.name == "seed" else expected
            assert_same(value[field.name], expected, f"{path}.{field.name}")
    elif isinstance(record, np.ndarray):
        array = np.array(value, record.dtype).reshape(record.shape if not record.size else None)
        np.testing.assert_array_equal(array, record, err_msg=path, strict=True)
    elif isinstance(record, Mapping):
        assert set(value) == set(record), path
        for key in record:
            assert_same(value[key], record[key], f"{path}[{key}]")
    elif isinstance(record, tuple) and record and isinstance(record[0], np.ndarray):
        indptr, values = record
        for row, start, stop in zip(value, indptr[:-1], indptr[1:], strict=True):
            expected = values[start:stop]
            if values.dtype == np.uint8:
                assert row == expected.tobytes().hex(), path
            else:
                assert np.array(row, values.dtype).tolist() == expected.tolist(), path
    elif isinstance(record, tuple):
        assert len(value) == len(record), path
        for number, item in enumerate(record):
            assert_same(value[number], item, f"{path}[{number}]")
    else:
        assert value == (record.decode() if isinstance(record, bytes) else record), path


@pytest.mark.parametrize(("method", "body"), CASES)
def test_http_and_grpc_return_the_same_sample(
    served: HttpSampling, method: str, body: dict[str, Any]
) -> None:
    (operation,) = (operation for operation in OPERATIONS if operation.method == method)
    seed = 12345678901234567890 if "seed" in operation.request.model_fields else None
    reply = served.post(method, body if seed is None else {**body, "seed": str(seed)})
    record = call_over_grpc(served.graph, method, body if seed is None else {**body, "seed": seed})
    assert_same(reply, record, method)
    operation.result.model_validate(reply)


def test_every_route_is_compared() -> None:
    assert set(BODIES) == {operation.method for operation in OPERATIONS}


@pytest.mark.parametrize("method", WITHOUT_EDGES)
def test_excluded_edges_change_a_reply(served: HttpSampling, method: str) -> None:
    body = {**WITHOUT_EDGES[method], **({} if method == "personalized_pagerank" else {"seed": 5})}
    complete = {k: v for k, v in body.items() if k not in ("exclude", "reverse_types")}
    assert served.post(method, body) != served.post(method, complete)


def test_edges_are_excluded_by_names_and_digits(served: HttpSampling) -> None:
    body = {"nodes": ["ann"], "etypes": "knows", "n": 9, "exclude": [["ann", "bob"]], "seed": 1}
    assert served.post("sample_neighbors", body, space="names")["nodes"] == [["cid"] * 9]
    body = {"nodes": PEOPLE, "etypes": "writes", "n": 3, "seed": 1}
    edges = WITHOUT_EDGES["sample_neighbors"]["exclude"]
    digits = [[str(end) for end in edge] for edge in edges]
    assert served.post("sample_neighbors", {**body, "exclude": digits}) == served.post(
        "sample_neighbors", {**body, "exclude": edges}
    )


def test_ids_may_be_texts_of_digits(served: HttpSampling) -> None:
    body = {"nodes": PEOPLE, "etypes": "writes", "n": 3, "seed": 1}
    as_text = {**body, "nodes": [str(person) for person in PEOPLE], "seed": "1"}
    assert served.post("sample_neighbors", as_text) == served.post("sample_neighbors", body)


def test_a_reply_has_the_seed_that_repeats_it(served: HttpSampling) -> None:
    first = served.post("sample_nodes", {"n": 20})
    assert served.post("sample_nodes", {"n": 20, "seed": first["seed"]}) == first
    assert served.graph.sample_nodes(20, seed=int(first["seed"])).nodes.tolist() == first["nodes"]
    assert served.graph.replay(first["token"]).nodes.tolist() == first["nodes"]


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("sample_nodes", {"n": 5}),
        ("sample_edges", {"n": 5}),
        ("sample_neighbors", {"nodes": ["ann", "cid", ""], "etypes": "knows", "n": 2}),
        ("sample_fanout", {"nodes": ["ann"], "metapath": ["knows", "knows"], "fanouts": [2, 2]}),
        ("random_walk", {"nodes": ["ann", "bob"], "metapath": ["knows"], "length": 2}),
        ("sample_layer", {"nodes": [["ann"], ["bob"]], "etypes": "knows", "n": 2}),
        ("sample_layers", {"nodes": ["ann"], "metapath": ["knows"], "counts": [2]}),
        ("sample_subgraph", {"seeds": ["ann"], "fanouts": [-1, -1], "ntype": "user"}),
        ("sample_negatives", {"pairs": [["ann", "bob"]], "n": 2, "ntype": "user"}),
    ],
)
def test_a_space_of_string_ids_takes_and_returns_names(
    served: HttpSampling, method: str, body: dict[str, Any]
) -> None:
    reply = served.post(method, {**body, "seed": 3}, space="names")
    record = call_over_grpc(served.names, method, {**body, "seed": 3})

    def assert_names(value: Any, ids: Any) -> None:
        expected = served.names.node_names(ids, version=record.version)
        assert value == expected.tolist()

    for field in ("nodes", "src", "dst", "seeds"):
        ids = getattr(record, field, None)
        if isinstance(ids, Mapping):
            assert set(ids) == set(reply[field])
            for ntype in ids:
                assert_names(reply[field][ntype], ids[ntype])
        elif ids is not None and not (method == "sample_subgraph" and field == "seeds"):
            assert_names(reply[field], ids)
    for part in ("hops", "layers"):
        for number, item in enumerate(getattr(record, part, ())):
            assert_names(reply[part][number]["nodes"], item.nodes)


@pytest.mark.parametrize(
    ("method", "body", "status"),
    [
        ("sample_nodes", {"n": 5, "ntype": "robot"}, 404),
        ("sample_nodes", {"n": 5, "version": 77}, 404),
        ("sample_nodes", {"n": 5, "ntype": "person", "where": "age >"}, 400),
        ("sample_nodes", {"n": (1 << 31) - 1}, 400),
        ("sample_nodes", {"n": 500, "ntype": "person", "replace": False}, 400),
        ("sample_neighbors", {"nodes": [1], "etypes": [], "n": 2}, 400),
        ("sample_neighbors", {"nodes": [1], "etypes": "cites", "n": 2, "times": [1]}, 400),
        ("sample_layers", {"nodes": [1], "metapath": ["cites"], "counts": [1, 2]}, 400),
        ("sample_hgt", {"seeds": [1], "counts": {}, "ntype": "paper"}, 400),
        ("sample_neighbors", {"nodes": [1], "n": 2, "etypes": None, "exclude": [[1, 2]]}, 400),
        ("sample_layer", {"nodes": [1], "etypes": "cites", "n": 2, "exclude": {"x": []}}, 404),
        (
            "random_walk",
            {"nodes": [1], "metapath": ["cites"], "reverse_types": {"cites": "cites"}},
            400,
        ),
    ],
)
def test_http_and_grpc_refuse_with_the_same_error(
    served: HttpSampling, method: str, body: dict[str, Any], status: int
) -> None:
    with pytest.raises(AsterismError) as raised:
        call_over_grpc(served.graph, method, body)
    problem = served.post(method, body, status=status)
    assert (problem["error"], problem["message"]) == (
        type(raised.value).__name__,
        raised.value.message,
    )
    if place := raised.value.place:
        assert (problem["line"], problem["column"]) == (place.line, place.column)


def test_an_unknown_space_is_not_found(served: HttpSampling) -> None:
    problem = served.post("sample_nodes", {"n": 1}, space="nine", status=404)
    assert problem["error"] == "NotFound"
    assert "nine" in problem["message"]


def test_the_deadline_of_the_body_holds(served: HttpSampling) -> None:
    problem = served.post("sample_nodes", {"n": 5, "timeout_s": 1e-6}, status=504)
    assert problem["error"] == "Deadline"


def test_a_sample_beyond_the_limit_of_http_is_refused(
    served: HttpSampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling_results, "MAX_VALUES", 100)
    problem = served.post("sample_nodes", {"n": 200, "ntype": "paper"}, status=400)
    assert "numbers: expected at most 100 over HTTP" in problem["message"]


def test_names_and_ids_cannot_be_mixed(served: HttpSampling) -> None:
    body = {"nodes": ["ann", 7], "etypes": "knows", "n": 1}
    problem = served.post("sample_neighbors", body, space="names", status=400)
    assert "nodes[1]=7: expected a name" in problem["message"]
