"""What message flow graphs are made of: a batch's edges, hop by hop, drawn as DGL draws them. The
adapters make DGL's own of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asterism.graph import Graph
from asterism.records.samples import Ids, Subgraph
from asterism_proto.errors import InvalidRequest

Triple = tuple[str, str, str]
HopFanouts = Sequence[int] | Mapping[Triple, Sequence[int]]


class MessageFlowSampler:
    """Draws the edges that bring messages to a batch of nodes, from one version.

    Parameters
    ----------
    graph : Graph
        Of one version, with ``direction: both``.
    fanouts : list of int, or dict of triple to list of int
        Of each layer of the model, the first layer's first; the hops are drawn from the last.
    replace : bool
        With replacement.
    prob : str, optional
        Weights to draw by; None: uniformly.
    weights : bool
        Whether the weights that were drawn by come along.

    Raises
    ------
    InvalidRequest
        For a graph of no version, or fanouts of edge types that are not there.
    """

    def __init__(
        self, graph: Graph, fanouts: HopFanouts, *, replace: bool, prob: str | None, weights: bool
    ) -> None:
        require_version(graph)
        types = {(t.src_type, t.relation, t.dst_type): t.name for t in graph.schema.edge_types}
        if isinstance(fanouts, Mapping):
            unknown = [triple for triple in fanouts if tuple(triple) not in types]
            if unknown:
                raise InvalidRequest(f"fanouts of {unknown}: there are edge types {list(types)}")
            self._hops = {types[triple]: list(hops)[::-1] for triple, hops in fanouts.items()}
        else:
            self._hops = {name: list(fanouts)[::-1] for name in types.values()}
        self._replace, self._prob, self._weights = replace, prob, weights
        self.graph = graph

    def seeds_by_type(self, seeds: Any) -> dict[str, Ids]:
        """A batch's nodes by node type; InvalidRequest where they are of no type and there are
        several.
        """
        schema = self.graph.schema
        if not isinstance(seeds, Mapping):
            if len(schema.node_types) > 1:
                raise InvalidRequest(
                    "seeds without a type: there are "
                    f"{', '.join(t.name for t in schema.node_types)}; give a dict"
                )
            seeds = {schema.node_types[0].name: seeds}
        return {
            name: self.graph._require_ids("seeds", np.asarray(nodes), name, None)
            for name, nodes in seeds.items()
        }

    def _sample_edges(
        self, nodes: Ids, hops: Mapping[str, Sequence[int]], **options: Any
    ) -> Subgraph:
        """A batch's edges."""
        return self.graph.sample_subgraph(nodes, hops, **options, replace=self._replace)

    def sample(self, seeds: Mapping[str, Ids], seed: int | None) -> Subgraph:
        """The edges around a batch; InvalidRequest where a node is there twice."""
        kinds = [
            np.full(len(nodes), self.graph.schema.node_type_id(name), np.int32)
            for name, nodes in seeds.items()
        ]
        subgraph = self._sample_edges(
            np.concatenate(list(seeds.values())),
            self._hops,
            ntype=np.concatenate(kinds),
            weighted=self._prob is not None,
            weight=self._prob or "",
            direction="in",
            expand="every",
            weights=self._weights,
            seed=seed,
        )
        for name, nodes in seeds.items():
            if subgraph.num_sampled_nodes[name][0] != len(nodes):
                unique, counts = np.unique(nodes, return_counts=True)
                raise InvalidRequest(
                    f"seed {unique[counts > 1][0]} of {name!r} is twice in a batch of "
                    f"{len(nodes)}; give each once"
                )
        return subgraph


class LaborFlowSampler(MessageFlowSampler):
    """The same by layer-neighbor sampling, which shares neighbors over a batch.

    Parameters
    ----------
    graph, fanouts, prob
        As of `MessageFlowSampler`.
    importance, layer_dependency
        As of `Graph.sample_labor`.
    """

    def __init__(
        self,
        graph: Graph,
        fanouts: HopFanouts,
        *,
        prob: str | None,
        importance: int,
        layer_dependency: bool,
    ) -> None:
        super().__init__(graph, fanouts, replace=False, prob=prob, weights=True)
        self._importance, self._layer_dependency = importance, layer_dependency

    def _sample_edges(
        self, nodes: Ids, hops: Mapping[str, Sequence[int]], **options: Any
    ) -> Subgraph:
        return self.graph.sample_labor(
            nodes,
            hops,
            **options,
            importance=self._importance,
            layer_dependency=self._layer_dependency,
        )


def require_version(graph: Graph) -> None:
    """InvalidRequest where a graph is read at whatever version is current."""
    if graph.version is None:
        raise InvalidRequest(
            f"space {graph.space!r} is read at its current version, which may change in an "
            "epoch; hold one: with graph.pin() as held"
        )


def hop_count(subgraph: Subgraph) -> int:
    """How many hops were drawn."""
    return len(next(iter(subgraph.num_sampled_nodes.values()))) - 1


def visited_count(subgraph: Subgraph, node_type: str, hop: int) -> int:
    """How many nodes of a type were met up to a hop."""
    return sum(subgraph.num_sampled_nodes[node_type][: hop + 1])


def hop_edges(subgraph: Subgraph, edge_type: str, hop: int) -> slice:
    """Where the edges of a hop are, which lead to what was met before it."""
    per_hop = subgraph.num_sampled_edges[edge_type]
    return slice(sum(per_hop[:hop]), sum(per_hop[: hop + 1]))
