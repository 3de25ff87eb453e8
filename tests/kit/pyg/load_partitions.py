"""Load every partition by PyG's stores and save NumPy arrays.

Usage: load_partitions.py FOLDER OUT_FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.distributed import LocalFeatureStore, LocalGraphStore


def type_label(kind: Any) -> str:
    """Return an edge type in DGL's format, a node type unchanged, and a word without types."""
    if kind is None or kind == (None, None):
        return "_E" if kind else "_N"
    return kind if isinstance(kind, str) else ":".join(kind)


def main(folder: str, out: str) -> None:
    for part in range(json.loads((Path(folder) / "META.json").read_text())["num_parts"]):
        graph, features = (
            LocalGraphStore.from_partition(folder, part),
            LocalFeatureStore.from_partition(folder, part),
        )
        arrays: dict[str, Any] = {}
        for attr in graph.get_all_edge_attrs():
            row, col = graph.get_edge_index(attr)
            name = ":".join(attr.edge_type) if attr.edge_type else "_E"
            arrays |= {
                f"row|{name}": row,
                f"col|{name}": col,
                f"edge_id|{name}": graph.get_edge_id(attr),
                f"size|{name}": np.array(attr.size),
            }
        for attr in features.get_all_tensor_attrs():
            arrays[f"feat|{type_label(attr.group_name)}|{attr.attr_name}"] = features.get_tensor(
                attr
            )
            arrays[f"global|{type_label(attr.group_name)}"] = features.get_global_id(
                attr.group_name
            )
        for element, book, single_type in (
            ("node", graph.node_pb, None),
            ("edge", graph.edge_pb, (None, None)),
        ):
            for kind, owners in book.items() if isinstance(book, dict) else [(single_type, book)]:
                arrays[f"{element}_map|{type_label(kind)}"] = owners
        np.savez(
            Path(out) / f"part{part}.npz",
            **{key: np.asarray(value) for key, value in arrays.items()},
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
