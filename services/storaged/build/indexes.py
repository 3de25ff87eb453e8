"""Build indexes: rows ordered by a column, and alias tables over blocks of that order.

The alias tables are for draws under filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators import graph_labels
from asterism_graphkit.random import alias_build
from asterism_model.elements import NODE
from asterism_model.filters.binding import resolve_column
from asterism_model.indexes import HASH, Index
from asterism_proto.errors import Internal
from storaged.build.alias_table import MAX_DISTANCE
from storaged.build.block_reader import BuildContext
from storaged.build.build_steps import StepState
from storaged.build.external_partitioning import Records, split_into_buckets
from storaged.build.node_rows import RowMap
from storaged.build.unit_cache import BuildUnit
from storaged.build.weights import weight_inputs
from storaged.store.column_index import (
    BLOCK_SIZES,
    OWN_WEIGHT_NAME,
    file_prefix,
    level_block_sizes,
    manifest_entry,
)
from storaged.store.image_writer import AppendFile
from storaged.version_tasks import alias_audit

I64 = NDArray[np.int64]
_CHUNK = BLOCK_SIZES[-1]
"""Rows that a pass holds in memory: whole blocks of every level."""
_RECORD_BYTES = 96
"""Bytes per record of a bucket: record, copy, key, order and output."""
_HALF = np.int64(1 << 62)
_LAST_KEY = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _BucketEnd:
    """State at the end of the previous bucket."""

    key: int
    row: int = -1
    groups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuild:
    """Parameters of the build of one index."""

    work: BuildContext
    index: Index
    owner: str
    """Prefix of the files of the type."""
    column_place: str
    """Number of the column's feature, or name of a column that is no feature.

    For an element of a vector, it includes the element's index.
    """
    count: int
    """Number of live rows."""
    chunks: Callable[[], Iterator[I64]]
    """Yields the live rows in ascending chunks."""
    read: Callable[[I64], NDArray[Any]]
    """Returns the values at rows; for texts, their hashes."""
    texts: tuple[I64, NDArray[np.uint8]] | None = None
    """Offsets and bytes of a text column."""

    @property
    def prefix(self) -> str:
        """Prefix of the names of the index's files."""
        return file_prefix(self.owner, self.index.kind, self.column_place)


class IndexWeights(NamedTuple):
    """Weights for which an index has alias tables."""

    name: str
    suffix: str
    """Suffix of the names of their files."""
    file: str
    digest: object
    """Description of their input."""


def column_place(context: BuildContext, index: Index) -> str:
    """Return the `IndexBuild.column_place` of an index."""
    schema, column = context.task.schema, index.parsed_column
    resolved_column = resolve_column(schema, index.element, index.type_id, column)
    if resolved_column.feature is None:
        return column.name
    number = resolved_column.owner.features.index(resolved_column.feature)
    return str(number) if column.element is None else f"{number}e{column.element}"


def build_indexes(
    context: BuildContext, type_id: int, rows: RowMap, *, weights: object, features: str
) -> list[dict[str, Any]]:
    """Build the indexes of a node type, in units; return their manifest entries.

    The units are each order, and its tables by the weights of each name.

    Parameters
    ----------
    context : BuildContext
    type_id : int
    rows : RowMap
        Rows of the type. Its weights, features and further weights must be written.
    weights, features : plain values
        Digests of the written weights and features.
    """
    node_type, entries = context.task.schema.node_types[type_id], []
    tables = (
        [IndexWeights(OWN_WEIGHT_NAME, "w", f"n{type_id}.weights", None)]
        if node_type.weighted
        else []
    )
    tables += [
        IndexWeights(
            t.name, f"w{i}", f"n{type_id}.w{i}.weights", weight_inputs(context, type_id, t)
        )
        for i, t in enumerate(node_type.tables)
    ]
    for index in context.task.indexes:
        if (index.element, index.type_id) != (NODE, type_id):
            continue
        column_key = column_place(context, index)
        texts = _texts(context, f"n{type_id}.c{column_key}")
        index_build = IndexBuild(
            work=context,
            index=index,
            owner=f"n{type_id}",
            column_place=column_key,
            count=rows.count,
            chunks=partial(_live_chunks, rows),
            read=partial(_read, context, index, column_key, rows, texts),
            texts=texts,
        )
        inputs = (rows.digest, features, weights if column_key == "weight" else None)
        entries.append(build_index(index_build, inputs, tables, (features, weights)))
    return entries


