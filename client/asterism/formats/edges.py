"""Edges of tabular files: end lookup, deduplication, aggregation, reverses, self-loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from asterism.formats import row_validation
from asterism.formats.chunks import (
    Array,
    BadRow,
    EdgeChunk,
    ExistsCheck,
    Features,
    FeatureValue,
    Ids,
    Mask,
    Weights,
    filter_chunk,
    split_to_limit,
)
from asterism.formats.duplicate_pairs import find_repeated_pairs
from asterism.formats.node_ids import StringIdIndex, ids_without_loops
from asterism.formats.row_validation import BadRowCollector, read_batch
from asterism.formats.schema_file import EdgeSpec, FeatureSpec
from asterism.formats.table_reader import RowBatch, TableReader, spans
from asterism_proto.errors import InvalidRequest

MAX_AGGREGATED = 50_000_000
"""Largest number of rows of an edge type to aggregate, because they are held in memory."""

EdgeColumns = tuple[Ids, Ids, Weights | None, Features]


class EdgeContext(Protocol):
    """Port through which edges use the source that they belong to."""

    @property
    def chunk_rows(self) -> int:
        """Largest number of rows per chunk."""

    @property
    def tables(self) -> Mapping[str, TableReader]:
        """Readers of each type's files."""

    def limit(self, features: tuple[FeatureSpec, ...]) -> int:
        """Return the number of rows per batch for these features.

        Parameters
        ----------
        features : tuple of FeatureSpec
            Features of the rows.

        Returns
        -------
        int
        """

    def string_id_index(self, ntype: str) -> StringIdIndex | None:
        """Return the index of string keys of a type's nodes.

        Parameters
        ----------
        ntype : str
            Node type.

        Returns
        -------
        StringIdIndex or None
            None if the type has no string keys.
        """

    @property
    def salt(self) -> int | None:
        """Salt of hashed string ids, or None if ids are integers."""

    def dense_count(self, ntype: str) -> int | None:
        """Return n if the nodes of a type are known to be 0 .. n - 1.

        Parameters
        ----------
        ntype : str
            Node type.

        Returns
        -------
        int or None
        """

    def nodes_of(self, ntype: str) -> Iterator[Ids]:
        """Yield the ids of a node type, chunk by chunk.

        Parameters
        ----------
        ntype : str
            Node type.

        Yields
        ------
        ndarray of int64, shape (n,)
        """


def read_edge_type(
    source: EdgeContext, edge: EdgeSpec, exists: ExistsCheck | None
) -> Iterator[EdgeChunk]:
    """Yield every chunk of an edge type, each followed by its reverse edges if configured."""
    repeats = np.zeros(0, np.int64)
    if edge.edges == "unique" and edge.aggregate is None:
        repeats = find_repeated_pairs(_readable_pairs(source, edge))
    chunks = _read_chunks(source, edge, exists, repeats)
    if edge.aggregate is not None:
        chunks = _aggregate(source, edge, chunks)
    loop_ids: list[Ids] = []
    for large_chunk in chunks:
        for chunk in split_to_limit(large_chunk):
            yield chunk
            if edge.self_loops and edge.edges == "unique":
                loop_ids.append(chunk.src[chunk.src == chunk.dst])
            if len(chunk) and (edge.reverse is not None or edge.symmetry):
                yield _reversed_chunk(edge, chunk)
    if edge.self_loops:
        yield from _self_loop_chunks(
            source, edge, np.sort(np.concatenate(loop_ids)) if loop_ids else np.zeros(0, np.int64)
        )


def _reversed_chunk(edge: EdgeSpec, chunk: EdgeChunk) -> EdgeChunk:
    src, _, dst = edge.name.split(":")
    etype = edge.name if edge.symmetry else f"{dst}:{edge.reverse}:{src}"
    swapped_names = {"src": "dst", "dst": "src"}
    features = {
        swapped_names.get(name, name): value for name, value in chunk.features.items()
    }  # string ids of the ends, if missing nodes are created
    reversed_chunk = replace(
        chunk, etype=etype, src=chunk.dst, dst=chunk.src, features=features, bad=(), nbytes=0
    )
    # Within a type, a self-loop is its own reverse edge.
    return (
        filter_chunk(reversed_chunk, reversed_chunk.src != reversed_chunk.dst)
        if edge.symmetry
        else reversed_chunk
    )


