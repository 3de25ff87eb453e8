"""NetworkX's graphs: directed or not, of single or parallel edges."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from asterism.objects.asked import Asked
from asterism.objects.columns import Attributes
from asterism.objects.labels import Labels, named_attributes
from asterism.objects.tables import EdgeTable, NodeTable, Tables


def read(graph: Any, asked: Asked, attributes: Attributes) -> Tables:
    """A graph of NetworkX as tables. It holds objects, so that every node and edge is touched here, and nowhere later."""
    labels = Labels(f"node type {asked.node_type!r}", list(graph))
    rows = named_attributes([held for _, held in graph.nodes(data=True)], f"node type {asked.node_type!r}")
    taken = attributes.take(asked.node_type, labels.count, rows, edges=False)
    nodes = NodeTable(name=asked.node_type, count=labels.count, ids=labels.ids, weights=taken.weights, features=taken.features)

    triples = list(graph.edges(data=True))
    src, dst = (labels.numbers(map(itemgetter(end), triples), len(triples)) for end in (0, 1))
    name = ":".join(asked.triple)
    taken = attributes.take(name, len(triples), named_attributes([held for _, _, held in triples], f"edge type {name!r}"), edges=True)
    edges = EdgeTable(triple=asked.triple, src=src, dst=dst, weights=taken.weights, features=taken.features, both_ways=not graph.is_directed())
    left_out = [f"graph.{key}" for key in graph.graph] + (["edge keys"] if graph.is_multigraph() else [])
    names = {} if labels.names is None else {asked.node_type: labels.names}
    return Tables(what=f"NetworkX {type(graph).__name__}", nodes=(nodes,), edges=(edges,), names=names, left_out=tuple(left_out))