def build_index(
    index_build: IndexBuild,
    inputs: Sequence[object],
    tables: Sequence[IndexWeights],
    table_inputs: Sequence[object],
) -> dict[str, Any]:
    """Build one index, in units; return its manifest entry.

    Parameters
    ----------
    index_build : IndexBuild
    inputs : plain values
        Inputs of its order.
    tables : sequence of IndexWeights
    table_inputs : plain values
        Inputs of the weights.
    """
    context, index, prefix = index_build.work, index_build.index, index_build.prefix
    context.progress.phase(f"index {index.describe(context.task.schema)}")
    order_unit = BuildUnit(
        name=prefix,
        digest=context.unit_input("index", asdict(index), *inputs).digest(),
        files=tuple(f"{prefix}.{file}" for file in ("rows", "values", "bounds")),
    )
    context.units.make(
        order_unit,
        partial(_run_step, context, prefix, partial(_write_order, index_build), index_build.count),
    )
    for table in tables:
        table_prefix = f"{prefix}.{table.suffix}"
        unit = BuildUnit(
            name=table_prefix,
            digest=context.unit_input(
                "index tables", order_unit.digest, table.digest, *table_inputs
            ).digest(),
            files=(f"{table_prefix}.*",),
        )
        context.units.make(
            unit,
            partial(
                _run_step,
                context,
                table_prefix,
                partial(_tables, context, table_prefix, prefix, table.file),
                index_build.count,
            ),
        )
    return manifest_entry(
        index.column,
        index.kind,
        prefix,
        {table.name: f"{prefix}.{table.suffix}" for table in tables},
    )


def _texts(context: BuildContext, file: str) -> tuple[I64, NDArray[np.uint8]] | None:
    """Return offsets and bytes of a column of texts, or None for other columns."""
    image = context.image
    return (
        (image.map(f"{file}.indptr"), image.map(f"{file}.values"))
        if f"{file}.indptr" in image
        else None
    )


def _read(
    context: BuildContext,
    index: Index,
    column_key: str,
    row_map: RowMap,
    texts: tuple[I64, NDArray[np.uint8]] | None,
    rows: I64,
) -> NDArray[Any]:
    """Return the values of nodes at rows; for texts, their hashes."""
    column, image, name = index.parsed_column, context.image, f"n{index.type_id}"
    if column_key == "id":
        return row_map.ids_of(rows)
    if column_key == "weight":
        return (
            image.map(f"{name}.weights")[rows]
            if f"{name}.weights" in image
            else np.ones(rows.size, np.float32)
        )
    if texts is not None:
        low = int(rows[0]) if rows.size else 0
        hashes = graph_labels.hash_strings(*texts, low, int(rows[-1]) + 1 - low if rows.size else 0)
        return hashes[rows - low]
    values = image.map(f"{name}.c{column_key.partition('e')[0]}.values")[rows]
    return (
        values
        if column.element is None
        else values.reshape(rows.size, math.prod(values.shape[1:]))[:, column.element]
    )


def expected_rows(
    indexes: Sequence[Index], element: int, type_id: int, rows: int, tables: int
) -> int:
    """Return the number of rows that the passes of a type's indexes will report."""
    return sum(
        rows * (1 + tables)
        for index in indexes
        if (index.element, index.type_id) == (element, type_id)
    )


def _run_step(context: BuildContext, name: str, make: Any, rows: int) -> StepState:
    return context.steps.run(name, make, rows=rows)


def _write_order(index_build: IndexBuild) -> StepState:
    """Write the rows ordered by (value, row), and the values."""
    context, prefix, texts = index_build.work, index_build.prefix, index_build.texts
    out = context.image.create_append(f"{prefix}.rows", np.uint32)
    hashed = index_build.index.kind == HASH
    dtype = index_build.read(np.zeros(0, np.int64)).dtype
    out_values = context.image.create_append(f"{prefix}.values", dtype)
    out_bounds = context.image.create_append(f"{prefix}.bounds", np.int64) if hashed else None
    low, high = _key_span(index_build)
    bucket_end, row_count = _BucketEnd(key=-_LAST_KEY - 1), 0
    split = split_into_buckets(
        _records(index_build),
        index_build.count,
        low=low,
        high=high,
        limit=context.task.row_limit(_RECORD_BYTES),
        folder=context.spool_folder,
        keys=(0, 1, 2),
    )
    for bucket in split:
        coarse, fine, row = bucket.records
        if not row.size:
            continue
        keys = ((coarse - _HALF) << 1) | fine
        if texts is not None:
            ordered, starts, hashes = graph_labels.group_strings(keys, row, *texts)
            first = int(hashes[0])
            if first == bucket_end.key and (
                bucket_end.groups > 1
                or starts.size > 1
                or _text(*texts, bucket_end.row) != _text(*texts, int(ordered[0]))
            ):
                raise Internal(
                    f"part {context.part}: two strings of {prefix} have the same hash, and more "
                    "nodes than the memory limit allows; raise memory_limit_mib"
                )
            values = hashes
        else:
            order = np.argsort(keys, kind="stable")
            ordered, keys = row[order], keys[order]
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            first = int(keys[0])
            values = index_build.read(ordered[starts] if hashed else ordered)
            hashes = keys[starts]
        out.append(ordered)
        if out_bounds is not None:
            new = slice(1 if first == bucket_end.key and row_count else 0, None)
            out_bounds.append(starts[new] + row_count)
            out_values.append(values[new])
        else:
            out_values.append(values)
        if first != bucket_end.key or not row_count or starts.size > 1:
            bucket_end = _BucketEnd(
                key=int(hashes[-1]),
                row=int(ordered[starts[-1]]),
                groups=int((hashes == hashes[-1]).sum()),
            )
        row_count += ordered.size
        context.progress.step(ordered.size)
    if out_bounds is not None:
        out_bounds.append(np.array([row_count], np.int64))
    if row_count != index_build.count:
        raise Internal(
            f"part {context.part}: {prefix} has {row_count} rows: expected {index_build.count}; "
            "the version is rejected"
        )
    return {}


