"""Scratch file with the ends of all edges, as node numbers: the input of partitioners.

Nodes are numbered 0 .. n - 1 over all types. A node's *number* is its rank by stored id, plus the
number of nodes of all earlier types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.edges import end_ids
from asterism.export.global_ids import NodeIdTable
from asterism.export.graph_source import Ids, count_rows
from asterism.export.run_state import ExportRun, ProgressMeter
from asterism.export.scratch_files import Spool
from asterism_graphkit.compile.jit import as_kernel_array, kernel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeListFile:
    """All edges except self-loops, and the degrees of the nodes."""

    spool: Spool
    """Source and destination of each edge; int32 or int64, shape (m, 2)."""
    degrees: Ids
    """Degree of each node, in either direction and without self-loops; int64, shape (n,)."""
    in_degrees: Ids
    """Number of edges into each node, self-loops included; int64, shape (n,)."""

    def __len__(self) -> int:
        return self.spool.rows

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.degrees)

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield batches of shape (k, 2), in the order of the scans."""
        return (as_kernel_array(piece) for piece in self.spool.pieces())


def node_number_dtype(nodes: int) -> np.dtype[Any]:
    """Return the dtype of node numbers: int32 below 2^31 nodes, otherwise int64."""
    return np.dtype(np.int32 if nodes < 1 << 31 else np.int64)


def type_offsets(tables: Sequence[NodeIdTable]) -> Ids:
    """Return the first node number of each type, and the total; int64, shape (types + 1,)."""
    return np.concatenate([[0], np.cumsum([len(table) for table in tables], dtype=np.int64)])


@kernel
def _count(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    degrees: NDArray[np.int64],
    in_degrees: NDArray[np.int64],
) -> None:
    """Add a batch of edges to the degrees.

    All arrays are int64: ``src`` and ``dst`` of shape (k,), ``degrees`` and ``in_degrees`` of shape
    (n,), updated in place.
    """
    for i in range(src.shape[0]):
        in_degrees[dst[i]] += 1
        if src[i] != dst[i]:
            degrees[src[i]] += 1
            degrees[dst[i]] += 1


def write_edge_list(run: ExportRun, tables: list[NodeIdTable]) -> EdgeListFile:
    """Scan the edges of all types once each, and write their ends to a scratch file."""
    firsts = type_offsets(tables)
    total = int(firsts[-1])
    edge_list = EdgeListFile(
        spool=Spool(path=run.scratch / "pairs", dtype=node_number_dtype(total), shape=(2,)),
        degrees=np.zeros(total, np.int64),
        in_degrees=np.zeros(total, np.int64),
    )
    edge_list.spool.remove()
    meter = ProgressMeter(
        run,
        "edges to assign by",
        count_rows(run.graph, "EDGE", [kind.type_id for kind in run.plan.edges], run.version),
    )
    for kind in run.plan.edges:
        for batch in run.graph.scan_edges(kind.name, (), version=run.version, rows=kind.batch_rows):
            src, dst = end_ids(run, kind, batch.src, batch.dst, tables, gids=False)
            src, dst = src + firsts[kind.src], dst + firsts[kind.dst]
            _count(
                as_kernel_array(src), as_kernel_array(dst), edge_list.degrees, edge_list.in_degrees
            )
            not_loop = src != dst
            edge_list.spool.append(np.stack([src[not_loop], dst[not_loop]], axis=1))
            meter.add(len(src))
    return edge_list
