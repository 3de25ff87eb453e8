"""Graphs for DGL: message flow graphs (blocks) of a batch, and subgraphs as DGL graphs.

Needs ``asterism-graph[dgl]``. This module imports DGL. Inside `asterism` only adapters import this
module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.extras import required
from asterism.graph import Graph
from asterism.records.samples import Subgraph
from asterism.training.link_flow import LinkBatch, Pairs, check_exclusion, exclusion, link_batch
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

__all__ = ["EdgePredictionSampler", "LaborSampler", "NeighborSampler", "blocks"]

Seeds = Any
"""Node ids as a tensor or array; a dict by node type if there are several types."""


class NeighborSampler:
    """Counterpart of DGL's ``NeighborSampler`` for a graph that is not in memory.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`, with ``direction: both``.
    fanouts : list of (int or dict of edge type to int), or dict of edge type to list of int
        Neighbors that send messages to a node in each layer of the model, starting with the first
        layer; -1 takes all. A dict has triples, or relations that are unique; edge types that it
        omits are not followed.
    replace : bool
        Sample with replacement.
    prob : str, optional
        Weight column to sample by; ``"weight"`` is the weight of the edge. None: uniformly.
    edge_weights : bool
        Return the weights that edges were sampled by as ``edata["weight"]`` of the blocks.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version, or ``fanouts`` names an unknown edge type.

    See Also
    --------
    EdgePredictionSampler : Sampler for batches of links, which its blocks do not contain.

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

    def sample_blocks(
        self,
        seeds: Seeds,
        *,
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        seed: int | None = None,
    ) -> tuple[Any, Any, list[Any]]:
        """Sample the blocks of a batch.

        Parameters
        ----------
        seeds : tensor or array, or dict of node type to these
            Nodes that the model computes representations of.
        exclude : optional
            Edges that are as if they did not exist, such as the links of a batch that a model is to
            predict: ``{edge type: (src, dst)}``, as in `Graph.sample_neighbors`.
        reverse_types : dict, optional
            Edge type of the reverse edges of an edge type, which are excluded too, as in DGL's
            ``exclude="reverse_types"``.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        input_nodes, output_nodes : Tensor of int64, or dict of node type to these
            Source nodes of the first block, and destination nodes of the last block. Dicts if the
            graph has several node types.
        blocks : list of DGLGraph
            Blocks, starting with that of the first layer.

        Raises
        ------
        InvalidRequest
            If a seed repeats or is negative.
        NotFound
            If a seed is not in the graph.
        """
        return _batch(self._flows, seeds, seed, "weight", exclude, reverse_types)


