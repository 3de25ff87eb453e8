"""Graph of each partition: its own nodes and edges, and those of its halo.

The halo (HALO in DGL) consists of the nodes and edges of other partitions that a partition also
stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from asterism.export.dgl_graph_files import Coo, Csr, DglGraph, GraphFile, Relation, write_graphs
from asterism.export.dgl_tensor_files import Array, ArrayStream, row_slices
from asterism.export.edges import PartitionedEdges, end_batches
from asterism.export.external_sort import sorted_positions
from asterism.export.global_ids import GlobalIdRanges
from asterism.export.graph_source import Ids
from asterism.export.run_state import ExportRun, spool_column
from asterism.export.scratch_files import Spool
from asterism_proto.errors import InvalidRequest

FORMATS = ("coo", "csr", "csc")
_STEP = 1 << 18


class LocalIdMap:
    """Map from global to local node ids of one partition.

    Owned nodes come first, then halo nodes in the order of their global ids.
    """

    def __init__(
        self, run: ExportRun, total: int, low: int, high: int, end_ids: Iterator[Ids]
    ) -> None:
        is_halo = run.allocate(total, np.bool_)
        for ids in end_ids:
            is_halo[ids] = True
        is_halo[low:high] = False
        self._local_ids = run.allocate(total, np.int32 if total < 1 << 31 else np.int64)
        for start in range(low, high, _STEP):
            self._local_ids[start : min(high, start + _STEP)] = np.arange(
                start - low, min(high, start + _STEP) - low
            )
        spool = Spool(
            path=run.scratch_path(), dtype=np.dtype(np.int64), piece_bytes=run.spool("").piece_bytes
        )
        count = 0
        for start in range(0, total, _STEP):
            ids = start + np.flatnonzero(is_halo[start : start + _STEP])
            self._local_ids[ids] = np.arange(high - low + count, high - low + count + len(ids))
            count += len(ids)
            spool.append(ids)
        self.halo: Ids = spool.map()
        """Global ids of the halo nodes; ndarray of int64, shape (n,)."""
        spool.remove()

    def __call__(self, ids: Ids) -> Ids:
        """Return the local id of each global id; int64, shape (n,)."""
        return self._local_ids[ids].astype(np.int64)


def write_graph(
    run: ExportRun, nodes: GlobalIdRanges, edges: PartitionedEdges, part: int
) -> dict[str, Any]:
    """Write one partition's ``graph.dgl``, and return its numbers of halo nodes and edges."""
    halo_edges = _halo_edges(run, nodes, edges, part)
    low, high = nodes.part_range(part)
    local = LocalIdMap(run, nodes.total, low, high, _halo_ends(edges, part, halo_edges))
    writer = _PartGraph(
        run=run, nodes=nodes, edges=edges, part=part, halo_edges=halo_edges, local_ids=local
    )
    with run.open_output(f"part{part}/graph.dgl") as file:
        write_graphs(file, GraphFile(graphs=(writer.graph(run.formats),)))
    return {"halo_nodes": len(local.halo), "outer_edges": len(halo_edges)}


def _halo_ends(edges: PartitionedEdges, part: int, halo_edges: Ids) -> Iterator[Ids]:
    for rows in edges.owned_edges(part):
        yield from (src for _, src, _ in end_batches(rows))
    for batch in row_slices(halo_edges, _STEP):
        yield batch[:, 0]
        yield batch[:, 1]


def _halo_edges(run: ExportRun, nodes: GlobalIdRanges, edges: PartitionedEdges, part: int) -> Ids:
    """Return the edges that a partition stores but does not own.

    Each row has source, destination and global id; rows are sorted by global id. The edges are the
    partition's outer edges and, with several hops, edges into its halo nodes.
    """
    spool = Spool(
        path=run.scratch_path(),
        dtype=np.dtype(np.int64),
        shape=(3,),
        piece_bytes=run.spool("").piece_bytes,
    )
    if run.hops == 1 or run.parts == 1:
        for source_part in range(run.parts):
            counts = edges.incoming_counts(source_part)
            incoming, first = edges.incoming_edges(source_part), sum(counts[:part])
            for start in range(first, first + counts[part], incoming.piece_rows):
                spool.append(
                    incoming.map()[start : min(first + counts[part], start + incoming.piece_rows)]
                )
    else:
        for rows in _multi_hop_halo_edges(run, nodes, edges, part):
            spool.append(rows)
    halo_edges = spool.map()
    spool.remove()
    return halo_edges


def _multi_hop_halo_edges(
    run: ExportRun, nodes: GlobalIdRanges, edges: PartitionedEdges, part: int
) -> Iterator[Ids]:
    """Yield halo edges with several hops; all edges are read once more for each hop."""
    low, high = nodes.part_range(part)
    in_halo = run.allocate(edges.ranges.total, np.bool_)
    seen, frontier = run.allocate(nodes.total, np.bool_), run.allocate(nodes.total, np.bool_)
    seen[low:high] = True
    for rows in edges.owned_edges(part):
        for _, src, _ in end_batches(rows):
            frontier[src] = True
    for _ in range(run.hops - 1):
        np.greater(frontier, seen, out=frontier)
        np.logical_or(seen, frontier, out=seen)
        next_frontier = run.allocate(nodes.total, np.bool_)
        for first, src, dst in _all_edges(run, edges):
            # Edges from the partition itself are outer edges already.
            selected = np.flatnonzero(frontier[dst] & ((src < low) | (src >= high)))
            in_halo[first + selected] = True
            next_frontier[src[selected]] = True
        frontier = next_frontier
    for first, src, dst in _all_edges(run, edges):
        crosses_out = (src >= low) & (src < high) & ((dst < low) | (dst >= high))
        selected = np.flatnonzero(in_halo[first : first + len(src)] | crosses_out)
        yield np.stack([src[selected], dst[selected], first + selected], axis=1)


