"""A whole graph as plain values: what a load wrote, held against what it was made from."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism import Graph


def plain(column: Any) -> list[Any]:
    """A feature column as a list of rows; texts decoded."""
    if isinstance(column, tuple):
        rows = [column[1][start:stop] for start, stop in zip(column[0][:-1], column[0][1:], strict=True)]
        return [row.tobytes().decode() if row.dtype == np.uint8 else row.tolist() for row in rows]
    found: list[Any] = np.asarray(column).tolist()
    return found


def nodes_of(graph: Graph, ntype: str) -> dict[int, dict[str, Any]]:
    """By id: the weight and features of every node of a type."""
    names = [feature.name for feature in graph.schema.node_types[graph.schema.node_type_id(ntype)].features]
    found: dict[int, dict[str, Any]] = {}
    for batch in graph.scan_nodes(ntype, names):
        columns = {"weight": batch.weights.tolist(), **{name: plain(batch.features[name]) for name in names}}
        found.update((node, {name: column[row] for name, column in columns.items()}) for row, node in enumerate(batch.ids.tolist()))
    return found


def edges_of(graph: Graph, etype: str) -> list[tuple[int, int, dict[str, Any]]]:
    """Source, destination, weight and features of every edge of a type, in the order of their ids."""
    names = [feature.name for feature in graph.schema.edge_types[graph.schema.edge_type_id(etype)].features]
    found: list[tuple[int, int, int, dict[str, Any]]] = []
    for batch in graph.scan_edges(etype, names):
        columns = {"weight": batch.weights.tolist(), **{name: plain(batch.features[name]) for name in names}}
        ends = zip(batch.edge_ids.tolist(), batch.src.tolist(), batch.dst.tolist(), strict=True)
        found += [(eid, src, dst, {name: column[row] for name, column in columns.items()}) for row, (eid, src, dst) in enumerate(ends)]
    return [(src, dst, held) for _, src, dst, held in sorted(found, key=lambda row: row[0])]
