"""Tests that the HTTP API covers the Graph service, and that its page lists every route."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from fastapi import FastAPI

from asterism_daemonkit.http.job_routes import job_router
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.methods import GRAPH, SAMPLING_METHODS
from graphd.http.sampling import OPERATIONS, sampling_router

NOT_SAMPLING = {
    "write": "a write",
    "write_once": "a write",
    "find_nodes": "a read for loads",
    "induced_subgraph": "a read",
    "neighbors": "a read",
    "degrees": "a read",
    "graph_nodes": "a read",
    "adjacency": "a read",
    "node_types": "a read",
    "node_features": "a read",
    "edge_features": "a read",
    "scan_nodes": "a read",
    "scan_edges": "a read",
    "nodes_at": "a read",
    "edges_at": "a read",
    "explain": "the cost of another call",
    "query": "statements, which have a route of their own",
    "get_routes": "for clients that call storageds",
}
"""Methods of the Graph service without a route of their own, each with its reason."""


def no_space(name: str, call: object) -> NoReturn:
    raise AssertionError(name)


def test_every_sampling_method_has_a_route() -> None:
    methods = {operation.method for operation in OPERATIONS}
    assert set(SAMPLING_METHODS) <= methods
    assert methods == set(GRAPH) - set(NOT_SAMPLING)
    app = FastAPI()
    app.include_router(sampling_router({}, no_space))
    assert set(app.openapi()["paths"]) == {
        f"/api/v1/spaces/{{space}}/{method.replace('_', '-')}" for method in methods
    }


def test_every_method_with_a_seed_is_a_sampling_method() -> None:
    seeded = {
        name
        for name, method in GRAPH.items()
        if "seed" in method.request.DESCRIPTOR.fields_by_name and name not in NOT_SAMPLING
    }
    assert seeded == set(SAMPLING_METHODS)


def test_the_page_of_the_http_api_lists_every_route(root: Path) -> None:
    page = (root / "docs/http.md").read_text()
    routes = [operation.path.rpartition("/")[2] for operation in OPERATIONS]
    assert [route for route in routes if f"| `{route}` |" not in page] == []
    app = FastAPI()
    app.include_router(job_router(LocalTransport({})))
    for path, operations in app.openapi()["paths"].items():
        for verb in operations:
            assert f"`{verb.upper()} {path.replace('{job_id}', 'JOB')}`" in page
