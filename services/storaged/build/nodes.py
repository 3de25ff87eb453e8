"""The nodes of one type in one part: which rows there are, their weights, their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal, InvalidRequest
from graphkit.index import fill_index, index_slots
from storaged.build.columns import build_columns
from storaged.build.indexes import build_indexes
from storaged.build.kernels import audit_nodes, fold_nodes, scatter_nodes
from storaged.build.labels import build_labels
from storaged.build.names import check_names
from storaged.build.rows import Rows
from storaged.build.source import Workplace
from storaged.build.spool import Records, buckets
from storaged.build.steps import State
from storaged.build.table import WEIGHT
from storaged.build.task import Total
from storaged.build.unit import Input, Unit
from storaged.build.weights import Refused, Weighed, described, node_weights, weigh
from storaged.store import keys
from storaged.store.graph import NODES, BlockRef

I64 = NDArray[np.int64]
CHUNK = 1 << 18
"""Rows that a pass over mapped arrays holds at once."""
MAX_ROWS = (1 << 32) - 1
_NONE = np.zeros(0, np.float32)
_SPARSE_BYTES = 64
"""Per record of a bucket of sparse ids: itself, its copy, its place in the order, its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesMade:
    """Which nodes of one type there are, and what they have."""

    rows: Rows
    own: Weighed
    weights: str | None
    """The digest of their weights."""
    features: str
    """The digest of what their features are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesResult:
    """What the nodes of one type came to."""

    totals: tuple[Total, ...]
    """Of the nodes' own weights, then of each table."""
    description: dict[str, Any]


def build_nodes(work: Workplace, type_id: int) -> NodesMade:
    """Write the node image of one type, in units: which rows there are, their table, their features."""
    node_type, name = work.task.schema.node_types[type_id], f"n{type_id}"
    refs = work.source.refs(type_id, NODES)
    written = sum(ref.rows for ref in refs)
    work.progress.phase(f"nodes {node_type.name}")
    made = work.units.make(
        Unit(
            name=name,
            digest=work.node_input(type_id, refs, "nodes", node_type.weighted).digest(),
            files=tuple(f"{name}.{file}" for file in ("ids", "index_ids", "index_rows", "live", "live_rows", "weights")),
        ),
        lambda: work.steps.run(f"{name}.rows", lambda: _make_rows(work, type_id, refs), rows=written),
    )
    rows = _restored(work, name, made)
    weights = work.image.map(f"{name}.weights") if node_type.weighted else None
    own = Weighed.of(
        work.units.make(
            Unit(
                name=f"{name}.table",
                digest=work.input("node table", rows.digest, made["weights"]).digest(),
                files=(f"{name}.table.*",),
                tables=((keys.B1, type_id, WEIGHT),),
            ),
            lambda: weigh(
                work,
                Refused(),
                name=name,
                kind=0,
                type_id=type_id,
                rows=rows.rows,
                count=rows.count,
                weights=weights,
                live=rows.live,
                ids_of=rows.ids_of,
                keyed=not rows.dense,
            ),
        )
    )
    features = _features(work, type_id, rows) if node_type.features else ""
    build_labels(work, type_id, rows.rows, features)
    return NodesMade(rows=rows, own=own, weights=made["weights"], features=features)


def weigh_nodes(work: Workplace, type_id: int, made: NodesMade) -> NodesResult:
    """Write further weights with their tables, and indexes, in units; the edges of all types are written."""
    node_type, rows, own = work.task.schema.node_types[type_id], made.rows, made.own
    named = list(node_weights(work, type_id, rows, rows.digest, made.weights, made.features))
    indexes = build_indexes(work, type_id, rows, weights=made.weights, features=made.features)
    description = {
        "rows": rows.rows,
        "count": rows.count,
        "dense": rows.dense,
        "table": {"size": own.table.size, "total": own.table.weight},
        "columns": [feature.name for feature in node_type.features],
        **described(node_type.tables, named),
        **({"indexes": indexes} if indexes else {}),
    }
    totals = (Total(part=work.part, element=1, type_id=type_id, count=rows.count, **weighed.total()) for weighed in (own, *named))
    return NodesResult(totals=tuple(totals), description=description)


