"""Graph service: the table of its methods, and the objects that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from google.protobuf.message import Message

from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_model.elements import NODE
from asterism_model.prices import DEFAULT_LIMITS, Limits
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.api import (
    features,
    global_sampling,
    graph_labels,
    layers,
    negatives,
    neighbors,
    scans,
    subgraphs,
    walks,
)
from graphd.api.explain import ExplainHandler
from graphd.api.versioned_execution import Operation, RequestCheck, VersionRunner
from graphd.api.writes import WriteHandlers
from graphd.operators import reads
from graphd.operators.graph_labels import GraphLabelCache
from graphd.operators.request_context import RequestContext
from graphd.operators.schema_checks import check_types, resolve_weight_name
from graphd.routing.dispatch import Dispatcher
from graphd.routing.routes import ServedVersion, SpaceRoute
from graphd.routing.routing_table import RoutingTable

OPERATIONS: Mapping[str, Operation] = {
    "sample_nodes": global_sampling.sample_nodes,
    "sample_edges": global_sampling.sample_edges,
    "sample_nodes_like": global_sampling.sample_nodes_like,
    "sample_negatives": negatives.sample_negatives,
    "sample_neighbors": neighbors.sample_neighbors,
    "sample_fanout": neighbors.sample_fanout,
    "neighbors": neighbors.neighbors,
    "degrees": neighbors.degrees,
    "sample_layer": layers.sample_layer,
    "sample_layers": layers.sample_layers,
    "adjacency": layers.adjacency,
    "random_walk": walks.random_walk,
    "sample_pinsage": walks.sample_pinsage,
    "personalized_pagerank": walks.personalized_pagerank,
    "sample_subgraph": subgraphs.sample_subgraph,
    "sample_ego_subgraphs": subgraphs.sample_ego_subgraphs,
    "sample_labor": subgraphs.sample_labor,
    "sample_hgt": subgraphs.sample_hgt,
    "induced_subgraph": subgraphs.induced_subgraph,
    "node_features": features.node_features,
    "edge_features": features.edge_features,
    "node_types": features.node_types,
    "scan_nodes": scans.scan_nodes,
    "scan_edges": scans.scan_edges,
    "nodes_at": scans.nodes_at,
    "edges_at": scans.edges_at,
    "graph_nodes": graph_labels.graph_nodes,
}
"""Methods that need only a version, by handler name."""
REQUEST_CHECKS: Mapping[str, RequestCheck] = {
    "sample_negatives": negatives.check_counts,
    "sample_fanout": neighbors.check_hops,
    "sample_layers": layers.check_hops,
    "graph_nodes": graph_labels.check_labels,
}


class GraphService:
    """Handlers of the Graph service, except for routes and statements.

    Parameters
    ----------
    routing : RoutingTable
        Routes and versions.
    dispatcher : Dispatcher
        Calls the storageds.
    space_exists, is_published, catch_up_s
        See `VersionRunner`.
    committed_loads : callable
        Returns the committed loads of a space, in commit order, and the number of the last commit.
    metad : Transport
        Opens the loads of small writes.
    limits : Limits
        Limits of a request.
    """

    def __init__(
        self,
        *,
        routing: RoutingTable,
        dispatcher: Dispatcher,
        space_exists: Callable[[str, CallContext], bool],
        is_published: Callable[[str, int, CallContext], bool],
        committed_loads: Callable[[SpaceRoute, CallContext], tuple[Sequence[int], int]],
        metad: Transport,
        catch_up_s: float,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.versions = VersionRunner(
            routing=routing,
            dispatcher=dispatcher,
            space_exists=space_exists,
            is_published=is_published,
            catch_up_s=catch_up_s,
            limits=limits,
        )
        self.writes = WriteHandlers(self.versions, committed_loads=committed_loads, metad=metad)
        self._operations: dict[str, Operation] = {
            **OPERATIONS,
            "sample_graph_labels": partial(
                graph_labels.sample_graph_labels, cache=GraphLabelCache()
            ),
        }
        explain_handler = ExplainHandler(self.versions, self._operations, REQUEST_CHECKS)
        handlers: dict[str, Handler] = {
            name: partial(self._answer, name) for name in self._operations
        }
        handlers |= {
            "write": self.writes.write,
            "write_once": self.writes.write_once,
            "find_nodes": self.writes.find_nodes,
            "explain": explain_handler.explain,
        }
        self.handlers: dict[str, Handler] = {
            GRAPH[name].path: handler for name, handler in handlers.items()
        }
        """Handlers by method path."""

    def _answer(self, name: str, request: Frame[Any], call: CallContext) -> Frame[Message]:
        if name in REQUEST_CHECKS:
            REQUEST_CHECKS[name](request)
        operation = self._operations[name]
        return self.versions.run_at_version(
            request, call, lambda context: operation(context, request)
        )

    def weight_histogram(
        self, space: str, version: int, element: int, type_id: int, weight: str, call: CallContext
    ) -> tuple[reads.WeightHistogram, ServedVersion]:
        """Return the distribution of a type's positive weights over all partitions.

        Not a method of the Graph service: graphd's web pages call it."""

        def run(context: RequestContext) -> tuple[reads.WeightHistogram, ServedVersion]:
            schema = context.space.schema
            check_types("node" if element == NODE else "edge", schema, [type_id])
            weighted_context = context.with_weights(
                resolve_weight_name(element, schema, [type_id], weight)
            )
            return reads.weight_histogram(weighted_context, element, type_id), context.version

        request = Frame(metad_pb.ManifestRequest(space=space, version=version))
        return self.versions.run_at_version(request, call, run)
