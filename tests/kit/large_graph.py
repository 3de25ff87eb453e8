"""A graph that is generated during the scan, so that it may exceed memory.

Half of its edges lead to one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from asterism.records.samples import EdgeBatch, NodeBatch
from asterism_model.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "parts": 1,
        "nodes": {"user": {"features": {"x": {"shape": [4]}}}},
        "edges": {"user:knows:user": {"weighted": True}},
    }
)
_STRIDE = (1 << 31) - 1


class LargeGraph:
    """Nodes 0, 1, ... or multiples of a large number; edges of a fixed pattern."""

    def __init__(self, *, nodes: int, edges: int, sparse: bool) -> None:
        self.space, self.schema = "large", SCHEMA
        self._nodes, self._edges, self._stride = nodes, edges, _STRIDE if sparse else 1

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[NodeBatch]:
        column_names = list(names)
        for start in range(0, self._nodes, rows):
            indices = np.arange(start, min(self._nodes, start + rows))
            values = np.stack([indices.astype(np.float32)] * 4, axis=1)
            features = {"x": values} if column_names else {}
            yield NodeBatch(
                part=0,
                ids=indices * self._stride,
                weights=np.ones(len(indices), np.float32),
                features=features,
                version=1,
            )

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[EdgeBatch]:
        for start in range(0, self._edges, rows):
            indices = np.arange(start, min(self._edges, start + rows))
            dst = np.where(indices % 2 == 0, 7, (indices * 40503) % self._nodes)
            yield EdgeBatch(
                part=0,
                src=(indices * 77 + 3) % self._nodes * self._stride,
                dst=dst * self._stride,
                edge_ids=indices,
                weights=np.ones(len(indices), np.float32),
                version=1,
            )
