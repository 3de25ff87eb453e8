"""The edge side of an export: who owns which edge, their numbering, and the edge features of each part.

An edge is owned by the part of its destination. An edge between two parts is held by its source's part as well, as an
outer edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_files import Column
from asterism.export.layout import NodeTable, Ranges
from asterism.export.nodes import split, taken
from asterism.export.ordering import order_by
from asterism.export.plan import Kind
from asterism.export.run import Meter, Run, column
from asterism.export.source import Array, Ids, counted
from asterism.export.spool import Spool
from asterism.export.sums import Sums, ids_sum, rows_sum
from asterism_proto.errors import Corrupt
from graphkit.split import group


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The edges of one type that one part owns."""

    src: Spool
    """Global ids."""
    dst: Spool
    """Global ids; ascending once sorted."""
    eid: Spool
    """Stored edge ids."""
    columns: dict[str, Spool]

    @property
    def spools(self) -> list[Spool]:
        """All of them."""
        return [self.src, self.dst, self.eid, *self.columns.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """How all edges are numbered, and where what each part owns of them lies once it is sorted."""

    run: Run
    ranges: Ranges

    def owned(self, part: int) -> list[Owned]:
        """What a part owns, by type, sorted."""
        return [_sorted(self.run, kind, part) for kind in self.run.plan.edges]

    def outer(self, part: int) -> Spool:
        """Source, destination and global id of each edge that a part owns and another one starts; by that one, and global id."""
        return Spool(path=self.run.scratch / f"outer-{part}", dtype=np.dtype(np.int64), shape=(3,), piece_bytes=self.run.spool("").piece_bytes)

    def cuts(self, part: int) -> list[int]:
        """How many of those start in each part."""
        found: list[int] = self.run.found(f"part-{part}")["outer"]
        return found


def ends(run: Run, kind: Kind, src: Ids, dst: Ids, tables: list[NodeTable], *, gids: bool) -> tuple[Ids, Ids]:
    """The global ids, or the ranks, of edges' ends."""
    found = []
    for what, ids, place in (("source", src, kind.src), ("destination", dst, kind.dst)):
        table = tables[place]
        known = table.gid(ids) if gids else table.rank(ids)
        if known.size and known.min() < 0:
            at = int(np.argmin(known))
            raise Corrupt(f"an edge of {kind.name} has the {what} {ids[at]}, which version {run.version} does not hold; build the space again")
        found.append(known)
    return found[0], found[1]


def deal_edges(run: Run, tables: list[NodeTable], nodes: Ranges) -> Ranges:
    """Deal every edge to the part of its destination, and number them all."""
    meter = Meter(run, "edges", counted(run.graph, "EDGE", [kind.type_id for kind in run.plan.edges], run.version))
    counts = np.zeros((run.parts, len(run.plan.edges)), np.int64)
    for place, kind in enumerate(run.plan.edges):
        facts = run.step(f"edges-{kind.type_id}", partial(_deal, run, kind, tables, nodes, meter))
        counts[:, place] = facts["edges"]
    run.step("edges", partial(_warn, run, counts, trainers=nodes.ends_of_trainers is not None))
    return Ranges.of(counts)


def _deal(run: Run, kind: Kind, tables: list[NodeTable], nodes: Ranges, meter: Meter) -> dict[str, Any]:
    owned = [_open(run, kind, part) for part in range(run.parts)]
    for rows in owned:
        for spool in rows.spools:
            spool.drop()
    sums = Sums()
    for batch in run.graph.scan_edges(kind.name, kind.names, version=run.version, rows=run.rows(kind)):
        src, dst = ends(run, kind, batch.src, batch.dst, tables, gids=True)
        values = {each.name: each.of(batch) for each in kind.columns}
        sums.add("", ids_sum(batch.edge_ids, batch.src, batch.dst))
        for name, each in values.items():
            sums.add(name, rows_sum(batch.edge_ids, each))
        for part, mine in split(dst, nodes):
            rows = owned[part]
            rows.src.append(taken(src, mine))
            rows.dst.append(taken(dst, mine))
            rows.eid.append(taken(batch.edge_ids, mine))
            for name, spool in rows.columns.items():
                spool.append(taken(values[name], mine))
        meter.add(len(batch.src))
    return {"edges": [rows.src.rows for rows in owned], "sums": sums.told()}


def _open(run: Run, kind: Kind, part: int) -> Owned:
    name = f"edge-{kind.type_id}-{part}"
    return Owned(
        src=run.spool(f"{name}-src"),
        dst=run.spool(f"{name}-dst"),
        eid=run.spool(f"{name}-eid"),
        columns={each.name: run.spool(f"{name}-{i}", each) for i, each in enumerate(kind.columns)},
    )


def _warn(run: Run, counts: NDArray[np.int64], *, trainers: bool) -> None:
    for place, kind in enumerate(run.plan.edges):
        if not counts[:, place].any():
            run.warn(f"edge type {kind.label} has no edges")
        elif (kind.columns or trainers) and run.parts > 1:
            without = np.flatnonzero(counts[:, place] == 0)
            if without.size:
                shown = ", ".join(map(str, without[:8].tolist())) + (", ..." if without.size > 8 else "")
                run.warn(
                    f"part(s) {shown} own no edge of type {kind.label}, which has features: DGL's servers do not start on a feature of no rows; "
                    "export fewer parts, or leave its features out"
                )
    if run.parts > 1:
        for part in np.flatnonzero(counts.sum(axis=1) == 0).tolist():
            run.warn(f"part {part} owns no edge: where it holds none of other parts either, DGL's server of it does not start; export fewer parts")


def write_edges(run: Run, edges: Edges, nodes: Ranges, part: int) -> dict[str, Any]:
    """Sort a part's edges of each type by destination, and write ``edge_feat.dgl`` and ``orig_eids.dgl``."""
    features: dict[str, Column] = {}
    original: dict[str, Column] = {}
    low, high = nodes.part(part)
    for place, kind in enumerate(run.plan.edges):
        rows, expected = _open(run, kind, part), int(edges.ranges.counts[part, place])
        if rows.dst.rows != expected:
            raise Corrupt(f"{rows.dst.path}: {rows.dst.rows} edges, {expected} were written; do all workers see one scratch folder?")
        order = order_by(run, rows.dst, low, high)
        there = _sorted(run, kind, part)
        for spool, target in ((rows.src, there.src), (rows.dst, there.dst), (rows.eid, there.eid)):
            run.reordered(spool, order, target.path.name)
        original[kind.label] = column(there.eid)
        if nodes.ends_of_trainers is not None:
            # An edge is its destination's trainer's.
            features[f"{kind.label}/trainer_id"] = _trainers_of(there, nodes)
        features |= {f"{kind.label}/{name}": column(spool, order=order) for name, spool in rows.columns.items()}
    run.write(part, "edge_feat.dgl", features)
    run.write(part, "orig_eids.dgl", original)
    return {"outer": _keep_outer(run, edges, nodes, part)}


def drop_dealt(run: Run, part: int) -> None:
    """Remove what `write_edges` read."""
    for kind in run.plan.edges:
        for spool in _open(run, kind, part).spools:
            spool.drop()


def _trainers_of(rows: Owned, nodes: Ranges) -> Column:
    def pieces() -> Iterator[Array]:
        return (nodes.trainers(dst) for dst in rows.dst.pieces())

    return Column(dtype=np.dtype(np.int64), shape=(rows.dst.rows,), pieces=pieces)


def _sorted(run: Run, kind: Kind, part: int) -> Owned:
    """A part's edges in order; their columns are in the part's files."""
    name = f"sorted-{kind.type_id}-{part}"
    return Owned(src=run.spool(f"{name}-src"), dst=run.spool(f"{name}-dst"), eid=run.spool(f"{name}-eid"), columns={})


def _across(edges: Edges, nodes: Ranges, part: int) -> Iterator[tuple[Ids, NDArray[np.int32]]]:
    """The edges that come from other parts, as rows of source, destination and global id, and the part of each one's source."""
    low, high = nodes.part(part)
    for place, rows in enumerate(edges.owned(part)):
        first = int(edges.ranges.starts[part, place])
        for at, src, dst in pairs(rows):
            mine = np.flatnonzero((src < low) | (src >= high))
            if mine.size:
                yield np.stack([src[mine], dst[mine], first + at + mine], axis=1), nodes.owners(src[mine])


def _keep_outer(run: Run, edges: Edges, nodes: Ranges, part: int) -> list[int]:
    """Keep the edges from other parts for those parts too, by part; give how many are for each."""
    counts = np.zeros(run.parts, np.int64)
    for _, owners in _across(edges, nodes, part):
        counts += np.bincount(owners, minlength=run.parts)
    target = edges.outer(part)
    made = Spool(path=run.making(), dtype=target.dtype, shape=target.shape, piece_bytes=target.piece_bytes)
    rows = made.make(int(counts.sum()))
    following = np.cumsum(counts) - counts
    for found, owners in _across(edges, nodes, part):
        order, offsets = group(owners, run.parts)
        for owner in np.unique(owners).tolist():
            mine = order[offsets[owner] : offsets[owner + 1]]
            rows[following[owner] : following[owner] + len(mine)] = found[mine]
            following[owner] += len(mine)
    del rows
    run.named(made, target.path.name)
    return [int(count) for count in counts]


def pairs(rows: Owned) -> Iterator[tuple[int, Ids, Ids]]:
    """Position, sources and destinations of the edges, a few at a time."""
    at = 0
    for src, dst in zip(rows.src.pieces(), rows.dst.pieces(), strict=True):
        yield at, src, dst
        at += len(src)
