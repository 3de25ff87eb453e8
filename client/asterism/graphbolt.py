"""Graphs for GraphBolt, DGL 2's data loader: a sampler and a feature store for its pipelines. Needs
``asterism-graph[dgl]`` with a DGL that has GraphBolt.

GraphBolt is imported with this module; nobody inside `asterism` imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from asterism.calls import validation
from asterism.extras import required
from asterism.graph import Graph
from asterism.records.samples import FeatureValue, Subgraph
from asterism.training.message_flow import (
    HopFanouts,
    MessageFlowSampler,
    hop_count,
    hop_edges,
    require_version,
    visited_count,
)
from asterism.transport.retries import DEFAULT_PATIENCE_S, check_patience, retry_read
from asterism_model.schema import EdgeType, NodeType
from asterism_proto.errors import InvalidRequest, NotFound

with required("dgl", "asterism.graphbolt"):
    import dgl.graphbolt as gb
    import torch
    from torch.utils.data import functional_datapipe

    from asterism.torch import batch_seed, tensor

__all__ = ["FeatureStore", "SubgraphSampler"]

Encoder = Callable[[FeatureValue], Any]


@functional_datapipe("sample_asterism")
class SubgraphSampler(gb.SubgraphSampler):  # type: ignore[misc]  # DGL has no types here
    """Draws what GraphBolt's ``NeighborSampler`` does, from a graph that is not in memory.
    Functional name: ``sample_asterism``.

    Parameters
    ----------
    datapipe : DataPipe
        Of mini-batches: an ``ItemSampler``, or what follows one.
    graph : Graph
        Of one version, with ``direction: both``: from a `Graph.pin`, or `Graph.at`. It crosses into
        the loader's workers.
    fanouts : list of int, or dict of triple to list of int
        Neighbors that a node has messages from in each layer of the model, the first layer's first;
        -1 are all. Edge types that a dict does not name are not followed.
    replace : bool
        With replacement.
    prob_name : str, optional
        Draw in proportion to these weights: ``"weight"`` are the edges' own, other names are
        tables. None: uniformly.
    seed : int, optional
        Then the draws of a batch follow from it and from the batch, however many workers there are.
        None: each batch takes a fresh one from torch's generator.
    patience_s : float
        How long a batch is tried again, in seconds, while the service does not answer: as long as
        its restart may take.

    Raises
    ------
    InvalidRequest
        For a graph of no version or fanouts of unknown types; of a batch: for timestamps, which are
        not served, for seeds without a type where the graph has several, and for a seed that is
        there twice or is negative.

    Examples
    --------
    >>> pipe = gb.ItemSampler(  # doctest: +SKIP
    ...     gb.ItemSet(train, names="seed_nodes"), batch_size=512, shuffle=True
    ... )
    >>> pipe = pipe.sample_asterism(held, [10, 25])  # doctest: +SKIP
    >>> pipe = pipe.fetch_feature(FeatureStore(held), ["vector"])  # doctest: +SKIP
    >>> for batch in gb.DataLoader(pipe, num_workers=2):  # doctest: +SKIP
    ...     model(batch.blocks, batch.node_features["vector"])
    """

    def __init__(
        self,
        datapipe: Any,
        graph: Graph,
        fanouts: HopFanouts,
        *,
        replace: bool = False,
        prob_name: str | None = None,
        seed: int | None = None,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        super().__init__(datapipe)
        self._sampler = MessageFlowSampler(
            graph, fanouts, replace=replace, prob=prob_name, weights=False
        )
        self._seed = None if seed is None else validation.seed(seed)
        self._patience_s = check_patience(patience_s)

    def sample_subgraphs(self, seeds: Any, seeds_timestamp: Any = None) -> tuple[Any, list[Any]]:
        """The input nodes of a batch and its subgraphs, the first layer's first: by type where the
        seeds are.
        """
        if seeds_timestamp is not None:
            raise InvalidRequest("timestamps of seeds: times are not served yet; leave them out")
        is_hetero = isinstance(seeds, Mapping)
        if not is_hetero and len(self._sampler.graph.schema.edge_types) > 1:
            raise InvalidRequest(
                "seeds without a type: there are "
                f"{len(self._sampler.graph.schema.edge_types)} edge types; give a dict"
            )
        by_type = self._sampler.seeds_by_type(seeds)
        key = batch_seed(self._seed, np.concatenate(list(by_type.values())))
        subgraph = retry_read(lambda: self._sampler.sample(by_type, key), self._patience_s)
        layers = [_layer(subgraph, hop, is_hetero) for hop in reversed(range(hop_count(subgraph)))]
        return layers[0].original_row_node_ids, layers


def _layer(subgraph: Subgraph, hop: int, is_hetero: bool) -> Any:
    """GraphBolt's record of the edges of a hop."""
    assert subgraph.edge_ids is not None
    csc, edge_ids = {}, {}
    for name in subgraph.num_sampled_edges:
        edge_slice = hop_edges(subgraph, name, hop)
        dst_count = visited_count(subgraph, name.rpartition(":")[2], hop)
        # The edges of a hop are in the order of the nodes that they lead to.
        indptr = np.searchsorted(subgraph.col[name][edge_slice], np.arange(dst_count + 1))
        csc[name] = gb.CSCFormatBase(
            indptr=tensor(indptr), indices=tensor(subgraph.row[name][edge_slice])
        )
        edge_ids[name] = tensor(subgraph.edge_ids[name][edge_slice])
    rows, columns = (
        {
            name: tensor(ids[: visited_count(subgraph, name, depth)])
            for name, ids in subgraph.nodes.items()
        }
        for depth in (hop + 1, hop)
    )
    parts = (csc, columns, rows, edge_ids)
    if not is_hetero:
        parts = tuple(next(iter(part.values())) for part in parts)
    return gb.SampledSubgraphImpl(*parts)