def _features(work: Workplace, type_id: int, rows: Rows) -> str:
    """The columns of a type: they follow from which row an id has, whatever its weight. Gives their unit's digest."""
    node_type, name = work.task.schema.node_types[type_id], f"n{type_id}"
    columns = work.source.refs(type_id, NODES | keys.COLUMNS)

    def features() -> State:
        build_columns(
            work,
            prefix=name,
            features=node_type.features,
            refs=columns,
            id_section="ids",
            rows=rows.rows,
            find=rows.find,
            tombstones=work.source.tombstones(type_id),
        )
        if work.task.schema.named:
            check_names(work, type_id, rows, columns)
        return {}

    work.progress.phase(f"features {node_type.name}")
    unit = Unit(
        name=f"{name}.features",
        digest=work.node_input(type_id, columns, "node features", [asdict(feature) for feature in node_type.features], rows.digest).digest(),
        files=(f"{name}.c[0-9]*",),
    )
    work.units.make(unit, lambda: work.steps.run(f"{name}.features", features, rows=sum(ref.rows for ref in columns)))
    return unit.digest


def _make_rows(work: Workplace, type_id: int, refs: list[BlockRef]) -> State:
    """Write ids or live rows, and weights, and hold these against the graph."""
    state = (_dense if _may_be_dense(work, refs) else _sparse)(work, type_id, refs)
    if state["rows"] > MAX_ROWS:
        raise InvalidRequest(f"part {work.part} has {state['rows']} rows of one type, more than {MAX_ROWS}; make the space with more parts")
    rows, weights = _restored(work, f"n{type_id}", state), None
    if work.task.schema.node_types[type_id].weighted:
        weights = work.image.map(f"n{type_id}.weights")
        _audit_weights(work, type_id, refs, rows, weights)
    return {
        **state,
        "digest": Input(rows.rows, rows.count, rows.dense).array(rows.live).array(rows.ids).digest(),
        "weights": None if weights is None else Input().array(weights).digest(),
    }


def _restored(work: Workplace, name: str, state: State) -> Rows:
    """The rows of a type, whose arrays are in the image."""
    image = work.image
    return Rows(
        part=work.part,
        parts=work.task.schema.parts,
        rows=state["rows"],
        count=state["count"],
        dense=state["dense"],
        live=image.map(f"{name}.live") if f"{name}.live" in image else np.zeros(0, np.uint8),
        ids=image.map(f"{name}.ids") if f"{name}.ids" in image else np.zeros(0, np.int64),
        index_ids=image.map(f"{name}.index_ids") if f"{name}.index_ids" in image else np.zeros(0, np.int64),
        index_rows=image.map(f"{name}.index_rows") if f"{name}.index_rows" in image else np.zeros(0, np.uint32),
        digest=state.get("digest", ""),
    )


def _survivors(work: Workplace, type_id: int, refs: list[BlockRef]) -> Iterator[tuple[I64, NDArray[np.float32]]]:
    """The ids of each block, without those that a later tombstone killed, and their weights (empty: not given)."""
    tombstones = work.source.tombstones(type_id)
    for ref, sections in work.source.read(refs):
        ids, given = sections["ids"], sections.get("weight", _NONE)
        dead = tombstones.kills(ids, ref.stamp)
        if dead is not None:
            ids, given = ids[~dead], given[~dead] if given.size else given
        yield ids, given


def _may_be_dense(work: Workplace, refs: list[BlockRef]) -> bool:
    written = sum(ref.rows for ref in refs)
    highest = max((ref.highest for ref in refs), default=-1)
    return work.task.schema.placement == "mod" and written > 0 and 2 * written >= highest // work.task.schema.parts + 1


