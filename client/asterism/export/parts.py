"""The graph of each part: its own nodes and edges, and those of other parts that it holds beside (HALO)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_files import Array, Column, sliced
from asterism.export.dgl_graphs import Coo, Csr, Graph, GraphFile, Relation, write_graphs
from asterism.export.edges import Edges, pairs
from asterism.export.layout import Ranges
from asterism.export.report import PartReport
from asterism.export.run import Meter, Run
from asterism.export.source import Ids
from asterism_proto.errors import InvalidRequest
from graphkit.split import group

FORMATS = ("coo", "csr", "csc")
_STEP = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beside:
    """The edges that a part holds but does not own, by global id."""

    src: Ids
    dst: Ids
    gid: Ids


class Localiser:
    """From global to local node ids of one part after the other: owned nodes first, then the others by id."""

    def __init__(self, total: int) -> None:
        self._marked = np.zeros(total, np.bool_)
        self._local = np.empty(total, np.int32 if total < 1 << 31 else np.int64)

    def enter(self, low: int, high: int, ends: Iterator[Ids]) -> Ids:
        """Number the nodes of the part that owns ``low .. high - 1`` and touches ``ends``; give the others."""
        for ids in ends:
            self._marked[ids] = True
        self._marked[low:high] = False
        halo = np.flatnonzero(self._marked)
        self._marked[halo] = False
        self._local[low:high] = np.arange(high - low)
        self._local[halo] = np.arange(high - low, high - low + len(halo))
        return halo

    def __call__(self, ids: Ids) -> Ids:
        """int64[n]: local ids."""
        return self._local[ids].astype(np.int64)


def write_graphs_of_parts(run: Run, nodes: Ranges, edges: Edges, *, hops: int, formats: Sequence[str]) -> list[PartReport]:
    """Write each part's ``graph.dgl``."""
    reports = []
    localiser = Localiser(nodes.total)
    meter = Meter(run, "graphs", run.parts)
    for part in range(run.parts):
        beside = _beside(run, nodes, edges, part, hops)
        low, high = nodes.part(part)
        halo = localiser.enter(low, high, _remote(edges, part, beside))
        writer = _PartGraph(run=run, nodes=nodes, edges=edges, part=part, beside=beside, halo=halo, local=localiser)
        with open(run.folder(part) / "graph.dgl", "wb", buffering=0) as file:
            write_graphs(file, GraphFile(graphs=(writer.graph(formats),)))
        reports.append(
            PartReport(
                part=part,
                nodes={kind.label: int(n) for kind, n in zip(run.plan.nodes, nodes.counts[part], strict=True)},
                edges={kind.label: int(n) for kind, n in zip(run.plan.edges, edges.ranges.counts[part], strict=True)},
                halo_nodes=len(halo),
                outer_edges=len(beside.gid),
            )
        )
        meter.add(1)
    return reports


def _remote(edges: Edges, part: int, beside: Beside) -> Iterator[Ids]:
    for rows in edges.owned[part]:
        yield from (src for _, src, _ in pairs(rows))
    yield beside.src
    yield beside.dst


def _beside(run: Run, nodes: Ranges, edges: Edges, part: int, hops: int) -> Beside:
    """The outer edges of a part, and the edges into its HALO nodes where those are held too."""
    outer = edges.outer[part]
    if hops == 1 or run.parts == 1:
        return Beside(src=outer.src.read(), dst=outer.dst.read(), gid=outer.gid.read())
    found = [(outer.src.read(), outer.dst.read(), outer.gid.read())]
    low, high = nodes.part(part)
    seen = np.zeros(nodes.total, np.bool_)
    seen[low:high] = True
    frontier = np.zeros(nodes.total, np.bool_)
    for rows in edges.owned[part]:
        for _, src, _ in pairs(rows):
            frontier[src] = True
    for _ in range(hops - 1):
        frontier &= ~seen
        seen |= frontier
        more = _into(edges, frontier, low, high)
        found.append(more)
        frontier = np.zeros(nodes.total, np.bool_)
        frontier[more[0]] = True
    src, dst, gid = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(gid, kind="stable")
    return Beside(src=src[order], dst=dst[order], gid=gid[order])


def _into(edges: Edges, wanted: NDArray[np.bool_], low: int, high: int) -> tuple[Ids, Ids, Ids]:
    """Every edge into the ``wanted`` nodes, but those from ``low .. high - 1``, which are outer edges already."""
    found: list[tuple[Ids, Ids, Ids]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for part, kinds in enumerate(edges.owned):
        for place, rows in enumerate(kinds):
            first = int(edges.ranges.starts[part, place])
            for at, src, dst in pairs(rows):
                mine = np.flatnonzero(wanted[dst] & ((src < low) | (src >= high)))
                found.append((src[mine], dst[mine], first + at + mine))
    src, dst, gid = (np.concatenate(each) for each in zip(*found, strict=True))
    return src, dst, gid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PartGraph:
    """What goes into one part's graph, as columns that are made while they are written."""

    run: Run
    nodes: Ranges
    edges: Edges
    part: int
    beside: Beside
    halo: Ids
    local: Localiser

    def graph(self, formats: Sequence[str]) -> Graph:
        """The graph, homogeneous as DGL wants a part to be."""
        low, high = self.nodes.part(self.part)
        count = high - low + len(self.halo)
        first, last = self.edges.ranges.part(self.part)
        ndata = self._data(low, high, self.halo, "inner_node", self.nodes)
        edata = self._data(first, last, self.beside.gid, "inner_edge", self.edges.ranges)
        if self.run.parts > 1:
            ndata["part_id"] = self._made(np.int64, low, high, self.halo, self.nodes.owners)
        return Graph(
            ntypes=("_N",),
            etypes=("_E",),
            num_nodes=(count,),
            relations=(self._relation(count, last - first + len(self.beside.gid), formats),),
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
        for rows in self.edges.owned[self.part]:
            for _, *both in pairs(rows):
                yield self.local(both[which])
        for ids in sliced((self.beside.src, self.beside.dst)[which], _STEP):
            yield self.local(ids)

    def _relation(self, nodes: int, edges: int, formats: Sequence[str]) -> Relation:
        src, dst = (Column(dtype=np.dtype(np.int64), shape=(edges,), pieces=partial(self._ends, which)) for which in (0, 1))
        return Relation(
            src_type=0,
            dst_type=0,
            coo=Coo(rows=nodes, cols=nodes, row=src, col=dst) if "coo" in formats else None,
            csr=_compressed(nodes, src, dst) if "csr" in formats else None,
            csc=_compressed(nodes, dst, src) if "csc" in formats else None,
        )


def _compressed(nodes: int, rows: Column, cols: Column) -> Csr:
    """The edges by ``rows``, in memory."""
    if nodes >= 1 << 31:
        raise InvalidRequest(f"a part of {nodes} nodes is too large for csr or csc here; write coo, and DGL makes them")
    order, indptr = group(rows.array().astype(np.int32), nodes)
    return Csr(rows=nodes, cols=nodes, indptr=Column.of(indptr), indices=Column.of(cols.array()[order]), data=Column.of(order))
