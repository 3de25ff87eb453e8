"""Edges of message flow graphs, hop by hop, with the semantics of DGL's samplers.

The adapters convert them to objects of DGL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asterism.calls import validation
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.graph import Graph
from asterism.records.samples import Ids, Subgraph
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound

Triple = tuple[str, str, str]
LayerFanout = int | Mapping[Triple | str, int]
"""Neighbors of one layer: for every edge type, or by triple or relation."""
HopFanouts = Sequence[LayerFanout] | Mapping[Triple | str, Sequence[int]]


class MessageFlowSampler:
    """Sampler of the edges that carry messages to a batch of nodes, from one version.

    Parameters
    ----------
    graph : Graph
        Graph of one version, with ``direction: both``.
    fanouts : list of (int or dict of edge type to int), or dict of edge type to list of int
        Neighbors per node in each layer of the model, starting with the first layer. Hops are
        sampled from the last layer backwards. Edge types that a dict omits are not followed.
    replace : bool
        Sample with replacement.
    prob : str or None
        Weight column to sample by. None: uniformly.
    weights : bool
        Return the weights that edges were sampled by.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version or has no in-edges, or ``fanouts`` names an unknown edge
        type.
    """

    def __init__(
        self, graph: Graph, fanouts: HopFanouts, *, replace: bool, prob: str | None, weights: bool
    ) -> None:
        require_version(graph)
        require_in_edges(graph)
        self._hops = {
            name: counts[::-1] for name, counts in counts_by_type(graph.schema, fanouts).items()
        }
        self._replace, self._prob, self._weights = replace, prob, weights
        self.graph = graph

    def seeds_by_type(self, seeds: Any) -> dict[str, Ids]:
        """Return the nodes of a batch by node type.

        Raise InvalidRequest if they have no type and the graph has several.
        """
        schema = self.graph.schema
        if not isinstance(seeds, Mapping):
            if len(schema.node_types) > 1:
                raise InvalidRequest(
                    "seeds: expected a dict of node type to nodes, because the graph has the types "
                    f"{', '.join(t.name for t in schema.node_types)}"
                )
            seeds = {schema.node_types[0].name: seeds}
        return {
            name: self.graph._require_ids("seeds", nodes, name, None)
            for name, nodes in (seeds or {schema.node_types[0].name: []}).items()
        }

    def _sample_edges(
        self, nodes: Ids, hops: Mapping[str, Sequence[int]], **options: Any
    ) -> Subgraph:
        """Return the edges of a batch."""
        return self.graph.sample_subgraph(nodes, hops, **options, replace=self._replace)

    def sample(
        self,
        seeds: Mapping[str, Ids],
        seed: int | None,
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
    ) -> Subgraph:
        """Return the edges around a batch.

        Raise InvalidRequest if a node repeats, and NotFound if one does not exist.
        ``exclude`` and ``reverse_types`` are those of `Graph.sample_neighbors`.
        """
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
            exclude=exclude,
            reverse_types=reverse_types,
            seed=seed,
        )
        for name, nodes in seeds.items():
            if subgraph.num_sampled_nodes[name][0] != len(nodes):
                unique, counts = np.unique(nodes, return_counts=True)
                raise InvalidRequest(
                    f"seeds with {unique[counts > 1][0]} of {name!r} twice: expected each node "
                    f"once "
                    "in a batch"
                )
        require_existing_seeds(self.graph, subgraph)
        return subgraph


class LaborFlowSampler(MessageFlowSampler):
    """Sampler of such edges by layer-neighbor sampling (LABOR).

    LABOR shares neighbors between the nodes of a batch (Balin & Catalyurek, 2023).

    Parameters
    ----------
    graph, fanouts, prob
        Arguments of `MessageFlowSampler`.
    importance, layer_dependency
        Arguments of `Graph.sample_labor`.
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


