"""The edges of one type at one part: adjacency by source and by destination, their alias rows, table and features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal, InvalidRequest
from asterism_proto.schema import EdgeType
from asterism_proto.times import alike_at_both_ends, far_time, seen_as
from storaged.build.edge_features import build_features
from storaged.build.edge_indexes import build_edge_indexes
from storaged.build.hub import alias_rows
from storaged.build.kernels import DELETED, arrange, bits, mix_records, resolve, sort_rows
from storaged.build.near import near_files, near_values, value_bits
from storaged.build.nodes import CHUNK, MAX_ROWS
from storaged.build.packed import narrow_ids, pack
from storaged.build.rows import Rows
from storaged.build.source import Sections, Workplace
from storaged.build.spool import Bucket, Records, buckets
from storaged.build.steps import State
from storaged.build.table import WEIGHT
from storaged.build.task import Total
from storaged.build.timed import edge_times, order_rows, sum_times, time_bits
from storaged.build.unit import Unit
from storaged.build.weights import Refused, Weighed, check, described, edge_weights, weigh
from storaged.store import keys
from storaged.store.graph import IN_EDGE_DELETES, IN_EDGES, OUT_EDGE_DELETES, OUT_EDGES, BlockRef

I64 = NDArray[np.int64]
F32 = NDArray[np.float32]

_RECORD_BYTES = 80
"""Per edge of a bucket: the record, its copy in the bucket's order, and the pieces it was put together from."""
_ROW_BYTES = 160
"""Per row that a bucket ranges over, there being a bucket as large as may be beside it."""
_WEIGHTS_BYTES, _WEIGHT_BYTES, _TIME_BYTES = 24, 12, 24
"""The same for further weights and times: an edge's place, and each weight, and its time, or the value of a feature that lies beside it."""
_NO_HOLES = np.zeros(0, np.uint8)
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
    seen: int = 0
    """Of times that are another one at the other end, and so not in ``mix``."""
    named: list[dict[str, int]] = field(default_factory=list)
    """Of each table of the type: ``mix``, and what was no weight (`Refused`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgesResult:
    """What the edges of one type came to."""

    totals: tuple[Total, ...]
    """Of the edges' own weights, then of each table."""
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
    out, into, units = _Counts(**work.units.make(unit, lambda: asdict(_adjacency(work, type_id, out_side)))), _Counts(), [unit]
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
        units.append(_unit(work, type_id, in_side, f"{name}.in.*"))
        into = _Counts(**work.units.make(units[1], lambda: asdict(_adjacency(work, type_id, in_side))))
    own = _table(work, type_id, out, unit)
    named = [_table(work, type_id, out, unit, i) for i in range(len(edge_type.tables))]
    feature_rows = build_features(work, type_id) if edge_type.features else 0
    indexes = build_edge_indexes(work, type_id, out_side.rows, out.slots, [each.digest for each in units])
    shared: dict[str, Any] = {"part": work.part, "element": 2, "type_id": type_id, "count": out.slots, "count_in": into.slots, "dropped": out.dropped}
    totals = [Total(**shared, mix_out=out.mix, mix_in=into.mix, **own.total())]
    for i, weighed in enumerate(named):
        mix_in = into.named[i]["mix"] if into.named else 0
        totals.append(Total(**shared, mix_out=out.named[i]["mix"], mix_in=mix_in, **weighed.total()))
    description = {
        "table": {"size": own.table.size, "total": own.table.weight},
        "feature_rows": feature_rows,
        "columns": [feature.name for feature in edge_type.features],
        **described(edge_type.tables, named),
        **({"near": list(edge_type.indexed)} if edge_type.indexed else {}),
        **({"indexes": indexes} if indexes else {}),
    }
    return EdgesResult(totals=tuple(totals), description=description)


def _unit(work: Workplace, type_id: int, side: _Side, *files: str) -> Unit:
    """An adjacency as a unit: it follows from its blocks, the deletes of both ends, and which near end has which row."""
    edge_type = work.task.schema.edge_types[type_id]
    deletes = [ref for node_type in sorted({side.near_type, side.far_type}) for ref in work.source.tombstone_refs(node_type)]
    words = ("adjacency", side.incoming, side.near_type, side.far_type, side.weighted, edge_type.multiplicity, side.rows.digest)
    tables: list[object] = [asdict(table) for table in edge_type.tables]
    if edge_type.time:
        tables.append({"time": edge_type.time, "dtype": edge_type.feature(edge_type.time).dtype})
    if edge_type.indexed:
        tables.append({"near": edge_type.indexed, "files": [(file, dtype.str) for file, dtype in near_files(edge_type)]})
    if far := far_time(work.task.schema, type_id, incoming=side.incoming):
        tables.append({"far time": far[1].name, "dtype": far[1].dtype})
        deletes += work.source.time_refs(far[0])
    return Unit(name=side.name, digest=work.input(*words, tables).blocks([*side.refs, *deletes]).digest(), files=files)


