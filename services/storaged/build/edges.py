"""Build the edges of one type in one partition.

The result has an adjacency by source and one by destination, their alias rows, the table over all
edges, and features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import EdgeType
from asterism_model.schema.edge_times import edge_time_dtype, has_symmetric_times, neighbor_time
from asterism_proto.errors import Internal, InvalidRequest
from storaged.build.alias_table import WEIGHT
from storaged.build.block_reader import BuildContext, Sections
from storaged.build.build_kernels import (
    DELETED,
    apply_deletes,
    mix_records,
    sort_by_row,
    sort_rows,
    weight_bits,
)
from storaged.build.build_steps import StepState
from storaged.build.edge_features import build_features
from storaged.build.edge_indexes import (
    build_edge_indexes,
    edge_column_files,
    edge_column_values,
    value_bits,
)
from storaged.build.external_partitioning import Bucket, Records, split_into_buckets
from storaged.build.neighbor_alias_tables import build_alias_rows
from storaged.build.node_rows import RowMap
from storaged.build.nodes import CHUNK, MAX_ROWS
from storaged.build.packed_rows import build_packed_rows, narrow_ids
from storaged.build.time_index import build_time_order, build_time_sums, edge_times, time_bits
from storaged.build.unit_cache import BuildUnit
from storaged.build.weights import (
    InvalidWeights,
    WeightResult,
    build_weights,
    check_weights,
    edge_weight_values,
    manifest_tables,
)
from storaged.store import keys
from storaged.store.block_store import (
    IN_EDGE_DELETES,
    IN_EDGES,
    OUT_EDGE_DELETES,
    OUT_EDGES,
    BlockRef,
)

I64 = NDArray[np.int64]
F32 = NDArray[np.float32]

_RECORD_BYTES = 80
"""Bytes per edge of a bucket: the record, its sorted copy, and the pieces it came from."""
_ROW_BYTES = 160
"""Bytes per row in the range of a bucket, in addition to a bucket of maximum size."""
_WEIGHTS_BYTES, _WEIGHT_BYTES, _TIME_BYTES = 24, 12, 24
"""Additional bytes per edge of a bucket for further weights and times.

For the edge's position, for each weight, and for its time or the value of each stored feature.
"""
_NO_HOLES = np.zeros(0, np.uint8)
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of the two adjacencies of a type."""

    name: str
    """Prefix of its files."""
    incoming: bool
    local_type: int
    remote_type: int
    rows: RowMap
    """Rows of the local ends."""
    refs: list[BlockRef]
    weighted: bool
    """True if edges have weights; otherwise every edge has weight 1, whatever was written."""

    @property
    def ends(self) -> tuple[str, str]:
        """Names of the sections of the local end and of the remote end."""
        return ("dst", "src") if self.incoming else ("src", "dst")


@dataclass(slots=True)
class _EdgeCounts:
    """Counters of the build of an adjacency."""

    slots: int = 0
    dropped: int = 0
    mix: int = 0
    seen: int = 0
    """Hash sum of times that differ between the two ends and are not in ``mix``."""
    named: list[dict[str, int]] = field(default_factory=list)
    """``mix`` and counts of `InvalidWeights` for each table of the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgesResult:
    """Result of building the edges of one type."""

    totals: tuple[PartitionStats, ...]
    """Statistics of the edges' own weights, then of each table."""
    description: dict[str, Any]


