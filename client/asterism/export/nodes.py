"""Nodes of an export: their stored ids, their global ids, and the node features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from asterism.export.dgl_tensor_files import ArrayStream
from asterism.export.export_schema import TypePlan
from asterism.export.global_ids import GlobalIdRanges, NodeIdTable
from asterism.export.graph_source import Array, Ids, ScannedNodes, count_rows
from asterism.export.partitioning.assignment_files import Owners
from asterism.export.row_checksums import Checksums, ids_sum, rows_sum
from asterism.export.run_state import ExportRun, ProgressMeter, spool_column
from asterism.export.scratch_files import Spool
from asterism.export.string_ids import write_names
from asterism_graphkit.random.partition_choice import group_by_key
from asterism_proto.errors import Corrupt, InvalidRequest

_STEP = 1 << 18


def read_ids(run: ExportRun) -> list[NodeIdTable]:
    """Read the ids of each node type of the plan, in ascending order."""
    tables = []
    meter = ProgressMeter(
        run,
        "node ids",
        count_rows(run.graph, "NODE", [kind.type_id for kind in run.plan.nodes], run.version),
    )
    for kind in run.plan.nodes:
        spool = run.spool(f"ids-{kind.type_id}")
        run.run_step(f"ids-{kind.type_id}", partial(_read_ids, run, kind, spool, meter))
        tables.append(NodeIdTable(run.read_rows(spool), run.allocate))
    return tables


def _read_ids(run: ExportRun, kind: TypePlan, spool: Spool, meter: ProgressMeter) -> dict[str, Any]:
    spool.remove()
    sums = Checksums()
    last_id, ascending = -1, True
    for batch in run.graph.scan_nodes(kind.name, (), version=run.version, rows=run.rows(kind)):
        spool.append(batch.ids)
        sums.add("", ids_sum(batch.ids))
        ascending = (
            ascending and int(batch.ids[0]) > last_id and bool((np.diff(batch.ids) > 0).all())
        )
        last_id = int(batch.ids[-1])
        meter.add(len(batch.ids))
    if not ascending:
        # Sort in place in the mapped file: its pages need not all fit into memory.
        ids = spool.map("r+")
        ids.sort()
        del ids
        last_id = -1
        for piece in spool.pieces():
            repeats = np.flatnonzero(np.diff(piece, prepend=last_id) == 0)
            if repeats.size:
                raise Corrupt(
                    f"version {run.version} gives {kind.name} {piece[repeats[0]]} twice; "
                    "build the space again"
                )
            last_id = int(piece[-1])
    if not spool.rows:
        run.warn(f"node type {kind.label} has no nodes")
    return {"sums": sums.to_dict()}


def assign_global_ids(
    run: ExportRun, tables: list[NodeIdTable], owners: list[Owners]
) -> GlobalIdRanges:
    """Assign global ids, and write the stored ids of each partition and of each type.

    ``owners`` are slots: partition * trainers + trainer.
    """
    gids = [run.spool(f"gids-{kind.type_id}") for kind in run.plan.nodes]
    run.run_step("numbered", partial(_assign_global_ids, run, tables, owners, gids))
    for table, spool in zip(tables, gids, strict=True):
        table.gids = run.read_rows(spool)
    return node_ranges(run)


def node_ranges(run: ExportRun) -> GlobalIdRanges:
    """Return the id ranges of nodes, as recorded by `assign_global_ids`."""
    counts = np.array(run.step_result("numbered")["nodes"], np.int64).reshape(
        run.parts * run.trainers, len(run.plan.nodes)
    )
    return GlobalIdRanges.from_counts(counts, run.trainers)


def _assign_global_ids(
    run: ExportRun, tables: list[NodeIdTable], owners: list[Owners], gids: list[Spool]
) -> dict[str, Any]:
    counts = np.stack(
        [_counts(type_owners, run.parts * run.trainers) for type_owners in owners], axis=1
    )
    ranges = GlobalIdRanges.from_counts(counts, run.trainers)
    max_part_nodes = int(ranges.counts.sum(axis=1).max())
    if max_part_nodes >= 1 << 31:
        raise InvalidRequest(
            f"parts with {max_part_nodes} nodes: expected fewer than 2^31 nodes in each; export "
            f"more "
            "parts"
        )
    original = [
        [run.spool(f"orig-{kind.type_id}-{slot}") for slot in range(len(counts))]
        for kind in run.plan.nodes
    ]
    for i, (kind, table) in enumerate(zip(run.plan.nodes, tables, strict=True)):
        for spool in original[i]:
            spool.remove()
        for slot, ids in table.assign_gids(owners[i], ranges, i, gids[i].allocate(len(table))):
            original[i][slot].append(ids)
        write_id_list(run, "node_ids", kind.label, original[i])
    for part in range(run.parts):
        first = part * run.trainers
        tensors = {
            kind.label: spool_column(*original[i][first : first + run.trainers])
            for i, kind in enumerate(run.plan.nodes)
        }
        run.write_tensors(part, "orig_nids.dgl", tensors)
        if run.has_string_ids:
            write_names(
                run,
                part,
                {
                    kind: original[i][first : first + run.trainers]
                    for i, kind in enumerate(run.plan.nodes)
                },
            )
    for spools in original:
        for spool in spools:
            spool.remove()
    return {"nodes": counts.tolist()}


def _counts(owners: Owners, slots: int) -> Ids:
    """Count the nodes of each slot, in batches because ``owners`` may be mapped."""
    counts = np.zeros(slots, np.int64)
    for start in range(0, len(owners), _STEP):
        counts += np.bincount(owners[start : start + _STEP], minlength=slots)
    return counts


def write_id_list(run: ExportRun, folder: str, label: str, spools: list[Spool]) -> None:
    """Write the stored ids of a type by type-wise id, as ``<folder>/<label>.npy``.

    The ids of the partitions follow each other.
    """
    with run.open_output(f"{folder}/{label}.npy") as file:
        rows = sum(spool.rows for spool in spools)
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<i8", "fortran_order": False, "shape": (rows,)}
        )
        for spool in spools:
            for piece in spool.pieces():
                file.write(piece.view(np.uint8).data)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FeatureRows:
    """Scratch files of one type in one partition: row positions within the type, and columns."""

    positions: Spool
    columns: dict[str, Spool]

    @property
    def spools(self) -> list[Spool]:
        """All scratch files."""
        return [self.positions, *self.columns.values()]


def distribute_features(run: ExportRun, tables: list[NodeIdTable], ranges: GlobalIdRanges) -> None:
    """Send node features to the partitions that own the nodes, in scan order."""
    kinds = [(type_index, kind) for type_index, kind in enumerate(run.plan.nodes) if kind.columns]
    meter = ProgressMeter(
        run, "node features", sum(len(tables[type_index]) for type_index, _ in kinds)
    )
    for type_index, kind in kinds:
        run.run_step(
            f"nodes-{kind.type_id}",
            partial(_distribute_type, run, kind, tables[type_index], ranges, type_index, meter),
        )


def _distribute_type(
    run: ExportRun,
    kind: TypePlan,
    table: NodeIdTable,
    ranges: GlobalIdRanges,
    type_index: int,
    meter: ProgressMeter,
) -> dict[str, Any]:
    spools = [_feature_rows(run, kind, part) for part in range(run.parts)]
    for rows in spools:
        for spool in rows.spools:
            spool.remove()
    sums = Checksums()
    for batch in run.graph.scan_nodes(
        kind.name, kind.names, version=run.version, rows=run.rows(kind)
    ):
        _distribute_batch(batch, kind, table, ranges, type_index, spools, sums)
        meter.add(len(batch.ids))
    return {"sums": sums.to_dict()}


def _feature_rows(run: ExportRun, kind: TypePlan, part: int) -> _FeatureRows:
    return _FeatureRows(
        positions=run.spool(f"node-{kind.type_id}-{part}-at"),
        columns={
            c.name: run.spool(f"node-{kind.type_id}-{part}-{i}", c)
            for i, c in enumerate(kind.columns)
        },
    )


def _distribute_batch(
    batch: ScannedNodes,
    kind: TypePlan,
    table: NodeIdTable,
    ranges: GlobalIdRanges,
    type_index: int,
    spools: list[_FeatureRows],
    sums: Checksums,
) -> None:
    """Append a batch's rows to the scratch files of the partitions that own them."""
    gids = table.gid(batch.ids)
    if gids.size and gids.min() < 0:
        raise Corrupt(
            f"node {batch.ids[int(np.argmin(gids))]} of type {kind.name} was not there when "
            "its version was scanned before"
        )
    values = {each.name: each.extract(batch) for each in kind.columns}
    for name, each in values.items():
        sums.add(name, rows_sum(batch.ids, each))
    for part, selected in split_by_part(gids, ranges):
        rows = spools[part]
        rows.positions.append(take_rows(gids, selected) - ranges.starts[part, type_index])
        for name, spool in rows.columns.items():
            spool.append(take_rows(values[name], selected))


