"""The graph of each part: its own nodes and edges, and those of other parts that it holds beside (HALO)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from asterism.export.dgl_files import Array, Column, sliced
from asterism.export.dgl_graphs import Coo, Csr, Graph, GraphFile, Relation, write_graphs
from asterism.export.edges import Edges, pairs
from asterism.export.layout import Ranges
from asterism.export.ordering import order_by
from asterism.export.run import Run, column
from asterism.export.source import Ids
from asterism.export.spool import Spool
from asterism_proto.errors import InvalidRequest

FORMATS = ("coo", "csr", "csc")
_STEP = 1 << 18


class Localiser:
    """From global to local node ids of one part: owned nodes first, then the others by id."""

    def __init__(self, run: Run, total: int, low: int, high: int, ends: Iterator[Ids]) -> None:
        marked = run.blank(total, np.bool_)
        for ids in ends:
            marked[ids] = True
        marked[low:high] = False
        self._local = run.blank(total, np.int32 if total < 1 << 31 else np.int64)
        for at in range(low, high, _STEP):
            self._local[at : min(high, at + _STEP)] = np.arange(at - low, min(high, at + _STEP) - low)
        spool = Spool(path=run.making(), dtype=np.dtype(np.int64), piece_bytes=run.spool("").piece_bytes)
        count = 0
        for at in range(0, total, _STEP):
            ids = at + np.flatnonzero(marked[at : at + _STEP])
            self._local[ids] = np.arange(high - low + count, high - low + count + len(ids))
            count += len(ids)
            spool.append(ids)
        self.halo: Ids = spool.map()
        """int64[n]: the others."""
        spool.drop()

    def __call__(self, ids: Ids) -> Ids:
        """int64[n]: local ids."""
        return self._local[ids].astype(np.int64)


def write_graph(run: Run, nodes: Ranges, edges: Edges, part: int) -> dict[str, Any]:
    """Write one part's ``graph.dgl``; give how much it holds beside its own."""
    beside = _beside(run, nodes, edges, part)
    low, high = nodes.part(part)
    local = Localiser(run, nodes.total, low, high, _remote(edges, part, beside))
    writer = _PartGraph(run=run, nodes=nodes, edges=edges, part=part, beside=beside, local=local)
    with run.writing(f"part{part}/graph.dgl") as file:
        write_graphs(file, GraphFile(graphs=(writer.graph(run.formats),)))
    return {"halo_nodes": len(local.halo), "outer_edges": len(beside)}


def _remote(edges: Edges, part: int, beside: Ids) -> Iterator[Ids]:
    for rows in edges.owned(part):
        yield from (src for _, src, _ in pairs(rows))
    for some in sliced(beside, _STEP):
        yield some[:, 0]
        yield some[:, 1]


def _beside(run: Run, nodes: Ranges, edges: Edges, part: int) -> Ids:
    """Source, destination and global id of each edge that a part holds but does not own, by global id.

    These are its outer edges, and the edges into its HALO nodes where those are held too.
    """
    made = Spool(path=run.making(), dtype=np.dtype(np.int64), shape=(3,), piece_bytes=run.spool("").piece_bytes)
    if run.hops == 1 or run.parts == 1:
        for other in range(run.parts):
            counts = edges.cuts(other)
            outer, first = edges.outer(other), sum(counts[:part])
            for at in range(first, first + counts[part], outer.step):
                made.append(outer.map()[at : min(first + counts[part], at + outer.step)])
    else:
        for rows in _reached(run, nodes, edges, part):
            made.append(rows)
    found = made.map()
    made.drop()
    return found


def _reached(run: Run, nodes: Ranges, edges: Edges, part: int) -> Iterator[Ids]:
    """The same where HALO nodes have in-edges too: all edges are read once more for each hop."""
    low, high = nodes.part(part)
    held = run.blank(edges.ranges.total, np.bool_)
    seen, frontier = run.blank(nodes.total, np.bool_), run.blank(nodes.total, np.bool_)
    seen[low:high] = True
    for rows in edges.owned(part):
        for _, src, _ in pairs(rows):
            frontier[src] = True
    for _ in range(run.hops - 1):
        np.greater(frontier, seen, out=frontier)
        np.logical_or(seen, frontier, out=seen)
        following = run.blank(nodes.total, np.bool_)
        for first, src, dst in _everything(run, edges):
            # Those from the part itself are outer edges already.
            mine = np.flatnonzero(frontier[dst] & ((src < low) | (src >= high)))
            held[first + mine] = True
            following[src[mine]] = True
        frontier = following
    for first, src, dst in _everything(run, edges):
        outer = (src >= low) & (src < high) & ((dst < low) | (dst >= high))
        mine = np.flatnonzero(held[first : first + len(src)] | outer)
        yield np.stack([src[mine], dst[mine], first + mine], axis=1)