def build_edges(context: BuildContext, type_id: int, nodes: Sequence[RowMap]) -> EdgesResult:
    """Build the edge image of one type, in four units.

    The units are both adjacencies, the table over all edges, and the features.

    Parameters
    ----------
    context : BuildContext
    type_id : int
    nodes : sequence of RowMap
        Rows of every node type in this partition.
    """
    schema = context.task.schema
    edge_type, name = schema.edge_types[type_id], f"e{type_id}"
    src_type, dst_type = (
        schema.node_type_id(edge_type.src_type),
        schema.node_type_id(edge_type.dst_type),
    )
    out_side = _Side(
        name=f"{name}.out",
        incoming=False,
        local_type=src_type,
        remote_type=dst_type,
        rows=nodes[src_type],
        refs=context.reader.refs(type_id, OUT_EDGES, OUT_EDGE_DELETES),
        weighted=edge_type.weighted,
    )
    context.progress.phase(f"out edges {edge_type.name}")
    unit = _unit(context, type_id, out_side, f"{name}.out.*", f"{name}.src_row")
    out_counts, in_counts, units = (
        _EdgeCounts(
            **context.units.make(unit, lambda: asdict(_adjacency(context, type_id, out_side)))
        ),
        _EdgeCounts(),
        [unit],
    )
    if schema.has_in:
        in_side = _Side(
            name=f"{name}.in",
            incoming=True,
            local_type=dst_type,
            remote_type=src_type,
            rows=nodes[dst_type],
            refs=context.reader.refs(type_id, IN_EDGES, IN_EDGE_DELETES),
            weighted=edge_type.weighted,
        )
        context.progress.phase(f"in edges {edge_type.name}")
        units.append(_unit(context, type_id, in_side, f"{name}.in.*"))
        in_counts = _EdgeCounts(
            **context.units.make(units[1], lambda: asdict(_adjacency(context, type_id, in_side)))
        )
    own_weights = _table(context, type_id, out_counts, unit)
    extra_weights = [
        _table(context, type_id, out_counts, unit, i) for i in range(len(edge_type.tables))
    ]
    feature_rows = build_features(context, type_id) if edge_type.features else 0
    indexes = build_edge_indexes(
        context, type_id, out_side.rows, out_counts.slots, [side_unit.digest for side_unit in units]
    )
    shared: dict[str, Any] = {
        "part": context.part,
        "element": Element.EDGE,
        "type_id": type_id,
        "count": out_counts.slots,
        "count_in": in_counts.slots,
        "dropped": out_counts.dropped,
    }
    totals = [
        PartitionStats(
            **shared, mix_out=out_counts.mix, mix_in=in_counts.mix, **own_weights.stats_fields()
        )
    ]
    for i, result in enumerate(extra_weights):
        mix_in = in_counts.named[i]["mix"] if in_counts.named else 0
        totals.append(
            PartitionStats(
                **shared, mix_out=out_counts.named[i]["mix"], mix_in=mix_in, **result.stats_fields()
            )
        )
    description = {
        "table": {"size": own_weights.table.size, "total": own_weights.table.weight},
        "feature_rows": feature_rows,
        "columns": [feature.name for feature in edge_type.features],
        **manifest_tables(edge_type.tables, extra_weights),
        **({"near": list(edge_type.indexed)} if edge_type.indexed else {}),
        **({"indexes": indexes} if indexes else {}),
    }
    return EdgesResult(totals=tuple(totals), description=description)


def _unit(context: BuildContext, type_id: int, side: _Side, *files: str) -> BuildUnit:
    """Return the unit of an adjacency.

    Its input is its blocks, the deletes of both ends, and the rows of the local ends.
    """
    edge_type = context.task.schema.edge_types[type_id]
    deletes = [
        ref
        for node_type in sorted({side.local_type, side.remote_type})
        for ref in context.reader.tombstone_refs(node_type)
    ]
    components = (
        "adjacency",
        side.incoming,
        side.local_type,
        side.remote_type,
        side.weighted,
        edge_type.multiplicity,
        side.rows.digest,
    )
    tables: list[object] = [asdict(table) for table in edge_type.tables]
    if edge_type.time:
        tables.append({"time": edge_type.time, "dtype": edge_type.feature(edge_type.time).dtype})
    if edge_type.indexed:
        tables.append(
            {
                "near": edge_type.indexed,
                "files": [(file, dtype.str) for file, dtype in edge_column_files(edge_type)],
            }
        )
    if remote_time := neighbor_time(context.task.schema, type_id, incoming=side.incoming):
        tables.append({"far time": remote_time[1].name, "dtype": remote_time[1].dtype})
        deletes += context.reader.time_refs(remote_time[0])
    return BuildUnit(
        name=side.name,
        digest=context.unit_input(*components, tables).add_blocks([*side.refs, *deletes]).digest(),
        files=files,
    )


