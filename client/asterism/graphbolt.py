"""Graphs for GraphBolt, the data loader of DGL 2: a sampler and a feature store.

Needs ``asterism-graph[dgl]`` with a DGL that includes GraphBolt. This module imports GraphBolt. No
other module of `asterism` imports it.
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
from asterism.transport.read_retries import DEFAULT_PATIENCE_S, check_patience, retry_read
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
    """Counterpart of GraphBolt's ``NeighborSampler`` for a graph that is not in memory.

    Its functional name is ``sample_asterism``.

    Parameters
    ----------
    datapipe : DataPipe
        Source of mini-batches: an ``ItemSampler``, or a stage after one.
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`, with ``direction: both``. It is passed
        to the workers of the loader.
    fanouts : list of (int or dict of edge type to int), or dict of edge type to list of int
        Neighbors that send messages to a node in each layer of the model, starting with the first
        layer; -1 takes all. A dict has triples, or relations that are unique; edge types that it
        omits are not followed.
    replace : bool
        Sample with replacement.
    prob_name : str, optional
        Weight column to sample by; ``"weight"`` is the weight of the edge. None: uniformly.
    seed : int, optional
        Random seed. Samples of a batch depend on it and on the batch alone, not on the number of
        workers. None: each batch takes a seed from torch's generator.
    patience_s : float
        Seconds for which a failed batch is retried while the service is unavailable. Choose a value
        that covers a restart of the service.
    exclude : bool
        In batches of links, sample as if their links did not exist: all edges of their type from
        source to destination, but not the negatives of a negative sampler. Unlike GraphBolt's
        ``exclude_seed_edges``, which removes them from what was sampled, a node still gets its
        number of neighbors. False: sample from all edges.
    reverse_types : dict of str to str, optional
        Edge type of the reverse edges of an edge type, which are excluded too.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version, ``fanouts`` names an unknown edge type, or there are
        ``reverse_types`` with ``exclude=False``. A batch raises it if it has timestamps, which are
        not supported, if its seeds have no type although the graph has several, or if a seed
        repeats or is negative.

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
        exclude: bool = True,
        reverse_types: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(datapipe)
        self._sampler = MessageFlowSampler(
            graph, fanouts, replace=replace, prob=prob_name, weights=False
        )
        if reverse_types and not exclude:
            raise InvalidRequest(
                "reverse_types with exclude=False: expected exclude=True; leave reverse_types out"
            )
        self._exclude, self._reverse_types = exclude, reverse_types
        self._seed = None if seed is None else validation.seed(seed)
        self._patience_s = check_patience(patience_s)

    def _sample(self, minibatch: Any) -> Any:
        """Sample the subgraphs of a batch, without its links."""
        minibatch.input_nodes, minibatch.sampled_subgraphs = self.sample_subgraphs(
            minibatch._seed_nodes,
            minibatch._seeds_timestamp,
            exclude=self._links(minibatch) if self._exclude else None,
        )
        return minibatch

    def _links(self, minibatch: Any) -> dict[str, tuple[Any, Any]] | None:
        """Return the links of a batch, by edge type; None for a batch of nodes.

        A negative sampler marks its negatives by labels, and its batches by indexes. Labels without
        indexes may be classes of edges, of which 0 is one.
        """
        names = [edge_type.name for edge_type in self._sampler.graph.schema.edge_types]
        if getattr(minibatch, "node_pairs", None) is not None:
            pairs = minibatch.node_pairs
            by_type = pairs if isinstance(pairs, Mapping) else {names[0]: pairs}
            return {
                name: (np.asarray(src), np.asarray(dst)) for name, (src, dst) in by_type.items()
            }
        seeds = getattr(minibatch, "seeds", None)
        by_type = seeds if isinstance(seeds, Mapping) else {names[0]: seeds}
        if any(links is None or links.ndim != 2 for links in by_type.values()):
            return None
        labels, indexes = (getattr(minibatch, name, None) for name in ("labels", "indexes"))
        result = {}
        for name, links in by_type.items():
            is_link, index = (
                column.get(name) if isinstance(column, Mapping) else column
                for column in (labels, indexes)
            )
            rows = np.asarray(links)
            if is_link is not None and index is not None:
                rows = rows[np.asarray(is_link).reshape(-1) > 0]
            result[name] = (rows[:, 0], rows[:, 1])
        return result

    def sample_subgraphs(
        self,
        seeds: Any,
        seeds_timestamp: Any = None,
        *,
        exclude: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> tuple[Any, list[Any]]:
        """Sample the subgraphs of a batch.

        Parameters
        ----------
        seeds : Tensor of int64, or dict of node type to these
            Seed nodes.
        seeds_timestamp : optional
            Not supported; must be None.
        exclude : dict of str to (src, dst), optional
            Edges that are as if they did not exist, by edge type.

        Returns
        -------
        input_nodes : Tensor of int64, or dict of node type to these
            Source nodes of the first layer; a dict if ``seeds`` is one.
        subgraphs : list of SampledSubgraphImpl
            Subgraphs, starting with that of the first layer.

        Raises
        ------
        InvalidRequest
            If there are timestamps, the seeds have no type although the graph has several, or a
            seed repeats or is negative.
        NotFound
            If a seed is not in the graph.
        """
        if seeds_timestamp is not None:
            raise InvalidRequest(
                "timestamp of seeds: expected None, because this sampler does not filter by time; "
                "leave it out"
            )
        is_hetero = isinstance(seeds, Mapping)
        if not is_hetero and len(self._sampler.graph.schema.edge_types) > 1:
            raise InvalidRequest(
                "seeds: expected a dict of node type to nodes, because the graph has "
                f"{len(self._sampler.graph.schema.edge_types)} edge types"
            )
        by_type = self._sampler.seeds_by_type(seeds)
        key = batch_seed(self._seed, np.concatenate(list(by_type.values())))
        reverse_types = None if exclude is None else self._reverse_types
        subgraph = retry_read(
            lambda: self._sampler.sample(by_type, key, exclude, reverse_types), self._patience_s
        )
        layers = [_layer(subgraph, hop, is_hetero) for hop in reversed(range(hop_count(subgraph)))]
        return layers[0].original_row_node_ids, layers


def _layer(subgraph: Subgraph, hop: int, is_hetero: bool) -> Any:
    """Return GraphBolt's record of the edges of a hop."""
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
    """Read-only features of nodes and edges, for GraphBolt's ``FeatureFetcher``.

    Parameters
    ----------
    graph : Graph
        Graph of one version, from `Graph.pin` or `Graph.at`.
    encode : dict of str to callable, optional
        Encoder of each feature. It receives the column, an array ``[m, *shape]`` or ``(indptr,
        values)``, and returns a tensor ``[m, ...]``. Required for ragged features and bytes.
    patience_s : float
        Seconds for which a failed read is retried while the service is unavailable. Choose a value
        that covers a restart of the service.

    Raises
    ------
    InvalidRequest
        If the graph is not of one version.
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
        """Return features of nodes or edges.

        Parameters
        ----------
        domain : {"node", "edge"}
            Kind of element.
        type_name : str, optional
            Node type or edge type. None: the only one.
        feature_name : str
            Name of the feature; ``"weight"`` is the weight of a node.
        ids : array_like of int64, shape (m,)
            Node ids or edge ids. Required.

        Returns
        -------
        Tensor, shape (m, ...)
            One row per id.

        Raises
        ------
        InvalidRequest
            If there are no ids, because features are read batch by batch; if the type is ambiguous;
            or if the feature is not dense and has no encoder.
        NotFound
            If the type, the feature, a node or an edge does not exist.
        """
        if ids is None:
            raise InvalidRequest(
                f"ids=None: expected the ids of a batch, because {feature_name!r} is not read as a "
                "whole; pass ids"
            )
        name, _ = self._column(domain, type_name, feature_name)
        read = self._graph.node_features if domain == "node" else self._graph.edge_features
        column = retry_read(lambda: read(np.asarray(ids), [feature_name], name), self._patience_s)[
            feature_name
        ]
        encode = self._encode.get(feature_name)
        return tensor(column) if encode is None else torch.as_tensor(encode(column))

    def size(self, domain: str, type_name: str | None, feature_name: str) -> Any:
        """Return the shape of a feature of one node or edge, as declared in the schema.

        Parameters
        ----------
        domain, type_name, feature_name
            Feature, as for `read`.

        Returns
        -------
        torch.Size
            Shape without the dimension of rows.

        Raises
        ------
        InvalidRequest
            If the type is ambiguous, or the feature is not dense and has no encoder.
        NotFound
            If the type or feature does not exist.
        """
        return torch.Size(self._column(domain, type_name, feature_name)[1])

    def metadata(self, domain: str, type_name: str | None, feature_name: str) -> dict[str, Any]:
        """Return no metadata: the schema describes the feature.

        Returns
        -------
        dict
            Empty.
        """
        return {}

    def keys(self) -> list[tuple[str, str, str]]:
        """Return the domain, type and name of every readable feature.

        Returns
        -------
        list of tuple of str
            Dense features, and features with an encoder.
        """
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
        """Raise InvalidRequest: published versions are immutable.

        Raises
        ------
        InvalidRequest
            Always.
        """
        raise InvalidRequest(
            f"feature {feature_name!r}: expected reads only, because published versions do not "
            "change; write with graph.upsert_nodes, and build a version"
        )

    def _column(
        self, domain: str, type_name: str | None, feature_name: str
    ) -> tuple[str, tuple[int, ...]]:
        """Return the name of the type that has a feature, and the shape of the feature."""
        schema = self._graph.schema
        if domain not in ("node", "edge"):
            raise InvalidRequest(f"domain={domain!r}: expected 'node' or 'edge'")
        kinds: Sequence[NodeType | EdgeType] = (
            schema.node_types if domain == "node" else schema.edge_types
        )
        if type_name is None and len(kinds) > 1:
            raise InvalidRequest(
                f"type_name=None for feature {feature_name!r}: expected one of "
                f"{', '.join(t.name for t in kinds)}"
            )
        kind = (
            kinds[0] if type_name is None else next((t for t in kinds if t.name == type_name), None)
        )
        if kind is None:
            raise NotFound(
                f"type_name={type_name!r}: expected a {domain} type, one of "
                f"{', '.join(t.name for t in kinds)}"
            )
        if feature_name == "weight" and domain == "node":
            return kind.name, ()
        feature = kind.feature(feature_name)
        if feature.kind != "dense" and feature_name not in self._encode:
            raise InvalidRequest(
                f"feature {feature_name!r} of {kind.name!r}: expected a dense feature, this one is "
                f"{feature.kind}; pass encode with a function that returns a tensor"
            )
        return kind.name, tuple(feature.shape)
