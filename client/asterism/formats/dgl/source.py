"""Source for DGL's chunked graph format: metadata.json and the files that it names."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from asterism.formats import columns, row_validation
from asterism.formats.chunks import (
    CHUNK_BYTES,
    CHUNK_ROWS,
    Array,
    EdgeChunk,
    ExistsCheck,
    FeatureValue,
    Ids,
    NodeChunk,
    Weights,
    mismatch_error,
    split_to_limit,
)
from asterism.formats.csv_files import CsvOptions, CsvTable
from asterism.formats.dgl.column_files import ColumnFiles, ColumnPiece, ColumnReader
from asterism.formats.dgl.metadata import DataFiles, Metadata, read_metadata
from asterism.formats.npy_files import NpyFile, NpyTable, edge_columns
from asterism.formats.parquet_files import ParquetTable, open_parquet
from asterism.formats.row_validation import BadRowCollector, read_batch
from asterism.formats.table_reader import RowBatch, TableReader, spans
from asterism.formats.tabular_source import row_bytes
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_model.schema.features import RESERVED_NAMES
from asterism_proto.errors import InvalidRequest


class ChunkedSource:
    """Graph in DGL's chunked format.

    Nodes of each type are 0 .. n - 1; the metadata states n.

    Parameters
    ----------
    path : Path
        File metadata.json.
    chunk_rows : int, default 262144
        Largest number of rows per chunk.
    weights : mapping, optional
        Feature to use as weight, by type. A feature named ``weight`` is used in any case.
    rename : mapping, optional
        New names of features.
    """

    def __init__(
        self,
        path: Path,
        *,
        chunk_rows: int = CHUNK_ROWS,
        weights: Mapping[str, str] | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.chunk_rows = chunk_rows
        self._weights, self._rename = dict(weights or {}), dict(rename or {})
        self.metadata: Metadata = read_metadata(path)
        type_names = {*self.metadata.node_types, *self.metadata.edge_types}
        for owner in self._weights:
            if owner not in type_names:
                raise InvalidRequest(
                    f"weights with {owner!r}: expected a type, one of "
                    f"{', '.join(sorted(type_names))}"
                )
        self._series = {
            owner: {name: ColumnFiles(data.files, data.format) for name, data in features.items()}
            for owner, features in {**self.metadata.node_data, **self.metadata.edge_data}.items()
        }
        for owner, features in self._series.items():
            if "weight" in features and self._rename.get("weight", "weight") == "weight":
                self._weights.setdefault(owner, "weight")
        self._tables = {
            etype: [_edge_table(data, file) for file in data.files]
            for etype, data in self.metadata.edges.items()
        }
        self._edge_counts = {etype: self._edge_count(etype) for etype in self.metadata.edge_types}
        for owner, count in (*self.metadata.node_types.items(), *self._edge_counts.items()):
            for name, series in self._series.get(owner, {}).items():
                if count is not None and series.rows is not None and series.rows != count:
                    raise mismatch_error(
                        series.files[-1][1],
                        count,
                        series.rows,
                        f"rows of {name!r}, one for each of {owner!r}, in all its files",
                    )
        self._schema = Schema(
            node_types=tuple(
                NodeType(
                    name=name, weighted=name in self._weights, features=tuple(self._features(name))
                )
                for name in self.metadata.node_types
            ),
            edge_types=tuple(self._edge_type(name) for name in self.metadata.edge_types),
        )

    def _edge_type(self, name: str) -> EdgeType:
        src, relation, dst = name.split(":")
        return EdgeType(
            src_type=src,
            relation=relation,
            dst_type=dst,
            weighted=name in self._weights,
            features=tuple(self._features(name)),
        )

    def _features(self, owner: str) -> Iterator[Feature]:
        series = self._series.get(owner, {})
        weight = self._weights.get(owner)
        if weight is not None and weight not in series:
            raise InvalidRequest(
                f"weights of {owner!r}: expected a feature of it, found {weight!r}; there are "
                f"{', '.join(series) or 'none'}"
            )
        for name, column in series.items():
            if name == weight and column.shape not in ((), (1,)):
                raise InvalidRequest(
                    f"weights of {owner!r}: expected one number for each row, {name!r} has shape "
                    f"{list(column.shape)}"
                )
            if self._stays_feature(owner, name):
                if self._rename.get(name, name) in RESERVED_NAMES:
                    raise InvalidRequest(
                        f"feature {name!r} of {owner!r}: expected another name, because this one "
                        f"is reserved; use "
                        f"`weights={{{owner!r}: {name!r}}}` if it is the weight, "
                        f"or `rename={{{name!r}: ...}}`"
                    )
                yield Feature(
                    name=self._rename.get(name, name), dtype=column.dtype.name, shape=column.shape
                )

    def _stays_feature(self, owner: str, name: str) -> bool:
        """Return True if a feature is kept as a feature.

        A weight is kept too, in its own precision, unless its name is reserved.
        """
        return (
            self._weights.get(owner) != name or self._rename.get(name, name) not in RESERVED_NAMES
        )

    def _edge_count(self, etype: str) -> int | None:
        """Return the number of edges of a type, from its files or from the metadata.

        Raises InvalidRequest if the two differ.
        """
        per_file = self.metadata.edge_chunks.get(etype)
        declared = self.metadata.edge_types[etype]
        counts: list[int | None] = []
        for i, (table, (_, label)) in enumerate(
            zip(self._tables[etype], self.metadata.edges[etype].files, strict=True)
        ):
            counts.append(table.rows)
            if per_file is not None and table.rows is not None and table.rows != per_file[i]:
                raise mismatch_error(label, per_file[i], table.rows, f"edges of {etype!r}")
        rows = None if None in counts else sum(count for count in counts if count is not None)
        if rows is not None and declared is not None and rows != declared:
            raise mismatch_error(
                self.metadata.edges[etype].files[-1][1],
                declared,
                rows,
                f"edges of {etype!r} in all its files",
            )
        return declared if rows is None else rows

    @property
    def schema(self) -> Schema:
        """Schema of a space that can hold this graph; see `GraphSource.schema`."""
        return self._schema

    @property
    def options(self) -> Mapping[str, Any]:
        """Options on which the chunks depend; see `GraphSource.options`."""
        return {
            "metadata": self.metadata.text,
            "chunk_rows": self.chunk_rows,
            "weights": self._weights,
            "rename": self._rename,
        }

    @property
    def files(self) -> tuple[Path, ...]:
        """File metadata.json and the files that it names."""
        series = (
            series_item.files
            for type_series in self._series.values()
            for series_item in type_series.values()
        )
        edges = (data.files for data in self.metadata.edges.values())
        return (self.path, *(path for files in chain(edges, series) for path, _ in files))

    @property
    def total_rows(self) -> int | None:
        """Total number of nodes and edges, or None if unknown."""
        counts = list(self._edge_counts.values())
        return (
            None
            if None in counts
            else sum(self.metadata.node_types.values())
            + sum(count for count in counts if count is not None)
        )

    @property
    def total_bytes(self) -> int:
        """Total input in bytes."""
        features = sum(
            series.nbytes
            for type_series in self._series.values()
            for series in type_series.values()
        )
        return features + sum(table.nbytes for tables in self._tables.values() for table in tables)

    def _limit(self, features: Sequence[Feature]) -> int:
        return max(1, min(self.chunk_rows, CHUNK_BYTES // row_bytes(tuple(features))))

    def node_chunks(self) -> Iterator[NodeChunk]:
        """Yield every node; see `GraphSource.node_chunks`.

        Nodes are numbered by row, so a bad row cannot be left out and is an error.
        """
        for node_type in self._schema.node_types:
            limit = self._limit(node_type.features)
            readers = self._readers(node_type.name, limit)
            for start, stop in spans(self.metadata.node_types[node_type.name], limit):
                if stop == start:
                    continue
                pieces = {name: reader.read(stop - start) for name, reader in readers.items()}
                for piece in pieces.values():
                    if piece.bad:
                        raise InvalidRequest(
                            f"{piece.bad[0]}; nodes are numbered by their rows, so none can "
                            "be left out: repair the file"
                        )
                yield NodeChunk(
                    ntype=node_type.name,
                    file=self.path.name,
                    first_row=start,
                    ids=np.arange(start, stop, dtype=np.int64),
                    weights=self._node_weights(node_type.name, pieces, start),
                    features={
                        self._rename.get(name, name): p.values
                        for name, p in pieces.items()
                        if self._stays_feature(node_type.name, name)
                    },
                    nbytes=sum(piece.nbytes for piece in pieces.values()),
                )
            for reader in readers.values():
                reader.finish()

    def _readers(self, owner: str, limit: int) -> dict[str, ColumnReader]:
        return {
            name: ColumnReader(series, limit)
            for name, series in self._series.get(owner, {}).items()
        }

    def _node_weights(
        self, ntype: str, pieces: Mapping[str, ColumnPiece], start: int
    ) -> Weights | None:
        name = self._weights.get(ntype)
        if name is None:
            return None
        values, bad_mask = columns.parse_weights(pieces[name].values.reshape(-1))
        if bad_mask is not None:
            row = int(np.argmax(bad_mask))
            bad_row = pieces[name].bad_row(row, name, row_validation.weight_error)
            raise InvalidRequest(
                f"weight {name!r} of {ntype!r}, row {start + row}, value {bad_row.value!r}: "
                f"{bad_row.reason}; repair {bad_row.file}"
            )
        return values

    def edge_chunks(self, exists: ExistsCheck | None = None) -> Iterator[EdgeChunk]:
        """Yield every edge; see `GraphSource.edge_chunks`.

        Ends are checked against the number of nodes; ``exists`` is not called.
        """
        for edge_type in self._schema.edge_types:
            limit = self._limit(edge_type.features)
            readers = self._readers(edge_type.name, limit)
            rows = 0
            for i, table in enumerate(self._tables[edge_type.name]):
                rows += yield from self._file(edge_type, table, i, readers, limit)
            declared = self.metadata.edge_types[edge_type.name]
            if declared is not None and rows != declared:
                raise mismatch_error(
                    self.metadata.edges[edge_type.name].files[-1][1],
                    declared,
                    rows,
                    f"edges of {edge_type.name!r} in all its files",
                )
            for reader in readers.values():
                reader.finish()

    def _file(
        self,
        edge_type: EdgeType,
        table: TableReader,
        file_index: int,
        readers: Mapping[str, ColumnReader],
        limit: int,
    ) -> Generator[EdgeChunk, None, int]:
        """Yield the chunks of one file and return its number of rows."""
        label = self.metadata.edges[edge_type.name].files[file_index][1]
        src, dst = _end_columns(table, self.metadata.edges[edge_type.name].files[file_index])
        rows = 0
        for batch in table.batches({src: pa.int64(), dst: pa.int64()}, limit):
            ends, collector = read_batch(
                batch,
                lambda batch, found: (
                    row_validation.read_ids(found, src),
                    row_validation.read_ids(found, dst),
                ),
            )
            for column, ids, ntype in (
                (src, ends[0], edge_type.src_type),
                (dst, ends[1], edge_type.dst_type),
            ):
                count = self.metadata.node_types[ntype]
                if len(ids) and ids.max() >= count:
                    collector.record(
                        column,
                        ids >= count,
                        lambda value, ntype=ntype, count=count: (  # type: ignore[misc]
                            f"{ntype!r} has {count} nodes, 0 to {count - 1}"
                        ),
                    )  # mypy does not infer types of a lambda's defaults
            pieces = {name: reader.read(batch.size) for name, reader in readers.items()}
            yield from split_to_limit(
                self._edge_chunk(edge_type.name, batch, ends, collector, pieces)
            )
            rows += batch.size
        per_file = self.metadata.edge_chunks.get(edge_type.name)
        if per_file is not None and rows != per_file[file_index]:
            raise mismatch_error(label, per_file[file_index], rows, f"edges of {edge_type.name!r}")
        return rows

    def _edge_chunk(
        self,
        etype: str,
        batch: RowBatch,
        ends: tuple[Ids, Ids],
        collector: BadRowCollector,
        pieces: Mapping[str, ColumnPiece],
    ) -> EdgeChunk:
        for piece in pieces.values():
            if piece.bad:
                collector.record_external(piece.bad_positions, piece.bad)
        ordinals = collector.batch.ordinals
        values = {
            name: piece.values if ordinals is None else piece.values[ordinals]
            for name, piece in pieces.items()
        }
        weights = self._edge_weights(etype, collector, values, pieces)
        good = collector.good_mask
        features: dict[str, FeatureValue] = {
            self._rename.get(name, name): value
            for name, value in values.items()
            if self._stays_feature(etype, name)
        }
        return EdgeChunk(
            etype=etype,
            file=batch.file,
            first_row=batch.first_row,
            src=ends[0] if good is None else ends[0][good],
            dst=ends[1] if good is None else ends[1][good],
            weights=weights if good is None or weights is None else weights[good],
            features=row_validation.keep_rows(good, features),
            bad=collector.bad_rows(),
            nbytes=batch.nbytes + sum(piece.nbytes for piece in pieces.values()),
        )

    def _edge_weights(
        self,
        etype: str,
        collector: BadRowCollector,
        values: Mapping[str, Array],
        pieces: Mapping[str, ColumnPiece],
    ) -> Weights | None:
        name = self._weights.get(etype)
        if name is None:
            return None
        weights, bad_mask = columns.parse_weights(values[name].reshape(-1))
        if bad_mask is not None:
            rows, ordinals = np.flatnonzero(bad_mask), collector.batch.ordinals
            positions = rows if ordinals is None else ordinals[rows]
            collector.record_external(
                positions,
                tuple(
                    pieces[name].bad_row(position, name, row_validation.weight_error)
                    for position in positions.tolist()
                ),
            )
        return weights


def _edge_table(data: DataFiles, file: tuple[Path, str]) -> TableReader:
    path, label = file
    name = data.format.get("name")
    if not path.is_file():
        raise InvalidRequest(f"{label}: no such file")
    if name == "csv":
        return CsvTable(
            [file],
            CsvOptions(
                delimiter=str(data.format.get("delimiter", ",")),
                header=False,
                columns=("src", "dst"),
            ),
        )
    if name == "parquet":
        return ParquetTable([file])
    if name == "numpy":
        return NpyTable(
            {column: [part] for column, part in edge_columns(NpyFile.open(path, label)).items()}
        )
    raise InvalidRequest(f"{label}: format={name!r}: expected csv, numpy or parquet")


def _end_columns(table: TableReader, file: tuple[Path, str]) -> tuple[str, str]:
    """Return the names of the source and destination columns."""
    if isinstance(table, NpyTable):
        return ("src", "dst") if table.has_column("src") else ("edges[0]", "edges[1]")
    if isinstance(table, ParquetTable):
        names = open_parquet(*file).schema_arrow.names
        if len(names) != 2:
            raise mismatch_error(
                file[1], 2, len(names), f"columns (sources, destinations): {', '.join(names)}"
            )
        return names[0], names[1]
    return "src", "dst"
