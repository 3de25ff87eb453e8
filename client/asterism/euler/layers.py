"""Layers, adjacencies, and full neighborhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.euler.base import EulerCalls, flat_ids
from asterism.euler.sparse_tensors import fill_missing, sorted_sparse
from asterism.euler.type_ids import TypeSelector, require_same_hops
from asterism.records.arrays import Ids
from asterism.records.samples import Layer
from asterism_proto.errors import InvalidRequest

MEASURES = {"": "sum", "sqrt": "sqrt"}


class EulerLayerCalls(EulerCalls):
    """Layers that are sampled as a whole, and edges between lists of nodes."""

    def sample_neighbor_layerwise(
        self,
        nodes: ArrayLike,
        edge_types: TypeSelector,
        count: int,
        default_node: int = -1,
        weight_func: str = "",
        *,
        seed: int | None = None,
    ) -> tuple[Any, Any]:
        """Sample ``count`` nodes for each layer from the neighbors of all its nodes.

        Sampling is with replacement.

        Parameters
        ----------
        nodes : array_like of int64, shape (batch, width)
            One layer per row.
        edge_types : str, int, or list of these
            Edge types; -1: all.
        count : int
            Nodes to sample per layer.
        default_node : int
            Id in place of a missing node.
        weight_func : {"", "sqrt"}
            Weight of a neighbor: the sum of the weights of the edges to it, or the square root of
            that sum.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        neighbors : ndarray of int64, shape (batch, count)
            Sampled nodes.
        adjacency : sparse tensor of int64, shape (batch, width, count)
            1 for each pair of a node of the layer and a sampled node with an edge between them.

        Raises
        ------
        InvalidRequest
            If ``nodes`` is not two-dimensional, or ``weight_func`` is unknown.
        """
        layers = validation.as_array("nodes", nodes, "integers")
        if layers.ndim != 2:
            raise InvalidRequest(
                f"nodes of shape {list(layers.shape)}: expected a row for each layer, shape [b, w]"
            )
        layer = self.graph.sample_layer(
            layers,
            self._types.edge_names(edge_types),
            count,
            measure=_measure(weight_func),
            ntype=self._types.single_node_type,
            seed=seed,
        )
        return self._framework.dense(
            fill_missing(layer.nodes, default_node)
        ), self._layer_adjacency(layer, layers.shape[1])

    def sample_fanout_layerwise(
        self,
        nodes: ArrayLike,
        edge_types: Sequence[TypeSelector],
        counts: Sequence[int],
        default_node: int = -1,
        weight_func: str = "",
        *,
        seed: int | None = None,
    ) -> tuple[list[Any], list[Any]]:
        """Sample layer after layer, each for all nodes together.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, flattened to n nodes.
        edge_types : list
            Edge types of each hop.
        counts : list of int
            Nodes to sample in each layer.
        default_node : int
            Id in place of a missing node.
        weight_func : {"", "sqrt"}
            Weight of a neighbor, as for `sample_neighbor_layerwise`.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        nodes : list of ndarray of int64
            The given nodes, shape (n,), then the nodes of each layer, shape (counts[h],).
        adjacencies : list of sparse tensors of int64, shape (1, previous width, count)
            Edges between consecutive layers.

        Raises
        ------
        InvalidRequest
            If the lists of hops differ in length or are empty, or ``weight_func`` is unknown.
        """
        require_same_hops(edge_types, counts)
        roots = flat_ids(nodes)
        return self._stacked_layers(
            roots[None], roots, edge_types, counts, default_node, weight_func, seed
        )

    def sample_fanout_layerwise_each_node(
        self,
        nodes: ArrayLike,
        edge_types: Sequence[TypeSelector],
        counts: Sequence[int],
        default_node: int = -1,
        *,
        seed: int | None = None,
    ) -> tuple[list[Any], list[Any]]:
        """Sample neighbors of each node, then layer after layer for each node separately.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, flattened to n nodes.
        edge_types : list
            Edge types of each hop.
        counts : list of int
            Nodes to sample in each layer, per node.
        default_node : int
            Id in place of a missing node.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        nodes : list of ndarray of int64
            The given nodes, shape (n,), then the nodes of each layer, shape (n * counts[h],).
        adjacencies : list of sparse tensors of int64, shape (n, previous count, count)
            Edges between consecutive layers, from the second hop on.

        Raises
        ------
        InvalidRequest
            If the lists of hops differ in length or are empty.
        """
        require_same_hops(edge_types, counts)
        roots, graph = flat_ids(nodes), self._pinned_graph()
        first = graph.sample_neighbors(
            roots,
            self._types.edge_names(edge_types[0]),
            counts[0],
            ntype=self._types.single_node_type,
            weights=False,
            seed=seed,
        )
        first_layers = [
            self._framework.dense(roots),
            self._framework.dense(fill_missing(first.nodes.reshape(-1), default_node)),
        ]
        if len(counts) == 1:
            return first_layers, []
        layers, adjacencies = self._stacked_layers(
            first.nodes,
            roots,
            edge_types[1:],
            counts[1:],
            default_node,
            "",
            first.seed,
            version=first.version,
        )
        return [*first_layers, *layers[1:]], adjacencies

    def sparse_get_adj(
        self,
        nodes: ArrayLike,
        nb_nodes: ArrayLike,
        edge_types: TypeSelector,
        n: int = -1,
        m: int = -1,
    ) -> Any:
        """Return the pairs of nodes that are connected by an edge, batch by batch.

        Parameters
        ----------
        nodes : array_like of int64, shape (batch, n)
            Nodes where edges start; may be flat if ``n`` is given.
        nb_nodes : array_like of int64, shape (batch, m)
            Nodes where edges end; may be flat if ``m`` is given.
        edge_types : str, int, or list of these
            Edge types; -1: all.
        n, m : int
            Nodes per batch. If -1, a flat array is one batch.

        Returns
        -------
        sparse tensor of int64, shape (batch, n, m)
            1 for each pair with an edge.

        Raises
        ------
        InvalidRequest
            If the numbers of batches differ, or an array cannot be divided into batches.
        """
        rows, cols = _batched_nodes("nodes", nodes, n), _batched_nodes("nb_nodes", nb_nodes, m)
        if len(rows) != len(cols):
            raise InvalidRequest(
                f"nodes with {len(rows)} batches: expected {len(cols)}, as in nb_nodes"
            )
        row_nodes, row = np.unique(rows, return_inverse=True)
        col_nodes, col = np.unique(cols, return_inverse=True)
        adjacency = self.graph.adjacency(
            row_nodes,
            col_nodes,
            self._types.edge_names(edge_types),
            row_type=self._types.single_node_type,
            col_type=self._types.single_node_type,
            weights=False,
            edge_ids=False,
        )
        edges = np.unique(adjacency.rows * max(len(col_nodes), 1) + adjacency.cols)
        row, col = row.reshape(rows.shape), col.reshape(cols.shape)
        coordinates: list[Ids] = [np.zeros((0, 3), np.int64)]
        for batch in range(len(rows)):
            pairs = row[batch][:, None] * max(len(col_nodes), 1) + col[batch][None]
            matches = np.argwhere(np.isin(pairs, edges))
            coordinates.append(np.concatenate([np.full((len(matches), 1), batch), matches], axis=1))
        indices = np.concatenate(coordinates).astype(np.int64)
        return self._framework.sparse(
            indices, np.ones(len(indices), np.int64), (len(rows), rows.shape[1], cols.shape[1])
        )

    def get_multi_hop_neighbor(
        self, nodes: ArrayLike, edge_types: Sequence[TypeSelector]
    ) -> tuple[list[Any], list[Any]]:
        """Return all neighbors hop by hop, each node once per hop.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids, of any shape.
        edge_types : list
            Edge types of each hop.

        Returns
        -------
        nodes : list of ndarray of int64
            The given nodes, then the nodes of each hop.
        adjacencies : list of sparse tensors of float32, shape (previous nodes, nodes of the hop)
            Weights of edges. Several edges between the same nodes have one entry each.
        """
        expansion = self.graph.multi_hop_neighbors(
            flat_ids(nodes),
            self._types.path("edge_types", edge_types),
            ntype=self._types.single_node_type,
        )
        edges = [
            sorted_sparse(
                self._framework,
                np.stack([hop.rows, hop.cols], axis=1),
                np.asarray(hop.weights),
                hop.shape,
            )
            for hop in expansion.adjacencies
        ]
        return [self._framework.dense(hop) for hop in expansion.nodes], edges

    def _stacked_layers(
        self,
        layers: Ids,
        roots: Ids,
        edge_types: Sequence[TypeSelector],
        counts: Sequence[int],
        default_node: int,
        weight_func: str,
        seed: int | None,
        version: int | None = None,
    ) -> tuple[list[Any], list[Any]]:
        stack = self.graph.sample_fanout_layerwise(
            layers,
            self._types.path("edge_types", edge_types),
            list(counts),
            measure=_measure(weight_func),
            ntype=self._types.single_node_type,
            seed=seed,
            version=version,
        )
        widths = [layers.shape[1], *counts]
        nodes = [
            self._framework.dense(roots),
            *(
                self._framework.dense(fill_missing(layer.nodes.reshape(-1), default_node))
                for layer in stack.layers
            ),
        ]
        return nodes, [
            self._layer_adjacency(layer, width)
            for layer, width in zip(stack.layers, widths, strict=False)
        ]

    def _layer_adjacency(self, layer: Layer, width: int) -> Any:
        """Return the adjacency of layers [b, width] and [b, count].

        It is 1 for each pair with an edge.
        """
        batches, count = layer.nodes.shape
        pairs = np.unique(
            np.stack([layer.adjacency.rows, layer.adjacency.cols % max(count, 1)], axis=1), axis=0
        )
        indices = np.stack([pairs[:, 0] // width, pairs[:, 0] % width, pairs[:, 1]], axis=1)
        return self._framework.sparse(
            indices, np.ones(len(indices), np.int64), (batches, width, count)
        )


def _measure(weight_func: str) -> str:
    if weight_func not in MEASURES:
        raise InvalidRequest(f"weight_func={weight_func!r}: expected '' or 'sqrt'")
    return MEASURES[weight_func]


def _batched_nodes(parameter: str, nodes: ArrayLike, width: int) -> Ids:
    """Return nodes as [batch, width]; raise InvalidRequest if they do not divide evenly."""
    given = validation.as_array(parameter, nodes, "integers")
    array = validation.ids(parameter, given.reshape(-1), minimum=-1).reshape(given.shape)
    if width == -1:
        return array if array.ndim == 2 else array.reshape(1, -1)
    if width < 1 or array.size % width:
        raise InvalidRequest(
            f"{parameter} of length {array.size}: expected a multiple of {width}, the batch size"
        )
    return array.reshape(-1, width)
