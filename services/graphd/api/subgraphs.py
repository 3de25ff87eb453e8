"""Subgraphs: around seeds by fanouts, LABOR or HGT budgets, and induced by given nodes."""

from __future__ import annotations

from asterism_model.elements import EDGE
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import (
    decode_direction,
    decode_edge_types,
    decode_fanouts,
    decode_induced_edges,
    decode_nodes,
    decode_seed,
)
from graphd.api.replies import read_reply, sample_reply
from graphd.operators import hgt, induced_subgraphs, labor, subgraphs
from graphd.operators.call_seeds import Operator
from graphd.operators.feature_join import decode_features, join_subgraph
from graphd.operators.filters import with_filter
from graphd.operators.request_context import RequestContext
from graphd.operators.schema_checks import check_types
from graphd.operators.temporal_filters import TemporalFilter, subgraph_filter

_MAX_IMPORTANCE_STEPS = 100
"""Maximum importance steps of LABOR: importances converge in far fewer."""


def sample_subgraph(
    context: RequestContext, request: Frame[graphd_pb.SampleSubgraphRequest]
) -> Frame[graphd_pb.SampleSubgraphReply]:
    """Sample the k-hop neighborhood of seeds."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    params = _decode_subgraph(
        schema,
        head,
        want_edge_ids=head.want_edge_ids,
        want_weights=head.want_weights,
        temporal_filter=subgraph_filter(request, schema),
    )
    filtered_context = with_filter(
        context, EDGE, [fanout.edge_type for fanout in head.fanouts], head
    )
    sections = join_subgraph(
        context,
        decode_features(schema, head.node_features),
        subgraphs.sample_subgraph(filtered_context, params, nodes, head.node_type, types),
    )
    return sample_reply(context, graphd_pb.SampleSubgraphReply, sections)


def sample_ego_subgraphs(
    context: RequestContext, request: Frame[graphd_pb.SampleEgoSubgraphsRequest]
) -> Frame[graphd_pb.SampleEgoSubgraphsReply]:
    """Sample the nodes around seeds, and read all edges among them."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    # The edges among all nodes would expose later edges, so ego subgraphs take no times.
    params = _decode_subgraph(
        schema, head, want_edge_ids=False, want_weights=False, temporal_filter=None
    )
    edge_params = decode_induced_edges(schema, head)
    columns = decode_features(schema, head.node_features)
    filtered_context = with_filter(
        context,
        EDGE,
        [*(fanout.edge_type for fanout in head.fanouts), *edge_params.edge_types],
        head,
    )
    sections = join_subgraph(
        context,
        columns,
        induced_subgraphs.ego_subgraphs(
            filtered_context, params, edge_params, nodes, head.node_type, types
        ),
    )
    return sample_reply(context, graphd_pb.SampleEgoSubgraphsReply, sections)


def sample_labor(
    context: RequestContext, request: Frame[graphd_pb.SampleLaborRequest]
) -> Frame[graphd_pb.SampleLaborReply]:
    """Sample the k-hop neighborhood of seeds with one random variate per node (LABOR)."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    params = _decode_labor(schema, head)
    filtered_context = with_filter(
        context, EDGE, [fanout.edge_type for fanout in head.fanouts], head
    )
    sections = join_subgraph(
        context,
        decode_features(schema, head.node_features),
        labor.sample_labor(filtered_context, params, nodes, head.node_type, types),
    )
    return sample_reply(context, graphd_pb.SampleLaborReply, sections)


def sample_hgt(
    context: RequestContext, request: Frame[graphd_pb.SampleHgtRequest]
) -> Frame[graphd_pb.SampleHgtReply]:
    """Sample nodes layer by layer by HGT budgets, and read all edges among them."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    params, edge_params = _decode_hgt(schema, head), decode_induced_edges(schema, head)
    columns = decode_features(schema, head.node_features)
    filtered_context = with_filter(
        context, EDGE, [*params.edge_types, *edge_params.edge_types], head
    )
    sections = join_subgraph(
        context,
        columns,
        hgt.sample_hgt(filtered_context, params, edge_params, nodes, head.node_type, types),
    )
    return sample_reply(context, graphd_pb.SampleHgtReply, sections)


