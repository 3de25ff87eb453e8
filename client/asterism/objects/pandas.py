"""pandas' frames: a row is an edge, or a node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.objects.asked import Asked
from asterism.objects.columns import Attributes
from asterism.objects.tables import EdgeTable, NodeTable, Tables
from asterism.objects.triples import triple_of
from asterism.records import Ids
from asterism_proto.errors import InvalidRequest

_ID = "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes:
    """The nodes of one type, by what frames call them."""

    name: str
    index: Any
    """``pandas.Index`` of labels."""
    whole: bool
    """Whether labels are the ids."""
    frame: Any
    """None where the nodes are those that edges name."""

    def ids(self, what: str, labels: Any) -> Ids:
        """int64[n] of what a column of edges names."""
        missing = np.flatnonzero(labels.isna().to_numpy())
        at = self.index.get_indexer(labels)
        wrong = missing if missing.size else np.flatnonzero(at < 0)
        if wrong.size:
            row = int(wrong[0])
            why = "it is missing" if missing.size else f"the frame of {self.name!r} has no such node"
            raise InvalidRequest(f"{what}, row {row}, value {_shown(labels, row)}: {why} ({len(wrong) - 1} more); repair the frames")
        ids: Ids = self.index.to_numpy().astype(np.int64)[at] if self.whole else at.astype(np.int64)
        return ids


def read(frames: Any, asked: Asked, attributes: Attributes) -> Tables:
    """A frame of edges, or frames by edge type, with frames of nodes beside them, as tables."""
    edges = {triple_of(key): frame for key, frame in frames.items()} if isinstance(frames, Mapping) else {asked.triple: frames}
    for triple, frame in edges.items():
        gone = [name for name in asked.ends if name not in frame.columns]
        if gone:
            raise InvalidRequest(
                f"the frame of {':'.join(triple)!r} has no column {gone[0]!r}, it has {', '.join(map(str, frame.columns))}; "
                "say which name the ends: ends=('from', 'to')"
            )
    given = asked.nodes if isinstance(asked.nodes, Mapping) else {} if asked.nodes is None else {asked.node_type: asked.nodes}
    types = dict.fromkeys([*given, *(name for triple in edges for name in (triple[0], triple[2]))])
    known = {name: _known(name, given.get(name), edges, asked.ends) for name in types}
    nodes, names = [], {}
    for name, found in known.items():
        raw = {} if found.frame is None else _attributes(found.frame, (_ID,))
        taken = attributes.take(name, len(found.index), raw, edges=False)
        ids: NDArray[Any] | None = found.index.to_numpy().astype(np.int64) if found.whole else None
        if not found.whole:
            names[name] = found.index.to_numpy(dtype=object)
        nodes.append(NodeTable(name=name, count=len(found.index), ids=ids, weights=taken.weights, features=taken.features))
    tables = []
    for triple, frame in edges.items():
        name = ":".join(triple)
        src, dst = (
            known[node_type].ids(f"edge type {name!r}: column {column!r}", frame[column])
            for node_type, column in zip((triple[0], triple[2]), asked.ends, strict=True)
        )
        taken = attributes.take(name, len(frame), _attributes(frame, asked.ends), edges=True)
        tables.append(EdgeTable(triple=triple, src=src, dst=dst, weights=taken.weights, features=taken.features))
    return Tables(what="pandas frames", nodes=tuple(nodes), edges=tuple(tables), names=names)


def _known(name: str, frame: Any, edges: Mapping[tuple[str, str, str], Any], ends: tuple[str, str]) -> _Nodes:
    pandas = sys.modules["pandas"]
    if frame is None:
        columns = [
            frame[column]
            for triple, frame in edges.items()
            for node_type, column in zip((triple[0], triple[2]), ends, strict=True)
            if node_type == name
        ]
        labels = pandas.Series(pandas.unique(pandas.concat(columns, ignore_index=True).dropna()))
    else:
        labels = frame[_ID] if _ID in frame.columns else frame.index.to_series()
        twice = np.flatnonzero(labels.duplicated().to_numpy() | labels.isna().to_numpy())
        if twice.size:
            row = int(twice[0])
            why = "it is missing" if pandas.isna(labels.iloc[row]) else "it is there already"
            raise InvalidRequest(f"node type {name!r}: the id of row {row} is {_shown(labels, row)}: {why}; repair the frame")
    whole = pandas.api.types.is_integer_dtype(labels.dtype)
    if whole:
        labels = labels.sort_values() if frame is None else labels
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < 1 << 63:
            wrong = labels.min() if labels.min() < 0 else labels.max()
            raise InvalidRequest(f"node type {name!r}: node {wrong}: ids are 0 or more, and below 2^63")
    return _Nodes(name=name, index=pandas.Index(labels), whole=whole, frame=frame)


def _shown(labels: Any, row: int) -> str:
    (value,) = labels.iloc[row : row + 1].tolist()
    return repr(value)


def _attributes(frame: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """The columns that are neither ids nor ends, as arrays, or as lists with None for what is missing."""
    found = {}
    for name in frame.columns:
        if name in keys:
            continue
        if not isinstance(name, str):
            raise InvalidRequest(f"column {name!r}: expected a text for a name; rename it in the frame")
        held = frame[name]
        plain = isinstance(held.dtype, np.dtype) and held.dtype != object
        found[name] = held.to_numpy() if plain else _listed(held)
    return found


def _listed(held: Any) -> list[Any]:
    """A column of texts, categories, nullable numbers or objects as Python's values; what is missing is None."""
    missing = held.isna().to_numpy()
    values: list[Any] = held.tolist()
    if missing.any():
        for row in np.flatnonzero(missing).tolist():
            values[row] = None
    return values
