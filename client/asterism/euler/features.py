"""Features of nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.euler.base import EulerCalls, flat_ids
from asterism.euler.sparse_tensors import fill_missing, ragged_to_sparse
from asterism.euler.type_ids import TypeSelector, require_same_hops
from asterism.name_conversion import as_name
from asterism.records.arrays import Features, FeatureValue, Ids, NodeFeatures, RaggedColumn, Values
from asterism_model.schema import EdgeType, NodeType
from asterism_proto.errors import InvalidRequest, NotFound

EDGES_PER_REQUEST = 4096
"""Maximum number of edges resolved to edge ids by one call.

Each call lists the sources and the destinations of its edges.
"""

FeatureColumns = Mapping[str, Sequence[FeatureValue]]
"""Columns of each feature, one per type that has it.

A row is empty, or zero, in all columns but one.
"""
FEATURE_KINDS = {"dense": "dense", "ragged": "sparse", "bytes": "binary"}


class EulerFeatureCalls(EulerCalls):
    """Features of nodes and edges.

    Some features exist for some types only. For nodes of other types they are missing, as for nodes
    that do not exist. A feature that no type has raises NotFound. ``thread_num`` is ignored,
    because features of many nodes are requested in concurrent chunks anyway.
    """

    def get_dense_feature(
        self,
        nodes: ArrayLike,
        feature_names: str | Sequence[str],
        dimensions: int | Sequence[int],
        thread_num: int = 1,
    ) -> list[Any]:
        """Return dense features of nodes.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, flattened to n nodes.
        feature_names : str or list of str
            Names of features.
        dimensions : int or list of int
            Width of each result. A width larger than the feature's own is padded with zeros.
        thread_num : int
            Ignored; accepted for compatibility.

        Returns
        -------
        list of ndarray of float32, shape (n, dimension)
            One array per feature; zeros if the node or its feature is missing.

        Raises
        ------
        InvalidRequest
            If a dimension is smaller than that of the feature, or a feature is not dense.
        NotFound
            If no type has a feature of this name.
        """
        ids, names = flat_ids(nodes), _names(feature_names)
        return self._dense(self._node_columns(ids, names, "dense"), names, dimensions, len(ids))

    def get_sparse_feature(
        self,
        nodes: ArrayLike,
        feature_names: str | Sequence[str],
        default_values: int | Sequence[int] | None = None,
        thread_num: int = 1,
    ) -> list[Any]:
        """Return features of nodes that are lists of integers.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, flattened to n nodes.
        feature_names : str or list of str
            Names of features.
        default_values : int or list of int, optional
            For each feature, the single element of a node with an empty list. None: 0.
        thread_num : int
            Ignored; accepted for compatibility.

        Returns
        -------
        list of sparse tensors of int64, shape (n, longest row)
            One sparse tensor per feature.

        Raises
        ------
        InvalidRequest
            If a feature is not a list of integers.
        NotFound
            If no type has a feature of this name.
        """
        names = _names(feature_names)
        return self._sparse(
            self._node_columns(flat_ids(nodes), names, "ragged"), names, default_values
        )

    def get_binary_feature(
        self, nodes: ArrayLike, feature_names: str | Sequence[str], thread_num: int = 1
    ) -> list[Any]:
        """Return features of nodes that are byte strings.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, flattened to n nodes.
        feature_names : str or list of str
            Names of features.
        thread_num : int
            Ignored; accepted for compatibility.

        Returns
        -------
        list of arrays of bytes, shape (n,)
            One array per feature; an empty string if the node or its feature is missing.

        Raises
        ------
        InvalidRequest
            If a feature is not a byte string.
        NotFound
            If no type has a feature of this name.
        """
        names = _names(feature_names)
        return self._binary(self._node_columns(flat_ids(nodes), names, "bytes"), names)

    def get_edge_dense_feature(
        self,
        edges: ArrayLike,
        feature_names: str | Sequence[str],
        dimensions: int | Sequence[int],
        thread_num: int = 1,
    ) -> list[Any]:
        """Return dense features of edges.

        Parameters
        ----------
        edges : array_like of int64, shape (m, 3)
            Source, destination and number of the type of each edge. If several edges match, the one
            with the smallest edge id is read.
        feature_names : str or list of str
            Names of features.
        dimensions : int or list of int
            Width of each result. A width larger than the feature's own is padded with zeros.
        thread_num : int
            Ignored; accepted for compatibility.

        Returns
        -------
        list of ndarray of float32, shape (m, dimension)
            One array per feature; zeros if the edge or its feature is missing.

        Raises
        ------
        InvalidRequest
            If a dimension is smaller than that of the feature, or a feature is not dense.
        NotFound
            If no type has a feature of this name.
        """
        names = _names(feature_names)
        return self._dense(
            self._edge_columns(edges, names, "dense"), names, dimensions, len(_triples(edges))
        )

    def get_edge_sparse_feature(
        self,
        edges: ArrayLike,
        feature_names: str | Sequence[str],
        default_values: int | Sequence[int] | None = None,
        thread_num: int = 1,
    ) -> list[Any]:
        """Return features of edges that are lists of integers.

        Parameters
        ----------
        edges : array_like of int64, shape (m, 3)
            Source, destination and number of the type of each edge. If several edges match, the one
            with the smallest edge id is read.
        feature_names : str or list of str
            Names of features.
        default_values : int or list of int, optional
            For each feature, the single element of an edge with an empty list. None: 0.
        thread_num : int
            Ignored; accepted for compatibility.

        Returns
        -------
        list of sparse tensors of int64, shape (m, longest row)
            One sparse tensor per feature.

        Raises
        ------
        InvalidRequest
            If a feature is not a list of integers.
        NotFound
            If no type has a feature of this name.
        """
        names = _names(feature_names)
        return self._sparse(self._edge_columns(edges, names, "ragged"), names, default_values)

    def get_edge_binary_feature(
        self, edges: ArrayLike, feature_names: str | Sequence[str], thread_num: int = 1
    ) -> list[Any]:
        """Return features of edges that are byte strings.

        Parameters
        ----------
        edges : array_like of int64, shape (m, 3)
            Source, destination and number of the type of each edge. If several edges match, the one
            with the smallest edge id is read.
        feature_names : str or list of str
            Names of features.
        thread_num : int
            Ignored; accepted for compatibility.

        Returns
        -------
        list of arrays of bytes, shape (m,)
            One array per feature; an empty string if the edge or its feature is missing.

        Raises
        ------
        InvalidRequest
            If a feature is not a byte string.
        NotFound
            If no type has a feature of this name.
        """
        names = _names(feature_names)
        return self._binary(self._edge_columns(edges, names, "bytes"), names)

    def sample_fanout_with_feature(
        self,
        nodes: ArrayLike,
        edge_types: Sequence[TypeSelector],
        count: Sequence[int],
        default_node: int,
        dense_feature_names: Sequence[str],
        dense_dimensions: Sequence[int],
        sparse_feature_names: Sequence[str],
        sparse_default_values: Sequence[int] | None,
        *,
        seed: int | None = None,
    ) -> tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]:
        """Sample as `sample_fanout` does, and return features in the same request.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, flattened to n nodes.
        edge_types : list
            Edge types of each hop.
        count : list of int
            Neighbors per entry in each hop.
        default_node : int
            Id in place of a missing neighbor.
        dense_feature_names, sparse_feature_names : list of str
            Names of features.
        dense_dimensions : list of int
            Width of each dense feature, as for `get_dense_feature`.
        sparse_default_values : list of int, optional
            Default of each sparse feature, as for `get_sparse_feature`.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        neighbors, weights, types : list
            As for `sample_fanout`.
        dense : list of ndarray of float32, shape (entries, dimension)
            Dense features of the nodes, then of each hop.
        sparse : list of sparse tensors of int64, shape (entries, longest row)
            Sparse features in the same order.

        Raises
        ------
        InvalidRequest
            If the lists of hops differ in length, a feature is of another kind, or a dimension is
            too small.
        NotFound
            If no type has a feature of this name.
        """
        require_same_hops(edge_types, count)
        dense, sparse = _names(dense_feature_names), _names(sparse_feature_names)
        for names, kind in ((dense, "dense"), (sparse, "ragged")):
            _feature_owners(self.graph.schema.node_types, names, kind)
        sample = self.graph.sample_fanout(
            flat_ids(nodes),
            self._types.path("edge_types", edge_types),
            list(count),
            ntype=self._types.single_node_type,
            node_features=[*dense, *sparse],
            seed=seed,
        )
        dense_columns, sparse_columns = [], []
        for entries, features in (
            (len(sample.seeds), sample.features),
            *((len(hop), hop.features) for hop in sample.hops),
        ):
            columns = _by_feature(features or {}, [*dense, *sparse])
            dense_columns += self._dense(columns, dense, dense_dimensions, entries)
            sparse_columns += self._sparse(columns, sparse, sparse_default_values)
        return (
            [
                self._framework.dense(sample.seeds),
                *(
                    self._framework.dense(fill_missing(hop.nodes, default_node))
                    for hop in sample.hops
                ),
            ],
            [self._framework.dense(np.asarray(hop.weights)) for hop in sample.hops],
            [self._framework.dense(self._types.relation_numbers(hop.types)) for hop in sample.hops],
            dense_columns,
            sparse_columns,
        )

    def _node_columns(self, nodes: Ids, names: list[str], kind: str) -> FeatureColumns:
        owners = _feature_owners(self.graph.schema.node_types, names, kind)
        graph = self._pinned_graph() if len(owners) > 1 else self.graph
        return _by_feature(
            {
                owner: graph.node_features(nodes, owned_names, owner)
                for owner, owned_names in owners.items()
            },
            names,
        )

    def _edge_columns(self, edges: ArrayLike, names: list[str], kind: str) -> FeatureColumns:
        edge_triples = _triples(edges)
        owners = _feature_owners(self.graph.schema.edge_types, names, kind)
        graph = self._pinned_graph()
        features: dict[str, Features] = {}
        for owner, owned_names in owners.items():
            owner_rows = np.flatnonzero(edge_triples[:, 2] == self._types.relation_of(owner))
            edge_ids = np.full(len(edge_triples), -1, np.int64)
            for start in range(0, len(owner_rows), EDGES_PER_REQUEST):
                batch_rows = owner_rows[start : start + EDGES_PER_REQUEST]
                src, row = np.unique(edge_triples[batch_rows, 0], return_inverse=True)
                dst, col = np.unique(edge_triples[batch_rows, 1], return_inverse=True)
                adjacency = graph.adjacency(
                    src,
                    dst,
                    owner,
                    row_type=self._types.single_node_type,
                    col_type=self._types.single_node_type,
                    weights=False,
                    edge_ids=True,
                )
                # Edges of a pair are in order of edge ids, so the first one has the smallest id.
                keys, first = np.unique(
                    adjacency.rows * len(dst) + adjacency.cols, return_index=True
                )
                wanted_keys = row * len(dst) + col
                positions = np.minimum(np.searchsorted(keys, wanted_keys), max(len(keys) - 1, 0))
                is_present = (
                    keys[positions] == wanted_keys
                    if len(keys)
                    else np.zeros(len(wanted_keys), np.bool_)
                )
                edge_ids[batch_rows[is_present]] = np.asarray(adjacency.edge_ids)[
                    first[positions[is_present]]
                ]
            features[owner] = graph.edge_features(edge_ids, owned_names, owner)
        return _by_feature(features, names)

    def _dense(
        self, columns: FeatureColumns, names: list[str], dimensions: int | Sequence[int], rows: int
    ) -> list[Any]:
        widths = _repeat_for_names("dimensions", dimensions, names)
        tensors = []
        for name, width in zip(names, widths, strict=True):
            validation.count("dimensions", width)
            total = np.zeros((rows, width), np.float32)
            for column in columns[name]:
                values = (
                    np.asarray(column).reshape(rows, -1) if rows else np.zeros((0, 0), np.float32)
                )
                if values.shape[1] > width:
                    raise InvalidRequest(
                        f"dimension={width}: expected at least {values.shape[1]}, the number of "
                        f"values of feature {name!r}"
                    )
                total[:, : values.shape[1]] += values
            tensors.append(self._framework.dense(total))
        return tensors

    def _sparse(
        self, columns: FeatureColumns, names: list[str], defaults: int | Sequence[int] | None
    ) -> list[Any]:
        values = (
            [0] * len(names)
            if defaults is None
            else _repeat_for_names("default_values", defaults, names)
        )
        return [
            ragged_to_sparse(self._framework, _with_default(_merged(columns[name], "int64"), value))
            for name, value in zip(names, values, strict=True)
        ]

    def _binary(self, columns: FeatureColumns, names: list[str]) -> list[Any]:
        tensors = []
        for name in names:
            indptr, values = _merged(columns[name], "uint8")
            text = values.tobytes()
            tensors.append(
                self._framework.texts(
                    [
                        text[start:stop]
                        for start, stop in zip(
                            indptr[:-1].tolist(), indptr[1:].tolist(), strict=True
                        )
                    ]
                )
            )
        return tensors


def _names(names: str | Sequence[str]) -> list[str]:
    return [as_name(name) for name in validation.names(names)]


def _triples(edges: ArrayLike) -> Ids:
    array = validation.as_array("edges", edges, "integers")
    if array.size == 0:
        return np.zeros((0, 3), np.int64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InvalidRequest(
            f"edges of shape {list(array.shape)}: expected rows (source, destination, type), "
            "shape [m, 3]"
        )
    return validation.ids("edges", array.reshape(-1), minimum=-1).reshape(array.shape)


def _repeat_for_names(
    parameter: str, values: int | Sequence[int], names: Sequence[str]
) -> list[int]:
    array = validation.as_array(parameter, values, "integers").reshape(-1)
    numbers: list[int] = validation.ids(parameter, array, minimum=-validation.MAX_ID).tolist()
    if len(numbers) != len(names):
        raise InvalidRequest(
            f"{parameter}={values!r}: expected one value for each of {len(names)} features"
        )
    return numbers


def _feature_owners(
    types: Sequence[NodeType | EdgeType], names: Sequence[str], kind: str
) -> dict[str, list[str]]:
    """Return the features of each type that has any of them.

    Raise NotFound if no type has a feature, and InvalidRequest if a feature is of another kind.
    """
    owners: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        kinds = {
            owner.name: feature.kind
            for owner in types
            for feature in owner.features
            if feature.name == name
        }
        if not kinds:
            raise NotFound(
                f"feature {name!r}: expected a feature of a type; there are "
                f"{', '.join(sorted({f.name for owner in types for f in owner.features}))}"
            )
        for owner, feature_kind in kinds.items():
            if feature_kind != kind:
                raise InvalidRequest(
                    f"feature {name!r} of {owner!r}: expected a {FEATURE_KINDS[kind]} feature, "
                    f"this "
                    f"one is {FEATURE_KINDS[feature_kind]}"
                )
            owners.setdefault(owner, []).append(name)
    return owners


def _by_feature(features: NodeFeatures, names: Sequence[str]) -> FeatureColumns:
    return {
        name: [columns[name] for columns in features.values() if name in columns] for name in names
    }


def _merged(columns: Sequence[FeatureValue], dtype: str) -> RaggedColumn:
    """Merge ragged columns of the same rows; each row is empty in all but one of them."""
    parts: list[RaggedColumn] = [column for column in columns if isinstance(column, tuple)]
    lengths: Ids = np.sum([np.diff(indptr) for indptr, _ in parts], axis=0)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values: Values = np.empty(indptr[-1], dtype)
    for part_indptr, part_values in parts:
        values[
            np.repeat(indptr[:-1] - part_indptr[:-1], np.diff(part_indptr))
            + np.arange(part_indptr[-1])
        ] = part_values
    return indptr, values


def _with_default(column: RaggedColumn, default: int) -> RaggedColumn:
    """Return a ragged column with one default element in each empty row."""
    indptr, values = column
    lengths = np.diff(indptr)
    new_lengths = np.maximum(lengths, 1)
    new_indptr = np.concatenate([[0], np.cumsum(new_lengths)]).astype(np.int64)
    new_values = np.full(new_indptr[-1], default, np.int64)
    new_values[np.repeat(new_indptr[:-1] - indptr[:-1], lengths) + np.arange(indptr[-1])] = values
    return new_indptr, new_values