def _table(
    context: BuildContext,
    type_id: int,
    out_counts: _EdgeCounts,
    unit: BuildUnit,
    i: int | None = None,
) -> WeightResult:
    """Build the table over all edges of a type, by their own weights or the i-th further ones.

    Its input is the out-adjacency alone.
    """
    image, edge_prefix = context.image, f"e{type_id}"
    name, file = (
        (edge_prefix, f"{edge_prefix}.out.weights")
        if i is None
        else (f"{edge_prefix}.w{i}", f"{edge_prefix}.out.w{i}.weights")
    )
    weight_name = WEIGHT if i is None else context.task.schema.edge_types[type_id].tables[i].name
    invalid = (
        InvalidWeights()
        if i is None
        else InvalidWeights(
            **{kind: count for kind, count in out_counts.named[i].items() if kind != "mix"}
        )
    )

    def make() -> StepState:
        eids: I64 = image.map(f"{edge_prefix}.out.eid")
        return build_weights(
            context,
            invalid,
            name=name,
            kind=keys.EDGE_TABLE,
            type_id=type_id,
            rows=out_counts.slots,
            count=out_counts.slots,
            weights=image.map(file) if file in image else None,
            live=_NO_HOLES,
            ids_of=lambda slots: eids[slots],
            weight_name=weight_name,
        )

    table_unit = BuildUnit(
        name=f"{name}.table",
        digest=context.unit_input("edge table", unit.digest, weight_name).digest(),
        files=(f"{name}.table.*",),
        tables=((keys.EDGE_TABLE | keys.B1, type_id, weight_name),),
    )
    return WeightResult.from_state(context.units.make(table_unit, make), weight_name)


def _adjacency(context: BuildContext, type_id: int, side: _Side) -> _EdgeCounts:
    """Build one adjacency, in steps.

    First its edges, then their alias rows by each of their weights, then the packed copies that
    sampling reads.
    """
    row_count = sum(ref.rows for ref in side.refs)
    counts = _EdgeCounts(
        **context.steps.run(
            f"{side.name}.edges",
            lambda: asdict(_sorted_edges(context, type_id, side)),
            rows=row_count,
        )
    )
    narrow_state = context.steps.run(
        f"{side.name}.narrow", lambda: narrow_ids(context, side.name), rows=counts.slots
    )
    prefixes = ([side.name] if side.weighted else []) + [
        f"{side.name}.w{i}" for i in range(len(counts.named))
    ]
    for prefix in prefixes:
        make = partial(_alias_rows, context, side, prefix)
        context.steps.run(f"{prefix}.alias", make, rows=counts.slots)
        if narrow_state["fit"]:
            context.steps.run(
                f"{prefix}.packed",
                partial(build_packed_rows, context, prefix, side.name),
                rows=counts.slots,
            )
    if edge_time_dtype(context.task.schema, type_id, incoming=side.incoming):
        context.steps.run(
            f"{side.name}.order", lambda: build_time_order(context, side.name), rows=counts.slots
        )
        for prefix in prefixes:
            context.steps.run(
                f"{prefix}.time_sums",
                partial(build_time_sums, context, prefix, side.name),
                rows=counts.slots,
            )
    return counts


def _alias_rows(context: BuildContext, side: _Side, prefix: str) -> StepState:
    return build_alias_rows(
        context,
        prefix,
        context.image.map(f"{side.name}.indptr"),
        context.image.map(f"{prefix}.weights"),
    )