class LaborSampler:
    """Counterpart of DGL's ``LaborSampler`` for a graph that is not in memory.

    Layer-neighbor sampling (LABOR; Balin & Catalyurek, 2023) lets the nodes of a batch share
    neighbors.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`, with ``direction: both``.
    fanouts : list of (int or dict of edge type to int), or dict of edge type to list of int
        Expected number of neighbors that send messages to a node in each layer of the model,
        starting with the first layer; -1 takes all. A dict has triples, or relations that are
        unique; edge types that it omits are not followed.
    prob : str, optional
        Weight column to sample by; ``"weight"`` is the weight of the edge. None: uniformly.
    importance_sampling : int
        Number of importance sampling steps i (LABOR-i), which favor shared neighbors. Negative:
        until convergence (LABOR-*).
    layer_dependency : bool
        Use the same random variate of a node in all layers.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version, or ``fanouts`` names an unknown edge type.

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

    def sample_blocks(
        self,
        seeds: Seeds,
        *,
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        seed: int | None = None,
    ) -> tuple[Any, Any, list[Any]]:
        """Sample the blocks of a batch.

        Parameters
        ----------
        seeds : tensor or array, or dict of node type to these
            Nodes that the model computes representations of.
        exclude : optional
            Edges that are as if they did not exist, such as the links of a batch that a model is to
            predict: ``{edge type: (src, dst)}``, as in `Graph.sample_neighbors`.
        reverse_types : dict, optional
            Edge type of the reverse edges of an edge type, which are excluded too, as in DGL's
            ``exclude="reverse_types"``.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        input_nodes, output_nodes : Tensor of int64, or dict of node type to these
            Source nodes of the first block, and destination nodes of the last block. Dicts if the
            graph has several node types.
        blocks : list of DGLGraph
            Blocks, starting with that of the first layer, with the weights of a mean as
            ``edata["edge_weights"]``.

        Raises
        ------
        InvalidRequest
            If a seed repeats or is negative.
        NotFound
            If a seed is not in the graph.
        """
        return _batch(self._flows, seeds, seed, "edge_weights", exclude, reverse_types)


class EdgePredictionSampler:
    """Counterpart of DGL's ``as_edge_prediction_sampler`` for a graph that is not in memory.

    The blocks of a batch of links contain none of these links.

    Parameters
    ----------
    sampler : NeighborSampler or LaborSampler
        Sampler of the blocks around the ends of the links.
    exclude : {"self", "reverse_id", "reverse_types"} or None
        Edges that are as if they did not exist for the samples of a batch. ``"self"``: the links of
        the batch. ``"reverse_types"``: also their reverse edges of the types of ``reverse_types``.
        ``"reverse_id"``: also their reverse edges of the same type. None: no edges. Unlike in DGL,
        all edges of the type from source to destination are excluded, so that no parallel edge
        shows a link, and a node still gets its number of neighbors.
    reverse_types : dict of str to str, optional
        Edge type of the reverse edges of an edge type; DGL calls it ``reverse_etypes``. With it,
        the reverse edges are excluded for ``"self"`` too; None and ``"reverse_id"`` are refused.

    Raises
    ------
    InvalidRequest
        If ``exclude`` is no such value, or does not fit ``reverse_types``.

    Examples
    --------
    >>> links = EdgePredictionSampler(  # doctest: +SKIP
    ...     NeighborSampler(held, [10, 25]), reverse_types={"buys": "bought_by"}
    ... )
    >>> for edges in held.edge_batches("buys", 512, seed=1):  # doctest: +SKIP
    ...     seeds = held.link_seeds(edges, "buys", amount=2)
    ...     input_nodes, positive, negative, mfgs = links.sample(seeds)
    """

    def __init__(
        self,
        sampler: NeighborSampler | LaborSampler,
        *,
        exclude: str | None = "self",
        reverse_types: ReverseTypes = None,
    ) -> None:
        check_exclusion(exclude, reverse_types)
        self._sampler, self._exclude, self._reverse_types = sampler, exclude, reverse_types

    def sample(self, links: Any, *, seed: int | None = None) -> tuple[Any, ...]:
        """Sample the blocks of a batch of links.

        Parameters
        ----------
        links : LinkSeeds, EdgeRows, EdgeSample, pairs, or dict of edge type to these
            Links of the batch: a record, ``(src, dst)``, ``(src, dst, edge_ids)``, or rows of
            these. A dict is needed if the graph has several edge types and the record has none.
        seed : int, optional
            Random seed; the same seed repeats the sample. Default: random.

        Returns
        -------
        input_nodes : Tensor of int64, or dict of node type to these
            Source nodes of the first block.
        pair_graph : DGLGraph
            Ends and links of the batch, with ids as ``ndata[dgl.NID]``, and ``edata[dgl.EID]`` of
            the edge types for which they are known.
        negative_graph : DGLGraph
            The same nodes with the negative links, which only `LinkSeeds` have. Omitted if there
            are none.
        blocks : list of DGLGraph
            Blocks, starting with that of the first layer; the destination nodes of the last block
            are the nodes of the pair graph.

        Raises
        ------
        InvalidRequest
            If the links have no edge type although the graph has several, or their ends are not
            node ids.
        NotFound
            If an end of a link, or the edge type, is not in the graph.
        """
        graph = self._sampler._flows.graph
        batch = link_batch(graph, links)
        excluded, reverse_types = exclusion(batch, self._exclude, self._reverse_types)
        inputs, _, layer_blocks = self._sampler.sample_blocks(
            batch.nodes, exclude=excluded, reverse_types=reverse_types, seed=seed
        )
        pair_graph = _pair_graph(graph, batch, batch.links)
        for name, edge_ids in batch.edge_ids.items():
            pair_graph.edges[tuple(name.split(":"))].data[dgl.EID] = tensor(edge_ids)
        if batch.negatives is None:
            return inputs, pair_graph, layer_blocks
        return inputs, pair_graph, _pair_graph(graph, batch, batch.negatives), layer_blocks


def _pair_graph(graph: Graph, batch: LinkBatch, pairs: Mapping[str, Pairs]) -> Any:
    """Return a graph of the ends of a batch, with some of its links."""
    result = dgl.heterograph(
        {
            tuple(name.split(":")): (tensor(src), tensor(dst))
            for name, (src, dst) in batch.positions(graph.schema, pairs).items()
        },
        num_nodes_dict={name: len(ids) for name, ids in batch.nodes.items()},
    )
    for name, ids in batch.nodes.items():
        result.nodes[name].data[dgl.NID] = tensor(ids)
    return result


def _batch(
    sampler: MessageFlowSampler,
    seeds: Seeds,
    seed: int | None,
    weights: str,
    exclude: EdgeExclusion,
    reverse_types: ReverseTypes,
) -> tuple[Any, Any, list[Any]]:
    """Return input nodes, output nodes and blocks."""
    subgraph = sampler.sample(sampler.seeds_by_type(seeds), seed, exclude, reverse_types)
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
    """Return the blocks of a subgraph, starting with the farthest hop.

    The first block is the input of the first layer of a model.

    Parameters
    ----------
    found : Subgraph
        Subgraph that was sampled with ``direction="in"`` and ``expand="every"``, as DGL samples.
    weights : str
        Name of the weights in ``edata``, if the subgraph has weights.

    Returns
    -------
    list of DGLGraph
        Blocks with ids as ``srcdata[dgl.NID]``, ``dstdata[dgl.NID]`` and ``edata[dgl.EID]``, and
        with ``edata[weights]`` if the subgraph has weights. The destination nodes of a block are
        the first of its source nodes, and are the source nodes of the next block.
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
