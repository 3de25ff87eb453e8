"""Nodes, edges, neighbors and walks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.euler.base import EulerCalls, flat_ids
from asterism.euler.conditions import edge_filter, node_filter
from asterism.euler.type_ids import TypeSelector, require_same_hops
from asterism.euler.values import fill_missing, ragged_to_sparse
from asterism.records.samples import NeighborSample, RaggedNeighbors, TopNeighbors


class EulerSamplingCalls(EulerCalls):
    """Samples of nodes, edges, neighbors and walks; whole neighborhoods."""

    def sample_node(
        self,
        count: int,
        node_type: TypeSelector = -1,
        condition: str = "",
        *,
        seed: int | None = None,
    ) -> Any:
        """Draw nodes by weight, with replacement.

        Parameters
        ----------
        count : int
            How many.
        node_type : str, int, or list of these
            From these types together; -1: from all.
        condition : str
            Of the nodes, as ``price gt 3 and brand eq a``: only those that satisfy it are drawn, by
            their weights.
        seed : int, optional
            Of the draw, so that it can be made again; likewise of every draw here.

        Returns
        -------
        int64[count]

        Raises
        ------
        NotFound
            Where there is nothing to draw.
        """
        names = self._types.node_names(node_type)
        sample = self.graph.sample_nodes(
            count, names, where=node_filter(condition, self.graph.schema, names), seed=seed
        )
        return self._framework.dense(sample.nodes)

    def sample_node_with_src(
        self, src_nodes: ArrayLike, count: int, *, seed: int | None = None
    ) -> Any:
        """Draw nodes of the type of each source.

        Returns
        -------
        int64[n, count]

        Raises
        ------
        NotFound
            Where a source is not there.
        """
        src = flat_ids(src_nodes)
        sample = self.graph.sample_nodes_like(
            src, count, ntype=self._types.single_node_type, seed=seed
        )
        return self._framework.dense(sample.nodes)

    def sample_edge(
        self, count: int, edge_type: TypeSelector = None, *, seed: int | None = None
    ) -> Any:
        """Draw edges by weight, with replacement; -1 or None: of all types together.

        Returns
        -------
        int64[count, 3]
            Source, destination, number of the type.
        """
        sample = self.graph.sample_edges(count, self._types.edge_names(edge_type), seed=seed)
        types = self._types.relation_numbers(sample.types).astype(np.int64)
        return self._framework.dense(np.stack([sample.src, sample.dst, types], axis=1))

    def sample_graph_label(self, batch_num: int, *, seed: int | None = None) -> Any:
        """Draw labels of graphs, each alike: bytes [batch_num]."""
        return self._framework.texts(self.graph.sample_graph_labels(batch_num, seed=seed).labels)

    def get_graph_by_label(self, labels: Iterable[bytes | str]) -> Any:
        """The nodes of graphs.

        Returns
        -------
        sparse int64[n, most nodes]
            The row of a label that no graph has is empty.
        """
        members = self.graph.graph_nodes(labels)
        return ragged_to_sparse(self._framework, (members.indptr, members.nodes))

    def sample_neighbor(
        self,
        nodes: ArrayLike,
        edge_types: TypeSelector,
        count: int,
        default_node: int = -1,
        condition: str = "",
        *,
        seed: int | None = None,
    ) -> tuple[Any, Any, Any]:
        """Draw neighbors by weight, with replacement, over the union of the edge types.

        Parameters
        ----------
        nodes : int64
            Of any shape, laid flat: n nodes.
        edge_types : str, int, or list of these
            -1: all.
        count : int
            Neighbors per node.
        default_node : int
            What stands where there is none, with weight 0 and type -1.
        condition : str
            Of an edge where its type has the feature, otherwise of the neighbor. A row is full
            where the node has any such edge.

        Returns
        -------
        neighbors, weights, types : int64[n, count], float32[n, count], int32[n, count]
        """
        names = self._types.edge_names(edge_types)
        sample = self.graph.sample_neighbors(
            flat_ids(nodes),
            names,
            count,
            ntype=self._types.single_node_type,
            where=edge_filter(condition, self.graph.schema, names),
            seed=seed,
        )
        return self._padded_neighbors(sample, default_node)

    def get_top_k_neighbor(
        self,
        nodes: ArrayLike,
        edge_types: TypeSelector,
        k: int,
        default_node: int = -1,
        condition: str = "",
    ) -> tuple[Any, Any, Any]:
        """The k heaviest neighbors, the heaviest first, ties by id; as of `sample_neighbor`, [n, k]
        each.
        """
        names = self._types.edge_names(edge_types)
        top_neighbors = self.graph.top_k_neighbors(
            flat_ids(nodes),
            names,
            k,
            ntype=self._types.single_node_type,
            where=edge_filter(condition, self.graph.schema, names),
        )
        return self._padded_neighbors(top_neighbors, default_node)

    def get_full_neighbor(
        self, nodes: ArrayLike, edge_types: TypeSelector, condition: str = ""
    ) -> tuple[Any, Any, Any]:
        """All neighbors, by edge type as asked for, then by id.

        Returns
        -------
        neighbors, weights, types : sparse int64, float32, int32 [n, longest row]
        """
        return self._full_neighbors(nodes, edge_types, condition, None)

    def get_sorted_full_neighbor(
        self, nodes: ArrayLike, edge_types: TypeSelector, condition: str = ""
    ) -> tuple[Any, Any, Any]:
        """All neighbors, by id; as of `get_full_neighbor`."""
        return self._full_neighbors(nodes, edge_types, condition, "id")

    def sample_fanout(
        self,
        nodes: ArrayLike,
        edge_types: Sequence[TypeSelector],
        counts: Sequence[int],
        default_node: int = -1,
        *,
        seed: int | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Draw neighbors of neighbors: hop h draws ``counts[h]`` of every entry of the hop before,
        each entry by itself.

        Returns
        -------
        neighbors : list of int64
            The nodes [n] first, then [n * counts[0]], [n * counts[0] * counts[1]], ..
        weights, types : lists of float32, int32
            Of each hop, flat.
        """
        require_same_hops(edge_types, counts)
        sample = self.graph.sample_fanout(
            flat_ids(nodes),
            self._types.path("edge_types", edge_types),
            list(counts),
            ntype=self._types.single_node_type,
            seed=seed,
        )
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
        )

    def random_walk(
        self,
        nodes: ArrayLike,
        edge_types: Sequence[TypeSelector],
        p: float = 1.0,
        q: float = 1.0,
        default_node: int = -1,
        *,
        seed: int | None = None,
    ) -> Any:
        """Walk from each node, by weight, with node2vec's p and q.

        Parameters
        ----------
        edge_types : list
            The edge types of each step.

        Returns
        -------
        int64[n, steps + 1]
            The start first; ``default_node`` after a dead end.
        """
        steps = self._types.path("edge_types", edge_types)
        walks = self.graph.random_walk(
            flat_ids(nodes), steps, p=p, q=q, ntype=self._types.single_node_type, seed=seed
        )
        return self._framework.dense(fill_missing(walks.nodes, default_node))

    def _padded_neighbors(
        self, sample: NeighborSample | TopNeighbors, default_node: int
    ) -> tuple[Any, Any, Any]:
        weights = np.asarray(sample.weights)
        return (
            self._framework.dense(fill_missing(sample.nodes, default_node)),
            self._framework.dense(weights),
            self._framework.dense(self._types.relation_numbers(sample.types)),
        )

    def _full_neighbors(
        self, nodes: ArrayLike, edge_types: TypeSelector, condition: str, sort: str | None
    ) -> tuple[Any, Any, Any]:
        names = self._types.edge_names(edge_types)
        neighbors: RaggedNeighbors = self.graph.neighbors(
            flat_ids(nodes),
            names,
            ntype=self._types.single_node_type,
            where=edge_filter(condition, self.graph.schema, names),
            sort=sort,
            edge_ids=False,
        )
        columns = (
            neighbors.nodes,
            np.asarray(neighbors.weights),
            self._types.relation_numbers(neighbors.types),
        )
        ids, weights, types = (
            ragged_to_sparse(self._framework, (neighbors.indptr, column)) for column in columns
        )
        return ids, weights, types
