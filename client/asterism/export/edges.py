"""The edge side of an export: who owns which edge, their numbering, and the edge features of each part.

An edge is owned by the part of its destination. An edge between two parts is held by its source's part as well, as an
outer edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_files import Column
from asterism.export.layout import NodeTable, Ranges
from asterism.export.nodes import split, taken, write_list
from asterism.export.plan import Kind
from asterism.export.run import Meter, Run, column
from asterism.export.source import Array, Ids
from asterism.export.spool import Spool
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """The edges of other parts that start in one part, by global id."""

    src: Spool
    dst: Spool
    gid: Spool

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.gid.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """All edges, sorted and numbered."""

    ranges: Ranges
    owned: list[list[Owned]]
    """By part and type."""
    outer: list[Outer]
    """By part."""

    @property
    def cut(self) -> int:
        """Edges between parts."""
        return sum(each.rows for each in self.outer)


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


def read_edges(run: Run, tables: list[NodeTable], nodes: Ranges) -> Edges:
    """Deal every edge to the part of its destination, then sort, number and write what each part owns."""
    owned = [[_open(run, kind, part) for kind in run.plan.edges] for part in range(run.parts)]
    meter = Meter(run, "edges", None)
    for place, kind in enumerate(run.plan.edges):
        for batch in run.graph.scan_edges(kind.name, kind.names, version=run.version, rows=kind.batch_rows):
            src, dst = ends(run, kind, batch.src, batch.dst, tables, gids=True)
            values = {each.name: each.of(batch) for each in kind.columns}
            for part, mine in split(dst, nodes):
                rows = owned[part][place]
                rows.src.append(taken(src, mine))
                rows.dst.append(taken(dst, mine))
                rows.eid.append(taken(batch.edge_ids, mine))
                for name, spool in rows.columns.items():
                    spool.append(taken(values[name], mine))
            meter.add(len(batch.src))
    counts = np.array([[rows.src.rows for rows in each] for each in owned], np.int64).reshape(run.parts, len(run.plan.edges))
    found = Edges(
        ranges=Ranges.of(counts),
        owned=owned,
        outer=[Outer(src=run.spool(f"outer-{p}-src"), dst=run.spool(f"outer-{p}-dst"), gid=run.spool(f"outer-{p}-gid")) for p in range(run.parts)],
    )
    _warn(run, counts, trainers=nodes.ends_of_trainers is not None)
    sorting = Meter(run, "edge features", found.ranges.total)
    for part in range(run.parts):
        _write_part(run, found, nodes, part)
        sorting.add(int(counts[part].sum()))
    for place, kind in enumerate(run.plan.edges):
        write_list(run, "edge_ids", kind.label, [owned[part][place].eid for part in range(run.parts)])
        for part in range(run.parts):
            owned[part][place].eid.drop()
    return found


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


def _write_part(run: Run, edges: Edges, nodes: Ranges, part: int) -> None:
    """Sort a part's edges of each type by destination, and write ``edge_feat.dgl`` and ``orig_eids.dgl``."""
    features: dict[str, Column] = {}
    original: dict[str, Column] = {}
    for place, (kind, rows) in enumerate(zip(run.plan.edges, edges.owned[part], strict=True)):
        order = _sort(rows, nodes, part)
        _rewrite(rows.eid, rows.eid.read()[order])
        _keep_outer(edges, rows, nodes, part, int(edges.ranges.starts[part, place]))
        original[kind.label] = column(rows.eid)
        if nodes.ends_of_trainers is not None:
            # An edge is its destination's trainer's.
            features[f"{kind.label}/trainer_id"] = _trainers_of(rows, nodes)
        features |= {f"{kind.label}/{name}": column(spool, order) for name, spool in rows.columns.items()}
    run.write(part, "edge_feat.dgl", features)
    run.write(part, "orig_eids.dgl", original)
    for rows in edges.owned[part]:
        for spool in rows.columns.values():
            spool.drop()


def _trainers_of(rows: Owned, nodes: Ranges) -> Column:
    def pieces() -> Iterator[Array]:
        return (nodes.trainers(dst) for dst in rows.dst.pieces())

    return Column(dtype=np.dtype(np.int64), shape=(rows.dst.rows,), pieces=pieces)


def _sort(rows: Owned, nodes: Ranges, part: int) -> Ids:
    """Put the ends in the order of destinations, stably; give the order."""
    low, high = nodes.part(part)
    dst = rows.dst.read()
    order, _ = group((dst - low).astype(np.int32), high - low)
    _rewrite(rows.dst, dst[order])
    _rewrite(rows.src, rows.src.read()[order])
    return order


def _rewrite(spool: Spool, values: Ids) -> None:
    spool.drop()
    spool.append(values)


def _keep_outer(edges: Edges, rows: Owned, nodes: Ranges, part: int, first: int) -> None:
    """Give the edges from other parts to those parts too; ``first`` is the global id of the first edge."""
    low, high = nodes.part(part)
    for at, src, dst in pairs(rows):
        across = np.flatnonzero((src < low) | (src >= high))
        for owner, mine in split(src[across], nodes) if across.size else ():
            kept = taken(across, mine)
            outer = edges.outer[owner]
            outer.src.append(src[kept])
            outer.dst.append(dst[kept])
            outer.gid.append(first + at + kept)


def pairs(rows: Owned) -> Iterator[tuple[int, Ids, Ids]]:
    """Position, sources and destinations of the edges, a few at a time."""
    at = 0
    for src, dst in zip(rows.src.pieces(), rows.dst.pieces(), strict=True):
        yield at, src, dst
        at += len(src)
