"""Euler's JSON graphs as sources: that of 2.0, with or without the euler.meta that its converter wrote, and the blocks of 1.x."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.foreign import as_name
from asterism.formats.chunks import CHUNK_BYTES, CHUNK_ROWS, BadRow, EdgeChunk, Exists, Ids, Mask, NodeChunk, bounded, only
from asterism.formats.eulerblocks import COLUMNS, Blocks
from asterism.formats.eulermeta import read_meta
from asterism.formats.eulerrows import Bad, Rows, features_of, head
from asterism.formats.jsonarrays import Arrays, Element
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema

META = "euler.meta"
LABEL = "graph_label"
_LOOKED_UP = 1 << 16
"""Edges whose ends are looked up at a time."""
Types = NDArray[np.int32]
Found = dict[str, tuple[str, int]]
"""Features of a type: kind and, where dense, how many values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Rows of one type, and what was left out beside them."""

    owner: str
    rows: Rows
    bad: tuple[BadRow, ...]
    nbytes: int

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.rows.lines[0] if self.rows.lines else 0


@dataclass(slots=True)
class _Survey:
    """What a first reading finds."""

    nodes: dict[str, Found] = field(default_factory=dict)
    edges: dict[str, Found] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], None] = field(default_factory=dict)
    """(relation, from, to), as they come."""
    rows: int = 0


class _Ends:
    """Of which type each node is: 12 bytes a node."""

    def __init__(self) -> None:
        self._ids, self._types = array("q"), array("i")
        self._sorted: tuple[Ids, Types] | None = None

    def add(self, node: int, type_id: int) -> None:
        """Note a node."""
        self._ids.append(node)
        self._types.append(type_id)

    def settle(self, path: Path, names: list[str]) -> None:
        """Sort, once; a node of two types is refused, for nobody could tell which is meant."""
        if self._sorted is not None:
            return
        ids, types = np.array(self._ids, np.int64), np.array(self._types, np.int32)
        self._ids, self._types = array("q"), array("i")
        order = np.argsort(ids, kind="stable")
        ids, types = ids[order], types[order]
        twice = np.flatnonzero((ids[1:] == ids[:-1]) & (types[1:] != types[:-1]))
        if len(twice):
            at = twice[0]
            raise InvalidRequest(
                f"{path}: node {ids[at]} is of type {names[types[at]]!r} and of type {names[types[at + 1]]!r}; give each node one type"
            )
        self._sorted = ids, types

    def types_of(self, nodes: Ids) -> Types:
        """int32[n], -1 for what is no node."""
        assert self._sorted is not None
        ids, types = self._sorted
        if not len(ids):
            return np.full(len(nodes), -1, np.int32)
        at = np.minimum(np.searchsorted(ids, nodes), len(ids) - 1)
        return np.where(ids[at] == nodes, types[at], np.int32(-1))


class EulerSource:
    """A graph as Euler's tools take it: one object with the lists ``nodes`` and ``edges``, or, of Euler 1.x, a block for each node.

    It is read once when it is opened, for its types and features, and once for its rows, an element at a time. An edge type of Euler's
    becomes a relation: a triple for each pair of node types that it joins.

    Parameters
    ----------
    path : Path
        The JSON file. An ``euler.meta`` beside it says which numbers types have, and how wide dense features are; beside blocks, their meta.
    chunk_rows : int
        Rows of a chunk at most.
    rename : mapping, optional
        New names of features.
    blocks : bool
        Whether the file is one of Euler 1.x.
    """

    def __init__(self, path: Path, *, chunk_rows: int = CHUNK_ROWS, rename: Mapping[str, str] | None = None, blocks: bool = False) -> None:
        self._path, self._chunk_rows, self._rename = path, chunk_rows, dict(rename or {})
        self._told: Arrays | Blocks
        self._columns: Mapping[str, Mapping[str, str]] = COLUMNS if blocks else {}
        if blocks:
            self._told = Blocks(path)
            self._meta_path, self._meta = self._told.meta_path, self._told.meta()
        else:
            self._told, beside = Arrays(path), path.with_name(META)
            self._meta_path = beside if beside.is_file() else None
            self._meta = read_meta(beside) if self._meta_path else None
        self._ends = _Ends()
        found = self._surveyed()
        self._total_rows = found.rows
        try:
            self._node_types, self._schema = self._made(found)
        except InvalidRequest as error:
            raise InvalidRequest(f"{path}: {error}") from error

    # -- the first reading ----------------------------------------------------------------------------------------

    def _surveyed(self) -> _Survey:
        found = _Survey()
        for name in self._meta.node_types if self._meta else ():
            found.nodes[name] = {}
        for name in self._meta.edge_types if self._meta else ():
            found.edges[name] = {}
        waiting: list[tuple[int, int, str]] = []
        early = False
        for element in self._told.all():
            found.rows += element.array in ("nodes", "edges")
            if element.array == "nodes":
                self._note_node(found, element)
            elif element.array == "edges":
                early = not self._told.holds("nodes")  # nobody knows yet of which types their ends are
                if not early:
                    self._ends.settle(self._path, list(found.nodes))
                    self._note_edge(found, element, waiting)
        if not found.nodes:
            raise InvalidRequest(
                f'{self._path}: no node of it can be read; expected {{"nodes": [{{"id", "type", "weight", "features"}}], "edges": []}}'
            )
        self._ends.settle(self._path, list(found.nodes))
        for element in self._told.of("edges") if early else ():
            self._note_edge(found, element, waiting)
        self._join(found, waiting)
        return found

    def _note_node(self, found: _Survey, element: Element) -> None:
        try:
            (node,), kind = head(element.value, ("id",))
            self._note(found.nodes.setdefault(kind, {}), element.value, self._meta.node_dimensions if self._meta else {})
        except Bad:
            return  # it is told when rows are read
        self._ends.add(node, list(found.nodes).index(kind))

    def _note_edge(self, found: _Survey, element: Element, waiting: list[tuple[int, int, str]]) -> None:
        try:
            (src, dst), kind = head(element.value, ("src", "dst"))
            self._note(found.edges.setdefault(kind, {}), element.value, self._meta.edge_dimensions if self._meta else {})
        except Bad:
            return
        waiting.append((src, dst, kind))
        if len(waiting) == _LOOKED_UP:
            self._join(found, waiting)

    def _join(self, found: _Survey, waiting: list[tuple[int, int, str]]) -> None:
        """Note which triples edges are of."""
        if not waiting:
            return
        near, far = (self._ends.types_of(np.array(column, np.int64)) for column in list(zip(*waiting, strict=True))[:2])
        names = list(found.nodes)
        for kind, a, b in dict.fromkeys(zip((kind for _, _, kind in waiting), near.tolist(), far.tolist(), strict=True)):
            if a >= 0 and b >= 0:
                found.triples[kind, names[a], names[b]] = None
        waiting.clear()

    @staticmethod
    def _note(features: Found, row: Mapping[str, Any], widths: Mapping[str, int]) -> None:
        for name, kind, value in features_of(row):
            if name not in features or (kind == "dense" and not features[name][1]):
                width = len(value) if kind == "dense" and isinstance(value, list) else 0
                features[name] = kind, widths.get(name, width) if kind == "dense" else 0

    def _made(self, found: _Survey) -> tuple[list[str], Schema]:
        names = [as_name(name) for name in found.nodes]
        nodes = []
        for name, features in zip(names, found.nodes.values(), strict=True):
            made = self._features(features)
            label = LABEL if any(feature.name == LABEL and feature.kind == "bytes" for feature in made) else ""
            nodes.append(NodeType(name=name, weighted=True, features=made, graph_label=label))
        edges = []
        for kind, features in found.edges.items():
            # A type that joins nothing keeps its number by a triple that is empty.
            ends = [(near, far) for relation, near, far in found.triples if relation == kind] or [(next(iter(found.nodes)),) * 2]
            edges += [
                EdgeType(src_type=as_name(near), relation=as_name(kind), dst_type=as_name(far), weighted=True, features=self._features(features))
                for near, far in ends
            ]
        return names, Schema(node_types=tuple(nodes), edge_types=tuple(edges), ids="global")

    def _features(self, found: Found) -> tuple[Feature, ...]:
        return tuple(
            Feature(
                name=self._rename.get(name, name),
                kind=kind,
                dtype="int64" if kind == "ragged" else "float32",
                shape=(max(width, 1),) if kind == "dense" else (),
            )
            for name, (kind, width) in found.items()
        )

    # -- as `Source` ----------------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """As `Source.schema`."""
        return self._schema

    @property
    def options(self) -> Mapping[str, Any]:
        """As `Source.options`."""
        return {"chunk_rows": self._chunk_rows, "rename": self._rename}

    @property
    def files(self) -> tuple[Path, ...]:
        """As `Source.files`."""
        return (self._path,) if self._meta_path is None else (self._path, self._meta_path)

    @property
    def total_rows(self) -> int | None:
        """As `Source.total_rows`."""
        return self._total_rows

    @property
    def total_bytes(self) -> int:
        """As `Source.total_bytes`."""
        return self._path.stat().st_size

    def node_chunks(self) -> Iterator[NodeChunk]:
        """As `Source.node_chunks`."""
        for batch in self._batches("nodes", ("id",), {node.name: node.features for node in self._schema.node_types}):
            (ids,), weights, features = batch.rows.arrays()
            yield from bounded(
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

    def edge_chunks(self, exists: Exists | None = None) -> Iterator[EdgeChunk]:
        """As `Source.edge_chunks`."""
        types = len(self._node_types)
        for batch in self._batches("edges", ("src", "dst"), {edge.relation: edge.features for edge in self._schema.edge_types}):
            (src, dst), weights, features = batch.rows.arrays()
            near, far = self._known(src, exists), self._known(dst, exists)
            told = sorted(
                [*batch.bad, *self._strangers(batch, "src", src, near < 0), *self._strangers(batch, "dst", dst, (near >= 0) & (far < 0))], key=_row
            )
            whole = EdgeChunk(
                etype="", file=self._path.name, first_row=batch.line, src=src, dst=dst, weights=weights, features=features, nbytes=batch.nbytes
            )
            pairs = np.where((near < 0) | (far < 0), -1, near * types + far)
            bad, nbytes = tuple(told), batch.nbytes
            for pair in dict.fromkeys(pairs[pairs >= 0].tolist()):
                mine = pairs == pair
                name = f"{self._node_types[pair // types]}:{batch.owner}:{self._node_types[pair % types]}"
                first = batch.rows.lines[int(np.argmax(mine))]
                yield from bounded(replace(only(whole, mine), etype=name, first_row=first, bad=bad, nbytes=nbytes))
                bad, nbytes = (), 0
            if bad or nbytes:
                yield replace(only(whole, pairs >= 0), etype=self._schema.edge_types[0].name, bad=bad)

    def _batches(self, array_name: str, ends: tuple[str, ...], features: Mapping[str, tuple[Feature, ...]]) -> Iterator[_Batch]:
        """The rows of one of the file's lists, by type, as many at a time as a chunk has."""
        held: dict[str, Rows] = {}
        bad: list[BadRow] = []
        called = self._columns.get(array_name, {})
        count = nbytes = 0
        for element in self._told.of(array_name):
            nbytes += element.nbytes
            try:
                ids, kind = head(element.value, ends)
                owner = as_name(kind)
                if owner not in features:
                    raise Bad("type", kind, "no row of this type can be read")
                held.setdefault(owner, Rows(features[owner], len(ends))).take(ids, element.value, self._rename, element.line)
                count += 1
            except Bad as error:
                column, value, reason = error.args
                column = called.get(column, column)
                bad.append(BadRow(file=self._path.name, row=element.line, column=column, value=value, reason=reason))
            if count + len(bad) >= self._chunk_rows or nbytes >= CHUNK_BYTES:
                yield from _flushed(held, bad, nbytes, ends, features)
                held, bad, count, nbytes = {}, [], 0, 0
        yield from _flushed(held, bad, nbytes, ends, features)

    def _known(self, nodes: Ids, exists: Exists | None) -> Types:
        """The type of each node, -1 of what is none: it is not in the file, or was left out."""
        types = self._ends.types_of(nodes)
        for type_id in np.unique(types[types >= 0]).tolist() if exists is not None else ():
            mine = np.flatnonzero(types == type_id)
            types[mine[~exists(self._node_types[type_id], nodes[mine])]] = -1  # type: ignore[misc]  # there is one, or there are no turns
        return types

    def _strangers(self, batch: _Batch, column: str, nodes: Ids, strange: Mask) -> Iterator[BadRow]:
        for row in np.flatnonzero(strange).tolist():
            value = str(nodes[row])
            named = self._columns.get("edges", {}).get(column, column)
            yield BadRow(file=self._path.name, row=batch.rows.lines[row], column=named, value=value, reason="there is no such node")


def _row(bad: BadRow) -> int:
    return bad.row


def _flushed(
    held: Mapping[str, Rows], bad: list[BadRow], nbytes: int, ends: tuple[str, ...], features: Mapping[str, tuple[Feature, ...]]
) -> Iterator[_Batch]:
    """What is held, type by type; the first has the bad rows and the bytes of all."""
    if not held and not bad:
        return
    rest, told = nbytes, tuple(bad)
    for owner, rows in (held or {next(iter(features), ""): Rows((), len(ends))}).items():
        yield _Batch(owner=owner, rows=rows, bad=told, nbytes=rest)
        rest, told = 0, ()
