"""The ends of all edges, as numbers of nodes, in a scratch file: what partitioners work from.

A node's *number* is its rank by stored id, after the nodes of the types before: 0 .. n - 1 over all types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.edges import ends
from asterism.export.layout import NodeTable
from asterism.export.run import Meter, Run
from asterism.export.source import Ids, counted
from asterism.export.spool import Spool
from graphkit.jit import kernel, settled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Every edge but loops, once, and how many there are at each node."""

    spool: Spool
    """int32 or int64 [m, 2]: source and destination."""
    degrees: Ids
    """int64 [n]: edges at each node, in either direction."""
    in_degrees: Ids
    """int64 [n]: edges into each node, loops counted."""

    def __len__(self) -> int:
        return self.spool.rows

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.degrees)

    def pieces(self) -> Iterator[NDArray[Any]]:
        """[k, 2] a few at a time, in the order of the scans."""
        return (settled(piece) for piece in self.spool.pieces())


def number_type(nodes: int) -> np.dtype[Any]:
    """What holds a node's number."""
    return np.dtype(np.int32 if nodes < 1 << 31 else np.int64)


def firsts_of(tables: Sequence[NodeTable]) -> Ids:
    """int64 [types + 1]: the number of the first node of each type, and of the end."""
    return np.concatenate([[0], np.cumsum([len(table) for table in tables], dtype=np.int64)])


@kernel
def _count(src: NDArray[np.int64], dst: NDArray[np.int64], degrees: NDArray[np.int64], in_degrees: NDArray[np.int64]) -> None:
    for i in range(src.shape[0]):
        in_degrees[dst[i]] += 1
        if src[i] != dst[i]:
            degrees[src[i]] += 1
            degrees[dst[i]] += 1


def read_pairs(run: Run, tables: list[NodeTable]) -> Pairs:
    """All edges of all types, in one scan of each."""
    firsts = firsts_of(tables)
    total = int(firsts[-1])
    found = Pairs(
        spool=Spool(path=run.scratch / "pairs", dtype=number_type(total), shape=(2,)),
        degrees=np.zeros(total, np.int64),
        in_degrees=np.zeros(total, np.int64),
    )
    found.spool.drop()
    meter = Meter(run, "edges to assign by", counted(run.graph, "EDGE", [kind.type_id for kind in run.plan.edges], run.version))
    for kind in run.plan.edges:
        for batch in run.graph.scan_edges(kind.name, (), version=run.version, rows=kind.batch_rows):
            src, dst = ends(run, kind, batch.src, batch.dst, tables, gids=False)
            src, dst = src + firsts[kind.src], dst + firsts[kind.dst]
            _count(settled(src), settled(dst), found.degrees, found.in_degrees)
            proper = src != dst
            found.spool.append(np.stack([src[proper], dst[proper]], axis=1))
            meter.add(len(src))
    return found