def _table(work: Workplace, type_id: int, out: _Counts, unit: Unit, i: int | None = None) -> Weighed:
    """The table over all edges of a type, by their own weights or the i-th further ones: it follows from the out-adjacency alone."""
    image, edges = work.image, f"e{type_id}"
    name, file = (edges, f"{edges}.out.weights") if i is None else (f"{edges}.w{i}", f"{edges}.out.w{i}.weights")
    weight_name = WEIGHT if i is None else work.task.schema.edge_types[type_id].tables[i].name
    refused = Refused() if i is None else Refused(**{word: count for word, count in out.named[i].items() if word != "mix"})

    def make() -> State:
        eids: I64 = image.map(f"{edges}.out.eid")
        return weigh(
            work,
            refused,
            name=name,
            kind=keys.EDGE_TABLE,
            type_id=type_id,
            rows=out.slots,
            count=out.slots,
            weights=image.map(file) if file in image else None,
            live=_NO_HOLES,
            ids_of=lambda slots: eids[slots],
            weight_name=weight_name,
        )

    made = Unit(
        name=f"{name}.table",
        digest=work.input("edge table", unit.digest, weight_name).digest(),
        files=(f"{name}.table.*",),
        tables=((keys.EDGE_TABLE | keys.B1, type_id, weight_name),),
    )
    return Weighed.of(work.units.make(made, make), weight_name)


def _adjacency(work: Workplace, type_id: int, side: _Side) -> _Counts:
    """One adjacency, in steps: its edges, then their alias rows by each of their weights, and both once more as draws read them."""
    written = sum(ref.rows for ref in side.refs)
    counts = _Counts(**work.steps.run(f"{side.name}.edges", lambda: asdict(_sorted_edges(work, type_id, side)), rows=written))
    narrow = work.steps.run(f"{side.name}.narrow", lambda: narrow_ids(work, side.name), rows=counts.slots)
    prefixes = ([side.name] if side.weighted else []) + [f"{side.name}.w{i}" for i in range(len(counts.named))]
    for prefix in prefixes:
        make = partial(_alias_rows, work, side, prefix)
        work.steps.run(f"{prefix}.alias", make, rows=counts.slots)
        if narrow["fit"]:
            work.steps.run(f"{prefix}.packed", partial(pack, work, prefix, side.name), rows=counts.slots)
    if seen_as(work.task.schema, type_id, incoming=side.incoming):
        work.steps.run(f"{side.name}.order", lambda: order_rows(work, side.name), rows=counts.slots)
        for prefix in prefixes:
            work.steps.run(f"{prefix}.time_sums", partial(sum_times, work, prefix, side.name), rows=counts.slots)
    return counts


def _alias_rows(work: Workplace, side: _Side, prefix: str) -> State:
    return alias_rows(work, prefix, work.image.map(f"{side.name}.indptr"), work.image.map(f"{prefix}.weights"))


