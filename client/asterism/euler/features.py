"""Features of nodes and edges, and types of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.arrays import Features, FeatureValue, Ids, NodeFeatures, Ragged2, Values
from asterism.euler.layers import Layered
from asterism.euler.sampling import same_hops
from asterism.euler.types import UNKNOWN, TypesAsked, nodes_of
from asterism.euler.values import filled, rows_as_sparse
from asterism.foreign import as_name
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.schema import EdgeType, NodeType

EDGES_AT_A_TIME = 4096
"""Edges whose ids are looked up in one call: their ends are asked for as two lists."""

Columns = Mapping[str, Sequence[FeatureValue]]
"""By feature: its columns of each type that has it; a row is empty, or zero, in all but one."""
KINDS = {"dense": "dense", "ragged": "sparse", "bytes": "binary"}


class Featured(Layered):
    """The part that reads features.

    A feature that some types have only is missing of nodes of the others, as it is of nodes that are not there; one that no type has is
    NotFound. ``thread_num`` is taken and means nothing: features of many nodes are asked for in pieces side by side anyway.
    """

    def get_dense_feature(
        self, nodes: ArrayLike, feature_names: str | Sequence[str], dimensions: int | Sequence[int], thread_num: int = 1
    ) -> list[Any]:
        """Dense features of nodes.

        Parameters
        ----------
        nodes : int64
            Laid flat: n nodes.
        feature_names : list of str
        dimensions : list of int
            Of each; a wider one than the feature's own is filled up with zeros.

        Returns
        -------
        list of float32[n, dimension]
            Zeros where there is no node, or no feature of it.

        Raises
        ------
        InvalidRequest
            Where a dimension is smaller than the feature's own.
        """
        ids, names = nodes_of(nodes), _names(feature_names)
        return self._dense(self._of_nodes(ids, names, "dense"), names, dimensions, len(ids))

    def get_sparse_feature(
        self,
        nodes: ArrayLike,
        feature_names: str | Sequence[str],
        default_values: int | Sequence[int] | None = None,
        thread_num: int = 1,
    ) -> list[Any]:
        """Lists of whole numbers of nodes.

        Parameters
        ----------
        default_values : list of int, optional
            Of each feature: the one element of a node that has none; None: 0.

        Returns
        -------
        list of sparse int64[n, longest row]
        """
        names = _names(feature_names)
        return self._sparse(self._of_nodes(nodes_of(nodes), names, "ragged"), names, default_values)

    def get_binary_feature(self, nodes: ArrayLike, feature_names: str | Sequence[str], thread_num: int = 1) -> list[Any]:
        """Byte strings of nodes: a list of bytes [n]; empty where there is none."""
        names = _names(feature_names)
        return self._binary(self._of_nodes(nodes_of(nodes), names, "bytes"), names)

    def get_edge_dense_feature(
        self, edges: ArrayLike, feature_names: str | Sequence[str], dimensions: int | Sequence[int], thread_num: int = 1
    ) -> list[Any]:
        """Dense features of edges.

        Parameters
        ----------
        edges : int64[m, 3]
            Source, destination, number of the type. Of several such edges the first, by edge id, is meant.

        Returns
        -------
        list of float32[m, dimension]
            Zeros where there is no such edge.
        """
        names = _names(feature_names)
        return self._dense(self._of_edges(edges, names, "dense"), names, dimensions, len(_triples(edges)))

    def get_edge_sparse_feature(
        self, edges: ArrayLike, feature_names: str | Sequence[str], default_values: int | Sequence[int] | None = None, thread_num: int = 1
    ) -> list[Any]:
        """Lists of whole numbers of edges; as `get_sparse_feature` and `get_edge_dense_feature`."""
        names = _names(feature_names)
        return self._sparse(self._of_edges(edges, names, "ragged"), names, default_values)

    def get_edge_binary_feature(self, edges: ArrayLike, feature_names: str | Sequence[str], thread_num: int = 1) -> list[Any]:
        """Byte strings of edges; as `get_binary_feature` and `get_edge_dense_feature`."""
        names = _names(feature_names)
        return self._binary(self._of_edges(edges, names, "bytes"), names)

    def get_node_type(self, nodes: ArrayLike) -> Any:
        """The number of each node's type, int32 in the shape of ``nodes``; -2^31 where there is no such node."""
        types = self.graph.node_types(nodes_of(nodes), self._ntype)
        return self._to.dense(np.where(types < 0, UNKNOWN, types).reshape(np.asarray(nodes).shape))

    def sample_fanout_with_feature(
        self,
        nodes: ArrayLike,
        edge_types: Sequence[TypesAsked],
        count: Sequence[int],
        default_node: int,
        dense_feature_names: Sequence[str],
        dense_dimensions: Sequence[int],
        sparse_feature_names: Sequence[str],
        sparse_default_values: Sequence[int] | None,
        *,
        seed: int | None = None,
    ) -> tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]:
        """Draw as `sample_fanout` does, and bring features along in the same request.

        Returns
        -------
        neighbors, weights, types : list
            As of `sample_fanout`.
        dense : list of float32[entries, dimension]
            The features of the nodes, then those of each hop.
        sparse : list of sparse int64[entries, longest row]
            Likewise.
        """
        same_hops(edge_types, count)
        dense, sparse = _names(dense_feature_names), _names(sparse_feature_names)
        for names, kind in ((dense, "dense"), (sparse, "ragged")):
            _owners(self.graph.schema.node_types, names, kind)
        found = self.graph.sample_fanout(
            nodes_of(nodes), self._path("edge_types", edge_types), list(count), ntype=self._ntype, node_features=[*dense, *sparse], seed=seed
        )
        dense_columns, sparse_columns = [], []
        for entries, features in ((len(found.seeds), found.features), *((len(hop), hop.features) for hop in found.hops)):
            columns = _by_feature(features or {}, [*dense, *sparse])
            dense_columns += self._dense(columns, dense, dense_dimensions, entries)
            sparse_columns += self._sparse(columns, sparse, sparse_default_values)
        return (
            [self._to.dense(found.seeds), *(self._to.dense(filled(hop.nodes, default_node)) for hop in found.hops)],
            [self._to.dense(np.asarray(hop.weights)) for hop in found.hops],
            [self._to.dense(self._relation_numbers(hop.types)) for hop in found.hops],
            dense_columns,
            sparse_columns,
        )

    def _of_nodes(self, nodes: Ids, names: list[str], kind: str) -> Columns:
        owners = _owners(self.graph.schema.node_types, names, kind)
        graph = self._held() if len(owners) > 1 else self.graph
        return _by_feature({owner: graph.node_features(nodes, mine, owner) for owner, mine in owners.items()}, names)

    def _of_edges(self, edges: ArrayLike, names: list[str], kind: str) -> Columns:
        asked = _triples(edges)
        owners = _owners(self.graph.schema.edge_types, names, kind)
        graph = self._held()
        found: dict[str, Features] = {}
        for owner, mine in owners.items():
            of_owner = np.flatnonzero(asked[:, 2] == self._relation_of[self._triples.index(owner)])
            edge_ids = np.full(len(asked), -1, np.int64)
            for start in range(0, len(of_owner), EDGES_AT_A_TIME):
                piece = of_owner[start : start + EDGES_AT_A_TIME]
                src, row = np.unique(asked[piece, 0], return_inverse=True)
                dst, col = np.unique(asked[piece, 1], return_inverse=True)
                there = graph.adjacency(src, dst, owner, row_type=self._ntype, col_type=self._ntype, weights=False, edge_ids=True)
                # In order of edge ids within a pair, so that the first of a pair is the one that is meant.
                keys, first = np.unique(there.rows * len(dst) + there.cols, return_index=True)
                wanted = row * len(dst) + col
                at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
                known = keys[at] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)
                edge_ids[piece[known]] = np.asarray(there.edge_ids)[first[at[known]]]
            found[owner] = graph.edge_features(edge_ids, mine, owner)
        return _by_feature(found, names)

    def _dense(self, columns: Columns, names: list[str], dimensions: int | Sequence[int], rows: int) -> list[Any]:
        widths = _one_each("dimensions", dimensions, names)
        out = []
        for name, width in zip(names, widths, strict=True):
            total = np.zeros((rows, width), np.float32)
            for column in columns[name]:
                values = np.asarray(column).reshape(rows, -1) if rows else np.zeros((0, 0), np.float32)
                if values.shape[1] > width:
                    raise InvalidRequest(f"feature {name!r} has {values.shape[1]} values a row; dimension {width} would cut it")
                total[:, : values.shape[1]] += values
            out.append(self._to.dense(total))
        return out

    def _sparse(self, columns: Columns, names: list[str], defaults: int | Sequence[int] | None) -> list[Any]:
        values = [0] * len(names) if defaults is None else _one_each("default_values", defaults, names)
        return [rows_as_sparse(self._to, _with_default(_merged(columns[name], "int64"), value)) for name, value in zip(names, values, strict=True)]

    def _binary(self, columns: Columns, names: list[str]) -> list[Any]:
        out = []
        for name in names:
            indptr, values = _merged(columns[name], "uint8")
            text = values.tobytes()
            out.append(self._to.texts([text[start:stop] for start, stop in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)]))
        return out


