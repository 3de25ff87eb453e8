"""A client's graph over a version on any number of hosts, with statements, in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from asterism.graph import Client, Graph
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.methods import GRAPH
from graphd.api.service import GraphService
from graphd.query.service import QueryService
from graphd.routing.routes import Routes
from storaged.sampling import LocalVersion
from tests.distributions.checks.hosts import request_context

SPACE = "s"


class _FixedRoutes:
    """Routing table that never changes."""

    def __init__(self, routes: Routes) -> None:
        self.routes = routes


def graph_on_hosts(version: LocalVersion, hosts: int = 1) -> Graph:
    """Return the graph of a version of which each of ``hosts`` hosts has some partitions."""
    context = request_context(version, hosts)
    space = replace(context.space, versions={1: context.version}, current_version=1)
    routing: Any = _FixedRoutes(Routes(spaces={SPACE: space}))
    service = GraphService(
        routing=routing,
        dispatcher=context.dispatcher,
        space_exists=lambda *_: False,
        is_published=lambda *_: False,
        committed_loads=_refuse,
        metad=LocalTransport({}),
        catch_up_s=0.0,
    )
    handlers = dict(service.handlers)
    handlers[GRAPH["query"].path] = QueryService(handlers, service.versions.space_of).query
    client = Client(LocalTransport(handlers), timeout_s=3600)
    client.session.store_schema(SPACE, version.schema)
    return Graph(client.session, SPACE, client)


def _refuse(*_: Any) -> Any:
    raise AssertionError("a graph on fixed hosts has no catalog")