def _sorted_edges(work: Workplace, type_id: int, side: _Side) -> _Counts:
    """Group, sort, resolve and write the edges of one adjacency."""
    edge_type = work.task.schema.edge_types[type_id]
    unique = edge_type.multiplicity == "unique"
    plain = not unique and all(ref.key.kind in (OUT_EDGES, IN_EDGES) for ref in side.refs)
    tables = edge_type.tables
    counts, refused = _Counts(named=[{"mix": 0} for _ in tables]), [Refused() for _ in tables]
    indptr = work.image.create(f"{side.name}.indptr", np.int64, (side.rows.rows + 1,))
    out = {name: work.image.append_to(f"{side.name}.{name}", dtype) for name, dtype in (("nbr", np.int64), ("eid", np.int64))}
    if edge_type.weighted:
        out["weights"] = work.image.append_to(f"{side.name}.weights", np.float32)
    out_named = [work.image.append_to(f"{side.name}.w{i}.weights", np.float32) for i in range(len(tables))]
    out_near = [work.image.append_to(f"{side.name}.{file}", dtype) for file, dtype in near_files(edge_type)]
    far, alike = far_time(work.task.schema, type_id, incoming=side.incoming), alike_at_both_ends(work.task.schema, type_id)
    if edge_type.time or far:
        out["when"] = work.image.append_to(f"{side.name}.when", np.int64)
    if not side.incoming:
        out["src_row"] = work.image.append_to(f"e{type_id}.src_row", np.uint32)
    split = buckets(
        _records(work, edge_type, side, counts, plain=plain),
        sum(ref.rows for ref in side.refs),
        low=0,
        high=max(side.rows.rows - 1, 0),
        limit=work.task.row_limit(_row_bytes(edge_type)),
        folder=work.spools,
        # Deletes and replacements need all that was written between two nodes at once.
        keys=(0, 1, 2) if plain else (0, 1),
        span=work.task.row_limit(_ROW_BYTES),
    )
    for bucket in split:
        row, nbr, eid, weight, *named = _arranged(bucket, indptr, unique=unique, plain=plain)
        named, near = named[: len(named) - len(out_near)], named[len(named) - len(out_near) :]
        for number, (values, kept) in enumerate(zip(near, out_near, strict=True)):
            counts.mix += int(mix_records(side.rows.ids_of(row), nbr, eid, value_bits(values, number), side.incoming))
            kept.append(values)
        when = named.pop() if edge_type.time else eid[:0]
        if far:
            # An edge is there once it and the node that it leads to are.
            there = work.source.times(far[0]).of(nbr)
            when = np.maximum(when, there) if edge_type.time else there
        if "when" in out:
            mixed = int(mix_records(side.rows.ids_of(row), nbr, eid, time_bits(when), side.incoming))
            counts.mix, counts.seen = counts.mix + mixed * alike, counts.seen + mixed * (not alike)
        if not plain:
            counts.mix += int(mix_records(side.rows.ids_of(row), nbr, eid, bits(weight), side.incoming))
        for table, values, wrong, seen, file in zip(tables, named, refused, counts.named, out_named, strict=True):
            check(work, edge_type, table, values, wrong, eid)
            seen["mix"] += int(mix_records(side.rows.ids_of(row), nbr, eid, bits(values), side.incoming))
            file.append(values)
        counts.slots += row.size
        for name, column in (("nbr", nbr), ("eid", eid), ("weights", weight), ("when", when), ("src_row", row)):
            if name in out:
                out[name].append(column)
    if counts.slots > MAX_ROWS:
        raise InvalidRequest(f"part {work.part} has {counts.slots} edges of {edge_type.name}, more than {MAX_ROWS}; make the space with more parts")
    counts.mix, counts.seen = counts.mix & _MASK, counts.seen & _MASK
    counts.named = [{"mix": seen["mix"] & _MASK, **asdict(wrong)} for seen, wrong in zip(counts.named, refused, strict=True)]
    _running_sums(indptr)
    mixed = counts.mix + counts.seen
    _audit_mix(work, side, indptr, counts.slots, f"{side.name}.weights", mixed, timed="when" in out, near=near_files(edge_type))
    for i, seen in enumerate(counts.named):
        _audit_mix(work, side, indptr, counts.slots, f"{side.name}.w{i}.weights", seen["mix"])
    return counts


def _row_bytes(edge_type: EdgeType) -> int:
    """Bytes per edge of a bucket."""
    beside = _WEIGHT_BYTES * len(edge_type.tables) + _TIME_BYTES * (bool(edge_type.time) + len(edge_type.indexed))
    return _RECORD_BYTES + (_WEIGHTS_BYTES + beside if beside else 0)


def _records(work: Workplace, edge_type: EdgeType, side: _Side, counts: _Counts, *, plain: bool) -> Iterator[Records]:
    """Every edge whose ends live, and every delete, in the order of the writes.

    Of each (row, neighbor, edge id, weight, further weights, time, features that lie beside it).
    """
    near_section, far_section = side.ends
    near_dead, far_dead = work.source.tombstones(side.near_type), work.source.tombstones(side.far_type)
    for ref, sections in work.source.read(side.refs):
        near, far, eid, weight = _columns(ref, sections, near_section, far_section, weighted=side.weighted)
        named: Records = tuple(edge_weights(edge_type, sections, weight))
        if edge_type.time:
            named = (*named, edge_times(edge_type, sections, weight.size))
        named = (*named, *near_values(edge_type, sections, weight.size))
        row = side.rows.find(near)
        lost = row < 0
        for dead in (near_dead.kills(near, ref.stamp), far_dead.kills(far, ref.stamp), far_dead.dead(far)):
            if dead is not None:
                lost |= dead
        if lost.any():
            if ref.key.kind in (OUT_EDGES, IN_EDGES):
                counts.dropped += int(np.count_nonzero(lost))
            near, row, far, eid, weight = near[~lost], row[~lost], far[~lost], eid[~lost], weight[~lost]
            named = tuple(values[~lost] for values in named)
        if plain:
            counts.mix += int(mix_records(near, far, eid, bits(weight), side.incoming))
        if row.size:
            yield row.astype(np.uint32), far, eid, weight, *named


