"""Source for CSV, Parquet and NumPy files that a schema file describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from asterism.formats import edges as edge_rows
from asterism.formats import row_validation
from asterism.formats.chunks import (
    CHUNK_BYTES,
    CHUNK_ROWS,
    EdgeChunk,
    ExistsCheck,
    Features,
    Ids,
    NodeChunk,
    Weights,
    split_to_limit,
)
from asterism.formats.csv_files import CsvTable
from asterism.formats.edge_index_arrays import split_edge_arrays
from asterism.formats.file_patterns import Files
from asterism.formats.node_ids import SeenIds, StringIdIndex
from asterism.formats.npy_files import ArrayFile, NpyFile, NpyTable
from asterism.formats.npz_files import open_archives
from asterism.formats.parquet_files import ParquetTable, column_names
from asterism.formats.partition_columns import PartitionedTable, partition_values
from asterism.formats.row_validation import BadRowCollector, read_batch
from asterism.formats.schema_file import (
    EdgeSpec,
    FeatureSpec,
    NodeSpec,
    TableSpec,
    check_fill,
    read_spec,
    resolve_feature,
)
from asterism.formats.table_reader import RowBatch, TableReader, spans
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_model.string_ids import ID_COLUMN
from asterism_proto.errors import InvalidRequest


def open_table(
    spec: TableSpec, columns: Sequence[str], ends: tuple[str, str] | None = None
) -> TableReader:
    """Open the files of a type with the reader of their format.

    Parameters
    ----------
    spec : TableSpec
    columns : sequence of str
        Columns that are read.
    ends : (str, str), optional
        Columns of sources and destinations, for an edge type.

    Returns
    -------
    TableReader
    """
    if spec.format != "numpy":
        return _open_rows(spec, columns)
    arrays = _open_arrays(spec, columns)
    return NpyTable(arrays if ends is None else split_edge_arrays(arrays, columns, *ends))


def _open_rows(spec: TableSpec, columns: Sequence[str]) -> TableReader:
    """Open CSV or Parquet files; columns in the names of their folders are read if requested."""
    files, csv = spec.files[""], spec.csv
    is_csv = spec.format == "csv"

    def open_files(some: Files) -> TableReader:
        return CsvTable(some, csv) if is_csv else ParquetTable(some)

    folder_columns = {name for _, label in files for name in partition_values(label)}
    if not folder_columns.intersection(columns):
        return open_files(files)
    return PartitionedTable(
        files,
        open_files,
        CsvTable(files, csv).names if is_csv else column_names,
        dates=not is_csv,
        nulls=csv.nulls if is_csv else (),
    )


def _open_arrays(spec: TableSpec, columns: Sequence[str]) -> Mapping[str, list[ArrayFile]]:
    """Open the arrays of .npy files, or those of .npz archives that columns use."""
    labels = [label for files in spec.files.values() for _, label in files]
    archives = [label for label in labels if label.endswith(".npz")]
    if not archives:
        return {
            name: [NpyFile.open(path, label) for path, label in files]
            for name, files in spec.files.items()
        }
    if set(spec.files) != {""} or len(archives) < len(labels):
        raise InvalidRequest(
            f"{archives[0]}: expected a list of .npz files only; their arrays have names, which "
            "are the columns"
        )
    if not columns:
        raise InvalidRequest(
            f"{archives[0]}: expected a column that is read from it; name an id, a key, a weight "
            "or a feature, or give `count` in place of `files`"
        )
    return open_archives(spec.files[""], columns)


def _read_columns(node_or_edge: NodeSpec | EdgeSpec) -> list[str]:
    """Return the columns that a type reads from its files."""
    named = (
        [node_or_edge.id, node_or_edge.key]
        if isinstance(node_or_edge, NodeSpec)
        else [node_or_edge.src, node_or_edge.dst]
    )
    return [
        *(name for name in (*named, node_or_edge.weight) if name is not None),
        *(column for spec in node_or_edge.features for column in spec.columns),
    ]


def row_bytes(features: tuple[Feature, ...]) -> int:
    """Return the size in bytes of a row's ids, weight and dense features."""
    return 20 + sum(
        np.dtype(f.dtype).itemsize * int(np.prod(f.shape, dtype=object))
        for f in features
        if f.kind == "dense"
    )