def _sorted_edges(context: BuildContext, type_id: int, side: _Side) -> _EdgeCounts:
    """Group, sort, resolve and write the edges of one adjacency."""
    edge_type = context.task.schema.edge_types[type_id]
    unique = edge_type.multiplicity == "unique"
    plain = not unique and all(ref.key.kind in (OUT_EDGES, IN_EDGES) for ref in side.refs)
    tables = edge_type.tables
    counts, invalid = (
        _EdgeCounts(named=[{"mix": 0} for _ in tables]),
        [InvalidWeights() for _ in tables],
    )
    indptr = context.image.create(f"{side.name}.indptr", np.int64, (side.rows.rows + 1,))
    out = {
        name: context.image.create_append(f"{side.name}.{name}", dtype)
        for name, dtype in (("nbr", np.int64), ("eid", np.int64))
    }
    if edge_type.weighted:
        out["weights"] = context.image.create_append(f"{side.name}.weights", np.float32)
    out_extra_weights = [
        context.image.create_append(f"{side.name}.w{i}.weights", np.float32)
        for i in range(len(tables))
    ]
    out_columns = [
        context.image.create_append(f"{side.name}.{file}", dtype)
        for file, dtype in edge_column_files(edge_type)
    ]
    remote_time, same_at_both_ends = (
        neighbor_time(context.task.schema, type_id, incoming=side.incoming),
        has_symmetric_times(context.task.schema, type_id),
    )
    if edge_type.time or remote_time:
        out["when"] = context.image.create_append(f"{side.name}.when", np.int64)
    if not side.incoming:
        out["src_row"] = context.image.create_append(f"e{type_id}.src_row", np.uint32)
    split = split_into_buckets(
        _records(context, edge_type, side, counts, plain=plain),
        sum(ref.rows for ref in side.refs),
        low=0,
        high=max(side.rows.rows - 1, 0),
        limit=context.task.row_limit(_row_bytes(edge_type)),
        folder=context.spool_folder,
        # Deletes and replacements need all records between two nodes together.
        keys=(0, 1, 2) if plain else (0, 1),
        span=context.task.row_limit(_ROW_BYTES),
    )
    for bucket in split:
        row, nbr, eid, weight, *extra_weights = _sort_bucket(
            bucket, indptr, unique=unique, plain=plain
        )
        extra_weights, indexed_columns = (
            extra_weights[: len(extra_weights) - len(out_columns)],
            extra_weights[len(extra_weights) - len(out_columns) :],
        )
        for number, (values, column_file) in enumerate(
            zip(indexed_columns, out_columns, strict=True)
        ):
            counts.mix += int(
                mix_records(
                    side.rows.ids_of(row), nbr, eid, value_bits(values, number), side.incoming
                )
            )
            column_file.append(values)
        times = extra_weights.pop() if edge_type.time else eid[:0]
        if remote_time:
            # An edge exists from the time at which both the edge and its remote node exist.
            remote_times = context.reader.times(remote_time[0]).lookup(nbr)
            times = np.maximum(times, remote_times) if edge_type.time else remote_times
        if "when" in out:
            mixed = int(
                mix_records(side.rows.ids_of(row), nbr, eid, time_bits(times), side.incoming)
            )
            counts.mix, counts.seen = (
                counts.mix + mixed * same_at_both_ends,
                counts.seen + mixed * (not same_at_both_ends),
            )
        if not plain:
            counts.mix += int(
                mix_records(side.rows.ids_of(row), nbr, eid, weight_bits(weight), side.incoming)
            )
        for table, values, table_invalid, table_counts, file in zip(
            tables, extra_weights, invalid, counts.named, out_extra_weights, strict=True
        ):
            check_weights(context, edge_type, table, values, table_invalid, eid)
            table_counts["mix"] += int(
                mix_records(side.rows.ids_of(row), nbr, eid, weight_bits(values), side.incoming)
            )
            file.append(values)
        counts.slots += row.size
        for name, column in (
            ("nbr", nbr),
            ("eid", eid),
            ("weights", weight),
            ("when", times),
            ("src_row", row),
        ):
            if name in out:
                out[name].append(column)
    if counts.slots > MAX_ROWS:
        raise InvalidRequest(
            f"part {context.part} has {counts.slots} edges of {edge_type.name}: expected at most "
            f"{MAX_ROWS}; create the space with more partitions"
        )
    counts.mix, counts.seen = counts.mix & _MASK, counts.seen & _MASK
    counts.named = [
        {"mix": table_counts["mix"] & _MASK, **asdict(table_invalid)}
        for table_counts, table_invalid in zip(counts.named, invalid, strict=True)
    ]
    _running_sums(indptr)
    mixed = counts.mix + counts.seen
    _audit_mix(
        context,
        side,
        indptr,
        counts.slots,
        f"{side.name}.weights",
        mixed,
        timed="when" in out,
        column_files=edge_column_files(edge_type),
    )
    for i, table_counts in enumerate(counts.named):
        _audit_mix(
            context, side, indptr, counts.slots, f"{side.name}.w{i}.weights", table_counts["mix"]
        )
    return counts


