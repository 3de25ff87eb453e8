"""Layers, adjacencies, and whole neighborhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.arrays import Ids
from asterism.euler.sampling import Sampling, same_hops
from asterism.euler.types import TypesAsked, nodes_of
from asterism.euler.values import filled, in_rows
from asterism.records import Layer
from asterism_proto.errors import InvalidRequest

MEASURES = {"": "sum", "sqrt": "sqrt"}


class Layered(Sampling):
    """The part that draws layers as a whole, and tells what joins lists of nodes."""

    def sample_neighbor_layerwise(
        self, nodes: ArrayLike, edge_types: TypesAsked, count: int, default_node: int = -1, weight_func: str = "", *, seed: int | None = None
    ) -> tuple[Any, Any]:
        """Draw ``count`` nodes for each layer from the neighbors of all of its nodes, with replacement.

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
            raise InvalidRequest(f"nodes has shape {list(layers.shape)}; expected a row for each layer")
        layer = self.graph.sample_layer(layers, self._edge_names(edge_types), count, measure=_measure(weight_func), ntype=self._ntype, seed=seed)
        return self._to.dense(filled(layer.nodes, default_node)), self._joined(layer, layers.shape[1])

    def sample_fanout_layerwise(
        self,
        nodes: ArrayLike,
        edge_types: Sequence[TypesAsked],
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
        same_hops(edge_types, counts)
        roots = nodes_of(nodes)
        return self._stacked(roots[None], roots, edge_types, counts, default_node, weight_func, seed)

    def sample_fanout_layerwise_each_node(
        self, nodes: ArrayLike, edge_types: Sequence[TypesAsked], counts: Sequence[int], default_node: int = -1, *, seed: int | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Draw neighbors of each node, and from there layer after layer for each node by itself.

        Returns
        -------
        nodes : list of int64
            The nodes [n] first, then [n * counts[h]] of each hop.
        adjacencies : list of sparse int64[n, last count, count]
            From the second hop on.
        """
        same_hops(edge_types, counts)
        roots, graph = nodes_of(nodes), self._held()
        first = graph.sample_neighbors(roots, self._edge_names(edge_types[0]), counts[0], ntype=self._ntype, weights=False, seed=seed)
        given = [self._to.dense(roots), self._to.dense(filled(first.nodes.reshape(-1), default_node))]
        if len(counts) == 1:
            return given, []
        layers, joined = self._stacked(first.nodes, roots, edge_types[1:], counts[1:], default_node, "", first.seed, version=first.version)
        return [*given, *layers[1:]], joined

    def sparse_get_adj(self, nodes: ArrayLike, nb_nodes: ArrayLike, edge_types: TypesAsked, n: int = -1, m: int = -1) -> Any:
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
        rows, cols = _in_batches("nodes", nodes, n), _in_batches("nb_nodes", nb_nodes, m)
        if len(rows) != len(cols):
            raise InvalidRequest(f"nodes has {len(rows)} batches, nb_nodes {len(cols)}")
        near, row = np.unique(rows, return_inverse=True)
        far, col = np.unique(cols, return_inverse=True)
        found = self.graph.adjacency(
            near, far, self._edge_names(edge_types), row_type=self._ntype, col_type=self._ntype, weights=False, edge_ids=False
        )
        edges = np.unique(found.rows * max(len(far), 1) + found.cols)
        row, col = row.reshape(rows.shape), col.reshape(cols.shape)
        places: list[Ids] = [np.zeros((0, 3), np.int64)]
        for batch in range(len(rows)):
            pairs = row[batch][:, None] * max(len(far), 1) + col[batch][None]
            at = np.argwhere(np.isin(pairs, edges))
            places.append(np.concatenate([np.full((len(at), 1), batch), at], axis=1))
        indices = np.concatenate(places).astype(np.int64)
        return self._to.sparse(indices, np.ones(len(indices), np.int64), (len(rows), rows.shape[1], cols.shape[1]))

    def get_multi_hop_neighbor(self, nodes: ArrayLike, edge_types: Sequence[TypesAsked]) -> tuple[list[Any], list[Any]]:
        """All neighbors hop after hop, each node once a hop.

        Returns
        -------
        nodes : list of int64
            The nodes first.
        adjacencies : list of sparse float32[nodes of the hop before, nodes of the hop]
            Weights of edges; several between the same nodes have an entry each.
        """
        found = self.graph.multi_hop_neighbors(nodes_of(nodes), self._path("edge_types", edge_types), ntype=self._ntype)
        edges = [in_rows(self._to, np.stack([hop.rows, hop.cols], axis=1), np.asarray(hop.weights), hop.shape) for hop in found.adjacencies]
        return [self._to.dense(hop) for hop in found.nodes], edges

    def _stacked(
        self,
        layers: Ids,
        roots: Ids,
        edge_types: Sequence[TypesAsked],
        counts: Sequence[int],
        default_node: int,
        weight_func: str,
        seed: int | None,
        version: int | None = None,
    ) -> tuple[list[Any], list[Any]]:
        ntype = self._ntype
        stack = self.graph.sample_fanout_layerwise(
            layers, self._path("edge_types", edge_types), list(counts), measure=_measure(weight_func), ntype=ntype, seed=seed, version=version
        )
        widths = [layers.shape[1], *counts]
        nodes = [self._to.dense(roots), *(self._to.dense(filled(layer.nodes.reshape(-1), default_node)) for layer in stack.layers)]
        return nodes, [self._joined(layer, width) for layer, width in zip(stack.layers, widths, strict=False)]

    def _joined(self, layer: Layer, width: int) -> Any:
        """The adjacency of layers [b, width] and [b, count]: 1 for each pair that has an edge."""
        batches, count = layer.nodes.shape
        pairs = np.unique(np.stack([layer.adjacency.rows, layer.adjacency.cols % max(count, 1)], axis=1), axis=0)
        indices = np.stack([pairs[:, 0] // width, pairs[:, 0] % width, pairs[:, 1]], axis=1)
        return self._to.sparse(indices, np.ones(len(indices), np.int64), (batches, width, count))


def _measure(weight_func: str) -> str:
    if weight_func not in MEASURES:
        raise InvalidRequest(f"weight_func {weight_func!r}: expected '' or 'sqrt'")
    return MEASURES[weight_func]


def _in_batches(what: str, nodes: ArrayLike, width: int) -> Ids:
    """Nodes as [batch, width]."""
    given = np.asarray(nodes)
    if width == -1:
        return given if given.ndim == 2 else given.reshape(1, -1)
    if width < 1 or given.size % width:
        raise InvalidRequest(f"{what} has {given.size} nodes; they do not make batches of {width}")
    return given.reshape(-1, width)
