"""What graphd is asked for the rarer operators: nodes like others, negatives, layers, visits,
PageRank, edges between lists, types and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from asterism_daemonkit.calls import CallContext
from asterism_graphkit.operators import layers
from asterism_model.elements import EDGE, NODE
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import graphd_pb2 as wire
from asterism_proto.v1 import metad_pb2 as meta
from graphd.api.decoding import (
    check_types,
    decode_direction,
    decode_edge_types,
    decode_hgt,
    decode_induced_edges,
    decode_labor,
    decode_nodes,
    decode_pagerank,
    decode_seed,
    decode_subgraph,
    decode_visits,
    resolve_weight_name,
)
from graphd.filters import filters
from graphd.operators import (
    feature_join,
    graph_labels,
    hgt,
    induced,
    labor,
    negatives,
    pagerank,
    reads,
    sampling,
    visit_counts,
)
from graphd.operators import layers as layer
from graphd.operators.exclusions import RowExclusions
from graphd.operators.sampling import Ids, RequestContext, Sections, Types
from graphd.routing.routes import ServedVersion

T = TypeVar("T")

_MEASURES = {
    wire.LAYER_MEASURE_UNSPECIFIED: layers.SUM,
    wire.SUM: layers.SUM,
    wire.SQRT: layers.SQRT,
    wire.SQUARES: layers.SQUARES,
}


class OperatorHandlers(ABC):
    """Handlers of the Graph service, one part of them."""

    def __init__(self) -> None:
        self._label_cache = graph_labels.GraphLabelCache()

    @abstractmethod
    def _run_at_version(
        self, request: Frame, call: CallContext, run: Callable[[RequestContext], T]
    ) -> tuple[T, ServedVersion]:
        """Run a request at the version that it names, or at the current one."""

    def sample_nodes_like(self, request: Frame, call: CallContext) -> Frame:
        """Nodes of the types that others have."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            schema = context.space.schema
            nodes, types = decode_nodes(request, schema)
            type_ids = range(len(schema.node_types)) if head.node_type < 0 else [head.node_type]
            if types is not None:
                type_ids = sorted(set(types[types >= 0].tolist()))
            filtered_context = filters.with_filter(context, NODE, type_ids, head)
            draw = sampling.GlobalDraw(
                element=NODE,
                types=tuple(type_ids),
                seed=decode_seed(head),
                count=head.count,
                uniform=head.uniform,
                distinct=False,
                want_probabilities=head.want_probabilities,
            )
            return negatives.sample_nodes_like(
                filtered_context,
                negatives.NodesLikeParams(draw=draw, lenient=head.lenient),
                nodes,
                head.node_type,
                types,
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleNodesLikeReply(version=version.version, digest=version.digest), sections
        )

    def sample_negatives(self, request: Frame, call: CallContext) -> Frame:
        """Nodes that are not some others."""
        head: Any = request.head
        if head.rows < 0 or head.count < 0:
            raise InvalidRequest(
                f"{head.count} nodes for each of {head.rows} rows: expected 0 or more"
            )

        def run(context: RequestContext) -> Sections:
            schema = context.space.schema
            types = sorted(set(head.types)) or range(len(schema.node_types))
            check_types("node", schema, types)
            exclusions = RowExclusions.from_request(context, request, types)
            draw = sampling.GlobalDraw(
                element=NODE,
                types=tuple(types),
                seed=decode_seed(head),
                count=head.count,
                uniform=head.uniform,
                distinct=False,
                want_probabilities=head.want_probabilities,
            )
            return negatives.sample_negatives(
                filters.with_filter(context, NODE, draw.types, head), draw, head.rows, exclusions
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleNegativesReply(version=version.version, digest=version.digest), sections
        )

    def sample_layer(self, request: Frame, call: CallContext) -> Frame:
        """Nodes for whole layers."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types, count = _decode_layers(request, context.space.schema)
            params = _decode_layer(context.space.schema, head, head.edge_types, head.count, 0)
            filtered_context = filters.with_filter(context, EDGE, params.edge_types, head)
            return layer.sample_layer(filtered_context, params, count, nodes, head.node_type, types)

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleLayerReply(version=version.version, digest=version.digest), sections
        )

    def sample_layers(self, request: Frame, call: CallContext) -> Frame:
        """Layer after layer."""
        head: Any = request.head
        if not head.hops:
            raise InvalidRequest("a stack of layers has one at least; this one has none")

        def run(context: RequestContext) -> Sections:
            nodes, types, count = _decode_layers(request, context.space.schema)
            hops = [
                _decode_layer(context.space.schema, head, hop.edge_types, hop.count, h)
                for h, hop in enumerate(head.hops)
            ]
            edge_types = [edge_type for hop in hops for edge_type in hop.edge_types]
            filtered_context = filters.with_filter(context, EDGE, edge_types, head)
            return layer.sample_layers(filtered_context, hops, count, nodes, head.node_type, types)

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleLayersReply(version=version.version, digest=version.digest), sections
        )

    def sample_pinsage(self, request: Frame, call: CallContext) -> Frame:
        """The nodes most visited by walks over a metapath."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            params = decode_visits(context.space.schema, head)
            edge_types = [edge_type for step in params.walk.steps for edge_type in step]
            return visit_counts.top_visited(
                filters.with_filter(context, EDGE, edge_types, head),
                params,
                nodes,
                head.node_type,
                types,
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SamplePinsageReply(version=version.version, digest=version.digest), sections
        )

    def personalized_pagerank(self, request: Frame, call: CallContext) -> Frame:
        """The nodes at which walks from others end most often."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            params = decode_pagerank(context.space.schema, head)
            return pagerank.pagerank(
                filters.with_filter(context, EDGE, params.edge_types, head),
                params,
                nodes,
                head.node_type,
                types,
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(wire.PersonalizedPagerankReply(version=version.version), sections)

    def sample_labor(self, request: Frame, call: CallContext) -> Frame:
        """Seeds with neighbors kept by one variate for each, numbered."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            params = decode_labor(context.space.schema, head)
            filtered_context = filters.with_filter(
                context, EDGE, [fanout.edge_type for fanout in head.reach], head
            )
            return feature_join.join_subgraph(
                context,
                feature_join.decode_features(context.space.schema, head),
                labor.sample_labor(filtered_context, params, nodes, head.node_type, types),
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleLaborReply(version=version.version, digest=version.digest), sections
        )

    def adjacency(self, request: Frame, call: CallContext) -> Frame:
        """Edges between two lists of nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            schema = context.space.schema
            nodes, types = decode_nodes(request, schema)
            edge_params = decode_induced_edges(schema, head)
            cols, col_types = (
                request.array("cols", "int64"),
                request.optional_array("col_types", "int32"),
            )
            _check_cols(schema, edge_params, cols, col_types)
            filtered_context = filters.with_filter(context, EDGE, edge_params.edge_types, head)
            return layer.read_adjacency(
                filtered_context, edge_params, nodes, head.node_type, types, cols, col_types
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(wire.AdjacencyReply(version=version.version), sections)

    def sample_ego_subgraphs(self, request: Frame, call: CallContext) -> Frame:
        """Nodes around seeds, and all edges among them."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            schema = context.space.schema
            nodes, types = decode_nodes(request, schema)
            params = replace(
                decode_subgraph(schema, request), want_edge_ids=False, want_weights=False
            )
            edge_params = decode_induced_edges(schema, head)
            columns = feature_join.decode_features(schema, head)
            filtered_context = filters.with_filter(
                context,
                EDGE,
                [*(fanout.edge_type for fanout in head.reach), *edge_params.edge_types],
                head,
            )
            return feature_join.join_subgraph(
                context,
                columns,
                induced.ego_subgraphs(
                    filtered_context, params, edge_params, nodes, head.node_type, types
                ),
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleEgoSubgraphsReply(version=version.version, digest=version.digest), sections
        )

    def sample_hgt(self, request: Frame, call: CallContext) -> Frame:
        """Nodes drawn layer by layer by budgets, and all edges among them."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            schema = context.space.schema
            nodes, types = decode_nodes(request, schema)
            params, edge_params = decode_hgt(schema, head), decode_induced_edges(schema, head)
            columns = feature_join.decode_features(schema, head)
            filtered_context = filters.with_filter(
                context, EDGE, [*params.edge_types, *edge_params.edge_types], head
            )
            return feature_join.join_subgraph(
                context,
                columns,
                hgt.sample_hgt(filtered_context, params, edge_params, nodes, head.node_type, types),
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(wire.SampleHgtReply(version=version.version, digest=version.digest), sections)

    def induced_subgraph(self, request: Frame, call: CallContext) -> Frame:
        """All edges among nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            schema = context.space.schema
            nodes, types = decode_nodes(request, schema)
            edge_params = decode_induced_edges(schema, head)
            columns = feature_join.decode_features(schema, head)
            filtered_context = filters.with_filter(context, EDGE, edge_params.edge_types, head)
            subgraph_sections, known_sections = induced.induced_subgraph(
                filtered_context,
                edge_params,
                nodes,
                head.node_type,
                types,
                request.optional_array("indptr", "int64"),
            )
            return {
                name: array
                for name, array in feature_join.join_subgraph(
                    context, columns, subgraph_sections
                ).items()
                if name not in known_sections
            }

        sections, version = self._run_at_version(request, call, run)
        return Frame(wire.InducedSubgraphReply(version=version.version), sections)

    def sample_graph_labels(self, request: Frame, call: CallContext) -> Frame:
        """Labels of graphs."""
        head: Any = request.head
        sections, version = self._run_at_version(
            request,
            call,
            lambda context: graph_labels.sample_labels(
                context, self._label_cache, head.seed, head.count
            ),
        )
        return Frame(
            wire.SampleGraphLabelsReply(version=version.version, digest=version.digest), sections
        )

    def graph_nodes(self, request: Frame, call: CallContext) -> Frame:
        """The nodes of graphs."""
        indptr, values = (
            request.array("labels.indptr", "int64"),
            request.array("labels.values", "uint8"),
        )
        sections, version = self._run_at_version(
            request, call, lambda context: graph_labels.label_nodes(context, indptr, values)
        )
        return Frame(wire.GraphNodesReply(version=version.version), sections)

    def edges_at(self, request: Frame, call: CallContext) -> Frame:
        """Edges by their place in a scan."""
        head: Any = request.head

        def run(context: RequestContext) -> tuple[Sections, int]:
            check_types("edge", context.space.schema, [head.type_id])
            filtered_context = filters.with_filter(context, EDGE, [head.type_id], head)
            return reads.edges_at(filtered_context, head.type_id, request.array("places", "int64"))

        (sections, count), version = self._run_at_version(request, call, run)
        return Frame(wire.EdgesAtReply(version=version.version, count=count), sections)

    def node_types(self, request: Frame, call: CallContext) -> Frame:
        """The types of nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            return reads.node_types(context, nodes, head.node_type, types)

        sections, version = self._run_at_version(request, call, run)
        return Frame(wire.NodeTypesReply(version=version.version), sections)

    def weight_histogram(
        self, space: str, version: int, element: int, type_id: int, weight: str, call: CallContext
    ) -> tuple[reads.WeightHistogram, ServedVersion]:
        """How the positive weights of a type are spread over all parts. No call of the Graph
        service: graphd's pages ask.
        """

        def run(context: RequestContext) -> reads.WeightHistogram:
            check_types("node" if element == NODE else "edge", context.space.schema, [type_id])
            return reads.weight_histogram(
                context.with_weights(
                    resolve_weight_name(element, context.space.schema, [type_id], weight)
                ),
                element,
                type_id,
            )

        return self._run_at_version(
            Frame(meta.ManifestRequest(space=space, version=version)), call, run
        )


def _decode_layer(
    schema: Schema, head: Any, edge_types: Any, count: int, hop: int
) -> layer.LayerParams:
    """How the nodes of one layer are drawn."""
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more nodes of a layer")
    if head.measure not in _MEASURES:
        raise InvalidRequest(f"measure {head.measure}: expected SUM, SQRT or SQUARES")
    return layer.LayerParams(
        edge_types=decode_edge_types(schema, edge_types),
        count=count,
        replace=head.replace,
        uniform=head.uniform,
        direction=decode_direction(schema, head.direction),
        measure=_MEASURES[head.measure],
        seed=decode_seed(head),
        hop=hop,
        want_edge_ids=head.want_edge_ids,
    )


def _decode_layers(request: Frame, schema: Schema) -> tuple[Ids, Types | None, int]:
    """A request's nodes, their types, and how many layers they are."""
    head: Any = request.head
    nodes, types = decode_nodes(request, schema)
    if head.width < 0 or (head.width and len(nodes) % head.width):
        raise InvalidRequest(
            f"width {head.width} with {len(nodes)} nodes: layers are of equal size"
        )
    return nodes, types, len(nodes) // head.width if head.width else 1


def _check_cols(
    schema: Schema, edge_params: reads.EdgeReadParams, cols: Ids, col_types: Types | None
) -> None:
    if col_types is not None:
        if len(col_types) != len(cols):
            raise InvalidRequest(f"col_types has {len(col_types)} entries for {len(cols)} cols")
        return
    neighbor_types = {
        schema.edge_types[e].dst_type
        if edge_params.direction == pb.OUT
        else schema.edge_types[e].src_type
        for e in edge_params.edge_types
    }
    if len(neighbor_types) > 1 and schema.ids != "global":
        raise InvalidRequest(
            f"the edge types lead to {', '.join(sorted(neighbor_types))}: the section "
            "col_types must then say each col's, for ids are per type"
        )