class TabularSource:
    """Graph in files that a schema file describes.

    Parameters
    ----------
    path : Path
        Schema file.
    root : Path, optional
        Folder to which file names are relative, instead of the one in the schema file.
    chunk_rows : int, default 262144
        Largest number of rows per chunk.
    """

    def __init__(
        self, path: Path, *, root: Path | None = None, chunk_rows: int = CHUNK_ROWS
    ) -> None:
        self.spec = read_spec(path, root)
        self.chunk_rows = chunk_rows
        self.tables: dict[str, TableReader] = {}
        self._nodes: dict[str, NodeSpec] = {}
        self._keys: dict[str, StringIdIndex] = {}
        for node in self.spec.nodes:
            if node.table is not None:
                self.tables[node.name] = open_table(node.table, _read_columns(node))
                node = replace(node, features=self._resolve_features(node.name, node.features))
                self._check_columns(node.name, [node.id, node.key, node.weight])
            self._nodes[node.name] = node
        self._edges = []
        for edge in self.spec.edges:
            self.tables[edge.name] = open_table(
                edge.table, _read_columns(edge), (edge.src, edge.dst)
            )
            self._check_columns(edge.name, [edge.src, edge.dst, edge.weight])
            self._edges.append(
                replace(edge, features=self._resolve_features(edge.name, edge.features))
            )
        self._schema = self._build_schema()
        if self._schema.has_string_ids:
            self._check_string_ids()
        numbered_types = [
            node.name
            for node in self._nodes.values()
            if node.id is None and (node.table or node.count)
        ]
        if self._schema.ids == "global" and numbered_types and len(self._nodes) > 1:
            raise InvalidRequest(
                f"{path}: expected an `id` column for {', '.join(numbered_types)}, because with "
                "`ids: global` no two types may share an id"
            )

    def _check_string_ids(self) -> None:
        """Raise InvalidRequest for types without string ids in a space of string ids."""
        for node in self._nodes.values():
            if node.key or node.count or (node.table is not None and node.id is None):
                raise InvalidRequest(
                    f"node type {node.name!r}: expected `files` with an `id`, because of `ids: "
                    f"string`; leave "
                    "out `key` and `count`"
                )
        for edge in self._edges:
            if edge.missing == "create" and (edge.aggregate or edge.self_loops):
                option = "aggregate" if edge.aggregate else "self_loops"
                raise InvalidRequest(
                    f"edge type {edge.name!r}: {option}: expected none with `ids: string` and "
                    f"`missing: "
                    "create`, because such edges have no names of nodes; load the nodes from "
                    "files of "
                    "their own"
                )

    def _resolve_features(
        self, owner: str, features: tuple[FeatureSpec, ...]
    ) -> tuple[FeatureSpec, ...]:
        resolved = []
        for spec in features:
            kinds = [self.tables[owner].describe(column) for column in spec.columns]
            kind = next((kind for kind in kinds if kind.kind != "text"), kinds[0])
            if kind.kind != "text":
                spec = resolve_feature(spec, f"type {owner!r}", kind.kind, kind.dtype, kind.shape)
            resolved.append(check_fill(f"type {owner!r}: feature {spec.feature.name!r}", spec))
        return tuple(resolved)

    def _check_columns(self, owner: str, columns: list[str | None]) -> None:
        """Raise InvalidRequest for missing columns, before any data is read."""
        for column in columns:
            if column is not None:
                self.tables[owner].describe(column)

    def _build_schema(self) -> Schema:
        nodes = tuple(
            NodeType(
                name=node.name,
                weighted=node.weight is not None,
                features=tuple(spec.feature for spec in node.features),
                tables=node.tables,
                graph_label=node.graph_label,
                index=node.index,
                time=node.time,
            )
            for node in self._nodes.values()
        )
        edge_types: list[EdgeType] = []
        for edge in self._edges:
            src, relation, dst = edge.name.split(":")
            forward = EdgeType(
                src_type=src,
                relation=relation,
                dst_type=dst,
                weighted=edge.weight is not None or edge.aggregate is not None,
                multiplicity=edge.edges,
                missing=edge.missing,
                features=tuple(spec.feature for spec in edge.features),
                tables=edge.tables,
                time=edge.time,
                index=edge.index,
            )
            edge_types.append(forward)
            if edge.reverse is not None:
                edge_types.append(
                    replace(forward, src_type=dst, relation=edge.reverse, dst_type=src)
                )
        schema = Schema(node_types=nodes, edge_types=tuple(edge_types), **self.spec.settings)
        for edge in self._edges:
            for end in (edge.name.split(":")[0], edge.name.split(":")[2]):
                if edge.missing == "create" and self._nodes[end].key:
                    raise InvalidRequest(
                        f"edge type {edge.name!r}: missing: expected reject, because nodes of "
                        f"{end!r} have a `key`, "
                        "so that all of them come from its files"
                    )
        return schema

    @property
    def schema(self) -> Schema:
        """Schema of a space that can hold this graph; see `GraphSource.schema`."""
        return self._schema

    @property
    def options(self) -> Mapping[str, Any]:
        """Options on which the chunks depend; see `GraphSource.options`."""
        return {
            "root": str(self.spec.root.resolve()),
            "schema": self.spec.text,
            "chunk_rows": self.chunk_rows,
        }

    @property
    def files(self) -> tuple[Path, ...]:
        """Schema file, followed by all data files."""
        specs = [node.table for node in self.spec.nodes if node.table is not None] + [
            edge.table for edge in self.spec.edges
        ]
        return (
            self.spec.path,
            *(path for spec in specs for files in spec.files.values() for path, _ in files),
        )

    @property
    def total_rows(self) -> int | None:
        """Total number of nodes and edges, or None if unknown."""
        counts = [node.count or 0 for node in self._nodes.values() if node.table is None]
        for edge in self._edges:
            if edge.aggregate or edge.self_loops:
                return None
            rows = self.tables[edge.name].rows
            counts.append(
                -1 if rows is None else rows * (2 if edge.reverse or edge.symmetry else 1)
            )
        for node in self._nodes.values():
            if node.table is not None:
                rows = self.tables[node.name].rows
                counts.append(-1 if rows is None else rows)
        return None if -1 in counts else sum(counts)

    @property
    def total_bytes(self) -> int:
        """Total input in bytes."""
        return sum(table.nbytes for table in self.tables.values())

    def limit(self, features: tuple[FeatureSpec, ...]) -> int:
        """Return the number of rows per batch for these features."""
        return max(
            1,
            min(
                self.chunk_rows, CHUNK_BYTES // row_bytes(tuple(spec.feature for spec in features))
            ),
        )

    def string_id_index(self, ntype: str) -> StringIdIndex | None:
        """Return the index of a type's string keys, or None. It is read on first use."""
        node = self._nodes[ntype]
        if node.key is None:
            return None
        if ntype not in self._keys:
            self._keys[ntype] = StringIdIndex.read(self.tables[ntype], node.key, self.chunk_rows)
        return self._keys[ntype]

    def dense_count(self, ntype: str) -> int | None:
        """Return n if the nodes of a type are known to be 0 .. n - 1."""
        node = self._nodes[ntype]
        if node.table is None:
            return node.count
        # Typed arrays without checks have no bad rows, so no number is missing.
        is_dense = (
            node.id is None
            and node.key is None
            and node.weight is None
            and not any("dtype" in spec.declared for spec in node.features)
        )
        return self.tables[ntype].rows if is_dense and node.table.format == "numpy" else None

    def node_chunks(self) -> Iterator[NodeChunk]:
        """Yield every node; see `GraphSource.node_chunks`."""
        for node in self._nodes.values():
            yield from self._read_node_type(node)

    def nodes_of(self, ntype: str) -> Iterator[Ids]:
        """Yield the ids of a node type, chunk by chunk."""
        for chunk in self._read_node_type(self._nodes[ntype]):
            yield chunk.ids

    def _read_node_type(self, node: NodeSpec) -> Iterator[NodeChunk]:
        if node.table is None:
            for start, stop in spans(node.count or 0, self.chunk_rows):
                if stop > start:
                    yield NodeChunk(
                        ntype=node.name,
                        file=self.spec.path.name,
                        first_row=start,
                        ids=np.arange(start, stop),
                    )
            return
        keys = self.string_id_index(node.name)
        seen = SeenIds(len(keys)) if keys is not None else None
        id_type = pa.string() if self._schema.has_string_ids else pa.int64()
        id_columns: list[tuple[str, pa.DataType]] = (
            [(node.id, id_type)] if node.id else [(node.key, pa.string())] if node.key else []
        )
        columns = row_validation.columns_to_read(id_columns, node.weight, node.features)
        if not columns:
            raise InvalidRequest(
                f"node type {node.name!r}: expected an id, key, weight or feature that is read "
                f"from its "
                "files; use `count` instead of `files`"
            )
        row = 0
        for batch in self.tables[node.name].batches(columns, self.limit(node.features)):
            (ids, weights, features), collector = read_batch(
                batch, self._row_reader(node, keys, row)
            )
            if seen is not None:
                collector.record(
                    str(node.key),
                    seen.find_repeats(ids, collector.good_mask),
                    lambda value: "the name is there already",
                )
            good = collector.good_mask
            chunk = NodeChunk(
                ntype=node.name,
                file=batch.file,
                first_row=batch.first_row,
                ids=ids if good is None else ids[good],
                weights=weights if good is None or weights is None else weights[good],
                features=row_validation.keep_rows(good, features),
                bad=collector.bad_rows(),
                nbytes=batch.nbytes,
            )
            yield from split_to_limit(chunk)
            row += batch.size

    @property
    def salt(self) -> int | None:
        """Salt of hashed string ids, or None if ids are integers."""
        return self._schema.salt if self._schema.has_string_ids else None

    def _row_reader(
        self, node: NodeSpec, keys: StringIdIndex | None, row: int
    ) -> Callable[[RowBatch, BadRowCollector], tuple[Ids, Weights | None, Features]]:
        def read_columns(
            batch: RowBatch, collector: BadRowCollector
        ) -> tuple[Ids, Weights | None, Features]:
            if node.id is not None and self.salt is not None:
                ids, string_ids = row_validation.read_names(collector, node.id, self.salt)
                return (
                    ids,
                    row_validation.read_weights(collector, node.weight),
                    {
                        ID_COLUMN: string_ids,
                        **row_validation.read_features(collector, node.features, node.time),
                    },
                )
            if node.id is not None:
                ids = row_validation.read_ids(collector, node.id)
            elif keys is not None:
                ids, missing_mask = keys.ids(batch.column(str(node.key)))
                collector.record(str(node.key), missing_mask, lambda value: "the name is missing")
            else:
                ids = row + (np.arange(batch.rows) if batch.ordinals is None else batch.ordinals)
            return (
                ids,
                row_validation.read_weights(collector, node.weight),
                row_validation.read_features(collector, node.features, node.time),
            )

        return read_columns

    def edge_chunks(self, exists: ExistsCheck | None = None) -> Iterator[EdgeChunk]:
        """Yield every edge; see `GraphSource.edge_chunks`."""
        for edge in self._edges:
            yield from edge_rows.read_edge_type(self, edge, exists)