def induced_subgraph(
    context: RequestContext, request: Frame[graphd_pb.InducedSubgraphRequest]
) -> Frame[graphd_pb.InducedSubgraphReply]:
    """Read all edges among nodes."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    edge_params = decode_induced_edges(schema, head)
    columns = decode_features(schema, head.node_features)
    subgraph_sections, known_sections = induced_subgraphs.induced_subgraph(
        with_filter(context, EDGE, edge_params.edge_types, head),
        edge_params,
        nodes,
        head.node_type,
        types,
        request.optional_array("indptr", "int64"),
    )
    joined = join_subgraph(context, columns, subgraph_sections)
    sections = {name: array for name, array in joined.items() if name not in known_sections}
    return read_reply(context, graphd_pb.InducedSubgraphReply, sections)


def _decode_subgraph(
    schema: Schema,
    head: graphd_pb.SampleSubgraphRequest | graphd_pb.SampleEgoSubgraphsRequest,
    *,
    want_edge_ids: bool,
    want_weights: bool,
    temporal_filter: TemporalFilter | None,
) -> subgraphs.SubgraphParams:
    """Return the parameters of a k-hop subgraph."""
    direction = decode_direction(schema, head.direction)
    return subgraphs.SubgraphParams(
        fanouts=decode_fanouts(schema, head.fanouts, direction),
        replace=head.replace,
        uniform=head.uniform,
        direction=direction,
        # The edge type is part of the keys of its draws.
        seed=decode_seed(head, Operator.SUBGRAPH, direction=direction),
        disjoint=head.disjoint,
        expand_all_hops=head.expand_all_hops,
        want_edge_ids=want_edge_ids,
        want_weights=want_weights,
        temporal_filter=temporal_filter,
    )


def _decode_labor(schema: Schema, head: graphd_pb.SampleLaborRequest) -> labor.LaborParams:
    """Return the parameters of a LABOR subgraph."""
    if not -1 <= head.importance_steps <= _MAX_IMPORTANCE_STEPS:
        raise InvalidRequest(
            f"importance {head.importance_steps}: expected 0 to {_MAX_IMPORTANCE_STEPS} steps, "
            "or -1 to iterate until convergence"
        )
    direction = decode_direction(schema, head.direction)
    return labor.LaborParams(
        fanouts=decode_fanouts(schema, head.fanouts, direction),
        uniform=head.uniform,
        direction=direction,
        # Edge types share the variates of nodes: that is the method.
        seed=decode_seed(head, Operator.LABOR, direction=direction),
        importance_steps=head.importance_steps,
        layer_dependency=head.layer_dependency,
        expand_all_hops=head.expand_all_hops,
        want_edge_ids=head.want_edge_ids,
        want_weights=head.want_weights,
    )


def _decode_hgt(schema: Schema, head: graphd_pb.SampleHgtRequest) -> hgt.HgtParams:
    """Return the parameters of budget sampling (HGT)."""
    check_types("node", schema, [entry.type_id for entry in head.counts])
    if not head.counts or not head.counts[0].counts:
        raise InvalidRequest(
            "counts: expected at least one layer; state the number of nodes of at least one type "
            "for each layer"
        )
    counts = {entry.type_id: tuple(entry.counts) for entry in head.counts}
    if len(counts) < len(head.counts):
        raise InvalidRequest(
            f"counts of node types {[entry.type_id for entry in head.counts]}: expected each "
            "type once"
        )
    layer_count = len(head.counts[0].counts)
    for type_id, layer_counts in counts.items():
        name = schema.node_types[type_id].name
        if len(layer_counts) != layer_count:
            raise InvalidRequest(
                f"counts of {name!r} have {len(layer_counts)} layers: expected {layer_count}, as "
                "for the first type"
            )
        if min(layer_counts) < 0:
            raise InvalidRequest(
                f"count {min(layer_counts)} of {name!r}: expected 0 or more nodes of a layer"
            )
    edge_types = decode_edge_types(schema, head.traversed_edge_types)
    direction = decode_direction(schema, head.direction)
    return hgt.HgtParams(
        edge_types=edge_types,
        counts=counts,
        layer_count=layer_count,
        uniform=head.uniform,
        direction=direction,
        seed=decode_seed(head, Operator.HGT, types=edge_types, direction=direction),
    )
