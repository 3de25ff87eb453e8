"""igraph's graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism.objects.asked import Asked
from asterism.objects.columns import Attributes
from asterism.objects.tables import EdgeTable, NodeTable, Tables

_NAME = "name"
"""The attribute by which igraph itself finds vertices."""


def read(graph: Any, asked: Asked, attributes: Attributes) -> Tables:
    """A graph of igraph as tables; vertices are its numbers, or their ``name`` where the space has strings; it is a feature too."""
    taken = attributes.take(asked.node_type, graph.vcount(), {name: graph.vs[name] for name in graph.vs.attributes()}, edges=False)
    nodes = NodeTable(name=asked.node_type, count=graph.vcount(), weights=taken.weights, features=taken.features)
    names = {asked.node_type: np.array(graph.vs[_NAME], object)} if asked.named and _NAME in graph.vs.attributes() else {}
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
    taken = attributes.take(":".join(asked.triple), len(ends), {name: graph.es[name] for name in graph.es.attributes()}, edges=True)
    edges = EdgeTable(
        triple=asked.triple, src=ends[:, 0], dst=ends[:, 1], weights=taken.weights, features=taken.features, both_ways=not graph.is_directed()
    )
    return Tables(what="igraph Graph", nodes=(nodes,), edges=(edges,), names=names, left_out=tuple(f"graph.{name}" for name in graph.attributes()))
