"""The node side of an export: ids, their numbering, and the node features of each part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from asterism.export.assign import Owners
from asterism.export.dgl_files import Column
from asterism.export.layout import NodeTable, Ranges
from asterism.export.plan import Kind
from asterism.export.run import Meter, Run, column
from asterism.export.source import Array, Ids, NodeRows
from asterism.export.spool import Spool
from asterism_proto.errors import Corrupt, InvalidRequest
from graphkit.split import group

_STEP = 1 << 20


def read_ids(run: Run) -> list[NodeTable]:
    """The ids of each node type of the plan, in ascending order."""
    tables = []
    meter = Meter(run, "node ids", None)
    for kind in run.plan.nodes:
        spool = run.spool(f"ids-{kind.type_id}")
        for batch in run.graph.scan_nodes(kind.name, (), version=run.version, rows=kind.batch_rows):
            spool.append(batch.ids)
            meter.add(len(batch.ids))
        ids = spool.read()
        spool.drop()
        ids.sort(kind="stable")
        twice = np.flatnonzero(ids[1:] == ids[:-1])
        if twice.size:
            raise Corrupt(f"version {run.version} gives {kind.name} {ids[twice[0]]} twice; build the space again")
        if not ids.size:
            run.warn(f"node type {kind.label} has no nodes")
        tables.append(NodeTable(ids))
    return tables


def number(run: Run, tables: list[NodeTable], owners: list[Owners], *, trainers: int = 1) -> Ranges:
    """Settle the global ids, and write each part's original ids and the whole list of them by type."""
    ranges = Ranges.of(np.stack([np.bincount(each, minlength=run.parts * trainers) for each in owners], axis=1), trainers)
    most = int(ranges.counts.sum(axis=1).max())
    if most >= 1 << 31:
        raise InvalidRequest(f"a part would own {most} nodes; export more parts, of fewer than 2^31 nodes each")
    original: list[dict[str, Spool]] = [{} for _ in range(run.parts)]
    for place, (kind, table) in enumerate(zip(run.plan.nodes, tables, strict=True)):
        for part, ids in enumerate(table.settle(owners[place], ranges, place, trainers)):
            spool = original[part][kind.label] = run.spool(f"orig-{kind.type_id}-{part}")
            spool.append(ids)
        write_list(run, "node_ids", kind.label, [each[kind.label] for each in original])
    for part in range(run.parts):
        run.write(part, "orig_nids.dgl", {label: column(spool) for label, spool in original[part].items()})
        for spool in original[part].values():
            spool.drop()
    return ranges


def write_list(run: Run, folder: str, label: str, spools: list[Spool]) -> None:
    """Write the original ids of a type, one part after the other, as ``<folder>/<label>.npy``: by type-wise id."""
    path = run.out / folder
    path.mkdir(exist_ok=True)
    with open(path / f"{label}.npy", "wb") as file:
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


def write_features(run: Run, tables: list[NodeTable], ranges: Ranges) -> None:
    """Write each part's ``node_feat.dgl``."""
    kinds = [(place, kind) for place, kind in enumerate(run.plan.nodes) if kind.columns]
    meter = Meter(run, "node features", sum(len(tables[place]) for place, _ in kinds))
    spools: dict[int, list[_Rows]] = {}
    for place, kind in kinds:
        spools[place] = _open(run, kind)
        for batch in run.graph.scan_nodes(kind.name, kind.names, version=run.version, rows=kind.batch_rows):
            _deal(batch, kind, tables[place], ranges, place, spools[place])
            meter.add(len(batch.ids))
    for part in range(run.parts):
        tensors: dict[str, Column] = trainers_of(ranges, part, [kind.label for kind in run.plan.nodes])
        for place, kind in kinds:
            rows = spools[place][part]
            if not rows.at.rows and len(tables[place]):
                run.warn(f"part {part} has no node of type {kind.label}, which has features: DGL's servers do not start on a feature of no rows")
            order = _order(rows.at, len(tables[place]), kind)
            tensors |= {f"{kind.label}/{name}": column(spool, order) for name, spool in rows.columns.items()}
        run.write(part, "node_feat.dgl", tensors)
        for place, _ in kinds:
            for spool in (spools[place][part].at, *spools[place][part].columns.values()):
                spool.drop()


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


def _open(run: Run, kind: Kind) -> list[_Rows]:
    return [
        _Rows(
            at=run.spool(f"node-{kind.type_id}-{part}-at"),
            columns={c.name: run.spool(f"node-{kind.type_id}-{part}-{i}", c) for i, c in enumerate(kind.columns)},
        )
        for part in range(run.parts)
    ]


def _deal(batch: NodeRows, kind: Kind, table: NodeTable, ranges: Ranges, place: int, spools: list[_Rows]) -> None:
    """Append a batch's rows to the scratch files of the parts that own them."""
    gids = table.gid(batch.ids)
    if gids.size and gids.min() < 0:
        raise Corrupt(f"node {batch.ids[int(np.argmin(gids))]} of type {kind.name} was not there when its version was scanned before")
    values = {each.name: each.of(batch) for each in kind.columns}
    for part, mine in split(gids, ranges):
        rows = spools[part]
        rows.at.append(taken(gids, mine) - ranges.starts[part, place])
        for name, spool in rows.columns.items():
            spool.append(taken(values[name], mine))


def _order(at: Spool, total: int, kind: Kind) -> Ids | None:
    """Where in the scratch file each of the part's rows is; None where they are in order."""
    places = at.read()
    if np.array_equal(places, np.arange(len(places))):
        return None
    order = np.full(len(places), -1, np.int64)
    if places.max() >= len(places):
        raise Corrupt(f"node type {kind.name}: fewer than its {total} nodes came with their features")
    order[places] = np.arange(len(places))
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
