"""PyG's loaders over any call of a graph that makes a subgraph of a batch of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from torch_geometric import sampler as pyg
from torch_geometric.sampler.neighbor_sampler import node_sample

from asterism.calls import validation
from asterism.graph import Graph
from asterism.pyg.sampler import require_unique_seeds, to_hetero_output, to_homogeneous_output
from asterism.pyg.view import GraphView, Triple
from asterism.records.samples import Ids, Subgraph
from asterism.torch import batch_seed
from asterism.transport.retries import DEFAULT_PATIENCE_S, retry_read
from asterism_proto.errors import InvalidRequest

SubgraphFunction = Callable[[Graph, Ids, str, int], Subgraph]
"""Gives the subgraph of ``(graph, nodes int64[m], their type, seed)``."""


class SeedNodeSampler(pyg.BaseSampler):  # type: ignore[misc]  # PyG has no types here
    """What samplers have in common that make a subgraph of a batch of nodes, and know no layers of
    edges.
    """

    def __init__(
        self, graph: Graph, seed: int | None, hetero: bool | None, patience_s: float
    ) -> None:
        self._view = GraphView(graph, hetero, patience_s)
        self._seed = None if seed is None else validation.seed(seed)

    @abstractmethod
    def _sample_subgraph(self, nodes: Ids, ntype: str, seed: int) -> Subgraph:
        """The subgraph of nodes of one type."""

    @property
    def edge_permutation(self) -> None:
        """Edges are named by their ids: nothing was put in another order."""
        return

    def sample_from_nodes(self, index: Any, **_: Any) -> Any:
        """What was made of a batch of nodes."""
        if index.time is not None:
            raise InvalidRequest(
                "input_time to a sampler without times; leave it out, or give "
                "NeighborSampler a time_attr"
            )
        return node_sample(index, lambda seeds, _: self._sampler_output(seeds))

    def sample_from_edges(self, index: Any, neg_sampling: Any = None, **_: Any) -> Any:
        """Refused: a batch is of nodes."""
        raise InvalidRequest(
            "links to a sampler of subgraphs around nodes: it takes nodes; give it to a NodeLoader"
        )

    def _sampler_output(self, seeds: Any) -> Any:
        if self._view.hetero != isinstance(seeds, Mapping):
            raise InvalidRequest(
                f"seeds {'without' if self._view.hetero else 'with'} a type: this sampler is "
                f"{'' if self._view.hetero else 'not '}hetero"
            )
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
                "a subgraph without edge ids: PyG's loaders give each edge's; have the call "
                "give them, by edge_ids=True"
            )
        require_unique_seeds(node_type, ids, len(np.unique(subgraph.seeds[subgraph.seeds >= 0])))
        subgraph = move_seeds_first(
            subgraph, node_type, {name: triple for triple, name in self._view.edge_types.items()}
        )
        out = (
            to_hetero_output(subgraph, self._view)
            if self._view.hetero
            else to_homogeneous_output(subgraph)
        )
        # Edges are those among the nodes of all hops: a model that leaves out the outer ones, by
        # these counts, would leave out others.
        out.num_sampled_nodes = out.num_sampled_edges = None
        return out


class SubgraphSampler(SeedNodeSampler):
    """Gives ``NodeLoader`` what any call of a graph makes of a batch of nodes: ego subgraphs,
    layer-neighbor samples, edges among any nodes.

    Nodes of a batch come first in it, in the loader's order, wherever the call had them:
    ``out[:batch.batch_size]`` are theirs, as ever with PyG.

    Parameters
    ----------
    graph : Graph
        Of one version, with ``direction: both`` where edges are followed against their direction.
    sample : callable
        Gives a `Subgraph`, with edge ids, of ``(graph, nodes, ntype, seed)``. A function of a
        module crosses into spawned workers, a lambda does not.
    seed, hetero, patience_s
        As of `NeighborSampler`.

    Raises
    ------
    InvalidRequest
        For a graph of no version; of a batch: where the call gave no edge ids, or numbered a node
        of the batch once that is there twice.

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
    """A subgraph whose seeds, all of one type, are the first of its nodes, in their order; other
    nodes stay as they were among themselves.
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
