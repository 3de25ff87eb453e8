"""CSV, Parquet and NumPy files that a schema file describes, as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from asterism.formats import edges as edge_rows
from asterism.formats import sieve
from asterism.formats.chunks import CHUNK_BYTES, CHUNK_ROWS, EdgeChunk, Exists, Features, Ids, NodeChunk, Weights, bounded
from asterism.formats.csvfiles import CsvTable
from asterism.formats.keys import Keys, Seen
from asterism.formats.npyfiles import NpyFile, NpyTable
from asterism.formats.parquetfiles import ParquetTable
from asterism.formats.sieve import Sieve, sieved
from asterism.formats.spec import FeatureSpec, NodeSpec, TableSpec, read_spec, settled
from asterism.formats.tables import Batch, Table, spans
from asterism_proto.errors import InvalidRequest
from asterism_proto.names import COLUMN
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema


def open_table(spec: TableSpec) -> Table:
    """The files of a type behind their port."""
    if spec.format == "csv":
        return CsvTable(spec.files[""], spec.csv)
    if spec.format == "parquet":
        return ParquetTable(spec.files[""])
    return NpyTable({name: [NpyFile.open(path, label) for path, label in files] for name, files in spec.files.items()})


def row_bytes(features: tuple[Feature, ...]) -> int:
    """Bytes of a row's ids, weight and dense features."""
    return 20 + sum(np.dtype(f.dtype).itemsize * int(np.prod(f.shape, dtype=object)) for f in features if f.kind == "dense")


