"""Reader of igraph graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.read_options import ReadOptions

_NAME = "name"
"""Attribute by which igraph finds vertices."""


def read(graph: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert an igraph graph to tables.

    Vertices are identified by number, or by ``name`` if the space has string ids; ``name`` is a
    feature too.
    """
    type_attributes = attributes.read(
        options.node_type,
        graph.vcount(),
        {name: graph.vs[name] for name in graph.vs.attributes()},
        edges=False,
    )
    nodes = NodeTable(
        name=options.node_type,
        count=graph.vcount(),
        weights=type_attributes.weights,
        features=type_attributes.features,
    )
    names = (
        {options.node_type: np.array(graph.vs[_NAME], object)}
        if options.string_ids and _NAME in graph.vs.attributes()
        else {}
    )
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
    type_attributes = attributes.read(
        ":".join(options.triple),
        len(ends),
        {name: graph.es[name] for name in graph.es.attributes()},
        edges=True,
    )
    edges = EdgeTable(
        triple=options.triple,
        src=ends[:, 0],
        dst=ends[:, 1],
        weights=type_attributes.weights,
        features=type_attributes.features,
        both_ways=not graph.is_directed(),
    )
    return GraphTables(
        source_name="igraph Graph",
        nodes=(nodes,),
        edges=(edges,),
        names=names,
        left_out=tuple(f"graph.{name}" for name in graph.attributes()),
    )
