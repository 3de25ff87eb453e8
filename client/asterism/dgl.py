"""Graphs for DGL: a batch's message flow graphs (blocks), and subgraphs as graphs of DGL. Needs
``asterism-graph[dgl]``.

DGL is imported with this module; nobody inside `asterism` but its own adapters imports it.
"""

from __future__ import annotations

from typing import Any

from asterism.extras import required
from asterism.graph import Graph
from asterism.records.samples import Subgraph
from asterism.training.message_flow import (
    HopFanouts,
    LaborFlowSampler,
    MessageFlowSampler,
    hop_count,
    hop_edges,
    visited_count,
)

with required("dgl", "asterism.dgl"):
    import dgl

    from asterism.torch import tensor

__all__ = ["LaborSampler", "NeighborSampler", "blocks"]

Seeds = Any
"""Node ids, as a tensor or array; by node type where there are several."""


class NeighborSampler:
    """Draws blocks as DGL's ``NeighborSampler`` does, from a graph that is not in memory.

    Parameters
    ----------
    graph : Graph
        Of one version, with ``direction: both``: from a `Graph.pin`, or `Graph.at`.
    fanouts : list of int, or dict of triple to list of int
        Neighbors that a node has messages from in each layer of the model, the first layer's first;
        -1 are all. Edge types that a dict does not name are not followed.
    replace : bool
        With replacement.
    prob : str, optional
        Draw in proportion to these weights: ``"weight"`` are the edges' own, other names are
        tables. None: uniformly.
    edge_weights : bool
        Whether blocks have the weights that were drawn by, as ``edata["weight"]``.

    Examples
    --------
    >>> sampler = NeighborSampler(held, [10, 25])  # doctest: +SKIP
    >>> input_nodes, output_nodes, mfgs = sampler.sample_blocks(seeds)  # doctest: +SKIP
    >>> model(mfgs, features(input_nodes))  # doctest: +SKIP
    """

    def __init__(
        self,
        graph: Graph,
        fanouts: HopFanouts,
        *,
        replace: bool = False,
        prob: str | None = None,
        edge_weights: bool = False,
    ) -> None:
        self._flows = MessageFlowSampler(
            graph, fanouts, replace=replace, prob=prob, weights=edge_weights
        )

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
            Ids of the first block's source nodes and of the last one's destination nodes, by node
            type where there are several, and the blocks.

        Raises
        ------
        InvalidRequest
            Where a seed is there twice, or is negative.
        """
        return _batch(self._flows, seeds, seed, "weight")


class LaborSampler:
    """Draws blocks as DGL's ``LaborSampler`` does, from a graph that is not in memory: nodes of a
    batch share neighbors where they can.

    Parameters
    ----------
    graph : Graph
        Of one version, with ``direction: both``: from a `Graph.pin`, or `Graph.at`.
    fanouts : list of int, or dict of triple to list of int
        Neighbors that a node has messages from in each layer of the model, in expectation, the
        first layer's first; -1 are all.
    prob : str, optional
        Draw by these weights: ``"weight"`` are the edges' own, other names are tables. None:
        uniformly.
    importance_sampling : int
        Steps that make shared neighbors more probable, LABOR-i; below 0: as many as it takes,
        LABOR-*.
    layer_dependency : bool
        Whether all layers keep neighbors by the same variates.

    Examples
    --------
    >>> sampler = LaborSampler(held, [10, 25], importance_sampling=1)  # doctest: +SKIP
    >>> input_nodes, output_nodes, mfgs = sampler.sample_blocks(seeds)  # doctest: +SKIP
    >>> conv(  # doctest: +SKIP
    ...     mfgs[0], features(input_nodes), edge_weight=mfgs[0].edata["edge_weights"]
    ... )
    """

    def __init__(
        self,
        graph: Graph,
        fanouts: HopFanouts,
        *,
        prob: str | None = None,
        importance_sampling: int = 0,
        layer_dependency: bool = False,
    ) -> None:
        self._flows = LaborFlowSampler(
            graph,
            fanouts,
            prob=prob,
            importance=max(importance_sampling, -1),
            layer_dependency=layer_dependency,
        )

    def sample_blocks(self, seeds: Seeds, *, seed: int | None = None) -> tuple[Any, Any, list[Any]]:
        """Input nodes, output nodes and blocks of a batch, as of `NeighborSampler`, with the
        weights of a mean as ``edata["edge_weights"]``.
        """
        return _batch(self._flows, seeds, seed, "edge_weights")


def _batch(
    sampler: MessageFlowSampler, seeds: Seeds, seed: int | None, weights: str
) -> tuple[Any, Any, list[Any]]:
    """Input nodes, output nodes and blocks."""
    subgraph = sampler.sample(sampler.seeds_by_type(seeds), seed)
    layer_blocks = blocks(subgraph, weights=weights)
    is_hetero = len(subgraph.nodes) > 1
    ids = [
        {
            name: tensor(nodes[: visited_count(subgraph, name, hop)])
            for name, nodes in subgraph.nodes.items()
        }
        for hop in (len(layer_blocks), 0)
    ]
    inputs, outputs = (by_type if is_hetero else next(iter(by_type.values())) for by_type in ids)
    return inputs, outputs, layer_blocks


def blocks(found: Subgraph, *, weights: str = "weight") -> list[Any]:
    """The blocks of a subgraph, the farthest hop's first: what a model's first layer takes.

    Parameters
    ----------
    found : Subgraph
        Sampled with ``direction="in"`` and ``expand="every"``, as DGL samples.
    weights : str
        What the subgraph's weights are called, where it has any.

    Returns
    -------
    list of DGLGraph
        Blocks with ids as ``srcdata[dgl.NID]``, ``dstdata[dgl.NID]`` and ``edata[dgl.EID]``, and
        ``edata[weights]`` where the subgraph has them. The destination nodes of each are the first
        of its source nodes, and the source nodes of the next block.
    """
    result = []
    for hop in range(hop_count(found)):
        edges, slices = {}, {}
        for name in found.num_sampled_edges:
            triple = tuple(name.split(":"))
            slices[triple] = hop_edges(found, name, hop)
            edges[triple] = (
                tensor(found.row[name][slices[triple]]),
                tensor(found.col[name][slices[triple]]),
            )
        block = dgl.create_block(
            edges,
            num_src_nodes={name: visited_count(found, name, hop + 1) for name in found.nodes},
            num_dst_nodes={name: visited_count(found, name, hop) for name in found.nodes},
        )
        for name, ids in found.nodes.items():
            block.srcnodes[name].data[dgl.NID] = tensor(ids[: visited_count(found, name, hop + 1)])
            block.dstnodes[name].data[dgl.NID] = tensor(ids[: visited_count(found, name, hop)])
        for triple, edge_slice in slices.items():
            name = ":".join(triple)
            if found.edge_ids is not None:
                block.edges[triple].data[dgl.EID] = tensor(found.edge_ids[name][edge_slice])
            if found.weights is not None:
                block.edges[triple].data[weights] = tensor(found.weights[name][edge_slice])
        result.append(block)
    return result[::-1]