def counts_by_type(schema: Schema, fanouts: HopFanouts) -> dict[str, list[int]]:
    """Return the fanouts of each edge type that any layer follows, by the name of the type.

    Raises
    ------
    InvalidRequest
        If ``fanouts`` is not a list or dict of counts, or names an unknown edge type.
    """
    names = {t.name: t.name for t in schema.edge_types}
    relations = [t.relation for t in schema.edge_types]
    names |= {t.relation: t.name for t in schema.edge_types if relations.count(t.relation) == 1}

    def named(by_type: Mapping[Any, Any]) -> dict[str, Any]:
        keys = {key: key if isinstance(key, str) else ":".join(map(str, key)) for key in by_type}
        unknown = [key for key, text in keys.items() if text not in names]
        if unknown:
            triples = [(t.src_type, t.relation, t.dst_type) for t in schema.edge_types]
            raise InvalidRequest(f"fanouts with {unknown}: expected edge types, of {triples}")
        return {names[text]: by_type[key] for key, text in keys.items()}

    if isinstance(fanouts, Mapping):
        return {n: validation.counts("fanouts", one) for n, one in named(fanouts).items()}
    layers = validation.counts("fanouts", fanouts)
    if not any(isinstance(layer, Mapping) for layer in layers):
        return {edge_type.name: list(layers) for edge_type in schema.edge_types}
    by_layer = [
        named(layer) if isinstance(layer, Mapping) else {t.name: layer for t in schema.edge_types}
        for layer in layers
    ]
    followed = [t.name for t in schema.edge_types if any(t.name in layer for layer in by_layer)]
    return {name: [layer.get(name, 0) for layer in by_layer] for name in followed}


def require_existing_seeds(graph: Graph, subgraph: Subgraph) -> None:
    """Raise NotFound for the first seed of a batch that is not in the graph.

    Seeds with an edge exist, so only the others are looked up.
    """
    for name, counts in subgraph.num_sampled_nodes.items():
        seeds = subgraph.nodes[name][: counts[0]]
        has_edge = np.zeros(len(seeds), np.bool_)
        for edge_type, col in subgraph.col.items():
            if edge_type.rpartition(":")[2] == name:
                has_edge[col[hop_edges(subgraph, edge_type, 0)]] = True
        require_existing_nodes(graph, name, seeds[~has_edge & (seeds >= 0)])


def require_existing_nodes(graph: Graph, node_type: str, seeds: Ids) -> None:
    """Raise NotFound for the first of some seeds of a batch that is not in the graph."""
    unknown = seeds[graph.node_types(seeds, node_type) < 0] if seeds.size else seeds
    if unknown.size:
        raise NotFound(
            f"seeds with {unknown[0]} of {node_type!r}: expected nodes of version {graph.version}; "
            "leave it out of the batch, or write it and build a version"
        )


def require_version(graph: Graph) -> None:
    """Raise InvalidRequest if the graph follows the current version."""
    if graph.version is None:
        raise InvalidRequest(
            f"graph of space {graph.space!r} without a version: expected a graph of one version, "
            "which does not change during an epoch; use graph.pin() or graph.at(...)"
        )


def require_in_edges(graph: Graph) -> None:
    """Raise InvalidRequest if the space does not store the edges that lead to a node."""
    if not graph.schema.has_in:
        raise InvalidRequest(
            f"space {graph.space!r} with direction: out: expected direction: both, because this "
            "sampler follows edges from their destinations; create a space with direction: both "
            "in its schema, and load the graph into it"
        )


def hop_count(subgraph: Subgraph) -> int:
    """Return the number of sampled hops."""
    return len(next(iter(subgraph.num_sampled_nodes.values()))) - 1


def visited_count(subgraph: Subgraph, node_type: str, hop: int) -> int:
    """Return the number of nodes of a type that are visited up to a hop."""
    return sum(subgraph.num_sampled_nodes[node_type][: hop + 1])


def hop_edges(subgraph: Subgraph, edge_type: str, hop: int) -> slice:
    """Return the slice of the edges of a hop, which lead to nodes visited before it."""
    per_hop = subgraph.num_sampled_edges[edge_type]
    return slice(sum(per_hop[:hop]), sum(per_hop[: hop + 1]))
