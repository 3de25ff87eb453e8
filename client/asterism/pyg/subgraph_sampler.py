"""PyG's loaders over any graph call that returns a subgraph of a batch of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric import sampler as pyg
from torch_geometric.sampler.neighbor_sampler import node_sample

from asterism.calls import validation
from asterism.graph import Graph
from asterism.pyg.sampler import (
    require_unique_seeds,
    seed_type_error,
    to_hetero_output,
    to_homogeneous_output,
)
from asterism.pyg.view import GraphView, Triple
from asterism.records.samples import Ids, Subgraph
from asterism.torch import batch_seed
from asterism.training.message_flow import require_existing_nodes
from asterism.transport.read_retries import DEFAULT_PATIENCE_S, retry_read
from asterism_proto.errors import InvalidRequest

SubgraphFunction = Callable[[Graph, Ids, str, int], Subgraph]
"""Function from ``(graph, nodes int64[m], their type, seed)`` to a subgraph."""


class SeedNodeSampler(pyg.BaseSampler):  # type: ignore[misc]  # PyG has no types here
    """Base of samplers that return one subgraph per batch of nodes, without layers of edges."""

    def __init__(
        self, graph: Graph, seed: int | None, hetero: bool | None, patience_s: float
    ) -> None:
        self._view = GraphView(graph, hetero, patience_s)
        self._seed = None if seed is None else validation.seed(seed)

    @abstractmethod
    def _sample_subgraph(self, nodes: Ids, ntype: str, seed: int) -> Subgraph:
        """Return the subgraph of nodes of one type."""

    @property
    def edge_permutation(self) -> None:
        """Permutation of edges: None, because edge ids identify edges."""
        return

    def sample_from_nodes(self, index: Any, **_: Any) -> Any:
        """Sample the subgraph of a batch of nodes.

        Parameters
        ----------
        index : NodeSamplerInput
            Seed nodes.

        Returns
        -------
        SamplerOutput or HeteroSamplerOutput
            Subgraph, starting with the seed nodes.

        Raises
        ------
        InvalidRequest
            If the batch has times, a seed repeats, or the subgraph has no edge ids.
        NotFound
            If a seed is not in the graph.
        """
        if index.time is not None:
            raise InvalidRequest(
                "input_time: expected None, because this sampler has no times; leave it out, or "
                "use NeighborSampler with time_attr"
            )
        return node_sample(index, lambda seeds, _: self._sampler_output(seeds))

    def sample_from_edges(self, index: Any, neg_sampling: Any = None, **_: Any) -> Any:
        """Raise InvalidRequest: batches consist of nodes."""
        raise InvalidRequest(
            "link_sampler: expected a NeighborSampler, because this sampler takes nodes; pass it "
            "to a NodeLoader"
        )

    def _sampler_output(self, seeds: Any) -> Any:
        if self._view.hetero != isinstance(seeds, Mapping):
            raise seed_type_error(hetero=self._view.hetero)
        ((node_type, nodes),) = (
            seeds.items() if isinstance(seeds, Mapping) else ((self._view.node_types[0], seeds),)
        )
        ids = np.asarray(nodes, np.int64)
        key = batch_seed(self._seed, ids)
        subgraph = retry_read(
            lambda: self._sample_subgraph(ids, node_type, key), self._view.patience_s
        )
        if subgraph.edge_ids is None:
            raise InvalidRequest(
                "sample: expected a function that returns a subgraph with edge ids; pass "
                "edge_ids=True in it"
            )
        require_unique_seeds(node_type, ids, len(np.unique(subgraph.seeds[subgraph.seeds >= 0])))
        triples = {name: triple for triple, name in self._view.edge_types.items()}
        subgraph = move_seeds_first(subgraph, node_type, triples)
        isolated = ids[~_have_edges(subgraph, node_type, triples)[: len(ids)]]
        retry_read(
            lambda: require_existing_nodes(self._view.graph, node_type, isolated),
            self._view.patience_s,
        )
        out = (
            to_hetero_output(subgraph, self._view)
            if self._view.hetero
            else to_homogeneous_output(subgraph)
        )
        # Edges connect nodes of all hops. A model that trims the outer hops by these counts would
        # drop the wrong edges.
        out.num_sampled_nodes = out.num_sampled_edges = None
        return out


def _have_edges(
    subgraph: Subgraph, node_type: str, triples: Mapping[str, Triple]
) -> NDArray[np.bool_]:
    """Return which nodes of a type have an edge in a subgraph. Those are in the graph."""
    found = np.zeros(len(subgraph.nodes[node_type]), np.bool_)
    for name, (source_type, _, target_type) in triples.items():
        if name in subgraph.row:
            for end_type, ends in ((source_type, subgraph.row), (target_type, subgraph.col)):
                if end_type == node_type:
                    found[ends[name]] = True
    return found


class SubgraphSampler(SeedNodeSampler):
    """Sampler for ``NodeLoader`` from any graph call that returns a subgraph of nodes.

    Examples are ego subgraphs, layer-neighbor samples (LABOR), and edges between the nodes. The
    nodes of a batch come first in the result, in the loader's order. As usual in PyG, their outputs
    are ``out[:batch.batch_size]``.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`, with ``direction: both`` if edges are
        followed against their direction.
    sample : callable
        Function from ``(graph, nodes, ntype, seed)`` to a `Subgraph` with edge ids. A function of a
        module can be pickled into spawned workers, a lambda cannot.
    seed : int, optional
        Random seed. Samples of a batch depend on it and on the batch alone, not on the number of
        workers; an evaluation in fixed order is reproducible. None: each batch takes a seed from
        torch's generator, which ``torch.manual_seed`` sets.
    hetero : bool, optional
        True if types are named. None: True if there are several node types or edge types.
    patience_s : float
        Seconds for which a failed read is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version. A batch raises it if the call returns no edge ids, or
        returns a repeated seed only once.

    Examples
    --------
    >>> def ego(graph, nodes, ntype, seed):
    ...     return graph.sample_ego_subgraphs(
    ...         nodes, [10, 5], ntype=ntype, direction="in", weighted=False, seed=seed
    ...     )
    >>> loader = NodeLoader(  # doctest: +SKIP
    ...     stores(held), SubgraphSampler(held, ego), input_nodes=train, batch_size=128
    ... )
    """

    def __init__(
        self,
        graph: Graph,
        sample: SubgraphFunction,
        *,
        seed: int | None = None,
        hetero: bool | None = None,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        super().__init__(graph, seed, hetero, patience_s)
        self._sample = sample

    def _sample_subgraph(self, nodes: Ids, ntype: str, seed: int) -> Subgraph:
        return self._sample(self._view.graph, nodes, ntype, seed)


def move_seeds_first(subgraph: Subgraph, node_type: str, ends: Mapping[str, Triple]) -> Subgraph:
    """Return a subgraph with its seeds, all of one type, as the first nodes.

    The seeds keep their order, and so do the other nodes.
    """
    seeds, nodes = subgraph.seeds, subgraph.nodes[node_type]
    if np.array_equal(seeds, np.arange(len(seeds))):
        return subgraph
    others = np.ones(len(nodes), np.bool_)
    others[seeds] = False
    order = np.concatenate([seeds, np.flatnonzero(others)])
    new_index = np.empty(len(order), np.int64)
    new_index[order] = np.arange(len(order))
    return replace(
        subgraph,
        seeds=np.arange(len(seeds)),
        nodes={**subgraph.nodes, node_type: nodes[order]},
        batch=None
        if subgraph.batch is None
        else {**subgraph.batch, node_type: subgraph.batch[node_type][order]},
        row={
            name: new_index[numbers] if ends[name][0] == node_type else numbers
            for name, numbers in subgraph.row.items()
        },
        col={
            name: new_index[numbers] if ends[name][2] == node_type else numbers
            for name, numbers in subgraph.col.items()
        },
    )
