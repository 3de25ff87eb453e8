"""Euler's test graph: six nodes of types "1" (odd) and "0" (even), with all features.

The weight of a node is its id; that of an edge is the weight of its destination. Edges to even
nodes are of type "0", those to odd nodes of type "1".
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from asterism import Client, Graph

PAIRS = [
    (1, 2),
    (1, 3),
    (1, 4),
    (2, 3),
    (2, 5),
    (3, 4),
    (4, 5),
    (5, 2),
    (5, 6),
    (6, 1),
    (6, 3),
    (6, 5),
]
FEATURES = {
    "f1": {"kind": "ragged", "dtype": "int64"},
    "f2": {"kind": "ragged", "dtype": "int64"},
    "f3": {"shape": [2]},
    "f4": {"shape": [3]},
    "f5": {"kind": "bytes"},
    "f6": {"kind": "bytes"},
}
SCHEMA = {
    "parts": 3,
    "ids": "global",
    "nodes": {
        name: {
            "weighted": True,
            "features": {**FEATURES, "graph_label": {"kind": "bytes"}},
            "graph_label": "graph_label",
        }
        for name in ("_1", "_0")
    },
    "edges": {
        name: {"weighted": True, "features": FEATURES}
        for name in ("_1:_0:_0", "_1:_1:_1", "_0:_1:_1")
    },
}


def features(row_id: int) -> list[dict[str, Any]]:
    """Return the features of a node or edge: 12 has f1 [121, 122], f3 [12.1, 12.2], f5 "12a"."""
    ten = 10 * row_id
    return [
        {"name": "f1", "type": "sparse", "value": [ten + 1, ten + 2]},
        {"name": "f2", "type": "sparse", "value": [ten + 3, ten + 4]},
        {"name": "f3", "type": "dense", "value": [row_id + 0.1, row_id + 0.2]},
        {"name": "f4", "type": "dense", "value": [row_id + 0.3, row_id + 0.4, row_id + 0.5]},
        {"name": "f5", "type": "binary", "value": f"{row_id}a"},
        {"name": "f6", "type": "binary", "value": f"{row_id}b"},
    ]


def as_json() -> dict[str, Any]:
    """Return the graph in the JSON format of Euler's tools."""
    nodes = [
        {
            "id": i,
            "type": i % 2,
            "weight": float(i),
            "features": [*features(i), {"name": "graph_label", "type": "binary", "value": str(i)}],
        }
        for i in range(1, 7)
    ]
    edges = [
        {"src": s, "dst": d, "type": d % 2, "weight": float(d), "features": features(10 * s + d)}
        for s, d in PAIRS
    ]
    return {"nodes": nodes, "edges": edges}


NUMBERED_NAMES = {
    "f1": "uint64_0",
    "f2": "uint64_1",
    "f3": "float_0",
    "f4": "float_1",
    "f5": "binary_0",
    "f6": "binary_1",
    "graph_label": "binary_2",
}
"""Names of features in Euler 1.x, by kind and number."""
META = {
    "node_type_num": 2,
    "edge_type_num": 2,
    "node_uint64_feature_num": 2,
    "node_float_feature_num": 2,
    "node_binary_feature_num": 3,
    "edge_uint64_feature_num": 2,
    "edge_float_feature_num": 2,
    "edge_binary_feature_num": 2,
}
"""Meta file of Euler 1.x."""


def as_blocks() -> list[dict[str, Any]]:
    """Return the graph in the format of Euler 1.x's tools, one block per node."""

    def numbered_features(row: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"uint64_feature": {}, "float_feature": {}, "binary_feature": {}}
        for feature in row["features"]:
            kind, feature_number = NUMBERED_NAMES[feature["name"]].split("_")
            result[f"{kind}_feature"][feature_number] = feature["value"]
        return result

    graph_json = as_json()
    blocks = []
    for node in graph_json["nodes"]:
        out_edges = [edge for edge in graph_json["edges"] if edge["src"] == node["id"]]
        neighbors = {
            str(kind): {
                str(edge["dst"]): edge["weight"] for edge in out_edges if edge["type"] == kind
            }
            for kind in (0, 1)
        }
        edges = [
            {
                "src_id": e["src"],
                "dst_id": e["dst"],
                "edge_type": e["type"],
                "weight": e["weight"],
                **numbered_features(e),
            }
            for e in out_edges
        ]
        head = {"node_id": node["id"], "node_type": node["type"], "node_weight": node["weight"]}
        blocks.append({**head, "neighbor": neighbors, **numbered_features(node), "edge": edges})
    return blocks


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the features of JSON rows in the format of writes."""
    features_by_name = [
        {feature["name"]: feature["value"] for feature in row["features"]} for row in rows
    ]
    return {
        name: np.array([row[name] for row in features_by_name], np.float32)
        if name in ("f3", "f4")
        else [row[name] for row in features_by_name]
        for name in features_by_name[0]
    }


def write(client: Client, space: str) -> Graph:
    """Write the graph to a new graph space without the importer, and build it."""
    client.create_space(space, SCHEMA)
    graph, graph_json = client.graph(space), as_json()
    for type_number in (1, 0):
        rows = [row for row in graph_json["nodes"] if row["type"] == type_number]
        graph.upsert_nodes(
            [row["id"] for row in rows],
            f"_{type_number}",
            weights=[row["weight"] for row in rows],
            features=columns(rows),
        )
    for etype in SCHEMA["edges"]:
        src_type, relation, _ = etype.split(":")
        rows = [
            row
            for row in graph_json["edges"]
            if f"_{row['src'] % 2}" == src_type and f"_{row['type']}" == relation
        ]
        ends = np.array([(row["src"], row["dst"]) for row in rows]).T
        graph.upsert_edges(
            *ends, etype, weights=[row["weight"] for row in rows], features=columns(rows)
        )
    graph.build()
    return graph


def meta(graph_json: dict[str, Any], node_types: list[str], edge_types: list[str]) -> bytes:
    """Return the euler.meta that Euler's converter writes for a graph.

    The types are in the order of their numbers.
    """

    def text(value: str) -> bytes:
        return struct.pack("<I", len(value.encode())) + value.encode()

    def feature_section(rows: list[dict[str, Any]]) -> bytes:
        kinds = {
            f"{f['type']}_{f['name']}": (f["type"], len(f["value"]))
            for row in rows
            for f in row["features"]
        }
        parts = [struct.pack("<I", len(kinds))]
        for number, (name, (kind, width)) in enumerate(kinds.items()):
            parts += [
                text(name),
                struct.pack("<iiq", ("sparse", "dense", "binary").index(kind), number, width),
            ]
        return b"".join(parts)

    def type_section(types: list[str]) -> bytes:
        return struct.pack("<I", len(types)) + b"".join(
            text(name) + struct.pack("<I", number) for number, name in enumerate(types)
        )

    counts = struct.pack("<QQI", len(graph_json["nodes"]), len(graph_json["edges"]), 1)
    return (
        text("graph")
        + text("2.0")
        + counts
        + feature_section(graph_json["nodes"])
        + feature_section(graph_json["edges"])
        + type_section(node_types)
        + type_section(edge_types)
    )