def _all_edges(run: ExportRun, edges: PartitionedEdges) -> Iterator[tuple[int, Ids, Ids]]:
    """Yield the first global id, sources and destinations of all edges, in batches."""
    for part in range(run.parts):
        for type_index, rows in enumerate(edges.owned_edges(part)):
            first = int(edges.ranges.starts[part, type_index])
            for offset, src, dst in end_batches(rows):
                yield first + offset, src, dst


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PartGraph:
    """Content of one partition's graph, as columns generated while they are written."""

    run: ExportRun
    nodes: GlobalIdRanges
    edges: PartitionedEdges
    part: int
    halo_edges: Ids
    local_ids: LocalIdMap

    def graph(self, formats: Sequence[str]) -> DglGraph:
        """Return the graph in homogeneous form, as DGL expects of a partition."""
        low, high = self.nodes.part_range(self.part)
        count = high - low + len(self.local_ids.halo)
        first, last = self.edges.ranges.part_range(self.part)
        ndata = self._data(low, high, self.local_ids.halo, "inner_node", self.nodes)
        edata = self._data(first, last, self.halo_edges[:, 2], "inner_edge", self.edges.ranges)
        if self.run.parts > 1:
            ndata["part_id"] = self._id_column(
                np.int64, low, high, self.local_ids.halo, self.nodes.owners
            )
        return DglGraph(
            ntypes=("_N",),
            etypes=("_E",),
            num_nodes=(count,),
            relations=(self._relation(count, last - first + len(self.halo_edges[:, 2]), formats),),
            ndata=(ndata,),
            edata=(edata,),
        )

    def _data(
        self, low: int, high: int, halo_ids: Ids, inner_name: str, ranges: GlobalIdRanges
    ) -> dict[str, ArrayStream]:
        """Return DGL's columns of nodes or edges: global id, ownership flag and type."""
        data = {
            "_ID": self._id_column(np.int64, low, high, halo_ids, lambda ids: ids),
            inner_name: self._id_column(
                np.uint8, low, high, halo_ids, lambda ids: (ids >= low) & (ids < high)
            ),
        }
        if self.run.plan.is_heterogeneous or self.run.parts == 1:
            data["_TYPE"] = self._id_column(np.int32, low, high, halo_ids, ranges.types)
        return data

    def _id_column(
        self,
        dtype: type[np.generic],
        low: int,
        high: int,
        halo_ids: Ids,
        values_of: Callable[[Ids], Array],
    ) -> ArrayStream:
        def pieces() -> Iterator[Array]:
            for start in range(low, high, _STEP):
                yield values_of(np.arange(start, min(high, start + _STEP))).astype(dtype)
            for ids in row_slices(halo_ids, _STEP):
                yield values_of(ids).astype(dtype)

        return ArrayStream(
            dtype=np.dtype(dtype), shape=(high - low + len(halo_ids),), pieces=pieces
        )

    def _ends(self, end: int) -> Iterator[Array]:
        """Yield the local sources (0) or destinations (1) of all edges, by local edge id."""
        for rows in self.edges.owned_edges(self.part):
            for _, *edge_ends in end_batches(rows):
                yield self.local_ids(edge_ends[end])
        for batch in row_slices(self.halo_edges, _STEP):
            yield self.local_ids(batch[:, end])

    def _relation(self, nodes: int, edges: int, formats: Sequence[str]) -> Relation:
        src, dst = (
            ArrayStream(dtype=np.dtype(np.int64), shape=(edges,), pieces=partial(self._ends, end))
            for end in (0, 1)
        )
        return Relation(
            src_type=0,
            dst_type=0,
            coo=Coo(rows=nodes, cols=nodes, row=src, col=dst) if "coo" in formats else None,
            csr=self._compressed(nodes, src, dst) if "csr" in formats else None,
            csc=self._compressed(nodes, dst, src) if "csc" in formats else None,
        )

    def _compressed(self, nodes: int, rows: ArrayStream, cols: ArrayStream) -> Csr:
        """Return the edges in compressed form, grouped by ``rows``."""
        if nodes >= 1 << 31:
            raise InvalidRequest(
                f"formats: expected 'coo' only, because a part of {nodes} nodes is too large for "
                "'csr' and 'csc'; DGL derives these"
            )
        keys, other_ends = (self._spooled(each) for each in (rows, cols))
        order = sorted_positions(self.run, keys, 0, nodes)
        indptr = self.run.allocate(nodes + 1, np.int64)
        for piece in keys.pieces():
            rows_present, counts = np.unique(piece, return_counts=True)
            indptr[rows_present + 1] += counts
        np.cumsum(indptr, out=indptr)
        indices = self.run.reorder(other_ends, order, other_ends.path.name)
        data = ArrayStream(
            dtype=np.dtype(np.int64), shape=order.shape, pieces=lambda: row_slices(order, _STEP)
        )
        return Csr(
            rows=nodes,
            cols=nodes,
            indptr=ArrayStream.from_array(indptr),
            indices=spool_column(indices),
            data=data,
        )

    def _spooled(self, ends: ArrayStream) -> Spool:
        spool = Spool(
            path=self.run.scratch_path(),
            dtype=ends.dtype,
            piece_bytes=self.run.spool("").piece_bytes,
        )
        spool.path.touch()
        for piece in ends.pieces():
            spool.append(piece)
        return spool