def _batches(source: EdgeContext, edge: EdgeSpec) -> Iterator[RowBatch]:
    src, _, dst = edge.name.split(":")
    end_types = [
        (
            name,
            pa.int64()
            if source.string_id_index(end) is None and source.salt is None
            else pa.string(),
        )
        for name, end in ((edge.src, src), (edge.dst, dst))
    ]
    yield from source.tables[edge.name].batches(
        row_validation.columns_to_read(end_types, edge.weight, edge.features),
        source.limit(edge.features),
    )


def _row_reader(
    source: EdgeContext, edge: EdgeSpec
) -> Callable[[RowBatch, BadRowCollector], EdgeColumns]:
    src_type, _, dst_type = edge.name.split(":")
    salt = source.salt
    end_columns = (
        (edge.src, src_type, source.string_id_index(src_type)),
        (edge.dst, dst_type, source.string_id_index(dst_type)),
    )

    def read_columns(batch: RowBatch, collector: BadRowCollector) -> EdgeColumns:
        weights, features = (
            row_validation.read_weights(collector, edge.weight),
            row_validation.read_features(collector, edge.features, edge.time),
        )
        if salt is not None:
            (src, src_names), (dst, dst_names) = (
                row_validation.read_names(collector, column, salt) for column, _, _ in end_columns
            )
            string_ids: Features = (
                {"src": src_names, "dst": dst_names} if edge.missing == "create" else {}
            )
            return src, dst, weights, {**string_ids, **features}
        src, dst = (
            _read_end(collector, column, ntype, keys) for column, ntype, keys in end_columns
        )
        return src, dst, weights, features

    return read_columns


def _read_end(
    collector: BadRowCollector, column: str, ntype: str, keys: StringIdIndex | None
) -> Ids:
    if keys is None:
        return row_validation.read_ids(collector, column)
    ids, unknown_mask = keys.ids(collector.batch.column(column))
    collector.record(
        column,
        unknown_mask,
        lambda value: (
            f"no node of type {ntype!r} has this name" if value else "the name is missing"
        ),
    )
    return ids


def _record_missing_ends(
    source: EdgeContext,
    edge: EdgeSpec,
    collector: BadRowCollector,
    src: Ids,
    dst: Ids,
    exists: ExistsCheck | None,
) -> None:
    """Record the rows with an end that does not exist."""
    if edge.missing == "create":
        return
    src_type, _, dst_type = edge.name.split(":")
    for column, ntype, ids in ((edge.src, src_type, src), (edge.dst, dst_type, dst)):
        count = source.dense_count(ntype)
        if count is not None:
            missing: Mask = ids >= count
        elif exists is not None and len(ids):
            missing = ~exists(ntype, ids)
        else:
            continue
        if missing.any():
            collector.record(
                column,
                missing,
                lambda value, ntype=ntype: (  # type: ignore[misc]  # mypy does not type a default
                    f"there is no such node of type {ntype!r}"
                ),
            )


def _read_chunks(
    source: EdgeContext, edge: EdgeSpec, exists: ExistsCheck | None, repeats: Ids
) -> Iterator[EdgeChunk]:
    read_columns = _row_reader(source, edge)
    row = 0
    for batch in _batches(source, edge):
        (src, dst, weights, features), collector = read_batch(batch, read_columns)
        _record_missing_ends(source, edge, collector, src, dst, exists)
        if len(repeats):
            row_numbers = row + (
                np.arange(batch.rows) if batch.ordinals is None else batch.ordinals
            )
            indices = np.minimum(np.searchsorted(repeats, row_numbers), len(repeats) - 1)
            is_repeat = repeats[indices] == row_numbers
            collector.record(
                f"{edge.src}, {edge.dst}",
                is_repeat if is_repeat.any() else None,
                lambda value: "the edge is there already, and edges are unique",
            )
        good = collector.good_mask
        yield EdgeChunk(
            etype=edge.name,
            file=batch.file,
            first_row=batch.first_row,
            src=src if good is None else src[good],
            dst=dst if good is None else dst[good],
            weights=weights if good is None or weights is None else weights[good],
            features=row_validation.keep_rows(good, features),
            bad=collector.bad_rows(),
            nbytes=batch.nbytes,
        )
        row += batch.size


