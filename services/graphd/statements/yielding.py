"""The columns of what was drawn or read: ids, types, weights, and features of nodes, edges and ends of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_proto.errors import AsterismError, NotFound
from asterism_proto.schema import EdgeType, NodeType
from graphd.statements.binding import Bindings
from graphd.statements.faults import placed
from graphd.statements.features import Features
from graphd.statements.records import Column as Asked
from graphd.statements.records import Draw, Item, Named
from graphd.statements.table import Array, Column, Table, of_array, of_codes, of_columns

DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "vertices": ("id", "type"),
    "like": ("like", "id", "type"),
    "edges": ("src", "dst", "type", "weight"),
    "neighbors": ("src", "dst", "type", "weight"),
    "top": ("src", "dst", "type", "weight"),
    "go": ("src", "dst", "type", "weight"),
    "layer": ("id", "type", "probability"),
    "layers": ("step", "id", "type", "probability"),
    "negatives": ("row", "id", "type"),
    "walk": ("path",),
}
"""What a statement without YIELD gives."""
_OF_EDGES = frozenset({"src", "dst", "weight", "edge_id", "row", "col"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeRows:
    """Rows that are nodes."""

    ids: NDArray[np.int64]
    types: NDArray[np.int32]
    """Node type ids."""
    version: int
    own: Mapping[str, Array] = field(default_factory=dict)
    """Further columns by name."""

    def column(self, features: Features, title: str, asked: Asked) -> Column:
        """One column."""
        name, kinds = asked.name.text, features.graph.schema.node_types
        if asked.of:
            raise NotFound("a node has no ends; only edges have")
        if not asked.quoted:
            if name == "id":
                return _of_ids(features, title, self.ids, self.version)
            if name == "type":
                return of_codes(title, self.types, [kind.name for kind in kinds])
            if name == "like" and name in self.own:
                return _of_ids(features, title, self.own[name], self.version)
            if name in self.own:
                return of_array(title, self.own[name])
        return features.column(title, asked, kinds, features.nodes(), self.ids, self.types)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeRows:
    """Rows that are edges: of each the end that one comes from, and the other one."""

    near: NDArray[np.int64]
    far: NDArray[np.int64]
    types: NDArray[np.int32]
    """Edge type ids."""
    against: NDArray[np.bool_] | bool = False
    """Whether an edge was followed against its direction: it leads from far to near."""
    version: int
    own: Mapping[str, Array] = field(default_factory=dict)

    def column(self, features: Features, title: str, asked: Asked) -> Column:
        """One column."""
        name, schema = asked.name.text, features.graph.schema
        if asked.of or (name in ("src", "dst") and not asked.quoted):
            return self._of_end(features, title, asked, asked.of or name)
        if not asked.quoted:
            if name == "type":
                return of_codes(title, self.types, [kind.name for kind in schema.edge_types])
            own = {"id": "edge_id"}.get(name, name)
            if own in self.own:
                return of_array(title, self.own[own])
        if "edge_id" not in self.own:
            raise NotFound(f"an edge of this statement has {', '.join(['src', 'dst', 'type', *self.own])}; no {name!r}")
        return features.column(title, asked, schema.edge_types, features.edges(), self.own["edge_id"], self.types)

    def _of_end(self, features: Features, title: str, asked: Asked, end: str) -> Column:
        """A column of one of the ends, or its id."""
        schema, own = features.graph.schema, not asked.of or (not asked.quoted and asked.name.text == "id")
        if end in ("near", "far") or isinstance(self.against, bool):
            near = end == "near" or (end == "src" and self.against is False) or (end == "dst" and self.against is True)
            ids = self.near if near else self.far
        else:
            ids = np.where(np.asarray(self.against) == (end == "dst"), self.near, self.far)
        if own:
            return _of_ids(features, title, ids, self.version)
        starts, ends = ([*(schema.node_type_id(getattr(edge, of)) for edge in schema.edge_types), -1] for of in ("src_type", "dst_type"))
        against = np.asarray(self.against)
        is_src = np.asarray({"src": np.True_, "dst": np.False_, "near": ~against, "far": against}[end])
        kinds = np.where(is_src, np.array(starts, np.int32)[self.types], np.array(ends, np.int32)[self.types])
        if asked.name.text == "type" and not asked.quoted:
            return of_codes(title, kinds, [kind.name for kind in schema.node_types])
        both = not isinstance(self.against, bool) and end in ("near", "far")
        sides = ((starts, both or bool(is_src.all())), (ends, both or not is_src.all()))
        possible = {of[edge] for edge in features.edges() for of, there in sides if there}
        return features.column(title, asked, schema.node_types, possible, ids, kinds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathRows:
    """Rows that are walks."""

    version: int
    own: Mapping[str, Array]
    types: NDArray[np.int32]
    """Edge type ids [rows, steps]."""

    def column(self, features: Features, title: str, asked: Asked) -> Column:
        """One column."""
        name = asked.name.text
        if name == "types" and not asked.of:
            return of_codes(title, self.types, [kind.name for kind in features.graph.schema.edge_types])
        if asked.of or name not in self.own:
            raise NotFound(f"a walk has {', '.join(self.own)} and types; no {name!r}")
        if name in ("path", "start"):
            return _of_ids(features, title, self.own[name], self.version)
        return of_array(title, self.own[name])


def _of_ids(features: Features, title: str, ids: Array, version: int) -> Column:
    """Nodes, by what they are called where that is a string."""
    if not features.graph.schema.named:
        return of_array(title, ids)
    names, codes = np.unique(features.graph.node_names(ids, version=version or None), return_inverse=True)
    return of_codes(title, codes.reshape(ids.shape).astype(np.int32), names.tolist())


Rows = NodeRows | EdgeRows | PathRows


def joined(pieces: Sequence[EdgeRows]) -> EdgeRows:
    """Rows behind one another."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    return EdgeRows(
        near=np.concatenate([one.near for one in pieces]),
        far=np.concatenate([one.far for one in pieces]),
        types=np.concatenate([one.types for one in pieces]),
        against=np.concatenate([np.broadcast_to(one.against, len(one.near)) for one in pieces]),
        version=max(one.version for one in pieces),
        own={name: np.concatenate([one.own[name] for one in pieces]) for name in first.own},
    )


