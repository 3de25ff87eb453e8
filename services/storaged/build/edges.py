"""The edges of one type at one part: adjacency by source and by destination, their alias rows, table and features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal, InvalidRequest
from graphkit.alias import build_rows, row_sums
from storaged.build.columns import build_columns
from storaged.build.hub import build_hub
from storaged.build.kernels import DELETED, arrange, bits, mix_records, resolve, sort_rows
from storaged.build.nodes import CHUNK, MAX_ROWS, Rows
from storaged.build.source import Sections, Workplace
from storaged.build.spool import Bucket, Records, buckets
from storaged.build.steps import State
from storaged.build.table import WEIGHT, TableResult, build_table
from storaged.build.task import Total
from storaged.build.unit import Unit
from storaged.store import keys
from storaged.store.graph import EDGE_FEATURES, IN_EDGE_DELETES, IN_EDGES, OUT_EDGE_DELETES, OUT_EDGES, BlockRef

I64 = NDArray[np.int64]
F32 = NDArray[np.float32]

_RECORD_BYTES = 80
"""Per edge of a bucket: the record, its copy in the bucket's order, and the pieces it was put together from."""
_ROW_BYTES = 160
"""Per row that a bucket ranges over, there being a bucket as large as may be beside it."""
_ALIAS_BYTES = 40
_ID_BYTES = 40
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of the two adjacencies of a type."""

    name: str
    """Prefix of its files."""
    incoming: bool
    near_type: int
    far_type: int
    rows: Rows
    """Of the near ends."""
    refs: list[BlockRef]
    weighted: bool
    """Otherwise every edge weighs 1, whatever was sent."""

    @property
    def ends(self) -> tuple[str, str]:
        """The sections of the near end and of the far one."""
        return ("dst", "src") if self.incoming else ("src", "dst")


@dataclass(slots=True)
class _Counts:
    """What is counted on the way."""

    slots: int = 0
    dropped: int = 0
    mix: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgesResult:
    """What the edges of one type came to."""

    total: Total
    description: dict[str, Any]


def build_edges(work: Workplace, type_id: int, nodes: Sequence[Rows]) -> EdgesResult:
    """Write the edge image of one type, in four units: both adjacencies, the table over all edges, their features.

    Parameters
    ----------
    nodes : sequence of Rows
        Of every node type in this part.
    """
    schema = work.task.schema
    edge_type, name = schema.edge_types[type_id], f"e{type_id}"
    src_type, dst_type = schema.node_type_id(edge_type.src_type), schema.node_type_id(edge_type.dst_type)
    out_side = _Side(
        name=f"{name}.out",
        incoming=False,
        near_type=src_type,
        far_type=dst_type,
        rows=nodes[src_type],
        refs=work.source.refs(type_id, OUT_EDGES, OUT_EDGE_DELETES),
        weighted=edge_type.weighted,
    )
    work.progress.phase(f"out edges {edge_type.name}")
    unit = _unit(work, type_id, out_side, f"{name}.out.*", f"{name}.src_row")
    out, into = _Counts(**work.units.make(unit, lambda: asdict(_adjacency(work, type_id, out_side)))), _Counts()
    if schema.has_in:
        in_side = _Side(
            name=f"{name}.in",
            incoming=True,
            near_type=dst_type,
            far_type=src_type,
            rows=nodes[dst_type],
            refs=work.source.refs(type_id, IN_EDGES, IN_EDGE_DELETES),
            weighted=edge_type.weighted,
        )
        work.progress.phase(f"in edges {edge_type.name}")
        into = _Counts(**work.units.make(_unit(work, type_id, in_side, f"{name}.in.*"), lambda: asdict(_adjacency(work, type_id, in_side))))
    table = _table(work, type_id, out.slots, unit)
    feature_rows = _features(work, type_id) if edge_type.features else 0
    total = Total(
        part=work.part,
        element=2,
        type_id=type_id,
        count=out.slots,
        mix_out=out.mix,
        mix_in=into.mix,
        count_in=into.slots,
        dropped=out.dropped,
        **table.total(),
    )
    description = {
        "table": {"size": table.size, "total": table.weight},
        "feature_rows": feature_rows,
        "columns": [feature.name for feature in edge_type.features],
    }
    return EdgesResult(total=total, description=description)


def _unit(work: Workplace, type_id: int, side: _Side, *files: str) -> Unit:
    """An adjacency as a unit: it follows from its blocks, the deletes of both ends, and which near end has which row."""
    edge_type = work.task.schema.edge_types[type_id]
    deletes = [ref for node_type in sorted({side.near_type, side.far_type}) for ref in work.source.tombstone_refs(node_type)]
    words = ("adjacency", side.incoming, side.near_type, side.far_type, side.weighted, edge_type.multiplicity, side.rows.digest)
    return Unit(name=side.name, digest=work.input(*words).blocks([*side.refs, *deletes]).digest(), files=files)


def _table(work: Workplace, type_id: int, slots: int, out: Unit) -> TableResult:
    """The table over all edges of a type, which follows from the out-adjacency alone."""
    name, image = f"e{type_id}", work.image

    def make() -> State:
        eids: I64 = image.map(f"{name}.out.eid")
        made = build_table(
            work,
            name=name,
            kind=keys.EDGE_TABLE,
            type_id=type_id,
            rows=slots,
            weights=image.map(f"{name}.out.weights") if f"{name}.out.weights" in image else None,
            live=np.zeros(0, np.uint8),
            ids_of=lambda slots: eids[slots],
        )
        return asdict(made)

    unit = Unit(
        name=f"{name}.table",
        digest=work.input("edge table", out.digest).digest(),
        files=(f"{name}.table.*",),
        tables=((keys.EDGE_TABLE | keys.B1, type_id, WEIGHT),),
    )
    return TableResult(**work.units.make(unit, make))


def _adjacency(work: Workplace, type_id: int, side: _Side) -> _Counts:
    """One adjacency, in two steps: its edges, then their alias rows."""
    written, weights = sum(ref.rows for ref in side.refs), f"{side.name}.weights"
    counts = _Counts(**work.steps.run(f"{side.name}.edges", lambda: asdict(_sorted_edges(work, type_id, side)), rows=written))
    if side.weighted:
        work.steps.run(
            f"{side.name}.alias", lambda: _alias_rows(work, side, work.image.map(f"{side.name}.indptr"), work.image.map(weights)), rows=counts.slots
        )
    return counts


def _sorted_edges(work: Workplace, type_id: int, side: _Side) -> _Counts:
    """Group, sort, resolve and write the edges of one adjacency."""
    edge_type = work.task.schema.edge_types[type_id]
    unique = edge_type.multiplicity == "unique"
    plain = not unique and all(ref.key.kind in (OUT_EDGES, IN_EDGES) for ref in side.refs)
    counts = _Counts()
    indptr = work.image.create(f"{side.name}.indptr", np.int64, (side.rows.rows + 1,))
    out = {name: work.image.append_to(f"{side.name}.{name}", dtype) for name, dtype in (("nbr", np.int64), ("eid", np.int64))}
    if edge_type.weighted:
        out["weights"] = work.image.append_to(f"{side.name}.weights", np.float32)
    if not side.incoming:
        out["src_row"] = work.image.append_to(f"e{type_id}.src_row", np.uint32)
    found = buckets(
        _records(work, side, counts, plain=plain),
        sum(ref.rows for ref in side.refs),
        low=0,
        high=max(side.rows.rows - 1, 0),
        limit=work.task.row_limit(_RECORD_BYTES),
        folder=work.spools,
        # Deletes and replacements need all that was written between two nodes at once.
        keys=(0, 1, 2) if plain else (0, 1),
        span=work.task.row_limit(_ROW_BYTES),
    )
    for bucket in found:
        row, nbr, eid, weight = _arranged(bucket, indptr, unique=unique, plain=plain)
        if not plain:
            counts.mix += int(mix_records(side.rows.ids_of(row), nbr, eid, bits(weight), side.incoming))
        counts.slots += row.size
        for name, column in (("nbr", nbr), ("eid", eid), ("weights", weight), ("src_row", row)):
            if name in out:
                out[name].append(column)
    if counts.slots > MAX_ROWS:
        raise InvalidRequest(f"part {work.part} has {counts.slots} edges of {edge_type.name}, more than {MAX_ROWS}; make the space with more parts")
    counts.mix &= _MASK
    _running_sums(indptr)
    _audit_mix(work, side, indptr, counts)
    return counts


def _records(work: Workplace, side: _Side, counts: _Counts, *, plain: bool) -> Iterator[Records]:
    """(row, neighbor, edge id, weight) of every edge whose ends live, and of every delete, in the order of the writes."""
    near_section, far_section = side.ends
    near_dead, far_dead = work.source.tombstones(side.near_type), work.source.tombstones(side.far_type)
    for ref, sections in work.source.read(side.refs):
        near, far, eid, weight = _columns(ref, sections, near_section, far_section, weighted=side.weighted)
        row = side.rows.find(near)
        lost = row < 0
        for dead in (near_dead.kills(near, ref.stamp), far_dead.kills(far, ref.stamp), far_dead.dead(far)):
            if dead is not None:
                lost |= dead
        if lost.any():
            if ref.key.kind in (OUT_EDGES, IN_EDGES):
                counts.dropped += int(np.count_nonzero(lost))
            near, row, far, eid, weight = near[~lost], row[~lost], far[~lost], eid[~lost], weight[~lost]
        if plain:
            counts.mix += int(mix_records(near, far, eid, bits(weight), side.incoming))
        if row.size:
            yield row.astype(np.uint32), far, eid, weight


def _columns(ref: BlockRef, sections: Sections, near_section: str, far_section: str, *, weighted: bool) -> tuple[I64, I64, I64, F32]:
    near, far = sections[near_section], sections[far_section]
    if ref.key.kind in (OUT_EDGES, IN_EDGES):
        weight = sections["weight"] if weighted and "weight" in sections else np.ones(ref.rows, np.float32)
        return near, far, sections["eid"], weight
    eid = sections["eid"] if "eid" in sections else np.full(ref.rows, -1, np.int64)
    return near, far, eid, np.full(ref.rows, DELETED, np.float32)


def _arranged(bucket: Bucket, indptr: I64, *, unique: bool, plain: bool) -> tuple[NDArray[np.uint32], I64, I64, F32]:
    """A bucket in canonical order, its degrees added to ``indptr``."""
    row, nbr, eid, weight = bucket.records
    local = np.zeros(bucket.high - bucket.low + 2, np.int64)
    out_nbr, out_eid, out_weight = np.empty_like(nbr), np.empty_like(eid), np.empty_like(weight)
    arrange(row, nbr, eid, weight, np.int64(bucket.low), local, out_nbr, out_eid, out_weight)
    widest = int(np.diff(local).max(initial=0))
    spare = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest, np.float32)
    if not plain:
        sort_rows(local, out_nbr, out_eid, out_weight, False, *spare)
        kept = int(resolve(local, out_nbr, out_eid, out_weight, unique))
        out_nbr, out_eid, out_weight = out_nbr[:kept], out_eid[:kept], out_weight[:kept]
    sort_rows(local, out_nbr, out_eid, out_weight, True, *spare)
    degrees = np.diff(local)
    indptr[bucket.low + 1 : bucket.high + 2] += degrees[: max(indptr.size - 1 - bucket.low, 0)]
    return np.repeat(np.arange(bucket.low, bucket.high + 1, dtype=np.uint32), degrees), out_nbr, out_eid, out_weight


def _running_sums(indptr: I64) -> None:
    """Degrees, at place row + 1, to offsets."""
    total = 0
    for low in range(0, indptr.size, CHUNK):
        here = indptr[low : low + CHUNK]
        here[:] = np.cumsum(here) + total
        total = int(here[-1])


def _audit_mix(work: Workplace, side: _Side, indptr: I64, counts: _Counts) -> None:
    """Read the adjacency again and hold its edges against those that came out of the graph."""
    image = work.image
    nbr, eid = image.map(f"{side.name}.nbr"), image.map(f"{side.name}.eid")
    weights = image.map(f"{side.name}.weights") if f"{side.name}.weights" in image else None
    mix = 0
    for low in range(0, counts.slots, CHUNK):
        high = min(low + CHUNK, counts.slots)
        rows = np.searchsorted(indptr, np.arange(low, high), side="right") - 1
        weight = np.ones(high - low, np.float32) if weights is None else weights[low:high]
        mix += int(mix_records(side.rows.ids_of(rows), nbr[low:high], eid[low:high], bits(weight), side.incoming))
    if mix & _MASK != counts.mix or int(indptr[-1]) != counts.slots:
        raise Internal(f"{side.name} of part {work.part}: the edges of the image are not those of the graph; the version is refused")


def _alias_rows(work: Workplace, side: _Side, indptr: I64, weights: F32) -> State:
    """Sums of weights and alias tables of every row; no tables where all weights are equal and positive."""
    image, limit = work.image, work.task.row_limit(_ALIAS_BYTES)
    even = bool(weights.size == 0) or (
        weights[0] > 0 and all(bool((weights[low : low + CHUNK] == weights[0]).all()) for low in range(0, weights.size, CHUNK))
    )
    rows = side.rows.rows
    sums = image.create(f"{side.name}.sums", np.float64, (rows,))
    hot = None if even else image.create(f"{side.name}.hot", np.uint64, (weights.size,))
    cold = None if even else image.create(f"{side.name}.cold", np.uint32, (weights.size,))
    low = 0
    while low < rows:
        within = min(int(np.searchsorted(indptr, indptr[low] + limit, side="right")) - 1, low + limit, rows)
        high = max(within, low + 1)
        slots = slice(int(indptr[low]), int(indptr[high]))
        if hot is None or cold is None:
            row_sums(indptr[low : high + 1] - slots.start, weights[slots], sums[low:high])
        elif within <= low:
            sums[low] = build_hub(weights[slots], hot[slots], cold[slots])
        else:
            hot[slots], cold[slots], sums[low:high] = build_rows(indptr[low : high + 1] - slots.start, weights[slots])
        work.progress.step(slots.stop - slots.start)
        low = high
    return {}


def _features(work: Workplace, type_id: int) -> int:
    """Edge features that live in this part: rows by edge id among those that came with features. Gives their number."""
    features, name = work.task.schema.edge_types[type_id].features, f"e{type_id}"
    refs, columns = work.source.refs(type_id, EDGE_FEATURES), work.source.refs(type_id, EDGE_FEATURES | keys.COLUMNS)

    def make() -> State:
        rows = _feature_rows(work, f"{name}.feature_eids", refs)
        build_columns(work, prefix=name, features=features, refs=columns, id_section="eid", rows=rows.rows, find=rows.find, tombstones=None)
        return {"rows": rows.rows}

    work.progress.phase(f"features {work.task.schema.edge_types[type_id].name}")
    digest = work.input("edge features", [asdict(feature) for feature in features]).blocks(refs).blocks(columns).digest()
    unit = Unit(name=f"{name}.features", digest=digest, files=(f"{name}.feature_eids", f"{name}.c[0-9]*"))
    return int(work.units.make(unit, lambda: work.steps.run(f"{name}.features", make, rows=sum(ref.rows for ref in columns)))["rows"])


def _feature_rows(work: Workplace, name: str, refs: list[BlockRef]) -> Rows:
    """The rows of edge ids; ids are kept where they have holes."""
    parts = work.task.schema.parts
    out = work.image.append_to(name, np.int64)
    low, high = min((ref.lowest for ref in refs if ref.rows), default=0), max((ref.highest for ref in refs if ref.rows), default=0)
    source = ((sections["eid"],) for _, sections in work.source.read(refs))
    for bucket in buckets(source, sum(ref.rows for ref in refs), low=low, high=high, limit=work.task.row_limit(_ID_BYTES), folder=work.spools):
        out.append(np.unique(bucket.records[0]))
    rows = out.rows
    ids: I64 = work.image.map(name)
    none = np.zeros(0, np.int64)
    if rows == 0 or (int(ids[0]) == work.part and int(ids[-1]) == (rows - 1) * parts + work.part):
        work.image.remove(name)
        return Rows(
            part=work.part,
            parts=parts,
            rows=rows,
            count=rows,
            dense=True,
            live=np.zeros(0, np.uint8),
            ids=none,
            index_ids=none,
            index_rows=np.zeros(0, np.uint32),
        )
    return _SortedRows(
        part=work.part,
        parts=parts,
        rows=rows,
        count=rows,
        dense=False,
        live=np.zeros(0, np.uint8),
        ids=ids,
        index_ids=none,
        index_rows=np.zeros(0, np.uint32),
    )


class _SortedRows(Rows):
    """Sorted ids without an index: found by bisection, as draws find edge features."""

    def find(self, ids: I64) -> I64:
        """The row of each id; -1 where there is none."""
        at = np.minimum(np.searchsorted(self.ids, ids), self.rows - 1)
        return np.where(self.ids[at] == ids, at, -1)