def _row_bytes(edge_type: EdgeType) -> int:
    """Return the bytes per edge of a bucket."""
    extra_bytes = _WEIGHT_BYTES * len(edge_type.tables) + _TIME_BYTES * (
        bool(edge_type.time) + len(edge_type.indexed)
    )
    return _RECORD_BYTES + (_WEIGHTS_BYTES + extra_bytes if extra_bytes else 0)


def _records(
    context: BuildContext, edge_type: EdgeType, side: _Side, counts: _EdgeCounts, *, plain: bool
) -> Iterator[Records]:
    """Yield every edge with live ends, and every delete, in write order.

    Each record is (row, neighbor, edge id, weight, further weights, time, stored features).
    """
    local_section, remote_section = side.ends
    local_tombstones, remote_tombstones = (
        context.reader.tombstones(side.local_type),
        context.reader.tombstones(side.remote_type),
    )
    for ref, sections in context.reader.read(side.refs):
        local_ids, remote_ids, eid, weight = _edge_sections(
            ref, sections, local_section, remote_section, weighted=side.weighted
        )
        extra_weights: Records = tuple(edge_weight_values(edge_type, sections, weight))
        if edge_type.time:
            extra_weights = (*extra_weights, edge_times(edge_type, sections, weight.size))
        extra_weights = (*extra_weights, *edge_column_values(edge_type, sections, weight.size))
        row = side.rows.find_rows(local_ids)
        dropped = row < 0
        for deleted in (
            local_tombstones.deleted_after(local_ids, ref.stamp),
            remote_tombstones.deleted_after(remote_ids, ref.stamp),
            remote_tombstones.deleted_at_cut(remote_ids),
        ):
            if deleted is not None:
                dropped |= deleted
        if dropped.any():
            if ref.key.kind in (OUT_EDGES, IN_EDGES):
                counts.dropped += int(np.count_nonzero(dropped))
            local_ids, row, remote_ids, eid, weight = (
                local_ids[~dropped],
                row[~dropped],
                remote_ids[~dropped],
                eid[~dropped],
                weight[~dropped],
            )
            extra_weights = tuple(values[~dropped] for values in extra_weights)
        if plain:
            counts.mix += int(
                mix_records(local_ids, remote_ids, eid, weight_bits(weight), side.incoming)
            )
        if row.size:
            yield row.astype(np.uint32), remote_ids, eid, weight, *extra_weights


def _edge_sections(
    ref: BlockRef, sections: Sections, local_section: str, remote_section: str, *, weighted: bool
) -> tuple[I64, I64, I64, F32]:
    local_ids, remote_ids = sections[local_section], sections[remote_section]
    if ref.key.kind in (OUT_EDGES, IN_EDGES):
        weight = (
            sections["weight"]
            if weighted and "weight" in sections
            else np.ones(ref.rows, np.float32)
        )
        return local_ids, remote_ids, sections["eid"], weight
    eid = sections["eid"] if "eid" in sections else np.full(ref.rows, -1, np.int64)
    return local_ids, remote_ids, eid, np.full(ref.rows, DELETED, np.float32)