def write_features(run: ExportRun, ranges: GlobalIdRanges, part: int) -> None:
    """Write one partition's ``node_feat.dgl``."""
    tensors: dict[str, ArrayStream] = trainer_columns(
        ranges, part, [kind.label for kind in run.plan.nodes]
    )
    for type_index, kind in enumerate(run.plan.nodes):
        if not kind.columns:
            continue
        rows, expected = _feature_rows(run, kind, part), int(ranges.counts[part, type_index])
        if not expected and ranges.counts[:, type_index].any():
            run.warn(
                f"part {part} has no node of type {kind.label}, which has features: DGL's "
                "servers do not start on a feature of no rows"
            )
        order = _order(run, rows.positions, expected, kind)
        tensors |= {
            f"{kind.label}/{name}": spool_column(spool, order=order)
            for name, spool in rows.columns.items()
        }
    run.write_tensors(part, "node_feat.dgl", tensors)


def trainer_columns(ranges: GlobalIdRanges, part: int, labels: list[str]) -> dict[str, ArrayStream]:
    """Return DGL's feature ``trainer_id`` for a partition's nodes, by type.

    The result is empty if partitions have one trainer each.
    """
    if ranges.trainer_ends is None:
        return {}

    def pieces(low: int, high: int) -> Iterator[Array]:
        return (
            ranges.trainers(np.arange(start, min(high, start + _STEP)))
            for start in range(low, high, _STEP)
        )

    columns = {}
    for label, low, high in zip(
        labels, ranges.starts[part, :-1].tolist(), ranges.starts[part, 1:].tolist(), strict=True
    ):
        columns[f"{label}/trainer_id"] = ArrayStream(
            dtype=np.dtype(np.int64), shape=(high - low,), pieces=partial(pieces, low, high)
        )
    return columns


