"""An entire graph as plain values, for comparing a load with its source."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism import Graph


def column_rows(column: Any) -> list[Any]:
    """Return a feature column as a list of rows, with strings decoded."""
    if isinstance(column, tuple):
        rows = [
            column[1][start:stop] for start, stop in zip(column[0][:-1], column[0][1:], strict=True)
        ]
        return [row.tobytes().decode() if row.dtype == np.uint8 else row.tolist() for row in rows]
    values: list[Any] = np.asarray(column).tolist()
    return values


def nodes_of(graph: Graph, ntype: str) -> dict[int, dict[str, Any]]:
    """Return the weight and features of every node of a type, by id."""
    names = [
        feature.name
        for feature in graph.schema.node_types[graph.schema.node_type_id(ntype)].features
    ]
    nodes: dict[int, dict[str, Any]] = {}
    for batch in graph.scan_nodes(ntype, names):
        columns = {
            "weight": batch.weights.tolist(),
            **{name: column_rows(batch.features[name]) for name in names},
        }
        nodes.update(
            (node, {name: column[row] for name, column in columns.items()})
            for row, node in enumerate(batch.ids.tolist())
        )
    return nodes


def edges_of(graph: Graph, etype: str) -> list[tuple[int, int, dict[str, Any]]]:
    """Return source, destination, weight and features of every edge of a type, by edge id."""
    names = [
        feature.name
        for feature in graph.schema.edge_types[graph.schema.edge_type_id(etype)].features
    ]
    rows: list[tuple[int, int, int, dict[str, Any]]] = []
    for batch in graph.scan_edges(etype, names):
        columns = {
            "weight": batch.weights.tolist(),
            **{name: column_rows(batch.features[name]) for name in names},
        }
        ends = zip(batch.edge_ids.tolist(), batch.src.tolist(), batch.dst.tolist(), strict=True)
        rows += [
            (eid, src, dst, {name: column[row] for name, column in columns.items()})
            for row, (eid, src, dst) in enumerate(ends)
        ]
    return [(src, dst, values) for _, src, dst, values in sorted(rows, key=lambda row: row[0])]
