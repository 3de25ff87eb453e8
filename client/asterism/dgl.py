"""Graphs for DGL: a batch's message flow graphs (blocks), and subgraphs as graphs of DGL. Needs ``asterism[dgl]``.

DGL is imported with this module; nobody inside `asterism` but its own adapters imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dgl
import numpy as np

from asterism import arguments
from asterism.graph import Graph
from asterism.records import Ids, Subgraph
from asterism.torch import tensor
from asterism_proto.errors import InvalidRequest

__all__ = ["NeighborSampler", "blocks"]

Triple = tuple[str, str, str]
Fanouts = Sequence[int] | Mapping[Triple, Sequence[int]]
Seeds = Any
"""Node ids, as a tensor or array; by node type where there are several."""


class NeighborSampler:
    """Draws blocks as DGL's ``NeighborSampler`` does, from a graph that is not in memory.

    Parameters
    ----------
    graph : Graph
        Of one version, with ``direction: both``: from a `Graph.pin`, or `Graph.at`.
    fanouts : list of int, or dict of triple to list of int
        Neighbors that a node has messages from in each layer of the model, the first layer's first; -1 are all. Edge types that a dict does
        not name are not followed.
    replace : bool
        With replacement.
    prob : str, optional
        Draw in proportion to these weights: ``"weight"`` are the edges' own, other names are tables. None: uniformly.
    edge_weights : bool
        Whether blocks have the weights that were drawn by, as ``edata["weight"]``.

    Examples
    --------
    >>> sampler = NeighborSampler(held, [10, 25])  # doctest: +SKIP
    >>> input_nodes, output_nodes, mfgs = sampler.sample_blocks(seeds)  # doctest: +SKIP
    >>> model(mfgs, features(input_nodes))  # doctest: +SKIP
    """

    def __init__(self, graph: Graph, fanouts: Fanouts, *, replace: bool = False, prob: str | None = None, edge_weights: bool = False) -> None:
        if graph.version is None:
            raise InvalidRequest(
                f"space {graph.space!r} is read at its current version, which may change in an epoch; hold one: with graph.pin() as held"
            )
        types = {(t.src_type, t.relation, t.dst_type): t.name for t in graph.schema.edge_types}
        if isinstance(fanouts, Mapping):
            unknown = [triple for triple in fanouts if tuple(triple) not in types]
            if unknown:
                raise InvalidRequest(f"fanouts of {unknown}: there are edge types {list(types)}")
            self._hops = {types[triple]: list(hops)[::-1] for triple, hops in fanouts.items()}
        else:
            self._hops = {name: list(fanouts)[::-1] for name in types.values()}
        self._graph, self._replace, self._prob, self._edge_weights = graph, replace, prob, edge_weights

    def sample_blocks(self, seeds: Seeds, *, seed: int | None = None) -> tuple[Any, Any, list[Any]]:
        """Input nodes, output nodes and blocks of a batch, the first layer's block first.

        Parameters
        ----------
        seeds : tensor or array, or dict of node type to these
            Whose representations the model computes.
        seed : int, optional
            Of the draws.

        Returns
        -------
        tuple
            Ids of the first block's source nodes and of the last one's destination nodes, by node type where there are several, and the blocks.

        Raises
        ------
        InvalidRequest
            Where a seed is there twice, or is no node.
        """
        schema = self._graph.schema
        if not isinstance(seeds, Mapping):
            if len(schema.node_types) > 1:
                raise InvalidRequest(f"seeds without a type: there are {', '.join(t.name for t in schema.node_types)}; give a dict")
            seeds = {schema.node_types[0].name: seeds}
        by_type: dict[str, Ids] = {name: arguments.ids("seeds", np.asarray(some)) for name, some in seeds.items()}
        kinds = [np.full(len(some), schema.node_type_id(name), np.int32) for name, some in by_type.items()]
        found = self._graph.sample_subgraph(
            np.concatenate(list(by_type.values())),
            self._hops,
            ntype=np.concatenate(kinds),
            weighted=self._prob is not None,
            weight=self._prob or "",
            replace=self._replace,
            direction="in",
            expand="every",
            weights=self._edge_weights,
            seed=seed,
        )
        for name, some in by_type.items():
            if found.num_sampled_nodes[name][0] != len(some):
                once, counts = np.unique(some, return_counts=True)
                raise InvalidRequest(f"seed {once[counts > 1][0]} of {name!r} is twice in a batch of {len(some)}; give each once")
        made = blocks(found)
        named = len(schema.node_types) > 1
        ids = [{name: tensor(nodes[: _count(found, name, hop)]) for name, nodes in found.nodes.items()} for hop in (len(made), 0)]
        inputs, outputs = (every if named else next(iter(every.values())) for every in ids)
        return inputs, outputs, made


def _count(found: Subgraph, node_type: str, hop: int) -> int:
    """How many nodes of a type were met up to a hop."""
    return sum(found.num_sampled_nodes[node_type][: hop + 1])


def blocks(found: Subgraph) -> list[Any]:
    """The blocks of a subgraph, the farthest hop's first: what a model's first layer takes.

    Parameters
    ----------
    found : Subgraph
        Sampled with ``direction="in"`` and ``expand="every"``, as DGL samples.

    Returns
    -------
    list of DGLGraph
        Blocks with ids as ``srcdata[dgl.NID]``, ``dstdata[dgl.NID]`` and ``edata[dgl.EID]``, and ``edata["weight"]`` where the subgraph has weights.
        The destination nodes of each are the first of its source nodes, and the source nodes of the next block.
    """
    hops = len(next(iter(found.num_sampled_nodes.values()))) - 1
    made = []
    for hop in range(hops):
        edges, sliced = {}, {}
        for name, per_hop in found.num_sampled_edges.items():
            triple = tuple(name.split(":"))
            sliced[triple] = slice(sum(per_hop[:hop]), sum(per_hop[: hop + 1]))
            edges[triple] = (tensor(found.row[name][sliced[triple]]), tensor(found.col[name][sliced[triple]]))
        block = dgl.create_block(
            edges,
            num_src_nodes={name: _count(found, name, hop + 1) for name in found.nodes},
            num_dst_nodes={name: _count(found, name, hop) for name in found.nodes},
        )
        for name, ids in found.nodes.items():
            block.srcnodes[name].data[dgl.NID] = tensor(ids[: _count(found, name, hop + 1)])
            block.dstnodes[name].data[dgl.NID] = tensor(ids[: _count(found, name, hop)])
        for triple, mine in sliced.items():
            name = ":".join(triple)
            if found.edge_ids is not None:
                block.edges[triple].data[dgl.EID] = tensor(found.edge_ids[name][mine])
            if found.weights is not None:
                block.edges[triple].data["weight"] = tensor(found.weights[name][mine])
        made.append(block)
    return made[::-1]
