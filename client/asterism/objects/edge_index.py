"""Reader of arrays of edges, of shape (2, E): sources, then destinations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.read_options import ReadOptions, parse_triple
from asterism_proto.errors import InvalidRequest


def read(arrays: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert an array of edges, or arrays by edge type, to tables.

    The nodes of a type are 0 to its number of nodes in ``nodes``, otherwise to the largest id.
    """
    edges = (
        {parse_triple(key): array for key, array in arrays.items()}
        if isinstance(arrays, Mapping)
        else {options.triple: arrays}
    )
    counts = _declared_counts(options)
    largest: dict[str, int] = {}
    tables = []
    for triple, array in edges.items():
        name = ":".join(triple)
        _check_array(name, array)
        attributes.read(name, int(array.shape[1]), {}, edges=True)
        for node_type, ends in zip((triple[0], triple[2]), array, strict=True):
            top = int(ends.max()) if len(ends) else -1
            largest[node_type] = max(largest.get(node_type, -1), top)
        tables.append(EdgeTable(triple=triple, src=array[0], dst=array[1]))
    nodes = []
    for node_type in dict.fromkeys([*counts, *largest]):
        count = counts.get(node_type, largest.get(node_type, -1) + 1)
        attributes.read(node_type, count, {}, edges=False)
        nodes.append(NodeTable(name=node_type, count=count))
    return GraphTables(source_name="array of edges", nodes=tuple(nodes), edges=tuple(tables))


def _declared_counts(options: ReadOptions) -> dict[str, int]:
    counts = (
        dict(options.nodes)
        if isinstance(options.nodes, Mapping)
        else {}
        if options.nodes is None
        else {options.node_type: options.nodes}
    )
    for node_type, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InvalidRequest(
                f"nodes[{node_type!r}] of type {type(count).__name__}: expected the number of "
                "nodes, an integer of 0 or more, with arrays of edges"
            )
    return counts


def _check_array(name: str, array: Any) -> None:
    """Raise InvalidRequest unless an array has shape (2, E) and holds integers."""
    shape = tuple(array.shape)
    if len(shape) != 2 or shape[0] != 2:
        remedy = "; transpose it with .T" if len(shape) == 2 and shape[1] == 2 else ""
        raise InvalidRequest(
            f"edge type {name!r}: array of shape {list(shape)}: expected [2, E], sources and then "
            f"destinations{remedy}"
        )
    dtype = str(array.dtype).removeprefix("torch.")
    if not dtype.startswith(("int", "uint")):
        raise InvalidRequest(
            f"edge type {name!r}: array of {dtype}: expected integers, the ids of nodes"
        )