def remove_distributed_features(run: ExportRun, part: int) -> None:
    """Remove the scratch files that `write_features` reads."""
    for kind in run.plan.nodes:
        for spool in _feature_rows(run, kind, part).spools:
            spool.remove()


def _order(run: ExportRun, positions: Spool, expected: int, kind: TypePlan) -> Ids | None:
    """Return the scratch position of each of the partition's rows, or None if in order."""
    if positions.rows != expected:
        raise Corrupt(
            f"node type {kind.name}: {positions.rows} nodes of a part came with their "
            f"features, {expected} without"
        )
    first, is_ordered = 0, True
    for piece in positions.pieces():
        is_ordered = is_ordered and bool((piece == np.arange(first, first + len(piece))).all())
        first += len(piece)
    if is_ordered:
        return None
    order = run.allocate(expected, np.int64)
    first = 0
    for piece in positions.pieces():
        if piece.max() >= expected:
            raise Corrupt(
                f"node type {kind.name}: a node that came with its features was not there before"
            )
        order[piece] = np.arange(first + 1, first + 1 + len(piece))
        first += len(piece)
    for low in range(0, expected, _STEP):
        if not order[low : low + _STEP].all():
            raise Corrupt(f"node type {kind.name}: a node came with its features twice")
        order[low : low + _STEP] -= 1
    return order


def split_by_part(gids: Ids, ranges: GlobalIdRanges) -> Iterator[tuple[int, Ids | None]]:
    """Yield each partition that owns some of ``gids``, with the positions of those ids.

    The positions are None if one partition owns all ids.
    """
    parts = len(ranges.starts)
    if parts == 1:
        yield 0, None
        return
    order, offsets = group_by_key(ranges.owners(gids), parts)
    for part, (low, high) in enumerate(pairwise(offsets.tolist())):
        if high > low:
            yield part, order[low:high]


def take_rows(values: Array, positions: Ids | None) -> Array:
    """Return the rows at ``positions``, or all rows for None."""
    return values if positions is None else values[positions]
