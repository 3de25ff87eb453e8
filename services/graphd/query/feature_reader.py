"""Features of rows of several types, with one read per type for all requested columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_model.schema import EdgeType, NodeType
from asterism_proto.errors import NotFound
from graphd.query.ast import ColumnRef, YieldItem
from graphd.query.table import Array, Ragged, TableColumn, feature_column

SchemaTypes = Sequence[NodeType] | Sequence[EdgeType]


@dataclass(slots=True, kw_only=True, eq=False)
class FeatureReader:
    """Reader of the features in a table's columns.

    Parameters
    ----------
    graph : Graph
    version : int
        Version of all features, the same as that of the rows.
    items : list of YieldItem
        Columns of the table.
    """

    graph: Graph
    version: int
    items: Sequence[YieldItem]
    possible_node_types: Callable[[], Collection[int]]
    """Returns the node types that rows may have.

    The type of a column depends on these, not on the types that happen to be sampled.
    """
    possible_edge_types: Callable[[], Collection[int]]
    """Returns the edge types that rows may have."""
    _read: dict[tuple[str, int], dict[str, Array | Ragged]] = field(default_factory=dict)
    """Features by (end, type) of the rows."""

    def column(
        self,
        title: str,
        column_ref: ColumnRef,
        schema_types: SchemaTypes,
        possible_types: Collection[int],
        ids: NDArray[np.int64],
        types: NDArray[np.int32],
    ) -> TableColumn:
        """Return a feature of rows; types without it give zeros, or empty rows.

        Parameters
        ----------
        title : str
            Name of the column in the table.
        column_ref : ColumnRef
        schema_types : list of NodeType or EdgeType
            All types of the schema.
        possible_types : collection of int
            Types that the rows may have.
        ids : ndarray of int64, shape (rows,)
            Ids of nodes or edges; -1 is missing.
        types : ndarray of int32, shape (rows,)
            Positions in ``schema_types``; -1 is missing.

        Raises
        ------
        NotFound
            If no possible type has the feature, or if it differs between types.
        """
        name = column_ref.name.text
        matching_types = [i for i in sorted(possible_types) if _has(schema_types[i], name)]
        if not matching_types:
            raise NotFound(
                f"no feature {name!r}: "
                f"{', '.join(schema_types[i].name for i in sorted(possible_types)) or 'no type'} "
                "has none of this name"
            )
        signatures = {_kind(schema_types[i], name) for i in matching_types}
        if len(signatures) > 1:
            raise NotFound(
                f"feature {name!r} has different types in "
                f"{', '.join(schema_types[i].name for i in matching_types)}; read one node or "
                "edge type at a time"
            )
        if len(possible_types) == 1:
            values = self._read_type(column_ref, schema_types, matching_types[0], ids)[name]
        else:
            values = _merge_types(
                [
                    (
                        np.flatnonzero(types == i),
                        self._read_type(column_ref, schema_types, i, ids[types == i])[name],
                    )
                    for i in matching_types
                ],
                len(ids),
            )
        if column_ref.element is not None:
            if (
                isinstance(values, tuple)
                or values.ndim < 2
                or column_ref.element >= values.shape[1]
            ):
                raise NotFound(f"feature {name!r} has no element [{column_ref.element}]")
            values = values[:, column_ref.element]
        return feature_column(title, signatures.pop()[0], values)

    def _read_type(
        self, column_ref: ColumnRef, schema_types: SchemaTypes, type_id: int, ids: NDArray[np.int64]
    ) -> dict[str, Array | Ragged]:
        """Return all requested features of one type at one end."""
        key, schema_type = (column_ref.end, type_id), schema_types[type_id]
        if key not in self._read:
            requested = [
                item.column.name.text for item in self.items if item.column.end == column_ref.end
            ]
            names = [name for name in dict.fromkeys(requested) if _has(schema_type, name)]
            if isinstance(schema_type, NodeType):
                self._read[key] = self.graph.node_features(
                    ids, names, schema_type.name, version=self.version
                )
            else:
                self._read[key] = self.graph.edge_features(
                    ids, names, schema_type.name, version=self.version
                )
        return self._read[key]


def _has(schema_type: NodeType | EdgeType, name: str) -> bool:
    return (name == "weight" and isinstance(schema_type, NodeType)) or any(
        feature.name == name for feature in schema_type.features
    )


def _kind(schema_type: NodeType | EdgeType, name: str) -> tuple[str, str, tuple[int, ...]]:
    if name == "weight" and isinstance(schema_type, NodeType):
        return "dense", "float32", ()
    feature = schema_type.feature(name)
    return feature.kind, feature.dtype, feature.shape


def _merge_types(pieces: Sequence[tuple[Array, Array | Ragged]], rows: int) -> Array | Ragged:
    """Merge the columns of several types; each piece has the positions of its rows."""
    first = pieces[0][1]
    if isinstance(first, tuple):
        lengths = np.zeros(rows, np.int64)
        for positions, piece in pieces:
            lengths[positions] = np.diff(piece[0])
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        values = np.zeros(indptr[-1], first[1].dtype)
        for positions, piece in pieces:
            values[
                np.repeat(indptr[positions] - piece[0][:-1], np.diff(piece[0]))
                + np.arange(len(piece[1]))
            ] = piece[1]
        return indptr, values
    out = np.zeros((rows, *first.shape[1:]), first.dtype)
    for positions, piece in pieces:
        out[positions] = piece
    return out
