"""Tests of the table of the Graph service's methods."""

from __future__ import annotations

from typing import Any

import pytest

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.service import REQUEST_CHECKS, GraphService
from graphd.routing.dispatch import Dispatcher, StoragedPool
from graphd.routing.routing_table import RoutingTable


def refuse(*_: Any) -> Any:
    raise AssertionError("no storaged and no metad is called")


@pytest.fixture
def service() -> GraphService:
    return GraphService(
        routing=RoutingTable(),
        dispatcher=Dispatcher(StoragedPool(refuse)),
        space_exists=lambda *_: False,
        is_published=lambda *_: False,
        committed_loads=refuse,
        metad=LocalTransport({}),
        catch_up_s=0.0,
    )


def test_every_method_but_routes_and_statements_has_a_handler(service: GraphService) -> None:
    others = {GRAPH[name].path for name in ("get_routes", "query")}
    assert set(service.handlers) == {method.path for method in GRAPH.values()} - others


@pytest.mark.parametrize("name", sorted(set(GRAPH) - {"get_routes", "query", *REQUEST_CHECKS}))
def test_unknown_space_is_not_found(service: GraphService, name: str) -> None:
    request: Any = Frame(GRAPH[name].request(space="missing"))
    if name == "explain":
        request.head.method = "sample_nodes"
    with pytest.raises(NotFound, match="missing"):
        service.handlers[GRAPH[name].path](request, CallContext.with_timeout(60))


@pytest.mark.parametrize("name", ["sample_fanout", "sample_layers", "graph_nodes"])
def test_request_is_checked_before_its_space(service: GraphService, name: str) -> None:
    request = Frame(GRAPH[name].request(space="missing"))
    with pytest.raises(InvalidRequest):
        service.handlers[GRAPH[name].path](request, CallContext.with_timeout(60))


@pytest.mark.parametrize("name", ["sample_fanout", "sample_layers"])
def test_explained_request_is_checked_before_its_space(service: GraphService, name: str) -> None:
    inner = GRAPH[name].request().SerializeToString()
    request = Frame(graphd_pb.ExplainRequest(space="missing", method=name, request=inner))
    with pytest.raises(InvalidRequest):
        service.handlers[GRAPH["explain"].path](request, CallContext.with_timeout(60))


def test_only_sampling_calls_are_explained(service: GraphService) -> None:
    request = Frame(graphd_pb.ExplainRequest(space="missing", method="degrees"))
    with pytest.raises(InvalidRequest, match="'degrees' is not a sampling call; expected one of"):
        service.handlers[GRAPH["explain"].path](request, CallContext.with_timeout(60))