class PlainSource:
    """Files that a schema file describes.

    Parameters
    ----------
    path : Path
        The schema file.
    root : Path, optional
        The folder that its file names start from, in place of what it says itself.
    chunk_rows : int
        Rows of a chunk at most.
    """

    def __init__(self, path: Path, *, root: Path | None = None, chunk_rows: int = CHUNK_ROWS) -> None:
        self.spec = read_spec(path, root)
        self.chunk_rows = chunk_rows
        self.tables: dict[str, Table] = {}
        self._nodes: dict[str, NodeSpec] = {}
        self._keys: dict[str, Keys] = {}
        for node in self.spec.nodes:
            if node.table is not None:
                self.tables[node.name] = open_table(node.table)
                node = replace(node, features=self._settle(node.name, node.features))
                self._describe(node.name, [node.id, node.key, node.weight])
            self._nodes[node.name] = node
        self._edges = []
        for edge in self.spec.edges:
            self.tables[edge.name] = open_table(edge.table)
            self._describe(edge.name, [edge.src, edge.dst, edge.weight])
            self._edges.append(replace(edge, features=self._settle(edge.name, edge.features)))
        self._schema = self._made()
        if self._schema.named:
            self._check_named()
        numbered = [node.name for node in self._nodes.values() if node.id is None and (node.table or node.count)]
        if self._schema.ids == "global" and numbered and len(self._nodes) > 1:
            raise InvalidRequest(
                f"{path}: with `ids: global` no two types share an id, but {', '.join(numbered)} would be numbered from 0; give an `id` column"
            )

    def _check_named(self) -> None:
        """Refuse what gives nodes no names, in a space where strings are ids."""
        for node in self._nodes.values():
            if node.key or node.count or (node.table is not None and node.id is None):
                raise InvalidRequest(f"node type {node.name!r}: with `ids: string` nodes have names: give `files` with an `id`, not `key` or `count`")
        for edge in self._edges:
            if edge.missing == "create" and (edge.aggregate or edge.self_loops):
                word = "aggregate" if edge.aggregate else "self_loops"
                raise InvalidRequest(
                    f"edge type {edge.name!r}: with `ids: string` and `missing: create` every edge has its ends' names with it, and what "
                    f"`{word}` makes has none; load the nodes from files of their own"
                )

    def _settle(self, owner: str, features: tuple[FeatureSpec, ...]) -> tuple[FeatureSpec, ...]:
        found = []
        for spec in features:
            kinds = [self.tables[owner].describe(column) for column in spec.columns]
            known = kinds[0].kind != "text"
            found.append(settled(spec, f"type {owner!r}", kinds[0].kind, kinds[0].dtype, kinds[0].shape) if known else spec)
        return tuple(found)

    def _describe(self, owner: str, columns: list[str | None]) -> None:
        """Refuse columns that are not there before anything is read."""
        for column in columns:
            if column is not None:
                self.tables[owner].describe(column)

    def _made(self) -> Schema:
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
        made: list[EdgeType] = []
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
            made.append(forward)
            if edge.reverse is not None:
                made.append(replace(forward, src_type=dst, relation=edge.reverse, dst_type=src))
        schema = Schema(node_types=nodes, edge_types=tuple(made), **self.spec.settings)
        for edge in self._edges:
            for end in (edge.name.split(":")[0], edge.name.split(":")[2]):
                if edge.missing == "create" and self._nodes[end].key:
                    raise InvalidRequest(
                        f"edge type {edge.name!r}: the nodes of {end!r} are known by `key`, so all come from its files: no `missing: create`"
                    )
        return schema

    @property
    def schema(self) -> Schema:
        """As `Source.schema`."""
        return self._schema

    @property
    def options(self) -> Mapping[str, Any]:
        """As `Source.options`."""
        return {"root": str(self.spec.root.resolve()), "schema": self.spec.text, "chunk_rows": self.chunk_rows}

    @property
    def files(self) -> tuple[Path, ...]:
        """As `Source.files`."""
        specs = [node.table for node in self.spec.nodes if node.table is not None] + [edge.table for edge in self.spec.edges]
        return (self.spec.path, *(path for spec in specs for files in spec.files.values() for path, _ in files))

    @property
    def total_rows(self) -> int | None:
        """As `Source.total_rows`."""
        counts = [node.count or 0 for node in self._nodes.values() if node.table is None]
        for edge in self._edges:
            if edge.aggregate or edge.self_loops:
                return None
            rows = self.tables[edge.name].rows
            counts.append(-1 if rows is None else rows * (2 if edge.reverse or edge.symmetry else 1))
        for node in self._nodes.values():
            if node.table is not None:
                rows = self.tables[node.name].rows
                counts.append(-1 if rows is None else rows)
        return None if -1 in counts else sum(counts)

    @property
    def total_bytes(self) -> int:
        """As `Source.total_bytes`."""
        return sum(table.nbytes for table in self.tables.values())

    def limit(self, features: tuple[FeatureSpec, ...]) -> int:
        """Rows of a batch."""
        return max(1, min(self.chunk_rows, CHUNK_BYTES // row_bytes(tuple(spec.feature for spec in features))))

    def keys(self, ntype: str) -> Keys | None:
        """The names of a type's nodes, where they are known by name; read on first use."""
        node = self._nodes[ntype]
        if node.key is None:
            return None
        if ntype not in self._keys:
            self._keys[ntype] = Keys.read(self.tables[ntype], node.key, self.chunk_rows)
        return self._keys[ntype]

    def counted(self, ntype: str) -> int | None:
        """n, where the nodes of a type are known to be 0 .. n - 1."""
        node = self._nodes[ntype]
        if node.table is None:
            return node.count
        # Arrays that are taken as they are hold no bad rows, so no number is left out.
        untouched = node.id is None and node.key is None and node.weight is None and not any("dtype" in spec.declared for spec in node.features)
        return self.tables[ntype].rows if untouched and node.table.format == "numpy" else None

    def node_chunks(self) -> Iterator[NodeChunk]:
        """As `Source.node_chunks`."""
        for node in self._nodes.values():
            yield from self._node_type(node)

    def nodes_of(self, ntype: str) -> Iterator[Ids]:
        """The ids of one type, chunk by chunk."""
        for chunk in self._node_type(self._nodes[ntype]):
            yield chunk.ids

    def _node_type(self, node: NodeSpec) -> Iterator[NodeChunk]:
        if node.table is None:
            for start, stop in spans(node.count or 0, self.chunk_rows):
                if stop > start:
                    yield NodeChunk(ntype=node.name, file=self.spec.path.name, first_row=start, ids=np.arange(start, stop))
            return
        keys = self.keys(node.name)
        seen = Seen(len(keys)) if keys is not None else None
        whole = pa.string() if self._schema.named else pa.int64()
        named: list[tuple[str, pa.DataType]] = [(node.id, whole)] if node.id else [(node.key, pa.string())] if node.key else []
        columns = sieve.wanted(named, node.weight, node.features)
        if not columns:
            raise InvalidRequest(f"node type {node.name!r}: no id, key, weight or feature is read from its files; give `count` in place of `files`")
        row = 0
        for batch in self.tables[node.name].batches(columns, self.limit(node.features)):
            (ids, weights, features), found = sieved(batch, self._taker(node, keys, row))
            if seen is not None:
                found.note(str(node.key), seen.again(ids, found.keep), lambda value: "the name is there already")
            keep = found.keep
            chunk = NodeChunk(
                ntype=node.name,
                file=batch.file,
                first_row=batch.first_row,
                ids=ids if keep is None else ids[keep],
                weights=weights if keep is None or weights is None else weights[keep],
                features=sieve.kept(keep, features),
                bad=found.rows(),
                nbytes=batch.nbytes,
            )
            yield from bounded(chunk)
            row += batch.size

    @property
    def salt(self) -> int | None:
        """What ids of names are made with; None where ids are whole numbers."""
        return self._schema.salt if self._schema.named else None

    def _taker(self, node: NodeSpec, keys: Keys | None, row: int) -> Callable[[Batch, Sieve], tuple[Ids, Weights | None, Features]]:
        def take(batch: Batch, found: Sieve) -> tuple[Ids, Weights | None, Features]:
            if node.id is not None and self.salt is not None:
                ids, called = sieve.read_names(found, node.id, self.salt)
                return ids, sieve.read_weights(found, node.weight), {COLUMN: called, **sieve.read_features(found, node.features)}
            if node.id is not None:
                ids = sieve.read_ids(found, node.id)
            elif keys is not None:
                ids, unknown = keys.ids(batch.column(str(node.key)))
                found.note(str(node.key), unknown, lambda value: "the name is missing")
            else:
                ids = row + (np.arange(batch.rows) if batch.ordinals is None else batch.ordinals)
            return ids, sieve.read_weights(found, node.weight), sieve.read_features(found, node.features)

        return take

    def edge_chunks(self, exists: Exists | None = None) -> Iterator[EdgeChunk]:
        """As `Source.edge_chunks`."""
        for edge in self._edges:
            yield from edge_rows.edge_type(self, edge, exists)
