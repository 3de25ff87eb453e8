"""Features of rows of several types, each type asked for once with all that is wanted of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_proto.errors import NotFound
from asterism_proto.schema import EdgeType, NodeType
from graphd.statements.records import Column as Asked
from graphd.statements.records import Item
from graphd.statements.table import Array, Column, Ragged, of_feature

Owners = Sequence[NodeType] | Sequence[EdgeType]


@dataclass(slots=True, kw_only=True, eq=False)
class Features:
    """The features that the columns of a table are made of.

    Parameters
    ----------
    graph : Graph
    version : int
        Of all of them: the one that the rows are of.
    items : list of Item
        The table's columns.
    """

    graph: Graph
    version: int
    items: Sequence[Item]
    nodes: Callable[[], Collection[int]]
    """Gives the node types that rows can be of, whichever were drawn: what a column is does not depend on that."""
    edges: Callable[[], Collection[int]]
    """The edge types, likewise."""
    _read: dict[tuple[str, int], dict[str, Array | Ragged]] = field(default_factory=dict)
    """By end and type: what was read of that end's rows of the type."""

    def column(self, title: str, asked: Asked, owners: Owners, possible: Collection[int], ids: NDArray[np.int64], types: NDArray[np.int32]) -> Column:
        """A feature of rows; those of types without it have zeros, or empty rows.

        Parameters
        ----------
        title : str
            What the column is called.
        asked : Column
        owners : list of NodeType or EdgeType
            All types.
        possible : collection of int
            Those that rows can be of.
        ids : int64[rows]
            Of nodes, or of edges; -1 is none.
        types : int32[rows]
            Places in ``owners``; -1 is none.

        Raises
        ------
        NotFound
            Where none of the possible types has it, or they have different things by its name.
        """
        name = asked.name.text
        having = [i for i in sorted(possible) if _has(owners[i], name)]
        if not having:
            raise NotFound(f"no feature {name!r}: {', '.join(owners[i].name for i in sorted(possible)) or 'no type'} has none of that name")
        kinds = {_kind(owners[i], name) for i in having}
        if len(kinds) > 1:
            raise NotFound(f"feature {name!r} is not the same thing of {', '.join(owners[i].name for i in having)}; ask for one type at a time")
        if len(possible) == 1:
            found = self._of(asked, owners, having[0], ids)[name]
        else:
            found = _together([(np.flatnonzero(types == i), self._of(asked, owners, i, ids[types == i])[name]) for i in having], len(ids))
        if asked.element is not None:
            if isinstance(found, tuple) or found.ndim < 2 or asked.element >= found.shape[1]:
                raise NotFound(f"feature {name!r} has no value [{asked.element}]")
            found = found[:, asked.element]
        return of_feature(title, kinds.pop()[0], found)

    def _of(self, asked: Asked, owners: Owners, at: int, ids: NDArray[np.int64]) -> dict[str, Array | Ragged]:
        """What is wanted of one type at one end."""
        key, owner = (asked.of, at), owners[at]
        if key not in self._read:
            wanted = [item.column.name.text for item in self.items if item.column.of == asked.of]
            names = [name for name in dict.fromkeys(wanted) if _has(owner, name)]
            if isinstance(owner, NodeType):
                self._read[key] = self.graph.node_features(ids, names, owner.name, version=self.version)
            else:
                self._read[key] = self.graph.edge_features(ids, names, owner.name, version=self.version)
        return self._read[key]


def _has(owner: NodeType | EdgeType, name: str) -> bool:
    return (name == "weight" and isinstance(owner, NodeType)) or any(feature.name == name for feature in owner.features)


def _kind(owner: NodeType | EdgeType, name: str) -> tuple[str, str, tuple[int, ...]]:
    if name == "weight" and isinstance(owner, NodeType):
        return "dense", "float32", ()
    feature = owner.feature(name)
    return feature.kind, feature.dtype, feature.shape


def _together(pieces: Sequence[tuple[Array, Array | Ragged]], rows: int) -> Array | Ragged:
    """Columns of several types as one, each where its rows are."""
    first = pieces[0][1]
    if isinstance(first, tuple):
        lengths = np.zeros(rows, np.int64)
        for places, piece in pieces:
            lengths[places] = np.diff(piece[0])
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        values = np.zeros(indptr[-1], first[1].dtype)
        for places, piece in pieces:
            values[np.repeat(indptr[places] - piece[0][:-1], np.diff(piece[0])) + np.arange(len(piece[1]))] = piece[1]
        return indptr, values
    out = np.zeros((rows, *first.shape[1:]), first.dtype)
    for places, piece in pieces:
        out[places] = piece
    return out
