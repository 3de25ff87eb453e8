"""Reader of NetworkX graphs: directed or undirected, simple or multigraphs."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.node_labels import NodeLabels, attribute_lists
from asterism.objects.read_options import ReadOptions


def read(graph: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert a NetworkX graph to tables.

    NetworkX holds Python objects, so every node and edge is visited here, and only here.
    """
    labels = NodeLabels(f"node type {options.node_type!r}", list(graph))
    rows = attribute_lists(
        [attrs for _, attrs in graph.nodes(data=True)], f"node type {options.node_type!r}"
    )
    type_attributes = attributes.read(options.node_type, labels.count, rows, edges=False)
    nodes = NodeTable(
        name=options.node_type,
        count=labels.count,
        ids=labels.ids,
        weights=type_attributes.weights,
        features=type_attributes.features,
    )

    triples = list(graph.edges(data=True))
    src, dst = (labels.ids_of(map(itemgetter(end), triples), len(triples)) for end in (0, 1))
    name = ":".join(options.triple)
    type_attributes = attributes.read(
        name,
        len(triples),
        attribute_lists([attrs for _, _, attrs in triples], f"edge type {name!r}"),
        edges=True,
    )
    edges = EdgeTable(
        triple=options.triple,
        src=src,
        dst=dst,
        weights=type_attributes.weights,
        features=type_attributes.features,
        both_ways=not graph.is_directed(),
    )
    left_out = [f"graph.{key}" for key in graph.graph] + (
        ["edge keys"] if graph.is_multigraph() else []
    )
    names = {} if labels.names is None else {options.node_type: labels.names}
    return GraphTables(
        source_name=f"NetworkX {type(graph).__name__}",
        nodes=(nodes,),
        edges=(edges,),
        names=names,
        left_out=tuple(left_out),
    )