def taken(rows: EdgeRows, places: NDArray[np.int64]) -> EdgeRows:
    """Some rows, in that order."""
    against = rows.against if isinstance(rows.against, bool) else rows.against[places]
    own = {name: array[places] for name, array in rows.own.items()}
    return EdgeRows(near=rows.near[places], far=rows.far[places], types=rows.types[places], against=against, version=rows.version, own=own)


def items_of(draw: Draw, graph: Graph) -> tuple[Item, ...]:
    """The columns that a statement gives, where it says so and where it does not."""
    if draw.options.items:
        return draw.options.items
    if draw.kind == "fetch":
        features = tuple(feature.name for feature in owner_of(draw, graph).features)
        own = ("src", "dst", "edge_id") if draw.pairs else ("id",)
        return tuple(
            Item(column=Asked(name=Named(text=name), quoted=at >= len(own)), alias=Named(text=name)) for at, name in enumerate((*own, *features))
        )
    return _defaults("like" if draw.like else draw.kind, draw.first is not None)


@cache
def _defaults(kind: str, stepping: bool) -> tuple[Item, ...]:
    return tuple(Item(column=Asked(name=Named(text=name))) for name in (*(("step",) if stepping else ()), *DEFAULTS[kind]))


def owner_of(draw: Draw, graph: Graph) -> NodeType | EdgeType:
    """The type whose features are fetched: of nodes where there is one of the name, otherwise of edges."""
    name, schema = draw.types[0].text, graph.schema
    kind = None if draw.pairs else next((kind for kind in schema.node_types if kind.name == name), None)
    return kind if kind is not None else schema.edge_types[schema.edge_type_id(name)]


def wants(items: Sequence[Item]) -> frozenset[str]:
    """What rows must have, beside ids and types, for columns."""
    found = set()
    for item in items:
        column = item.column
        if column.of:
            found.add("end")
        elif not column.quoted and column.name.text in (
            "weight",
            "probability",
            "src",
            "dst",
            "row",
            "col",
            "step",
            "like",
            "start",
            "path",
            "types",
        ):
            found.add(column.name.text)
        elif column.quoted or column.name.text != "type":
            found.add("edge_id")  # an edge's own, or a feature that is kept under it
    return frozenset(found)


def of_edges(wanted: frozenset[str]) -> bool:
    """Whether columns are those of edges between layers, and not of a layer's nodes."""
    return bool(wanted & {"end", "src", "dst", "row", "col", "weight"})


def table(rows: Rows, features: Features, bindings: Bindings) -> Table:
    """The table of what was drawn, with columns for the items of ``features``.

    Raises
    ------
    NotFound
        Where there is no such column, with its place.
    """
    columns = []
    for item in features.items:
        try:
            columns.append(rows.column(features, item.title, item.column))
        except AsterismError as error:
            if error.place is not None or not isinstance(error, NotFound):
                raise
            raise placed(NotFound, bindings.text, item.column.at, error.message) from None
    return of_columns(columns)
