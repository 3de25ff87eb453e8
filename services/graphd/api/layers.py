"""Layers: layer-wise sampling of nodes, and the edges between two lists of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from asterism_graphkit.operators import layers as measures
from asterism_model.elements import EDGE
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import (
    decode_direction,
    decode_edge_types,
    decode_induced_edges,
    decode_nodes,
    decode_seed,
    step_edge_types,
)
from graphd.api.replies import read_reply, sample_reply
from graphd.operators import layers, neighbor_reads
from graphd.operators.call_seeds import Operator
from graphd.operators.filters import with_filter
from graphd.operators.request_context import Ids, RequestContext, Types

LayerRequest = graphd_pb.SampleLayerRequest | graphd_pb.SampleLayersRequest
_MEASURES: dict[int, int] = {
    graphd_pb.LAYER_MEASURE_UNSPECIFIED: measures.SUM,
    graphd_pb.SUM: measures.SUM,
    graphd_pb.SQRT: measures.SQRT,
    graphd_pb.SQUARES: measures.SQUARES,
}


def sample_layer(
    context: RequestContext, request: Frame[graphd_pb.SampleLayerRequest]
) -> Frame[graphd_pb.SampleLayerReply]:
    """Sample the nodes of one layer."""
    head, schema = request.head, context.space.schema
    nodes, types, count = _decode_layers(request, schema)
    params = _decode_layer(schema, head, head.edge_types, head.count, 0)
    sections = layers.sample_layer(
        with_filter(context, EDGE, params.edge_types, head),
        params,
        count,
        nodes,
        head.node_type,
        types,
    )
    return sample_reply(context, graphd_pb.SampleLayerReply, sections)


def check_hops(request: Frame[graphd_pb.SampleLayersRequest]) -> None:
    """Raise InvalidRequest if there is no layer."""
    if not request.head.hops:
        raise InvalidRequest("layers: expected at least one layer")
    for hop in request.head.hops:
        if hop.share:
            raise InvalidRequest(f"share={hop.share[:40]}: expected a number of nodes per layer")


def sample_layers(
    context: RequestContext, request: Frame[graphd_pb.SampleLayersRequest]
) -> Frame[graphd_pb.SampleLayersReply]:
    """Sample the nodes of several layers, one after another."""
    head, schema = request.head, context.space.schema
    nodes, types, count = _decode_layers(request, schema)
    hops = [
        _decode_layer(schema, head, hop.edge_types, hop.count, h) for h, hop in enumerate(head.hops)
    ]
    sections = layers.sample_layers(
        with_filter(context, EDGE, step_edge_types(hop.edge_types for hop in hops), head),
        hops,
        count,
        nodes,
        head.node_type,
        types,
    )
    return sample_reply(context, graphd_pb.SampleLayersReply, sections)


def adjacency(
    context: RequestContext, request: Frame[graphd_pb.AdjacencyRequest]
) -> Frame[graphd_pb.AdjacencyReply]:
    """Read the edges between two lists of nodes."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    edge_params = decode_induced_edges(schema, head)
    cols = request.array("cols", "int64")
    col_types = request.optional_array("col_types", "int32")
    _check_cols(schema, edge_params, cols, col_types)
    sections = layers.read_adjacency(
        with_filter(context, EDGE, edge_params.edge_types, head),
        edge_params,
        nodes,
        head.node_type,
        types,
        cols,
        col_types,
    )
    return read_reply(context, graphd_pb.AdjacencyReply, sections)


def _decode_layer(
    schema: Schema, head: LayerRequest, edge_types: Sequence[int], count: int, hop: int
) -> layers.LayerParams:
    """Return the sampling parameters of one layer."""
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more nodes of a layer")
    if head.measure not in _MEASURES:
        raise InvalidRequest(f"measure {head.measure}: expected SUM, SQRT or SQUARES")
    layer_types = decode_edge_types(schema, edge_types)
    direction = decode_direction(schema, head.direction)
    return layers.LayerParams(
        edge_types=layer_types,
        count=count,
        replace=head.replace,
        uniform=head.uniform,
        direction=direction,
        measure=_MEASURES[head.measure],
        seed=decode_seed(head, Operator.LAYER, types=layer_types, direction=direction),
        hop=hop,
        want_edge_ids=head.want_edge_ids,
    )


def _decode_layers(request: Frame[LayerRequest], schema: Schema) -> tuple[Ids, Types | None, int]:
    """Return a request's nodes, their types, and the number of layers that they form."""
    head = request.head
    nodes, types = decode_nodes(request, schema)
    if head.width < 0 or (head.width and len(nodes) % head.width):
        raise InvalidRequest(
            f"width {head.width}: expected a divisor of the number of nodes, {len(nodes)}"
        )
    return nodes, types, len(nodes) // head.width if head.width else 1


def _check_cols(
    schema: Schema, edge_params: neighbor_reads.EdgeReadParams, cols: Ids, col_types: Types | None
) -> None:
    if col_types is not None:
        if len(col_types) != len(cols):
            raise InvalidRequest(
                f"col_types has {len(col_types)} entries: expected {len(cols)}, one per col"
            )
        return
    neighbor_types = {
        schema.edge_types[e].dst_type
        if edge_params.direction == common_pb.OUT
        else schema.edge_types[e].src_type
        for e in edge_params.edge_types
    }
    if len(neighbor_types) > 1 and schema.ids != "global":
        raise InvalidRequest(
            f"the edge types lead to {', '.join(sorted(neighbor_types))}: expected a node type "
            "for each col in the section col_types, because ids are per type"
        )
