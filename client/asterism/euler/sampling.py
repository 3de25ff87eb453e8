"""Samples of nodes, edges, neighbors and walks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls.walks import reachable_types
from asterism.euler.base import EulerCalls, flat_ids
from asterism.euler.conditions import edge_filter, node_filter
from asterism.euler.sparse_tensors import fill_missing, ragged_to_sparse
from asterism.euler.type_ids import TypeSelector, require_same_hops
from asterism.records.samples import NeighborSample, RaggedNeighbors, TopNeighbors
from asterism_proto.v1 import common_pb2 as common_pb


class EulerSamplingCalls(EulerCalls):
    """Samples of nodes, edges, neighbors and walks; full neighborhoods."""

    def sample_node(
        self,
        count: int,
        node_type: TypeSelector = -1,
        condition: str = "",
        *,
        seed: int | None = None,
    ) -> Any:
        """Sample nodes by weight, with replacement.

        Parameters
        ----------
        count : int
            Number of samples.
        node_type : str, int, or list of these
            Node types, sampled as one population; -1: all.
        condition : str
            Condition on the nodes, such as ``price gt 3 and brand eq a``. Only nodes that satisfy
            it are sampled, by weight.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        ndarray of int64, shape (count,)
            Node ids.

        Raises
        ------
        NotFound
            If no node can be sampled.
        """
        names = self._types.node_names(node_type)
        sample = self.graph.sample_nodes(
            count, names, where=node_filter(condition, self.graph.schema, names), seed=seed
        )
        return self._framework.dense(sample.nodes)

    def sample_node_with_src(
        self, src_nodes: ArrayLike, count: int, *, seed: int | None = None
    ) -> Any:
        """Sample nodes of the type of each source.

        Parameters
        ----------
        src_nodes : array_like of int64
            Source node ids, flattened to n nodes.
        count : int
            Samples per source.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        ndarray of int64, shape (n, count)
            Node ids.

        Raises
        ------
        NotFound
            If a source does not exist.
        """
        src = flat_ids(src_nodes)
        sample = self.graph.sample_nodes_like(
            src, count, ntype=self._types.single_node_type, seed=seed
        )
        return self._framework.dense(sample.nodes)

    def sample_edge(
        self, count: int, edge_type: TypeSelector = None, *, seed: int | None = None
    ) -> Any:
        """Sample edges by weight, with replacement.

        Parameters
        ----------
        count : int
            Number of samples.
        edge_type : str, int, or list of these, optional
            Edge types, sampled as one population; -1 or None: all.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        ndarray of int64, shape (count, 3)
            Source, destination and number of the type of each edge.
        """
        sample = self.graph.sample_edges(count, self._types.edge_names(edge_type), seed=seed)
        types = self._types.relation_numbers(sample.types).astype(np.int64)
        return self._framework.dense(np.stack([sample.src, sample.dst, types], axis=1))

    def sample_graph_label(self, batch_num: int, *, seed: int | None = None) -> Any:
        """Sample labels of graphs uniformly.

        Parameters
        ----------
        batch_num : int
            Number of samples.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        array of bytes, shape (batch_num,)
            Labels.
        """
        return self._framework.texts(self.graph.sample_graph_labels(batch_num, seed=seed).labels)

    def get_graph_by_label(self, labels: Iterable[bytes | str]) -> Any:
        """Return the nodes of graphs.

        Parameters
        ----------
        labels : iterable of bytes or str
            Labels of n graphs.

        Returns
        -------
        sparse tensor of int64, shape (n, longest row)
            Nodes of each graph; an empty row for a label that no graph has.
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
        """Sample neighbors by weight, with replacement, over the union of the edge types.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids of any shape, flattened to n nodes.
        edge_types : str, int, or list of these
            Edge types; -1: all.
        count : int
            Neighbors per node.
        default_node : int
            Id in place of a missing neighbor, with weight 0 and type -1.
        condition : str
            Condition on the edge if its type has the feature, and otherwise on the neighbor. A row
            is full if the node has any edge that satisfies the condition.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        neighbors : ndarray of int64, shape (n, count)
            Node ids.
        weights : ndarray of float32, shape (n, count)
            Weights of the edges.
        types : ndarray of int32, shape (n, count)
            Numbers of the edge types.
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
        """Return the k heaviest neighbors in descending order; ties are ordered by id.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids of any shape, flattened to n nodes.
        edge_types : str, int, or list of these
            Edge types; -1: all.
        k : int
            Maximum number of neighbors per node.
        default_node : int
            Id in place of a missing neighbor, with weight 0 and type -1.
        condition : str
            Condition on the edge if its type has the feature, and otherwise on the neighbor.

        Returns
        -------
        neighbors : ndarray of int64, shape (n, k)
            Node ids.
        weights : ndarray of float32, shape (n, k)
            Weights of the edges.
        types : ndarray of int32, shape (n, k)
            Numbers of the edge types.
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
        """Return all neighbors, ordered by edge type as requested, then by id.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids of any shape, flattened to n nodes.
        edge_types : str, int, or list of these
            Edge types; -1: all.
        condition : str
            Condition on the edge if its type has the feature, and otherwise on the neighbor.

        Returns
        -------
        neighbors, weights, types : sparse tensors of int64, float32, int32, shape (n, longest row)
            Node ids, weights of the edges, and numbers of the edge types.
        """
        return self._full_neighbors(nodes, edge_types, condition, None)

    def get_sorted_full_neighbor(
        self, nodes: ArrayLike, edge_types: TypeSelector, condition: str = ""
    ) -> tuple[Any, Any, Any]:
        """Return all neighbors, ordered by id.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids of any shape, flattened to n nodes.
        edge_types : str, int, or list of these
            Edge types; -1: all.
        condition : str
            Condition on the edge if its type has the feature, and otherwise on the neighbor.

        Returns
        -------
        neighbors, weights, types : sparse tensors of int64, float32, int32, shape (n, longest row)
            Node ids, weights of the edges, and numbers of the edge types.
        """
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
        """Sample neighbors of neighbors, hop by hop.

        Hop h samples ``counts[h]`` neighbors of every entry of the previous hop, independently of
        other entries.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids of any shape, flattened to n nodes.
        edge_types : list
            Edge types of each hop.
        counts : list of int
            Neighbors per entry in each hop.
        default_node : int
            Id in place of a missing node.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        neighbors : list of ndarray of int64
            The given nodes, shape (n,), then shape (n * counts[0],), (n * counts[0] * counts[1],)
            and so on.
        weights, types : lists of ndarray of float32, int32
            Weights and numbers of the types of the edges of each hop, flat.

        Raises
        ------
        InvalidRequest
            If the lists of hops differ in length or are empty.
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
        """Sample a random walk from each node by weight, with p and q of node2vec.

        Parameters
        ----------
        nodes : array_like of int64
            Node ids of any shape, flattened to n nodes.
        edge_types : list
            Edge types of each step.
        p, q : float
            Return and in-out parameters of node2vec (Grover & Leskovec, 2016).
        default_node : int
            Id after a dead end.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        ndarray of int64, shape (n, steps + 1)
            Nodes of each walk, starting with the given node; ``default_node`` after a dead end.
        """
        steps = self._types.path("edge_types", edge_types)
        schema, ntype = self.graph.schema, self._types.single_node_type
        type_ids = [
            range(len(schema.edge_types)) if step is None else list(map(schema.edge_type_id, step))
            for step in steps
        ]
        # As in Euler, steps that no walk can take are dead ends, not errors.
        possible = max(len(reachable_types(schema, type_ids, ntype, common_pb.OUT)), 1)
        walks = self.graph.random_walk(
            flat_ids(nodes), steps[:possible], p=p, q=q, ntype=ntype, seed=seed
        )
        dead_ends = np.full((len(walks), len(steps[possible:])), -1, np.int64)
        walk_nodes = np.concatenate([walks.nodes, dead_ends], axis=1)
        return self._framework.dense(fill_missing(walk_nodes, default_node))

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
