"""Plan of an export: types sorted by written name, as in DGL, and their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism.export.graph_source import Array, ScannedEdges, ScannedNodes
from asterism_model.schema import STRING_ID_FEATURE, EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest

_DGL_DTYPES = {"bool": "uint8", "uint16": "int32", "uint32": "int64", "uint64": "int64"}
"""Replacements for element types that DGL's tensors do not support."""
_BATCH_BYTES, _BATCH_ROWS = 32 << 20, 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """One column of a type."""

    name: str
    """Name in the export."""
    feature: str | None
    """Name of the stored feature; None for the weight."""
    dtype: np.dtype[Any]
    """Dtype in the export."""
    shape: tuple[int, ...]

    def extract(self, rows: ScannedNodes | ScannedEdges) -> Array:
        """Return this column of a batch, in the exported dtype."""
        if self.feature is None:
            return rows.weights
        values = rows.features[self.feature]
        if isinstance(values, tuple):
            raise TypeError(f"feature {self.feature!r} came ragged, the schema says dense")
        if values.dtype == np.uint64 and values.size and int(values.max()) > np.iinfo(np.int64).max:
            raise InvalidRequest(
                f"feature {self.feature!r} with value {values.max()}: expected int64, DGL's "
                f"widest integer"
            )
        return values.astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypePlan:
    """Node type or edge type, with its stored and its exported form."""

    name: str
    """Name in the schema."""
    label: str
    """Name in DGL: a node type's name, or an edge type's ``src:relation:dst``."""
    type_id: int
    """Type id in the schema. The exported type id is the position in the plan."""
    columns: tuple[ColumnPlan, ...]
    src: int = -1
    """Position of the source node type in the plan; -1 for node types."""
    dst: int = -1

    @property
    def names(self) -> list[str]:
        """Names of the features to scan."""
        return [column.feature for column in self.columns if column.feature is not None]

    @property
    def row_bytes(self) -> int:
        """Bytes of a scanned row."""
        return 32 + sum(
            column.dtype.itemsize * int(np.prod(column.shape)) for column in self.columns
        )

    @property
    def batch_rows(self) -> int:
        """Number of rows to scan at once, so that a batch stays small."""
        return max(1, min(_BATCH_ROWS, _BATCH_BYTES // self.row_bytes))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in JSON types."""
        columns = [
            {"name": c.name, "feature": c.feature, "dtype": c.dtype.str, "shape": list(c.shape)}
            for c in self.columns
        ]
        return {
            "name": self.name,
            "label": self.label,
            "type_id": self.type_id,
            "src": self.src,
            "dst": self.dst,
            "columns": columns,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> TypePlan:
        """Create the plan from the result of `to_dict`."""
        columns = tuple(
            ColumnPlan(
                name=c["name"],
                feature=c["feature"],
                dtype=np.dtype(c["dtype"]),
                shape=tuple(c["shape"]),
            )
            for c in document["columns"]
        )
        return cls(
            name=document["name"],
            label=document["label"],
            type_id=document["type_id"],
            src=document["src"],
            dst=document["dst"],
            columns=columns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPlan:
    """Types of an export, by exported type id."""

    nodes: tuple[TypePlan, ...]
    edges: tuple[TypePlan, ...]
    warnings: tuple[str, ...]

    @property
    def is_heterogeneous(self) -> bool:
        """True if DGL treats the graph as a heterograph."""
        return len(self.nodes) > 1 or len(self.edges) > 1

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in JSON types."""
        return {
            "nodes": [kind.to_dict() for kind in self.nodes],
            "edges": [kind.to_dict() for kind in self.edges],
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ExportPlan:
        """Create the plan from the result of `to_dict`."""
        nodes, edges = (
            tuple(TypePlan.from_dict(kind) for kind in document[element])
            for element in ("nodes", "edges")
        )
        return cls(nodes=nodes, edges=edges, warnings=tuple(document["warnings"]))


def check_name(description: str, name: str) -> str:
    """Return ``name`` if DGL and file systems accept it; raise InvalidRequest otherwise."""
    if not re.fullmatch(r"[^/:\s\x00]{1,200}", name) or name in (".", ".."):
        raise InvalidRequest(
            f"{description} {name!r}: expected a name without '/', ':' and white space, as DGL "
            f"needs; "
            "choose another name"
        )
    return name


def make_plan(schema: Schema, *, homogeneous: bool, weight: str | None) -> ExportPlan:
    """Make the plan for a schema.

    Parameters
    ----------
    schema : Schema
        Schema of the space.
    homogeneous : bool
        Name the only node type ``_N`` and the only edge type ``_N:_E:_N``.
    weight : str or None
        Feature name under which the weights of weighted types are written. None omits them.

    Returns
    -------
    ExportPlan

    Raises
    ------
    InvalidRequest
        The schema or a name does not fit DGL.
    """
    if not schema.edge_types:
        raise InvalidRequest(
            "space: expected at least one edge type, because DGL loads no partition without one"
        )
    if homogeneous and (len(schema.node_types), len(schema.edge_types)) != (1, 1):
        raise InvalidRequest(
            f"homogeneous=True: expected one node type and one edge type, the space has "
            f"{len(schema.node_types)} and {len(schema.edge_types)}; pass homogeneous=False"
        )
    if weight is not None:
        check_name("weight", weight)
    warnings: list[str] = []
    # DGL sorts names, so graphs built by hand get the same type ids.
    node_types = sorted(schema.node_types, key=lambda t: t.name)
    type_index = {node_type.name: i for i, node_type in enumerate(node_types)}
    nodes = tuple(
        TypePlan(
            name=t.name,
            label="_N" if homogeneous else check_name("node type", t.name),
            type_id=schema.node_types.index(t),
            columns=_columns(f"node type {t.name}", t, weight, warnings),
        )
        for t in node_types
    )
    edges = tuple(
        TypePlan(
            name=t.name,
            label="_N:_E:_N"
            if homogeneous
            else ":".join(
                check_name("edge type", name) for name in (t.src_type, t.relation, t.dst_type)
            ),
            type_id=schema.edge_types.index(t),
            columns=_columns(f"edge type {t.name}", t, weight, warnings),
            src=type_index[t.src_type],
            dst=type_index[t.dst_type],
        )
        for t in sorted(schema.edge_types, key=lambda t: (t.src_type, t.relation, t.dst_type))
    )
    return ExportPlan(nodes=nodes, edges=edges, warnings=tuple(warnings))


def _columns(
    description: str, owner: NodeType | EdgeType, weight: str | None, warnings: list[str]
) -> tuple[ColumnPlan, ...]:
    dense: Sequence[Feature] = [feature for feature in owner.features if feature.kind == "dense"]
    for feature in owner.features:
        check_name("feature", feature.name)
        if feature == STRING_ID_FEATURE:
            continue  # string ids are written next to the numeric ids
        if feature.kind != "dense":
            warnings.append(
                f"{description}: feature {feature.name!r} is {feature.kind} and left out: "
                "DGL's tensors are dense"
            )
    warnings.extend(
        (
            f"{description}: feature {f.name!r} is {f.dtype}, which DGL does not have, and "
            f"written as {_DGL_DTYPES[f.dtype]}"
        )
        for f in dense
        if f.dtype in _DGL_DTYPES and f.dtype != "bool"
    )
    columns = [
        ColumnPlan(
            name=f.name,
            feature=f.name,
            dtype=np.dtype(_DGL_DTYPES.get(f.dtype, f.dtype)),
            shape=f.shape,
        )
        for f in dense
    ]
    if owner.weighted and weight is not None:
        if any(feature.name == weight for feature in owner.features):
            raise InvalidRequest(
                f"weight={weight!r}: expected a name that no feature of {description} has; pass "
                "another name, or None to leave weights out"
            )
        columns.append(ColumnPlan(name=weight, feature=None, dtype=np.dtype(np.float32), shape=()))
    return tuple(columns)