def _everything(run: Run, edges: Edges) -> Iterator[tuple[int, Ids, Ids]]:
    """The first global id, sources and destinations of all edges, a few at a time."""
    for part in range(run.parts):
        for place, rows in enumerate(edges.owned(part)):
            first = int(edges.ranges.starts[part, place])
            for at, src, dst in pairs(rows):
                yield first + at, src, dst


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PartGraph:
    """What goes into one part's graph, as columns that are made while they are written."""

    run: Run
    nodes: Ranges
    edges: Edges
    part: int
    beside: Ids
    local: Localiser

    def graph(self, formats: Sequence[str]) -> Graph:
        """The graph, homogeneous as DGL wants a part to be."""
        low, high = self.nodes.part(self.part)
        count = high - low + len(self.local.halo)
        first, last = self.edges.ranges.part(self.part)
        ndata = self._data(low, high, self.local.halo, "inner_node", self.nodes)
        edata = self._data(first, last, self.beside[:, 2], "inner_edge", self.edges.ranges)
        if self.run.parts > 1:
            ndata["part_id"] = self._made(np.int64, low, high, self.local.halo, self.nodes.owners)
        return Graph(
            ntypes=("_N",),
            etypes=("_E",),
            num_nodes=(count,),
            relations=(self._relation(count, last - first + len(self.beside[:, 2]), formats),),
            ndata=(ndata,),
            edata=(edata,),
        )

    def _data(self, low: int, high: int, others: Ids, inner: str, ranges: Ranges) -> dict[str, Column]:
        """What DGL keeps of each node or edge: its global id, whether it is the part's own, its type."""
        data = {
            "_ID": self._made(np.int64, low, high, others, lambda ids: ids),
            inner: self._made(np.uint8, low, high, others, lambda ids: (ids >= low) & (ids < high)),
        }
        if self.run.plan.typed or self.run.parts == 1:
            data["_TYPE"] = self._made(np.int32, low, high, others, ranges.types)
        return data

    def _made(self, dtype: type[np.generic], low: int, high: int, others: Ids, of: Callable[[Ids], Array]) -> Column:
        def pieces() -> Iterator[Array]:
            for at in range(low, high, _STEP):
                yield of(np.arange(at, min(high, at + _STEP))).astype(dtype)
            for ids in sliced(others, _STEP):
                yield of(ids).astype(dtype)

        return Column(dtype=np.dtype(dtype), shape=(high - low + len(others),), pieces=pieces)

    def _ends(self, which: int) -> Iterator[Array]:
        """Local sources (0) or destinations (1) of all edges, by local edge id."""
        for rows in self.edges.owned(self.part):
            for _, *both in pairs(rows):
                yield self.local(both[which])
        for some in sliced(self.beside, _STEP):
            yield self.local(some[:, which])

    def _relation(self, nodes: int, edges: int, formats: Sequence[str]) -> Relation:
        src, dst = (Column(dtype=np.dtype(np.int64), shape=(edges,), pieces=partial(self._ends, which)) for which in (0, 1))
        return Relation(
            src_type=0,
            dst_type=0,
            coo=Coo(rows=nodes, cols=nodes, row=src, col=dst) if "coo" in formats else None,
            csr=self._compressed(nodes, src, dst) if "csr" in formats else None,
            csc=self._compressed(nodes, dst, src) if "csc" in formats else None,
        )

    def _compressed(self, nodes: int, rows: Column, cols: Column) -> Csr:
        """The edges by ``rows``."""
        if nodes >= 1 << 31:
            raise InvalidRequest(f"a part of {nodes} nodes is too large for csr or csc here; write coo, and DGL makes them")
        keys, others = (self._kept(each) for each in (rows, cols))
        order = order_by(self.run, keys, 0, nodes)
        indptr = self.run.blank(nodes + 1, np.int64)
        for piece in keys.pieces():
            found, counts = np.unique(piece, return_counts=True)
            indptr[found + 1] += counts
        np.cumsum(indptr, out=indptr)
        indices = self.run.reordered(others, order, others.path.name)
        data = Column(dtype=np.dtype(np.int64), shape=order.shape, pieces=lambda: sliced(order, _STEP))
        return Csr(rows=nodes, cols=nodes, indptr=Column.of(indptr), indices=column(indices), data=data)

    def _kept(self, ends: Column) -> Spool:
        spool = Spool(path=self.run.making(), dtype=ends.dtype, piece_bytes=self.run.spool("").piece_bytes)
        spool.path.touch()
        for piece in ends.pieces():
            spool.append(piece)
        return spool