def _names(names: str | Sequence[str]) -> list[str]:
    return [as_name(name) for name in ([names] if isinstance(names, str) else names)]


def _triples(edges: ArrayLike) -> Ids:
    given = np.asarray(edges)
    if given.size == 0:
        return np.zeros((0, 3), np.int64)
    if given.ndim != 2 or given.shape[1] != 3:
        raise InvalidRequest(f"edges has shape {list(given.shape)}; expected a row (source, destination, type) for each")
    return given.astype(np.int64, copy=False)


def _one_each(what: str, values: int | Sequence[int], names: Sequence[str]) -> list[int]:
    given = [int(value) for value in np.asarray(values).reshape(-1)]
    if len(given) != len(names):
        raise InvalidRequest(f"{what} {values!r}: expected one for each of {len(names)} features")
    return given


def _owners(types: Sequence[NodeType | EdgeType], names: Sequence[str], kind: str) -> dict[str, list[str]]:
    """Which types have which of the features; NotFound, or InvalidRequest where one is of another kind."""
    owners: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        kinds = {owner.name: feature.kind for owner in types for feature in owner.features if feature.name == name}
        if not kinds:
            raise NotFound(f"no type has a feature {name!r}; there are {', '.join(sorted({f.name for owner in types for f in owner.features}))}")
        for owner, found in kinds.items():
            if found != kind:
                raise InvalidRequest(f"feature {name!r} of {owner!r} is {KINDS[found]}, not {KINDS[kind]}")
            owners.setdefault(owner, []).append(name)
    return owners


def _by_feature(found: NodeFeatures, names: Sequence[str]) -> Columns:
    return {name: [columns[name] for columns in found.values() if name in columns] for name in names}


def _merged(columns: Sequence[FeatureValue], dtype: str) -> Ragged2:
    """Ragged columns of the same rows as one; a row is empty in all but one."""
    parts: list[Ragged2] = [column for column in columns if isinstance(column, tuple)]
    lengths: Ids = np.sum([np.diff(indptr) for indptr, _ in parts], axis=0)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values: Values = np.empty(indptr[-1], dtype)
    for mine, given in parts:
        values[np.repeat(indptr[:-1] - mine[:-1], np.diff(mine)) + np.arange(mine[-1])] = given
    return indptr, values


def _with_default(column: Ragged2, default: int) -> Ragged2:
    """A ragged column whose empty rows have one element."""
    indptr, values = column
    lengths = np.diff(indptr)
    wanted = np.maximum(lengths, 1)
    out = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int64)
    filled_up = np.full(out[-1], default, np.int64)
    filled_up[np.repeat(out[:-1] - indptr[:-1], lengths) + np.arange(indptr[-1])] = values
    return out, filled_up
