"""Edges of an export: their owners, their global ids, and the edge features.

The partition of its destination owns an edge. If an edge joins two partitions, the partition of its
source also stores it, as an outer edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_tensor_files import ArrayStream
from asterism.export.export_schema import TypePlan
from asterism.export.external_sort import sorted_positions
from asterism.export.global_ids import GlobalIdRanges, NodeIdTable
from asterism.export.graph_source import Array, Ids, count_rows
from asterism.export.nodes import split_by_part, take_rows
from asterism.export.row_checksums import Checksums, ids_sum, rows_sum
from asterism.export.run_state import ExportRun, ProgressMeter, spool_column
from asterism.export.scratch_files import Spool
from asterism_graphkit.random.partition_choice import group_by_key
from asterism_proto.errors import Corrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedEdges:
    """Edges of one type that one partition owns."""

    src: Spool
    """Global node ids."""
    dst: Spool
    """Global node ids, ascending once sorted."""
    eid: Spool
    """Stored edge ids."""
    columns: dict[str, Spool]

    @property
    def spools(self) -> list[Spool]:
        """All scratch files of these edges."""
        return [self.src, self.dst, self.eid, *self.columns.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedEdges:
    """Global edge ids, and the sorted edges of each partition in scratch files."""

    run: ExportRun
    ranges: GlobalIdRanges

    def owned_edges(self, part: int) -> list[OwnedEdges]:
        """Return the edges that a partition owns, by type, sorted by destination."""
        return [_sorted_edges(self.run, kind, part) for kind in self.run.plan.edges]

    def incoming_edges(self, part: int) -> Spool:
        """Return the edges that a partition owns and that start in another partition.

        Each row holds source, destination and global id. Rows are grouped by the source's
        partition, then sorted by global id.
        """
        return Spool(
            path=self.run.scratch / f"outer-{part}",
            dtype=np.dtype(np.int64),
            shape=(3,),
            piece_bytes=self.run.spool("").piece_bytes,
        )

    def incoming_counts(self, part: int) -> list[int]:
        """Return the number of rows of `incoming_edges` by partition of the source."""
        counts: list[int] = self.run.step_result(f"part-{part}")["outer"]
        return counts


def end_ids(
    run: ExportRun, kind: TypePlan, src: Ids, dst: Ids, tables: list[NodeIdTable], *, gids: bool
) -> tuple[Ids, Ids]:
    """Map the stored ids of edge ends to global ids (``gids``) or to ranks.

    Raises
    ------
    Corrupt
        A node of an edge is not in the version.
    """
    mapped_ids = []
    for end_name, ids, node_type in (("source", src, kind.src), ("destination", dst, kind.dst)):
        table = tables[node_type]
        mapped = table.gid(ids) if gids else table.rank(ids)
        if mapped.size and mapped.min() < 0:
            first_unknown = int(np.argmin(mapped))
            raise Corrupt(
                f"an edge of {kind.name} has the {end_name} {ids[first_unknown]}, which "
                f"version {run.version} does not hold; build the space again"
            )
        mapped_ids.append(mapped)
    return mapped_ids[0], mapped_ids[1]


def distribute_edges(
    run: ExportRun, tables: list[NodeIdTable], nodes: GlobalIdRanges
) -> GlobalIdRanges:
    """Send every edge to the partition of its destination, and assign global edge ids."""
    meter = ProgressMeter(
        run,
        "edges",
        count_rows(run.graph, "EDGE", [kind.type_id for kind in run.plan.edges], run.version),
    )
    counts = np.zeros((run.parts, len(run.plan.edges)), np.int64)
    for type_index, kind in enumerate(run.plan.edges):
        facts = run.run_step(
            f"edges-{kind.type_id}", partial(_distribute_type, run, kind, tables, nodes, meter)
        )
        counts[:, type_index] = facts["edges"]
    run.run_step("edges", partial(_warn, run, counts, trainers=nodes.trainer_ends is not None))
    return GlobalIdRanges.from_counts(counts)


def _distribute_type(
    run: ExportRun,
    kind: TypePlan,
    tables: list[NodeIdTable],
    nodes: GlobalIdRanges,
    meter: ProgressMeter,
) -> dict[str, Any]:
    part_edges = [_unsorted_edges(run, kind, part) for part in range(run.parts)]
    for rows in part_edges:
        for spool in rows.spools:
            spool.remove()
    sums = Checksums()
    for batch in run.graph.scan_edges(
        kind.name, kind.names, version=run.version, rows=run.rows(kind)
    ):
        src, dst = end_ids(run, kind, batch.src, batch.dst, tables, gids=True)
        values = {each.name: each.extract(batch) for each in kind.columns}
        sums.add("", ids_sum(batch.edge_ids, batch.src, batch.dst))
        for name, each in values.items():
            sums.add(name, rows_sum(batch.edge_ids, each))
        for part, selected in split_by_part(dst, nodes):
            rows = part_edges[part]
            rows.src.append(take_rows(src, selected))
            rows.dst.append(take_rows(dst, selected))
            rows.eid.append(take_rows(batch.edge_ids, selected))
            for name, spool in rows.columns.items():
                spool.append(take_rows(values[name], selected))
        meter.add(len(batch.src))
    return {"edges": [rows.src.rows for rows in part_edges], "sums": sums.to_dict()}


def _unsorted_edges(run: ExportRun, kind: TypePlan, part: int) -> OwnedEdges:
    name = f"edge-{kind.type_id}-{part}"
    return OwnedEdges(
        src=run.spool(f"{name}-src"),
        dst=run.spool(f"{name}-dst"),
        eid=run.spool(f"{name}-eid"),
        columns={each.name: run.spool(f"{name}-{i}", each) for i, each in enumerate(kind.columns)},
    )


def _warn(run: ExportRun, counts: NDArray[np.int64], *, trainers: bool) -> None:
    for type_index, kind in enumerate(run.plan.edges):
        if not counts[:, type_index].any():
            run.warn(f"edge type {kind.label} has no edges")
        elif (kind.columns or trainers) and run.parts > 1:
            parts_without = np.flatnonzero(counts[:, type_index] == 0)
            if parts_without.size:
                part_list = ", ".join(map(str, parts_without[:8].tolist())) + (
                    ", ..." if parts_without.size > 8 else ""
                )
                run.warn(
                    f"part(s) {part_list} own no edge of type {kind.label}, which has "
                    "features: DGL's servers do not start on a feature of no rows; "
                    "export fewer parts, or leave its features out"
                )
    if run.parts > 1:
        for part in np.flatnonzero(counts.sum(axis=1) == 0).tolist():
            run.warn(
                f"part {part} owns no edge: where it holds none of other parts either, DGL's "
                "server of it does not start; export fewer parts"
            )


def write_edges(
    run: ExportRun, edges: PartitionedEdges, nodes: GlobalIdRanges, part: int
) -> dict[str, Any]:
    """Sort a partition's edges by destination, and write their features and stored ids.

    The files are ``edge_feat.dgl`` and ``orig_eids.dgl``. The result has the number of outer edges
    by partition.
    """
    features: dict[str, ArrayStream] = {}
    original: dict[str, ArrayStream] = {}
    low, high = nodes.part_range(part)
    for type_index, kind in enumerate(run.plan.edges):
        rows, expected = (
            _unsorted_edges(run, kind, part),
            int(edges.ranges.counts[part, type_index]),
        )
        if rows.dst.rows != expected:
            raise Corrupt(
                f"{rows.dst.path}: expected {expected} edges, found {rows.dst.rows}; use a scratch "
                "folder that all workers share"
            )
        order = sorted_positions(run, rows.dst, low, high)
        sorted_edges = _sorted_edges(run, kind, part)
        for spool, target in (
            (rows.src, sorted_edges.src),
            (rows.dst, sorted_edges.dst),
            (rows.eid, sorted_edges.eid),
        ):
            run.reorder(spool, order, target.path.name)
        original[kind.label] = spool_column(sorted_edges.eid)
        if nodes.trainer_ends is not None:
            # An edge belongs to the trainer of its destination.
            features[f"{kind.label}/trainer_id"] = _trainer_column(sorted_edges, nodes)
        features |= {
            f"{kind.label}/{name}": spool_column(spool, order=order)
            for name, spool in rows.columns.items()
        }
    run.write_tensors(part, "edge_feat.dgl", features)
    run.write_tensors(part, "orig_eids.dgl", original)
    return {"outer": _store_incoming(run, edges, nodes, part)}


def remove_distributed(run: ExportRun, part: int) -> None:
    """Remove the scratch files that `write_edges` reads."""
    for kind in run.plan.edges:
        for spool in _unsorted_edges(run, kind, part).spools:
            spool.remove()


def _trainer_column(rows: OwnedEdges, nodes: GlobalIdRanges) -> ArrayStream:
    def pieces() -> Iterator[Array]:
        return (nodes.trainers(dst) for dst in rows.dst.pieces())

    return ArrayStream(dtype=np.dtype(np.int64), shape=(rows.dst.rows,), pieces=pieces)


def _sorted_edges(run: ExportRun, kind: TypePlan, part: int) -> OwnedEdges:
    """Return a partition's edges in order. Their columns are in the partition's files."""
    name = f"sorted-{kind.type_id}-{part}"
    return OwnedEdges(
        src=run.spool(f"{name}-src"),
        dst=run.spool(f"{name}-dst"),
        eid=run.spool(f"{name}-eid"),
        columns={},
    )


def _incoming_batches(
    edges: PartitionedEdges, nodes: GlobalIdRanges, part: int
) -> Iterator[tuple[Ids, NDArray[np.int32]]]:
    """Yield the edges that start in other partitions, in batches.

    Each batch has rows of source, destination and global id, int64, shape (k, 3), and the partition
    of each source, int32, shape (k,).
    """
    low, high = nodes.part_range(part)
    for type_index, rows in enumerate(edges.owned_edges(part)):
        first = int(edges.ranges.starts[part, type_index])
        for offset, src, dst in end_batches(rows):
            selected = np.flatnonzero((src < low) | (src >= high))
            if selected.size:
                yield (
                    np.stack([src[selected], dst[selected], first + offset + selected], axis=1),
                    nodes.owners(src[selected]),
                )


def _store_incoming(
    run: ExportRun, edges: PartitionedEdges, nodes: GlobalIdRanges, part: int
) -> list[int]:
    """Store the incoming edges grouped by partition of their source; return the counts."""
    counts = np.zeros(run.parts, np.int64)
    for _, owners in _incoming_batches(edges, nodes, part):
        counts += np.bincount(owners, minlength=run.parts)
    target = edges.incoming_edges(part)
    spool = Spool(
        path=run.scratch_path(),
        dtype=target.dtype,
        shape=target.shape,
        piece_bytes=target.piece_bytes,
    )
    rows = spool.allocate(int(counts.sum()))
    next_row = np.cumsum(counts) - counts
    for incoming, owners in _incoming_batches(edges, nodes, part):
        order, offsets = group_by_key(owners, run.parts)
        for owner in np.unique(owners).tolist():
            selected = order[offsets[owner] : offsets[owner + 1]]
            rows[next_row[owner] : next_row[owner] + len(selected)] = incoming[selected]
            next_row[owner] += len(selected)
    del rows
    run.rename_spool(spool, target.path.name)
    return [int(count) for count in counts]


def end_batches(rows: OwnedEdges) -> Iterator[tuple[int, Ids, Ids]]:
    """Yield position, sources and destinations of the edges, in batches."""
    offset = 0
    for src, dst in zip(rows.src.pieces(), rows.dst.pieces(), strict=True):
        yield offset, src, dst
        offset += len(src)