def _records(index_build: IndexBuild) -> Iterator[Records]:
    """Yield (coarse key, last bit, row) of every live row.

    Splitting into buckets needs keys below 2^63.
    """
    for rows in index_build.chunks():
        keys = sort_keys(index_build.read(rows))
        yield (keys >> np.int64(1)) + _HALF, keys & np.int64(1), rows


def _live_chunks(rows: RowMap) -> Iterator[I64]:
    for low in range(0, rows.rows, _CHUNK):
        chunk = np.arange(low, min(low + _CHUNK, rows.rows))
        yield chunk[rows.live[chunk] > 0] if rows.live.size else chunk


def _key_span(index_build: IndexBuild) -> tuple[int, int]:
    """Return the smallest and the largest coarse key, or trivial bounds if not needed."""
    if index_build.count <= index_build.work.task.row_limit(_RECORD_BYTES):
        return 0, _LAST_KEY
    low, high = _LAST_KEY, 0
    for coarse, _, _ in _records(index_build):
        if coarse.size:
            low, high = min(low, int(coarse.min())), max(high, int(coarse.max()))
    return low, high


def _text(indptr: I64, values: NDArray[np.uint8], row: int) -> bytes:
    return bytes(values[indptr[row] : indptr[row + 1]])


class _LevelFiles(NamedTuple):
    """Files of the tables of one level."""

    step: int
    threshold_file: AppendFile
    fraction_file: AppendFile
    sums_file: AppendFile


def _tables(context: BuildContext, table_prefix: str, prefix: str, file: str) -> StepState:
    """Write alias tables over blocks of an order, and compare each with its weights."""
    image = context.image
    rows, weights = image.map(f"{prefix}.rows"), image.map(file)
    levels = [
        _LevelFiles(
            step,
            *(
                image.create_append(f"{table_prefix}.{i}.{name}", kind)
                for name, kind in (("hot", np.uint64), ("cold", np.uint32), ("sums", np.float64))
            ),
        )
        for i, step in enumerate(level_block_sizes(rows.size))
    ]
    positives, positive_count = image.create_append(f"{table_prefix}.positives", np.int64), 0
    for low in range(0, rows.size, _CHUNK):
        chunk = weights[rows[low : low + _CHUNK]]
        for level in levels:
            bounds = np.append(np.arange(0, chunk.size, level.step), chunk.size)
            alias_threshold, alias_fraction, sums = alias_build.build_rows(bounds, chunk)
            max_errors, fault = alias_audit.new_outputs()
            alias_audit.audit_rows(
                as_kernel_array(bounds),
                as_kernel_array(chunk),
                as_kernel_array(sums),
                as_kernel_array(alias_threshold),
                as_kernel_array(alias_fraction),
                0.0,
                MAX_DISTANCE,
                max_errors,
                fault,
            )
            if fault[1]:
                raise Internal(
                    f"part {context.part}: {table_prefix}: the table from row "
                    f"{low + int(fault[0]) * level.step} on does not match its weights; the "
                    "version is rejected"
                )
            level.threshold_file.append(alias_threshold)
            level.fraction_file.append(alias_fraction)
            level.sums_file.append(sums)
        running_counts = np.append(
            0,
            np.cumsum(
                np.add.reduceat(
                    (chunk > 0).astype(np.int64), np.arange(0, chunk.size, BLOCK_SIZES[0])
                )
            ),
        )
        positives.append(running_counts[:-1] + positive_count)
        positive_count += int(running_counts[-1])
        context.progress.step(chunk.size)
    positives.append(np.array([positive_count], np.int64))
    return {}
