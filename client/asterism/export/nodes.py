"""The node side of an export: ids, their numbering, and the node features of each part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from asterism.export.assign import Owners
from asterism.export.dgl_files import Column
from asterism.export.layout import NodeTable, Ranges
from asterism.export.names import write_names
from asterism.export.plan import Kind
from asterism.export.run import Meter, Run, column
from asterism.export.source import Array, Ids, NodeRows, counted
from asterism.export.spool import Spool
from asterism.export.sums import Sums, ids_sum, rows_sum
from asterism_proto.errors import Corrupt, InvalidRequest
from graphkit.split import group

_STEP = 1 << 18


def read_ids(run: Run) -> list[NodeTable]:
    """The ids of each node type of the plan, in ascending order."""
    tables = []
    meter = Meter(run, "node ids", counted(run.graph, "NODE", [kind.type_id for kind in run.plan.nodes], run.version))
    for kind in run.plan.nodes:
        spool = run.spool(f"ids-{kind.type_id}")
        run.step(f"ids-{kind.type_id}", partial(_read_ids, run, kind, spool, meter))
        tables.append(NodeTable(run.held(spool), run.blank))
    return tables


def _read_ids(run: Run, kind: Kind, spool: Spool, meter: Meter) -> dict[str, Any]:
    spool.drop()
    sums = Sums()
    last, ascending = -1, True
    for batch in run.graph.scan_nodes(kind.name, (), version=run.version, rows=run.rows(kind)):
        spool.append(batch.ids)
        sums.add("", ids_sum(batch.ids))
        ascending = ascending and int(batch.ids[0]) > last and bool((np.diff(batch.ids) > 0).all())
        last = int(batch.ids[-1])
        meter.add(len(batch.ids))
    if not ascending:
        # In place: pages of the file come and go, whatever their number.
        ids = spool.map("r+")
        ids.sort()
        del ids
        last = -1
        for piece in spool.pieces():
            twice = np.flatnonzero(np.diff(piece, prepend=last) == 0)
            if twice.size:
                raise Corrupt(f"version {run.version} gives {kind.name} {piece[twice[0]]} twice; build the space again")
            last = int(piece[-1])
    if not spool.rows:
        run.warn(f"node type {kind.label} has no nodes")
    return {"sums": sums.told()}


def number(run: Run, tables: list[NodeTable], owners: list[Owners]) -> Ranges:
    """Settle the global ids, and write each part's original ids and the whole list of them by type.

    ``owners`` are places: part * trainers + trainer.
    """
    gids = [run.spool(f"gids-{kind.type_id}") for kind in run.plan.nodes]
    run.step("numbered", partial(_number, run, tables, owners, gids))
    for table, spool in zip(tables, gids, strict=True):
        table.gids = run.held(spool)
    return numbered(run)


def numbered(run: Run) -> Ranges:
    """How nodes are numbered, as `number` found."""
    counts = np.array(run.found("numbered")["nodes"], np.int64).reshape(run.parts * run.trainers, len(run.plan.nodes))
    return Ranges.of(counts, run.trainers)


def _number(run: Run, tables: list[NodeTable], owners: list[Owners], gids: list[Spool]) -> dict[str, Any]:
    counts = np.stack([_counts(each, run.parts * run.trainers) for each in owners], axis=1)
    ranges = Ranges.of(counts, run.trainers)
    most = int(ranges.counts.sum(axis=1).max())
    if most >= 1 << 31:
        raise InvalidRequest(f"a part would own {most} nodes; export more parts, of fewer than 2^31 nodes each")
    original = [[run.spool(f"orig-{kind.type_id}-{place}") for place in range(len(counts))] for kind in run.plan.nodes]
    for i, (kind, table) in enumerate(zip(run.plan.nodes, tables, strict=True)):
        for spool in original[i]:
            spool.drop()
        for place, ids in table.settle(owners[i], ranges, i, gids[i].make(len(table))):
            original[i][place].append(ids)
        write_list(run, "node_ids", kind.label, original[i])
    for part in range(run.parts):
        first = part * run.trainers
        tensors = {kind.label: column(*original[i][first : first + run.trainers]) for i, kind in enumerate(run.plan.nodes)}
        run.write(part, "orig_nids.dgl", tensors)
        if run.called:
            write_names(run, part, {kind: original[i][first : first + run.trainers] for i, kind in enumerate(run.plan.nodes)})
    for spools in original:
        for spool in spools:
            spool.drop()
    return {"nodes": counts.tolist()}


def _counts(owners: Owners, places: int) -> Ids:
    """How many nodes each place has; a few owners at a time, as they may be mapped."""
    found = np.zeros(places, np.int64)
    for at in range(0, len(owners), _STEP):
        found += np.bincount(owners[at : at + _STEP], minlength=places)
    return found


def write_list(run: Run, folder: str, label: str, spools: list[Spool]) -> None:
    """Write the original ids of a type, one part after the other, as ``<folder>/<label>.npy``: by type-wise id."""
    with run.writing(f"{folder}/{label}.npy") as file:
        rows = sum(spool.rows for spool in spools)
        np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (rows,)})
        for spool in spools:
            for piece in spool.pieces():
                file.write(piece.view(np.uint8).data)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The scratch files of one type in one part: places among the part's nodes of the type, and columns."""

    at: Spool
    columns: dict[str, Spool]

    @property
    def spools(self) -> list[Spool]:
        """All of them."""
        return [self.at, *self.columns.values()]


