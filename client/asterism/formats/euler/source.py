"""Sources for Euler's JSON graphs: 2.0, with or without euler.meta, and blocks of 1.x."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.formats.chunks import (
    CHUNK_BYTES,
    CHUNK_ROWS,
    BadRow,
    EdgeChunk,
    ExistsCheck,
    Ids,
    Mask,
    NodeChunk,
    filter_chunk,
    split_to_limit,
)
from asterism.formats.euler.json_arrays import ArrayElement, JsonArrays
from asterism.formats.euler.json_v1 import COLUMN_NAMES, EulerBlocks
from asterism.formats.euler.metadata import read_meta
from asterism.formats.euler.rows import BadRowError, RowBuffer, parse_features, parse_head
from asterism.name_conversion import as_name
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest

META = "euler.meta"
GRAPH_LABEL = "graph_label"
_LOOKUP_BATCH = 1 << 16
"""Number of edges to look up at a time."""
Types = NDArray[np.int32]
FoundFeatures = dict[str, tuple[str, int]]
"""Features of a type: the kind and, for dense features, the number of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Rows of one type, with the bad rows of the same section."""

    owner: str
    rows: RowBuffer
    bad: tuple[BadRow, ...]
    nbytes: int

    @property
    def line(self) -> int:
        """Line of the first row."""
        return self.rows.lines[0] if self.rows.lines else 0


@dataclass(slots=True)
class _Survey:
    """Result of the first pass over the file."""

    nodes: dict[str, FoundFeatures] = field(default_factory=dict)
    edges: dict[str, FoundFeatures] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], None] = field(default_factory=dict)
    """Triples (relation, source type, destination type), in order of appearance."""
    rows: int = 0
    nbytes: int = 0
    """Size of their text, which may be compressed in the file."""


class _NodeTypeIndex:
    """Index from nodes to types, 12 bytes per node."""

    def __init__(self) -> None:
        self._ids, self._types = array("q"), array("i")
        self._sorted: tuple[Ids, Types] | None = None

    def add(self, node: int, type_id: int) -> None:
        """Add a node."""
        self._ids.append(node)
        self._types.append(type_id)

    def freeze(self, path: Path, names: list[str]) -> None:
        """Sort the index once; raise InvalidRequest for a node with two types."""
        if self._sorted is not None:
            return
        ids, types = np.array(self._ids, np.int64), np.array(self._types, np.int32)
        self._ids, self._types = array("q"), array("i")
        order = np.argsort(ids, kind="stable")
        ids, types = ids[order], types[order]
        conflicts = np.flatnonzero((ids[1:] == ids[:-1]) & (types[1:] != types[:-1]))
        if len(conflicts):
            first = conflicts[0]
            raise InvalidRequest(
                f"{path}: node {ids[first]}: expected one type, found {names[types[first]]!r} and "
                f"{names[types[first + 1]]!r}"
            )
        self._sorted = ids, types

    def types_of(self, nodes: Ids) -> Types:
        """Return the type of each node, -1 if unknown; int32, shape (n,)."""
        assert self._sorted is not None
        ids, types = self._sorted
        if not len(ids):
            return np.full(len(nodes), -1, np.int32)
        positions = np.minimum(np.searchsorted(ids, nodes), len(ids) - 1)
        return np.where(ids[positions] == nodes, types[positions], np.int32(-1))


class EulerSource:
    """Graph in Euler's JSON.

    A file of 2.0 is one object with the lists ``nodes`` and ``edges``; a file of 1.x has a block
    for each node. It is read once on opening, for types and features, and once for its rows,
    element by element. An edge type of Euler becomes a relation, with a triple for each pair of
    node types that it joins.

    Parameters
    ----------
    path : Path
        JSON file, plain or compressed. An ``euler.meta`` next to it gives the numbers of types and
        the dimensions of dense features; for blocks, their meta file does.
    chunk_rows : int, default 262144
        Largest number of rows per chunk.
    rename : mapping, optional
        New names of features.
    blocks : bool, default False
        True for files of Euler 1.x.
    """

    def __init__(
        self,
        path: Path,
        *,
        chunk_rows: int = CHUNK_ROWS,
        rename: Mapping[str, str] | None = None,
        blocks: bool = False,
    ) -> None:
        self._path, self._chunk_rows, self._rename = path, chunk_rows, dict(rename or {})
        self._elements: JsonArrays | EulerBlocks
        self._columns: Mapping[str, Mapping[str, str]] = COLUMN_NAMES if blocks else {}
        if blocks:
            self._elements = EulerBlocks(path)
            self._meta_path, self._meta = self._elements.meta_path, self._elements.meta()
        else:
            self._elements, meta_path = JsonArrays(path), path.with_name(META)
            self._meta_path = meta_path if meta_path.is_file() else None
            self._meta = read_meta(meta_path) if self._meta_path else None
        self._node_index = _NodeTypeIndex()
        survey = self._survey()
        self._total_rows, self._text_bytes = survey.rows, survey.nbytes
        try:
            self._node_types, self._schema = self._build_schema(survey)
        except InvalidRequest as error:
            raise InvalidRequest(f"{path}: {error}") from error

    # -- the first reading -------------------------------------------------------------------------

    def _survey(self) -> _Survey:
        survey = _Survey()
        for name in self._meta.node_types if self._meta else ():
            survey.nodes[name] = {}
        for name in self._meta.edge_types if self._meta else ():
            survey.edges[name] = {}
        pending: list[tuple[int, int, str]] = []
        edges_first = False
        for element in self._elements.elements():
            survey.rows += element.array in ("nodes", "edges")
            survey.nbytes += element.nbytes
            if element.array == "nodes":
                self._note_node(survey, element)
            elif element.array == "edges":
                edges_first = not self._elements.has_array(
                    "nodes"
                )  # the types of their ends are not known yet
                if not edges_first:
                    self._node_index.freeze(self._path, list(survey.nodes))
                    self._note_edge(survey, element, pending)
        if not survey.nodes:
            raise InvalidRequest(
                f"{self._path}: expected at least one valid node, in "
                '{"nodes": [{"id", "type", "weight", "features"}], "edges": []}'
            )
        self._node_index.freeze(self._path, list(survey.nodes))
        for element in self._elements.elements_of("edges") if edges_first else ():
            self._note_edge(survey, element, pending)
        self._record_triples(survey, pending)
        return survey

    def _note_node(self, survey: _Survey, element: ArrayElement) -> None:
        try:
            (node,), kind = parse_head(element.value, ("id",))
            self._note(
                survey.nodes.setdefault(kind, {}),
                element.value,
                self._meta.node_dimensions if self._meta else {},
            )
        except BadRowError:
            return  # reported when rows are read
        self._node_index.add(node, list(survey.nodes).index(kind))

    def _note_edge(
        self, survey: _Survey, element: ArrayElement, pending: list[tuple[int, int, str]]
    ) -> None:
        try:
            (src, dst), kind = parse_head(element.value, ("src", "dst"))
            self._note(
                survey.edges.setdefault(kind, {}),
                element.value,
                self._meta.edge_dimensions if self._meta else {},
            )
        except BadRowError:
            return
        pending.append((src, dst, kind))
        if len(pending) == _LOOKUP_BATCH:
            self._record_triples(survey, pending)

    def _record_triples(self, survey: _Survey, pending: list[tuple[int, int, str]]) -> None:
        """Record the triples of pending edges."""
        if not pending:
            return
        src_types, dst_types = (
            self._node_index.types_of(np.array(column, np.int64))
            for column in list(zip(*pending, strict=True))[:2]
        )
        names = list(survey.nodes)
        for kind, a, b in dict.fromkeys(
            zip(
                (kind for _, _, kind in pending),
                src_types.tolist(),
                dst_types.tolist(),
                strict=True,
            )
        ):
            if a >= 0 and b >= 0:
                survey.triples[kind, names[a], names[b]] = None
        pending.clear()

    @staticmethod
    def _note(features: FoundFeatures, row: Mapping[str, Any], widths: Mapping[str, int]) -> None:
        for name, kind, value in parse_features(row):
            if name not in features or (kind == "dense" and not features[name][1]):
                width = len(value) if kind == "dense" and isinstance(value, list) else 0
                features[name] = kind, widths.get(name, width) if kind == "dense" else 0

    def _build_schema(self, survey: _Survey) -> tuple[list[str], Schema]:
        names = [as_name(name) for name in survey.nodes]
        nodes = []
        for name, features in zip(names, survey.nodes.values(), strict=True):
            node_features = self._features(features)
            label = (
                GRAPH_LABEL
                if any(
                    feature.name == GRAPH_LABEL and feature.kind == "bytes"
                    for feature in node_features
                )
                else ""
            )
            nodes.append(
                NodeType(name=name, weighted=True, features=node_features, graph_label=label)
            )
        edges = []
        for kind, features in survey.edges.items():
            # An unused type keeps its number through an empty triple.
            type_pairs = [
                (src_type, dst_type)
                for relation, src_type, dst_type in survey.triples
                if relation == kind
            ] or [(next(iter(survey.nodes)),) * 2]
            edges += [
                EdgeType(
                    src_type=as_name(src_type),
                    relation=as_name(kind),
                    dst_type=as_name(dst_type),
                    weighted=True,
                    features=self._features(features),
                )
                for src_type, dst_type in type_pairs
            ]
        return names, Schema(node_types=tuple(nodes), edge_types=tuple(edges), ids="global")

    def _features(self, survey_features: FoundFeatures) -> tuple[Feature, ...]:
        return tuple(
            Feature(
                name=self._rename.get(name, name),
                kind=kind,
                dtype="int64" if kind == "ragged" else "float32",
                shape=(max(width, 1),) if kind == "dense" else (),
            )
            for name, (kind, width) in survey_features.items()
        )

    # -- `GraphSource` -----------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """Schema of a space that can hold this graph; see `GraphSource.schema`."""
        return self._schema

    @property
    def options(self) -> Mapping[str, Any]:
        """Options on which the chunks depend; see `GraphSource.options`."""
        return {"chunk_rows": self._chunk_rows, "rename": self._rename}

    @property
    def files(self) -> tuple[Path, ...]:
        """JSON file, and its meta file if there is one."""
        return (self._path,) if self._meta_path is None else (self._path, self._meta_path)

    @property
    def total_rows(self) -> int | None:
        """Total number of nodes and edges, counted on opening."""
        return self._total_rows

    @property
    def total_bytes(self) -> int:
        """Total input in bytes; of a compressed file, the size of its text."""
        return max(self._path.stat().st_size, self._text_bytes)

    def node_chunks(self) -> Iterator[NodeChunk]:
        """Yield every node; see `GraphSource.node_chunks`."""
        for batch in self._batches(
            "nodes", ("id",), {node.name: node.features for node in self._schema.node_types}
        ):
            (ids,), weights, features = batch.rows.arrays()
            yield from split_to_limit(
                NodeChunk(
                    ntype=batch.owner,
                    file=self._path.name,
                    first_row=batch.line,
                    ids=ids,
                    weights=weights,
                    features=features,
                    bad=batch.bad,
                    nbytes=batch.nbytes,
                )
            )

    def edge_chunks(self, exists: ExistsCheck | None = None) -> Iterator[EdgeChunk]:
        """Yield every edge; see `GraphSource.edge_chunks`."""
        types = len(self._node_types)
        for batch in self._batches(
            "edges",
            ("src", "dst"),
            {edge.relation: edge.features for edge in self._schema.edge_types},
        ):
            (src, dst), weights, features = batch.rows.arrays()
            src_types, dst_types = (
                self._node_types_of(src, exists),
                self._node_types_of(dst, exists),
            )
            sorted_bad = sorted(
                [
                    *batch.bad,
                    *self._missing_ends(batch, "src", src, src_types < 0),
                    *self._missing_ends(batch, "dst", dst, (src_types >= 0) & (dst_types < 0)),
                ],
                key=_row_number,
            )
            batch_chunk = EdgeChunk(
                etype="",
                file=self._path.name,
                first_row=batch.line,
                src=src,
                dst=dst,
                weights=weights,
                features=features,
                nbytes=batch.nbytes,
            )
            pairs = np.where((src_types < 0) | (dst_types < 0), -1, src_types * types + dst_types)
            bad_rows, nbytes = tuple(sorted_bad), batch.nbytes
            for pair in dict.fromkeys(pairs[pairs >= 0].tolist()):
                of_type = pairs == pair
                src_type, dst_type = self._node_types[pair // types], self._node_types[pair % types]
                name = f"{src_type}:{batch.owner}:{dst_type}"
                first = batch.rows.lines[int(np.argmax(of_type))]
                yield from split_to_limit(
                    replace(
                        filter_chunk(batch_chunk, of_type),
                        etype=name,
                        first_row=first,
                        bad=bad_rows,
                        nbytes=nbytes,
                    )
                )
                bad_rows, nbytes = (), 0
            if bad_rows or nbytes:
                yield replace(
                    filter_chunk(batch_chunk, pairs >= 0),
                    etype=next((edge.name for edge in self._schema.edge_types), ""),
                    bad=bad_rows,
                )

    def _batches(
        self,
        array_name: str,
        end_columns: tuple[str, ...],
        features: Mapping[str, tuple[Feature, ...]],
    ) -> Iterator[_Batch]:
        """Yield the rows of one array, grouped by type, as many at a time as fit a chunk."""
        rows_by_type: dict[str, RowBuffer] = {}
        bad_rows: list[BadRow] = []
        column_names = self._columns.get(array_name, {})
        count = nbytes = 0
        for element in self._elements.elements_of(array_name):
            nbytes += element.nbytes
            try:
                ids, kind = parse_head(element.value, end_columns)
                owner = as_name(kind)
                if owner not in features:
                    raise BadRowError("type", kind, "expected at least one valid row of this type")
                rows_by_type.setdefault(owner, RowBuffer(features[owner], len(end_columns))).append(
                    ids, element.value, self._rename, element.line
                )
                count += 1
            except BadRowError as error:
                column, value, reason = error.args
                column = column_names.get(column, column)
                bad_rows.append(
                    BadRow(
                        file=self._path.name,
                        row=element.line,
                        column=column,
                        value=value,
                        reason=reason,
                    )
                )
            if count + len(bad_rows) >= self._chunk_rows or nbytes >= CHUNK_BYTES:
                yield from _flush(rows_by_type, bad_rows, nbytes, end_columns, features)
                rows_by_type, bad_rows, count, nbytes = {}, [], 0, 0
        yield from _flush(rows_by_type, bad_rows, nbytes, end_columns, features)

    def _node_types_of(self, nodes: Ids, exists: ExistsCheck | None) -> Types:
        """Return the type of each node, -1 for nodes that are unknown or were left out."""
        types = self._node_index.types_of(nodes)
        for type_id in np.unique(types[types >= 0]).tolist() if exists is not None else ():
            rows = np.flatnonzero(types == type_id)
            # The loop runs only if ``exists`` is given.
            types[rows[~exists(self._node_types[type_id], nodes[rows])]] = -1  # type: ignore[misc]
        return types

    def _missing_ends(
        self, batch: _Batch, column: str, nodes: Ids, missing: Mask
    ) -> Iterator[BadRow]:
        for row in np.flatnonzero(missing).tolist():
            value = str(nodes[row])
            column_name = self._columns.get("edges", {}).get(column, column)
            yield BadRow(
                file=self._path.name,
                row=batch.rows.lines[row],
                column=column_name,
                value=value,
                reason="there is no such node",
            )


def _row_number(bad_row: BadRow) -> int:
    return bad_row.row


def _flush(
    rows_by_type: Mapping[str, RowBuffer],
    bad_rows: list[BadRow],
    nbytes: int,
    end_columns: tuple[str, ...],
    features: Mapping[str, tuple[Feature, ...]],
) -> Iterator[_Batch]:
    """Yield the buffered rows by type; the first batch has all bad rows and bytes."""
    if not rows_by_type and not bad_rows:
        return
    remaining_bytes, remaining_bad = nbytes, tuple(bad_rows)
    for owner, rows in (
        rows_by_type or {next(iter(features), ""): RowBuffer((), len(end_columns))}
    ).items():
        yield _Batch(owner=owner, rows=rows, bad=remaining_bad, nbytes=remaining_bytes)
        remaining_bytes, remaining_bad = 0, ()