def _readable_pairs(source: EdgeContext, edge: EdgeSpec) -> Iterator[tuple[Ids, Ids, Ids]]:
    """Yield row numbers and ends of the readable rows.

    With symmetry, a pair has its smaller end first, so that both directions are equal.
    """
    read_columns = _row_reader(source, edge)
    row = 0
    for batch in _batches(source, edge):
        (src, dst, _, _), collector = read_batch(batch, read_columns)
        row_numbers = row + (np.arange(batch.rows) if batch.ordinals is None else batch.ordinals)
        good = collector.good_mask
        if good is not None:
            row_numbers, src, dst = row_numbers[good], src[good], dst[good]
        yield (
            (row_numbers, np.minimum(src, dst), np.maximum(src, dst))
            if edge.symmetry
            else (row_numbers, src, dst)
        )
        row += batch.size


def _aggregate(
    source: EdgeContext, edge: EdgeSpec, chunks: Iterator[EdgeChunk]
) -> Iterator[EdgeChunk]:
    """Merge rows with the same ends into one edge each.

    Its weight is the number of rows, or the sum of their weights. Bad rows are passed through.
    """
    blocks: list[tuple[Ids, Ids, Array]] = []
    rows, file = 0, ""
    for chunk in chunks:
        file = file or chunk.file
        rows += len(chunk)
        if rows > MAX_AGGREGATED:
            raise InvalidRequest(
                f"edge type {edge.name!r}: expected at most {MAX_AGGREGATED:,} rows to aggregate; "
                "aggregate them before, and set the `weight` column"
            )
        src, dst = (
            (np.minimum(chunk.src, chunk.dst), np.maximum(chunk.src, chunk.dst))
            if edge.symmetry
            else (chunk.src, chunk.dst)
        )
        blocks.append(
            (
                src,
                dst,
                np.ones(len(chunk)) if chunk.weights is None else chunk.weights.astype(np.float64),
            )
        )
        no_ids = np.zeros(0, np.int64)
        yield replace(chunk, src=no_ids, dst=no_ids, weights=np.zeros(0, np.float32), features={})
    if not blocks:
        return
    table = pa.table(
        {
            name: np.concatenate([part[i] for part in blocks])
            for i, name in enumerate(("src", "dst", "weight"))
        }
    )
    blocks.clear()
    table = (
        table.group_by(["src", "dst"], use_threads=False)
        .aggregate([("weight", "sum")])
        .sort_by([("src", "ascending"), ("dst", "ascending")])
    )
    src, dst, weight = (table.column(name).to_numpy() for name in ("src", "dst", "weight_sum"))
    with np.errstate(over="ignore"):
        weights = weight.astype(np.float32)
    overflow = np.isinf(weights)
    for start, stop in spans(len(src), source.chunk_rows):
        if stop > start:
            chunk = EdgeChunk(
                etype=edge.name,
                file=f"{file} (aggregated)",
                first_row=start,
                src=src[start:stop],
                dst=dst[start:stop],
                weights=weights[start:stop],
            )
            bad = tuple(
                BadRow(
                    file=chunk.file,
                    row=row,
                    column=str(edge.weight),
                    value=str(weight[row]),
                    reason=(
                        f"the sum of the weights from {edge.src} {src[row]} to {edge.dst} "
                        f"{dst[row]}: a weight is finite and fits float32"
                    ),
                )
                for row in (start + np.flatnonzero(overflow[start:stop])).tolist()
            )
            yield replace(filter_chunk(chunk, ~overflow[start:stop]), bad=bad) if bad else chunk


def _self_loop_chunks(source: EdgeContext, edge: EdgeSpec, existing: Ids) -> Iterator[EdgeChunk]:
    """Yield an edge from every node of the type to itself, except for nodes in ``existing``."""
    ntype = edge.name.split(":")[0]
    weighted = edge.weight is not None or edge.aggregate is not None
    row = 0
    for ids in ids_without_loops(source.nodes_of(ntype), existing):
        features: dict[str, FeatureValue] = {}
        for spec in edge.features:
            empty = (
                np.zeros(len(ids) + 1, np.int64),
                np.zeros(0, spec.feature.dtype if spec.feature.kind == "ragged" else np.uint8),
            )
            features[spec.feature.name] = (
                np.zeros((len(ids), *spec.feature.shape), spec.feature.dtype)
                if spec.feature.kind == "dense"
                else empty
            )
        yield EdgeChunk(
            etype=edge.name,
            file=f"(self-loops of {ntype})",
            first_row=row,
            src=ids,
            dst=ids,
            weights=np.ones(len(ids), np.float32) if weighted else None,
            features=features,
        )
        row += len(ids)