def deal_features(run: Run, tables: list[NodeTable], ranges: Ranges) -> None:
    """Give every part its nodes' features, in the order in which they come."""
    kinds = [(place, kind) for place, kind in enumerate(run.plan.nodes) if kind.columns]
    meter = Meter(run, "node features", sum(len(tables[place]) for place, _ in kinds))
    for place, kind in kinds:
        run.step(f"nodes-{kind.type_id}", partial(_deal_all, run, kind, tables[place], ranges, place, meter))


def _deal_all(run: Run, kind: Kind, table: NodeTable, ranges: Ranges, place: int, meter: Meter) -> dict[str, Any]:
    spools = [_open(run, kind, part) for part in range(run.parts)]
    for rows in spools:
        for spool in rows.spools:
            spool.drop()
    sums = Sums()
    for batch in run.graph.scan_nodes(kind.name, kind.names, version=run.version, rows=run.rows(kind)):
        _deal(batch, kind, table, ranges, place, spools, sums)
        meter.add(len(batch.ids))
    return {"sums": sums.told()}


def _open(run: Run, kind: Kind, part: int) -> _Rows:
    return _Rows(
        at=run.spool(f"node-{kind.type_id}-{part}-at"),
        columns={c.name: run.spool(f"node-{kind.type_id}-{part}-{i}", c) for i, c in enumerate(kind.columns)},
    )


def _deal(batch: NodeRows, kind: Kind, table: NodeTable, ranges: Ranges, place: int, spools: list[_Rows], sums: Sums) -> None:
    """Append a batch's rows to the scratch files of the parts that own them."""
    gids = table.gid(batch.ids)
    if gids.size and gids.min() < 0:
        raise Corrupt(f"node {batch.ids[int(np.argmin(gids))]} of type {kind.name} was not there when its version was scanned before")
    values = {each.name: each.of(batch) for each in kind.columns}
    for name, each in values.items():
        sums.add(name, rows_sum(batch.ids, each))
    for part, mine in split(gids, ranges):
        rows = spools[part]
        rows.at.append(taken(gids, mine) - ranges.starts[part, place])
        for name, spool in rows.columns.items():
            spool.append(taken(values[name], mine))


def write_features(run: Run, ranges: Ranges, part: int) -> None:
    """Write one part's ``node_feat.dgl``."""
    tensors: dict[str, Column] = trainers_of(ranges, part, [kind.label for kind in run.plan.nodes])
    for place, kind in enumerate(run.plan.nodes):
        if not kind.columns:
            continue
        rows, expected = _open(run, kind, part), int(ranges.counts[part, place])
        if not expected and ranges.counts[:, place].any():
            run.warn(f"part {part} has no node of type {kind.label}, which has features: DGL's servers do not start on a feature of no rows")
        order = _order(run, rows.at, expected, kind)
        tensors |= {f"{kind.label}/{name}": column(spool, order=order) for name, spool in rows.columns.items()}
    run.write(part, "node_feat.dgl", tensors)


def trainers_of(ranges: Ranges, part: int, labels: list[str]) -> dict[str, Column]:
    """DGL's feature ``trainer_id`` of a part's nodes of each type, where a part has several trainers."""
    if ranges.ends_of_trainers is None:
        return {}

    def pieces(low: int, high: int) -> Iterator[Array]:
        return (ranges.trainers(np.arange(at, min(high, at + _STEP))) for at in range(low, high, _STEP))

    found = {}
    for label, low, high in zip(labels, ranges.starts[part, :-1].tolist(), ranges.starts[part, 1:].tolist(), strict=True):
        found[f"{label}/trainer_id"] = Column(dtype=np.dtype(np.int64), shape=(high - low,), pieces=partial(pieces, low, high))
    return found


def drop_features(run: Run, part: int) -> None:
    """Remove what `write_features` read."""
    for kind in run.plan.nodes:
        for spool in _open(run, kind, part).spools:
            spool.drop()


def _order(run: Run, at: Spool, expected: int, kind: Kind) -> Ids | None:
    """Where in the scratch file each of the part's rows is; None where they are in order."""
    if at.rows != expected:
        raise Corrupt(f"node type {kind.name}: {at.rows} nodes of a part came with their features, {expected} without")
    first, ordered = 0, True
    for piece in at.pieces():
        ordered = ordered and bool((piece == np.arange(first, first + len(piece))).all())
        first += len(piece)
    if ordered:
        return None
    order = run.blank(expected, np.int64)
    first = 0
    for piece in at.pieces():
        if piece.max() >= expected:
            raise Corrupt(f"node type {kind.name}: a node that came with its features was not there before")
        order[piece] = np.arange(first + 1, first + 1 + len(piece))
        first += len(piece)
    for low in range(0, expected, _STEP):
        if not order[low : low + _STEP].all():
            raise Corrupt(f"node type {kind.name}: a node came with its features twice")
        order[low : low + _STEP] -= 1
    return order


def split(gids: Ids, ranges: Ranges) -> Iterator[tuple[int, Ids | None]]:
    """Each part that owns some of ``gids``, and the positions of those; None where it owns them all."""
    parts = len(ranges.starts)
    if parts == 1:
        yield 0, None
        return
    order, offsets = group(ranges.owners(gids), parts)
    for part, (low, high) in enumerate(pairwise(offsets.tolist())):
        if high > low:
            yield part, order[low:high]


def taken(values: Array, positions: Ids | None) -> Array:
    """The rows at ``positions``, or all of them."""
    return values if positions is None else values[positions]