def _columns(ref: BlockRef, sections: Sections, near_section: str, far_section: str, *, weighted: bool) -> tuple[I64, I64, I64, F32]:
    near, far = sections[near_section], sections[far_section]
    if ref.key.kind in (OUT_EDGES, IN_EDGES):
        weight = sections["weight"] if weighted and "weight" in sections else np.ones(ref.rows, np.float32)
        return near, far, sections["eid"], weight
    eid = sections["eid"] if "eid" in sections else np.full(ref.rows, -1, np.int64)
    return near, far, eid, np.full(ref.rows, DELETED, np.float32)


def _arranged(bucket: Bucket, indptr: I64, *, unique: bool, plain: bool) -> Records:
    """A bucket in canonical order, its degrees added to ``indptr``."""
    row, nbr, eid, given, *named = bucket.records
    # Where an edge has more than a weight, its place takes the place of its weight: exact as a float64, and below 0 for a delete.
    weight = np.where(given < 0, np.float64(DELETED), np.arange(given.size, dtype=np.float64)) if named else given
    local = np.zeros(bucket.high - bucket.low + 2, np.int64)
    out_nbr, out_eid, out_weight = np.empty_like(nbr), np.empty_like(eid), np.empty_like(weight)
    arrange(row, nbr, eid, weight, np.int64(bucket.low), local, out_nbr, out_eid, out_weight)
    widest = int(np.diff(local).max(initial=0))
    spare = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest, weight.dtype)
    if not plain:
        sort_rows(local, out_nbr, out_eid, out_weight, False, *spare)
        kept = int(resolve(local, out_nbr, out_eid, out_weight, unique))
        out_nbr, out_eid, out_weight = out_nbr[:kept], out_eid[:kept], out_weight[:kept]
    sort_rows(local, out_nbr, out_eid, out_weight, True, *spare)
    degrees = np.diff(local)
    indptr[bucket.low + 1 : bucket.high + 2] += degrees[: max(indptr.size - 1 - bucket.low, 0)]
    out_row = np.repeat(np.arange(bucket.low, bucket.high + 1, dtype=np.uint32), degrees)
    if not named:
        return out_row, out_nbr, out_eid, out_weight
    places = out_weight.astype(np.int64)
    return out_row, out_nbr, out_eid, given[places], *(values[places] for values in named)


def _running_sums(indptr: I64) -> None:
    """Degrees, at place row + 1, to offsets."""
    total = 0
    for low in range(0, indptr.size, CHUNK):
        here = indptr[low : low + CHUNK]
        here[:] = np.cumsum(here) + total
        total = int(here[-1])


def _audit_mix(
    work: Workplace,
    side: _Side,
    indptr: I64,
    slots: int,
    file: str,
    expected: int,
    *,
    timed: bool = False,
    near: Sequence[tuple[str, np.dtype[Any]]] = (),
) -> None:
    """Read the adjacency again and hold its edges, the weights in ``file``, times and features against those that came out of the graph."""
    image = work.image
    nbr, eid = image.map(f"{side.name}.nbr"), image.map(f"{side.name}.eid")
    weights = image.map(file) if file in image else None
    mix = 0
    for low in range(0, slots, CHUNK):
        high = min(low + CHUNK, slots)
        rows = np.searchsorted(indptr, np.arange(low, high), side="right") - 1
        weight = np.ones(high - low, np.float32) if weights is None else weights[low:high]
        words = [bits(weight)]
        if timed:
            words.append(time_bits(image.map(f"{side.name}.when")[low:high]))
        words += [value_bits(image.map(f"{side.name}.{file}")[low:high], number) for number, (file, _) in enumerate(near)]
        for word in words:
            mix += int(mix_records(side.rows.ids_of(rows), nbr[low:high], eid[low:high], word, side.incoming))
    if (mix - expected) & _MASK or int(indptr[-1]) != slots:
        raise Internal(f"{side.name} of part {work.part}: the edges of the image are not those of the graph; the version is refused")