class FeatureStore(gb.FeatureStore):  # type: ignore[misc]  # DGL has no types here
    """The features of a graph's nodes and edges, as GraphBolt's ``FeatureFetcher`` reads them. It
    can not be written to.

    Parameters
    ----------
    graph : Graph
        Of one version.
    encode : dict of str to callable, optional
        By feature: what makes a tensor ``[m, ...]`` of its column, an array ``[m, *shape]`` or
        ``(indptr, values)``. Ragged features and bytes need one.
    patience_s : float
        How long features are asked for again, in seconds, while the service does not answer.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        encode: Mapping[str, Encoder] | None = None,
        patience_s: float = DEFAULT_PATIENCE_S,
    ) -> None:
        super().__init__()
        require_version(graph)
        self._graph, self._encode, self._patience_s = (
            graph,
            dict(encode or {}),
            check_patience(patience_s),
        )

    def read(self, domain: str, type_name: str | None, feature_name: str, ids: Any = None) -> Any:
        """Features of some nodes or edges, a row each; ``"weight"`` is a node's weight.

        Raises
        ------
        InvalidRequest
            Without ids: a graph's features are read by batch. For a feature that is no tensor and
            has no encoder.
        NotFound
            Where there is no such type or feature, or no such node or edge.
        """
        if ids is None:
            raise InvalidRequest(
                f"all of {feature_name!r}: features are read for the nodes or edges of a "
                "batch; give their ids"
            )
        name, _ = self._column(domain, type_name, feature_name)
        read = self._graph.node_features if domain == "node" else self._graph.edge_features
        column = retry_read(lambda: read(np.asarray(ids), [feature_name], name), self._patience_s)[
            feature_name
        ]
        encode = self._encode.get(feature_name)
        return tensor(column) if encode is None else torch.as_tensor(encode(column))

    def size(self, domain: str, type_name: str | None, feature_name: str) -> Any:
        """The shape of one node's or edge's feature, as the schema has it."""
        return torch.Size(self._column(domain, type_name, feature_name)[1])

    def metadata(self, domain: str, type_name: str | None, feature_name: str) -> dict[str, Any]:
        """Nothing: the schema says what there is."""
        return {}

    def keys(self) -> list[tuple[str, str, str]]:
        """Domain, type and name of every feature that can be read."""
        types: dict[str, Sequence[NodeType | EdgeType]] = {
            "node": self._graph.schema.node_types,
            "edge": self._graph.schema.edge_types,
        }
        return [
            (domain, kind.name, feature.name)
            for domain, kinds in types.items()
            for kind in kinds
            for feature in kind.features
            if feature.kind == "dense" or feature.name in self._encode
        ]

    def update(
        self, domain: str, type_name: str | None, feature_name: str, value: Any, ids: Any = None
    ) -> NoReturn:
        """Refused: what one trains on is published."""
        raise InvalidRequest(
            f"{feature_name!r} can not be updated: what one trains on is published; write to "
            "the space, and build it"
        )

    def _column(
        self, domain: str, type_name: str | None, feature_name: str
    ) -> tuple[str, tuple[int, ...]]:
        """The name of the type that has a feature, and the feature's shape."""
        schema = self._graph.schema
        if domain not in ("node", "edge"):
            raise InvalidRequest(f"domain {domain!r}: expected 'node' or 'edge'")
        kinds: Sequence[NodeType | EdgeType] = (
            schema.node_types if domain == "node" else schema.edge_types
        )
        if type_name is None and len(kinds) > 1:
            raise InvalidRequest(
                f"{feature_name!r} of no type: there are {', '.join(t.name for t in kinds)}; "
                "name one"
            )
        kind = (
            kinds[0] if type_name is None else next((t for t in kinds if t.name == type_name), None)
        )
        if kind is None:
            raise NotFound(
                f"{domain} type {type_name!r}: there are {', '.join(t.name for t in kinds)}"
            )
        if feature_name == "weight" and domain == "node":
            return kind.name, ()
        feature = kind.feature(feature_name)
        if feature.kind != "dense" and feature_name not in self._encode:
            raise InvalidRequest(
                f"feature {feature_name!r} of {kind.name!r} is {feature.kind}: encode it as "
                "a tensor"
            )
        return kind.name, tuple(feature.shape)
