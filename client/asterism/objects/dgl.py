"""Reader of DGL graphs, homogeneous or heterogeneous."""

from __future__ import annotations

from typing import Any

from asterism.name_conversion import as_name
from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.read_options import ReadOptions
from asterism_proto.errors import InvalidRequest

_NO_NODES, _NO_EDGE = "_N", ("_N", "_E", "_N")
"""Default names of types in DGL."""


def read(graph: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert a ``DGLGraph`` to tables; edges are ordered by number."""
    if graph.is_block:
        raise InvalidRequest(
            "graph: expected a whole DGLGraph, found a block, which is a sampled batch; load the "
            "graph that it was sampled from"
        )
    nodes, edges = [], []
    for node_type in graph.ntypes:
        name = options.node_type if node_type == _NO_NODES else as_name(node_type)
        count = int(graph.num_nodes(node_type))
        type_attributes = attributes.read(
            name, count, dict(graph.nodes[node_type].data), edges=False
        )
        nodes.append(
            NodeTable(
                name=name,
                count=count,
                weights=type_attributes.weights,
                features=type_attributes.features,
            )
        )
    for triple in graph.canonical_etypes:
        src_type, relation, dst_type = triple
        names = (
            options.node_type if src_type == _NO_NODES else as_name(src_type),
            options.relation if relation == _NO_EDGE[1] else as_name(relation),
            options.node_type if dst_type == _NO_NODES else as_name(dst_type),
        )
        src, dst = graph.edges(form="uv", order="eid", etype=triple)
        type_attributes = attributes.read(
            ":".join(names), len(src), dict(graph.edges[triple].data), edges=True
        )
        edges.append(
            EdgeTable(
                triple=names,
                src=src,
                dst=dst,
                weights=type_attributes.weights,
                features=type_attributes.features,
            )
        )
    return GraphTables(source_name="DGLGraph", nodes=tuple(nodes), edges=tuple(edges))
