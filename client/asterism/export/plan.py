"""What an export writes: types in DGL's order and by their written names, and the columns of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism.export.source import Array, EdgeRows, NodeRows
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import NAMES, EdgeType, Feature, NodeType, Schema

_WRITTEN_AS = {"bool": "uint8", "uint16": "int32", "uint32": "int64", "uint64": "int64"}
"""Element types that DGL has no tensors of, and what holds their values."""
_BATCH_BYTES, _BATCH_ROWS = 32 << 20, 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """One column of a type."""

    name: str
    """As written."""
    feature: str | None
    """As stored; None: the weight."""
    dtype: np.dtype[Any]
    """As written."""
    shape: tuple[int, ...]

    def of(self, rows: NodeRows | EdgeRows) -> Array:
        """This column of a batch, as it is written."""
        if self.feature is None:
            return rows.weights
        found = rows.features[self.feature]
        if isinstance(found, tuple):
            raise TypeError(f"feature {self.feature!r} came ragged, the schema says dense")
        if found.dtype == np.uint64 and found.size and int(found.max()) > np.iinfo(np.int64).max:
            raise InvalidRequest(f"feature {self.feature!r}: {found.max()} does not fit int64, DGL's widest integer")
        return found.astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A node type or an edge type, as it is read and as it is written."""

    name: str
    """In the schema."""
    label: str
    """In DGL: a node type's name, an edge type's ``src:relation:dst``."""
    type_id: int
    """In the schema; the written one is the position in the plan."""
    columns: tuple[Values, ...]
    src: int = -1
    """Of an edge type: the position of its sources' type in the plan."""
    dst: int = -1

    @property
    def names(self) -> list[str]:
        """The features to scan for."""
        return [column.feature for column in self.columns if column.feature is not None]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as it is read."""
        return 32 + sum(column.dtype.itemsize * int(np.prod(column.shape)) for column in self.columns)

    @property
    def batch_rows(self) -> int:
        """How many rows to ask for at once, so that a batch stays small."""
        return max(1, min(_BATCH_ROWS, _BATCH_BYTES // self.row_bytes))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        columns = [{"name": c.name, "feature": c.feature, "dtype": c.dtype.str, "shape": list(c.shape)} for c in self.columns]
        return {"name": self.name, "label": self.label, "type_id": self.type_id, "src": self.src, "dst": self.dst, "columns": columns}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Kind:
        """The reverse of `to_dict`."""
        columns = tuple(Values(name=c["name"], feature=c["feature"], dtype=np.dtype(c["dtype"]), shape=tuple(c["shape"])) for c in told["columns"])
        return cls(name=told["name"], label=told["label"], type_id=told["type_id"], src=told["src"], dst=told["dst"], columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The types of an export, by written type id."""

    nodes: tuple[Kind, ...]
    edges: tuple[Kind, ...]
    warnings: tuple[str, ...]

    @property
    def typed(self) -> bool:
        """Whether DGL takes the graph for a heterograph."""
        return len(self.nodes) > 1 or len(self.edges) > 1

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "nodes": [kind.to_dict() for kind in self.nodes],
            "edges": [kind.to_dict() for kind in self.edges],
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Plan:
        """The reverse of `to_dict`."""
        nodes, edges = (tuple(Kind.from_dict(kind) for kind in told[what]) for what in ("nodes", "edges"))
        return cls(nodes=nodes, edges=edges, warnings=tuple(told["warnings"]))


def checked_name(what: str, name: str) -> str:
    """``name``, unless DGL would take it apart or a file can not be called so."""
    if not re.fullmatch(r"[^/:\s\x00]{1,200}", name) or name in (".", ".."):
        raise InvalidRequest(f"{what} {name!r}: DGL needs a name without '/', ':' and white space; choose another")
    return name


def plan(schema: Schema, *, homogeneous: bool, weight: str | None) -> Plan:
    """The plan for a schema.

    Parameters
    ----------
    schema : Schema
        Of the space.
    homogeneous : bool
        Write the one node type as ``_N`` and the one edge type as ``_N:_E:_N``.
    weight : str or None
        The feature that the weights of weighted types are written as; None: leave them out.
    """
    if not schema.edge_types:
        raise InvalidRequest("the space has no edge type; DGL does not load a partition without one")
    if homogeneous and (len(schema.node_types), len(schema.edge_types)) != (1, 1):
        raise InvalidRequest(
            f"homogeneous: the space has {len(schema.node_types)} node types and {len(schema.edge_types)} edge types; "
            "only a graph with one of each can go without their names"
        )
    if weight is not None:
        checked_name("weight", weight)
    warnings: list[str] = []
    # DGL sorts names, so that a graph built by hand and this one agree on type ids.
    ordered = sorted(schema.node_types, key=lambda t: t.name)
    place = {node_type.name: i for i, node_type in enumerate(ordered)}
    nodes = tuple(
        Kind(
            name=t.name,
            label="_N" if homogeneous else checked_name("node type", t.name),
            type_id=schema.node_types.index(t),
            columns=_columns(f"node type {t.name}", t, weight, warnings),
        )
        for t in ordered
    )
    edges = tuple(
        Kind(
            name=t.name,
            label="_N:_E:_N" if homogeneous else ":".join(checked_name("edge type", name) for name in (t.src_type, t.relation, t.dst_type)),
            type_id=schema.edge_types.index(t),
            columns=_columns(f"edge type {t.name}", t, weight, warnings),
            src=place[t.src_type],
            dst=place[t.dst_type],
        )
        for t in sorted(schema.edge_types, key=lambda t: (t.src_type, t.relation, t.dst_type))
    )
    return Plan(nodes=nodes, edges=edges, warnings=tuple(warnings))


def _columns(what: str, owner: NodeType | EdgeType, weight: str | None, warnings: list[str]) -> tuple[Values, ...]:
    dense: Sequence[Feature] = [feature for feature in owner.features if feature.kind == "dense"]
    for feature in owner.features:
        checked_name("feature", feature.name)
        if feature == NAMES:
            continue  # what nodes are called is written beside their ids
        if feature.kind != "dense":
            warnings.append(f"{what}: feature {feature.name!r} is {feature.kind} and left out: DGL's tensors are dense")
    warnings.extend(
        f"{what}: feature {f.name!r} is {f.dtype}, which DGL does not have, and written as {_WRITTEN_AS[f.dtype]}"
        for f in dense
        if f.dtype in _WRITTEN_AS and f.dtype != "bool"
    )
    columns = [Values(name=f.name, feature=f.name, dtype=np.dtype(_WRITTEN_AS.get(f.dtype, f.dtype)), shape=f.shape) for f in dense]
    if owner.weighted and weight is not None:
        if any(feature.name == weight for feature in owner.features):
            raise InvalidRequest(f"{what} has a feature {weight!r} already; give the weights another name, or None to leave them out")
        columns.append(Values(name=weight, feature=None, dtype=np.dtype(np.float32), shape=()))
    return tuple(columns)
