"""The ends of all edges, as numbers of nodes, in a scratch file: what partitioners work from.

A node's *number* is its rank by stored id, after the nodes of the types before: 0 .. n - 1 over all
types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.edges import end_ids
from asterism.export.export_run import ExportRun, ProgressMeter
from asterism.export.global_ids import NodeIdTable
from asterism.export.graph_source import Ids, count_rows
from asterism.export.scratch_files import Spool
from asterism_graphkit.compile.jit import as_kernel_array, kernel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeListFile:
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
        return (as_kernel_array(piece) for piece in self.spool.pieces())


def node_number_dtype(nodes: int) -> np.dtype[Any]:
    """What holds a node's number."""
    return np.dtype(np.int32 if nodes < 1 << 31 else np.int64)


def type_offsets(tables: Sequence[NodeIdTable]) -> Ids:
    """int64 [types + 1]: the number of the first node of each type, and of the end."""
    return np.concatenate([[0], np.cumsum([len(table) for table in tables], dtype=np.int64)])


@kernel
def _count(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    degrees: NDArray[np.int64],
    in_degrees: NDArray[np.int64],
) -> None:
    for i in range(src.shape[0]):
        in_degrees[dst[i]] += 1
        if src[i] != dst[i]:
            degrees[src[i]] += 1
            degrees[dst[i]] += 1


def write_edge_list(run: ExportRun, tables: list[NodeIdTable]) -> EdgeListFile:
    """All edges of all types, in one scan of each."""
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