def _sort_bucket(bucket: Bucket, indptr: I64, *, unique: bool, plain: bool) -> Records:
    """Return a bucket in canonical order, and add its degrees to ``indptr``."""
    row, nbr, eid, original_weights, *extra_weights = bucket.records
    # If an edge has more values than a weight, its position is sorted instead of the weight: exact
    # as a float64, and negative for a delete.
    weight = (
        np.where(
            original_weights < 0,
            np.float64(DELETED),
            np.arange(original_weights.size, dtype=np.float64),
        )
        if extra_weights
        else original_weights
    )
    row_offsets = np.zeros(bucket.high - bucket.low + 2, np.int64)
    out_nbr, out_eid, out_weight = np.empty_like(nbr), np.empty_like(eid), np.empty_like(weight)
    sort_by_row(
        row, nbr, eid, weight, np.int64(bucket.low), row_offsets, out_nbr, out_eid, out_weight
    )
    max_degree = int(np.diff(row_offsets).max(initial=0))
    scratch = (
        np.empty(max_degree, np.int64),
        np.empty(max_degree, np.int64),
        np.empty(max_degree, weight.dtype),
    )
    if not plain:
        sort_rows(row_offsets, out_nbr, out_eid, out_weight, False, *scratch)
        edge_count = int(apply_deletes(row_offsets, out_nbr, out_eid, out_weight, unique))
        out_nbr, out_eid, out_weight = (
            out_nbr[:edge_count],
            out_eid[:edge_count],
            out_weight[:edge_count],
        )
    sort_rows(row_offsets, out_nbr, out_eid, out_weight, True, *scratch)
    degrees = np.diff(row_offsets)
    indptr[bucket.low + 1 : bucket.high + 2] += degrees[: max(indptr.size - 1 - bucket.low, 0)]
    out_row = np.repeat(np.arange(bucket.low, bucket.high + 1, dtype=np.uint32), degrees)
    if not extra_weights:
        return out_row, out_nbr, out_eid, out_weight
    source_order = out_weight.astype(np.int64)
    return (
        out_row,
        out_nbr,
        out_eid,
        original_weights[source_order],
        *(values[source_order] for values in extra_weights),
    )


def _running_sums(indptr: I64) -> None:
    """Convert degrees, stored at index row + 1, to offsets."""
    total = 0
    for low in range(0, indptr.size, CHUNK):
        chunk = indptr[low : low + CHUNK]
        chunk[:] = np.cumsum(chunk) + total
        total = int(chunk[-1])


def _audit_mix(
    context: BuildContext,
    side: _Side,
    indptr: I64,
    slots: int,
    file: str,
    expected: int,
    *,
    timed: bool = False,
    column_files: Sequence[tuple[str, np.dtype[Any]]] = (),
) -> None:
    """Read the adjacency again, and compare its hash sum with that of the input.

    It covers edges, the weights in ``file``, times and features.
    """
    image = context.image
    nbr, eid = image.map(f"{side.name}.nbr"), image.map(f"{side.name}.eid")
    weights = image.map(file) if file in image else None
    mix = 0
    for low in range(0, slots, CHUNK):
        high = min(low + CHUNK, slots)
        rows = np.searchsorted(indptr, np.arange(low, high), side="right") - 1
        weight = np.ones(high - low, np.float32) if weights is None else weights[low:high]
        bit_columns = [weight_bits(weight)]
        if timed:
            bit_columns.append(time_bits(image.map(f"{side.name}.when")[low:high]))
        bit_columns += [
            value_bits(image.map(f"{side.name}.{file}")[low:high], number)
            for number, (file, _) in enumerate(column_files)
        ]
        for bit_column in bit_columns:
            mix += int(
                mix_records(
                    side.rows.ids_of(rows), nbr[low:high], eid[low:high], bit_column, side.incoming
                )
            )
    if (mix - expected) & _MASK or int(indptr[-1]) != slots:
        raise Internal(
            f"{side.name} of part {context.part}: the edges of the image differ from those of "
            "the graph; the version is rejected"
        )
