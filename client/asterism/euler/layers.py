"""Layers, adjacencies, and whole neighborhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.euler.base import EulerCalls, flat_ids
from asterism.euler.type_ids import TypeSelector, require_same_hops
from asterism.euler.values import fill_missing, sorted_sparse
from asterism.records.arrays import Ids
from asterism.records.samples import Layer
from asterism_proto.errors import InvalidRequest

MEASURES = {"": "sum", "sqrt": "sqrt"}


class EulerLayerCalls(EulerCalls):
    """Layers that are sampled as a whole, and the edges between lists of nodes."""

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
        """Draw ``count`` nodes for each layer from the neighbors of all of its nodes, with
        replacement.

        Parameters
        ----------
        nodes : int64[batch, width]
            Layers.
        weight_func : {"", "sqrt"}
            A neighbor counts what the edges to it weigh together, or the square root of that.

        Returns
        -------
        neighbors : int64[batch, count]
        adjacency : sparse int64[batch, width, count]
            1 where an edge leads from the one to the other.
        """
        layers = np.asarray(nodes)
        if layers.ndim != 2:
            raise InvalidRequest(
                f"nodes has shape {list(layers.shape)}; expected a row for each layer"
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
        """Draw layer after layer for all nodes together.

        Returns
        -------
        nodes : list of int64
            The nodes [n] first, then [counts[h]] of each hop.
        adjacencies : list of sparse int64[1, last count, count]
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
        """Draw neighbors of each node, and from there layer after layer for each node by itself.

        Returns
        -------
        nodes : list of int64
            The nodes [n] first, then [n * counts[h]] of each hop.
        adjacencies : list of sparse int64[n, last count, count]
            From the second hop on.
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
        """Which of some nodes have edges to which others, batch by batch.

        Parameters
        ----------
        nodes, nb_nodes : int64[batch, n], int64[batch, m]
            Or flat, with n and m given; one batch where they are -1.

        Returns
        -------
        sparse int64[batch, n, m]
            1 where there is an edge.
        """
        rows, cols = _batched_nodes("nodes", nodes, n), _batched_nodes("nb_nodes", nb_nodes, m)
        if len(rows) != len(cols):
            raise InvalidRequest(f"nodes has {len(rows)} batches, nb_nodes {len(cols)}")
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
        """All neighbors hop after hop, each node once a hop.

        Returns
        -------
        nodes : list of int64
            The nodes first.
        adjacencies : list of sparse float32[nodes of the hop before, nodes of the hop]
            Weights of edges; several between the same nodes have an entry each.
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
        """The adjacency of layers [b, width] and [b, count]: 1 for each pair that has an edge."""
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
        raise InvalidRequest(f"weight_func {weight_func!r}: expected '' or 'sqrt'")
    return MEASURES[weight_func]


def _batched_nodes(parameter: str, nodes: ArrayLike, width: int) -> Ids:
    """Nodes as [batch, width]."""
    array = np.asarray(nodes)
    if width == -1:
        return array if array.ndim == 2 else array.reshape(1, -1)
    if width < 1 or array.size % width:
        raise InvalidRequest(
            f"{parameter} has {array.size} nodes; they do not make batches of {width}"
        )
    return array.reshape(-1, width)
