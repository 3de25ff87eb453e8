"""A graph that is made up while it is scanned, and so may be larger than memory: half of its edges lead to one node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from asterism.records import EdgeBatch, NodeBatch
from asterism_proto.schema import Schema

SCHEMA = Schema.from_dict({"parts": 1, "nodes": {"user": {"features": {"x": {"shape": [4]}}}}, "edges": {"user:knows:user": {"weighted": True}}})
_STRIDE = (1 << 31) - 1


class LargeGraph:
    """Nodes 0, 1, ... or multiples of a large number; edges of a fixed pattern."""

    def __init__(self, *, nodes: int, edges: int, sparse: bool) -> None:
        self.space, self.schema = "large", SCHEMA
        self._nodes, self._edges, self._stride = nodes, edges, _STRIDE if sparse else 1

    def scan_nodes(self, ntype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[NodeBatch]:
        wanted = list(names)
        for at in range(0, self._nodes, rows):
            numbers = np.arange(at, min(self._nodes, at + rows))
            values = np.stack([numbers.astype(np.float32)] * 4, axis=1)
            features = {"x": values} if wanted else {}
            yield NodeBatch(part=0, ids=numbers * self._stride, weights=np.ones(len(numbers), np.float32), features=features, version=1)

    def scan_edges(self, etype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[EdgeBatch]:
        for at in range(0, self._edges, rows):
            numbers = np.arange(at, min(self._edges, at + rows))
            dst = np.where(numbers % 2 == 0, 7, (numbers * 40503) % self._nodes)
            yield EdgeBatch(
                part=0,
                src=(numbers * 77 + 3) % self._nodes * self._stride,
                dst=dst * self._stride,
                edge_ids=numbers,
                weights=np.ones(len(numbers), np.float32),
                version=1,
            )