def _dense(work: Workplace, type_id: int, refs: list[BlockRef]) -> State:
    """Rows by arithmetic: a byte per possible row says whether it is alive. Sparse rows where fewer than half are."""
    parts, name = work.task.schema.parts, f"n{type_id}"
    weighted = work.task.schema.node_types[type_id].weighted
    room = max(ref.highest for ref in refs) // parts + 1
    live = work.scratch.create("live", np.uint8, (room,))
    weights = work.scratch.create("weights", np.float32, (room if weighted else 0,))
    for ids, given in _survivors(work, type_id, refs):
        scatter_nodes(ids, given, np.int64(parts), live, weights)
    count, rows = 0, 0
    for low in range(0, room, CHUNK):
        here = np.flatnonzero(live[low : low + CHUNK])
        if here.size:
            count, rows = count + here.size, low + int(here[-1]) + 1
    if 2 * count < rows or count == 0:
        _compact(work, name, live, weights)
        work.scratch.remove("live")
        work.scratch.remove("weights")
        return _indexed(work, name, count)
    work.scratch.cut("live", rows)
    if weighted:
        work.scratch.cut("weights", rows)
        work.image.adopt(work.scratch, "weights", f"{name}.weights")
    else:
        work.scratch.remove("weights")
    if count == rows:
        work.scratch.remove("live")
    else:
        work.image.adopt(work.scratch, "live", f"{name}.live")
        alive = work.image.map(f"{name}.live")
        out = work.image.append_to(f"{name}.live_rows", np.uint32)
        for low in range(0, rows, CHUNK):
            out.append(np.flatnonzero(alive[low : low + CHUNK]) + low)
    return {"rows": rows, "count": count, "dense": True}


def _compact(work: Workplace, name: str, live: NDArray[np.uint8], weights: NDArray[np.float32]) -> None:
    """Sorted ids, and their weights, from what `_dense` found to be too thin."""
    ids = work.image.append_to(f"{name}.ids", np.int64)
    kept = work.image.append_to(f"{name}.weights", np.float32) if weights.size else None
    for low in range(0, live.size, CHUNK):
        here = np.flatnonzero(live[low : low + CHUNK]) + low
        ids.append(here * work.task.schema.parts + work.part)
        if kept is not None:
            kept.append(weights[here])


def _sparse(work: Workplace, type_id: int, refs: list[BlockRef]) -> State:
    """Sorted ids: records are bucketed by id, each bucket sorted, and an id's records folded into its row."""
    name, weighted = f"n{type_id}", work.task.schema.node_types[type_id].weighted
    low, high = min((ref.lowest for ref in refs if ref.rows), default=0), max((ref.highest for ref in refs if ref.rows), default=0)

    def records() -> Iterator[Records]:
        for ids, given in _survivors(work, type_id, refs):
            yield ids, given if given.size else np.full(ids.size, np.nan, np.float32)

    ids = work.image.append_to(f"{name}.ids", np.int64)
    kept = work.image.append_to(f"{name}.weights", np.float32) if weighted else None
    written, limit = sum(ref.rows for ref in refs), work.task.row_limit(_SPARSE_BYTES)
    for bucket in buckets(records(), written, low=low, high=high, limit=limit, folder=work.spools):
        found, given = bucket.records
        out_ids, out_weights = np.empty(found.size, np.int64), np.empty(found.size, np.float32)
        n = int(fold_nodes(found, given, np.argsort(found, kind="stable"), out_ids, out_weights))
        ids.append(out_ids[:n])
        if kept is not None:
            kept.append(out_weights[:n])
    return _indexed(work, name, ids.rows)


def _indexed(work: Workplace, name: str, rows: int) -> State:
    """The rows of a sparse type whose ids are written, with their index beside them."""
    ids = work.image.map(f"{name}.ids")
    if rows > 0:
        slots = index_slots(rows)
        # Mapped: an index is larger than its ids, and a page that is not looked at may go to the disk.
        fill_index(ids, work.image.create(f"{name}.index_ids", np.int64, (slots,)), work.image.create(f"{name}.index_rows", np.uint32, (slots,)))
    return {"rows": rows, "count": rows, "dense": False}


def _audit_weights(work: Workplace, type_id: int, refs: list[BlockRef], rows: Rows, weights: NDArray[np.float32]) -> None:
    """Read the weights again from the graph, last writes first, and hold the image against them."""
    tombstones = work.source.tombstones(type_id)
    seen = work.scratch.create("seen", np.uint8, (rows.rows,))
    wrong = 0
    for ref, sections in work.source.read(refs[::-1]):
        if "weight" in sections:
            found = rows.find(sections["ids"])
            dead = tombstones.kills(sections["ids"], ref.stamp)
            if dead is not None:
                found[dead] = -1
            wrong += int(audit_nodes(found, sections["weight"], weights, seen))
    work.scratch.remove("seen")
    if wrong:
        raise Internal(f"part {work.part}, node type {type_id}: {wrong} weights of the image are not those of the graph; the version is refused")
