"""Prices of the Graph service's requests, from their heads and section sizes.

graphd checks a price before it calls storageds; clients check it before they send a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism_model import prices
from asterism_model.excluded_edges import EXCLUDED_SOURCES
from asterism_model.fanout_fractions import parse_share, share_count
from asterism_model.prices import Price, neighbor_width
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb

Head_co = TypeVar("Head_co", covariant=True)

_DEFAULT_SCAN_ROWS = 65536
_RAGGED_ROW_BYTES = 256


class VersionCounts(Protocol):
    """Numbers of nodes and edges of a version."""

    def nodes(self, types: Iterable[int]) -> int:
        """Return the number of live nodes.

        Parameters
        ----------
        types : iterable of int
            Node types; empty: all types.
        """

    def edges(self, types: Iterable[int]) -> int:
        """Return the number of edges.

        Parameters
        ----------
        types : iterable of int
            Edge types; empty: all types.
        """


class UnknownCounts:
    """Upper bounds for a version with unknown counts."""

    def nodes(self, types: Iterable[int]) -> int:
        """Return more nodes than a version can hold."""
        return 1 << 62

    def edges(self, types: Iterable[int]) -> int:
        """Return more edges than a version can hold."""
        return 1 << 62


class _RequestSizes(Generic[Head_co]):
    """The numbers of one request that its price depends on.

    Parameters
    ----------
    head : Message
        Head of a request of the Graph service.
    sizes : mapping of str to int
        Number of entries of each section.
    schema : Schema, optional
        Schema of the graph space; without one, terms that depend on it are left out.
    counts : VersionCounts
        Counts of the version.
    """

    def __init__(
        self,
        head: Head_co,
        sizes: Mapping[str, int],
        schema: Schema | None,
        counts: VersionCounts,
    ) -> None:
        self.head, self.sizes, self.schema, self.counts = head, sizes, schema, counts

    @property
    def nodes(self) -> int:
        """Return the number of nodes in the request."""
        return self.sizes.get("nodes", 0)

    def neighbor_width(self, types: int) -> int:
        """Return the bytes of one sampled neighbor."""
        head, temporal_filter = self.head, getattr(self.head, "temporal_filter", None)
        return neighbor_width(
            types=types,
            weights=getattr(head, "want_weights", False),
            edge_ids=getattr(head, "want_edge_ids", False),
            probabilities=getattr(head, "want_probabilities", False),
            times=temporal_filter is not None and temporal_filter.want_times,
        )

    def feature_width(
        self, owner: NodeType | EdgeType | None, names: Iterable[str]
    ) -> tuple[int, bool]:
        """Return the bytes of a row of dense features, and True if any feature is not dense."""
        features = [
            feature
            for feature in (owner.features if owner is not None else ())
            if feature.name in set(names)
        ]
        return sum(_dense_bytes(feature) for feature in features), any(
            feature.kind != "dense" for feature in features
        )


def _dense_bytes(feature: Feature) -> int:
    return (
        int(np.dtype(feature.dtype).itemsize * np.prod(feature.shape, dtype=np.int64))
        if feature.kind == "dense"
        else _RAGGED_ROW_BYTES
    )


def _price_nodes(request: _RequestSizes[graphd_pb.SampleNodesRequest]) -> Price:
    head = request.head
    width = 8 + 4 * (len(set(head.types)) != 1) + 8 * head.want_probabilities
    available = request.counts.nodes(head.types) if head.distinct else 0
    return prices.draw_rows_price(
        head.count, width=width, distinct=head.distinct, available=available
    )


def _price_edges(request: _RequestSizes[graphd_pb.SampleEdgesRequest]) -> Price:
    head = request.head
    available = request.counts.edges(head.types) if head.distinct else 0
    return prices.draw_rows_price(
        head.count,
        width=32 + 8 * head.want_probabilities,
        distinct=head.distinct,
        available=available,
    )


def _price_nodes_like(request: _RequestSizes[graphd_pb.SampleNodesLikeRequest]) -> Price:
    return prices.draw_per_row_price(
        request.nodes, request.head.count, width=8 + 8 * request.head.want_probabilities
    )


def _price_negatives(request: _RequestSizes[graphd_pb.SampleNegativesRequest]) -> Price:
    return prices.draw_per_row_price(
        request.head.rows, request.head.count, width=12 + 8 * request.head.want_probabilities
    )


def _price_neighbors(request: _RequestSizes[graphd_pb.SampleNeighborsRequest]) -> Price:
    head, types = request.head, len(request.head.edge_types)
    price = prices.neighbors_price(
        request.nodes,
        _most_neighbors(request, head),
        width=request.neighbor_width(types),
        types=types,
        replace=head.replace,
    )
    if not head.share:
        return price
    return replace(price, formula=f"share={head.share} x nodes={request.nodes}", exact=False)


def _most_neighbors(
    request: _RequestSizes[Any], hop: graphd_pb.Hop | graphd_pb.SampleNeighborsRequest
) -> int:
    """Return an upper bound of the neighbors of each node."""
    if not hop.share:
        return hop.count
    return share_count(parse_share("share", hop.share), request.counts.edges(hop.edge_types))


def _price_fanout(request: _RequestSizes[graphd_pb.SampleFanoutRequest]) -> Price:
    head = request.head
    types = [len(hop.edge_types) for hop in head.hops]
    widths = [request.neighbor_width(type_count) for type_count in types]
    price = prices.fanout_price(
        request.nodes,
        [_most_neighbors(request, hop) for hop in head.hops],
        widths=widths,
        types=types,
        replace=head.replace,
    )
    if not any(hop.share for hop in head.hops):
        return price
    fanouts = "x".join(hop.share or str(hop.count) for hop in head.hops)
    return replace(price, formula=f"fanouts={fanouts} of nodes={request.nodes}", exact=False)


def _price_subgraph(
    request: _RequestSizes[
        graphd_pb.SampleSubgraphRequest
        | graphd_pb.SampleEgoSubgraphsRequest
        | graphd_pb.SampleLaborRequest
    ],
) -> Price:
    head, schema = request.head, request.schema
    # Without a schema all edge types lead from and to type 0, which only raises the bound.
    ends: Callable[[int], tuple[int, int]] = lambda _: (0, 0)  # noqa: E731
    if schema is not None:
        end_types = schema.edge_ends
        incoming = head.direction == common_pb.IN
        ends = lambda t: (  # noqa: E731
            (end_types[t][::-1] if incoming else end_types[t]) if t < len(end_types) else (0, 0)
        )
    fanouts = [
        (*ends(fanout.edge_type), request.counts.edges([fanout.edge_type]), tuple(fanout.counts))
        for fanout in head.fanouts
    ]
    disjoint = not isinstance(head, graphd_pb.SampleLaborRequest) and head.disjoint
    return prices.subgraph_price(
        request.nodes,
        fanouts,
        expand_all_hops=head.expand_all_hops,
        disjoint=disjoint,
        width=request.neighbor_width(1) + 8,
    )


def _price_layer(request: _RequestSizes[graphd_pb.SampleLayerRequest]) -> Price:
    return _price_layered(request, [(request.head.count, request.head.edge_types)])


def _price_layers(request: _RequestSizes[graphd_pb.SampleLayersRequest]) -> Price:
    return _price_layered(request, [(hop.count, hop.edge_types) for hop in request.head.hops])


def _price_layered(
    request: _RequestSizes[graphd_pb.SampleLayerRequest | graphd_pb.SampleLayersRequest],
    hops: Sequence[tuple[int, Iterable[int]]],
) -> Price:
    layers = request.nodes // request.head.width if request.head.width > 0 else 1
    edges = max((request.counts.edges(types) for _, types in hops), default=0)
    return prices.layer_price(
        layers,
        sum(max(count, 0) for count, _ in hops),
        edges=edges,
        width=24 + 8 * request.head.want_edge_ids,
    )


def _price_hgt(request: _RequestSizes[graphd_pb.SampleHgtRequest]) -> Price:
    head = request.head
    layers = max((len(type_counts.counts) for type_counts in head.counts), default=0)
    count = max(
        (
            sum(max(n, 0) for n in layer)
            for layer in zip(*(type_counts.counts for type_counts in head.counts), strict=False)
        ),
        default=0,
    )
    return prices.hgt_layers_price(
        request.nodes,
        layers,
        count,
        edges=request.counts.edges([*head.traversed_edge_types, *head.edge_types]),
        width=request.neighbor_width(1) + 8,
    )


def _price_walks(request: _RequestSizes[graphd_pb.RandomWalkRequest]) -> Price:
    head = request.head
    width = (
        8
        + 4 * (head.restart > 0 or any(len(step.edge_types) > 1 for step in head.steps))
        + 8 * head.want_edge_ids
    )
    return prices.walks_price(
        request.nodes,
        head.walks,
        head.length,
        width=width,
        attempts=prices.expected_attempts(head.p, head.q),
    )


def _price_visit_counts(request: _RequestSizes[graphd_pb.SamplePinsageRequest]) -> Price:
    head = request.head
    width = 8 + 4 * any(len(step.edge_types) > 1 for step in head.steps)
    return prices.visit_counts_price(
        request.nodes, head.count, head.walks, len(head.steps) * head.traversals, width=width
    )


def _price_pagerank(request: _RequestSizes[graphd_pb.PersonalizedPagerankRequest]) -> Price:
    head, counts = request.head, request.counts
    return prices.pagerank_price(
        request.nodes,
        head.top,
        alpha=head.alpha,
        epsilon=head.epsilon,
        existing=counts.nodes(()),
        edges=min(counts.edges(head.edge_types), 1 << 50),
    )


def _price_all_neighbors(request: _RequestSizes[graphd_pb.NeighborsRequest]) -> Price:
    head, edges = request.head, request.counts.edges(request.head.edge_types)
    width = (
        12
        + 4 * (head.want_weights or head.sort == "weight" or head.top > 0)
        + 8 * head.want_edge_ids
    )
    if head.top:
        return prices.top_neighbors_price(request.nodes, head.top, edges=edges, width=width)
    return prices.all_neighbors_price(request.nodes, edges=edges, width=width)


def _price_degrees(request: _RequestSizes[graphd_pb.DegreesRequest]) -> Price:
    return prices.per_node_price(request.nodes, len(request.head.edge_types), width=8, scratch=8)


def _price_node_types(request: _RequestSizes[graphd_pb.NodeTypesRequest]) -> Price:
    return prices.per_node_price(request.nodes, width=4)


def _price_edges_between(
    request: _RequestSizes[graphd_pb.AdjacencyRequest | graphd_pb.InducedSubgraphRequest],
) -> Price:
    head = request.head
    return prices.edges_between_price(
        request.nodes,
        request.sizes.get("cols", request.nodes),
        edges=request.counts.edges(head.edge_types),
        width=request.neighbor_width(2) + 16,
    )


def _price_graph_labels(request: _RequestSizes[graphd_pb.SampleGraphLabelsRequest]) -> Price:
    return prices.draw_rows_price(request.head.count, width=8)


def _price_node_features(request: _RequestSizes[graphd_pb.NodeFeaturesRequest]) -> Price:
    head, schema = request.head, request.schema
    owner = (
        schema.node_types[head.type_id]
        if schema is not None and head.type_id < len(schema.node_types)
        else None
    )
    width, ragged = request.feature_width(owner, head.names)
    return prices.features_price(request.nodes, width=width, ragged=ragged)


def _price_edge_features(request: _RequestSizes[graphd_pb.EdgeFeaturesRequest]) -> Price:
    head, schema = request.head, request.schema
    owner = (
        schema.edge_types[head.type_id]
        if schema is not None and head.type_id < len(schema.edge_types)
        else None
    )
    width, ragged = request.feature_width(owner, head.names)
    return prices.features_price(request.sizes.get("eids", 0), width=width, ragged=ragged)


def _price_scan(
    request: _RequestSizes[graphd_pb.ScanNodesRequest | graphd_pb.ScanEdgesRequest],
) -> Price:
    return prices.scan_price(
        min(request.head.limit or _DEFAULT_SCAN_ROWS, prices.REPLY_BYTES // 8), width=28
    )


def _price_positions(
    request: _RequestSizes[graphd_pb.NodesAtRequest | graphd_pb.EdgesAtRequest],
) -> Price:
    return prices.per_node_price(
        request.sizes.get("places", 0),
        width=8 if isinstance(request.head, graphd_pb.NodesAtRequest) else 28,
    )


_PRICES: dict[type, Callable[[_RequestSizes[Any]], Price]] = {
    graphd_pb.SampleNodesRequest: _price_nodes,
    graphd_pb.SampleEdgesRequest: _price_edges,
    graphd_pb.SampleNodesLikeRequest: _price_nodes_like,
    graphd_pb.SampleNegativesRequest: _price_negatives,
    graphd_pb.SampleNeighborsRequest: _price_neighbors,
    graphd_pb.SampleFanoutRequest: _price_fanout,
    graphd_pb.SampleSubgraphRequest: _price_subgraph,
    graphd_pb.SampleEgoSubgraphsRequest: _price_subgraph,
    graphd_pb.SampleLaborRequest: _price_subgraph,
    graphd_pb.SampleLayerRequest: _price_layer,
    graphd_pb.SampleLayersRequest: _price_layers,
    graphd_pb.SampleHgtRequest: _price_hgt,
    graphd_pb.RandomWalkRequest: _price_walks,
    graphd_pb.SamplePinsageRequest: _price_visit_counts,
    graphd_pb.PersonalizedPagerankRequest: _price_pagerank,
    graphd_pb.NeighborsRequest: _price_all_neighbors,
    graphd_pb.DegreesRequest: _price_degrees,
    graphd_pb.NodeTypesRequest: _price_node_types,
    graphd_pb.AdjacencyRequest: _price_edges_between,
    graphd_pb.InducedSubgraphRequest: _price_edges_between,
    graphd_pb.SampleGraphLabelsRequest: _price_graph_labels,
    graphd_pb.NodeFeaturesRequest: _price_node_features,
    graphd_pb.EdgeFeaturesRequest: _price_edge_features,
    graphd_pb.ScanNodesRequest: _price_scan,
    graphd_pb.ScanEdgesRequest: _price_scan,
    graphd_pb.NodesAtRequest: _price_positions,
    graphd_pb.EdgesAtRequest: _price_positions,
}
UNPRICED: dict[str, str] = {
    "write": "one message of rows",
    "write_once": "one message of rows, with a limit of its own",
    "find_nodes": "one message of ids, a byte for each in the reply",
    "graph_nodes": "one message of labels; what they lead to is counted before it is read",
    "explain": "the call that it makes is priced",
    "query": "the calls that it makes are priced",
    "get_routes": "no arguments",
}
"""Methods without a price, with the reason."""


def section_sizes(arrays: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Return the number of entries of each section."""
    return {name: array.size for name, array in arrays.items()}


def price_request(
    head: object,
    sizes: Mapping[str, int],
    *,
    schema: Schema | None = None,
    counts: VersionCounts | None = None,
) -> Price | None:
    """Return an upper bound of the cost of a request to the Graph service.

    Parameters
    ----------
    head : Message
        Head of the request.
    sizes : mapping of str to int
        Number of entries of each section.
    schema : Schema, optional
        Schema of the graph space.
    counts : VersionCounts, optional
        Counts of the version; default: unknown, with the largest bounds.

    Returns
    -------
    Price or None
        None if requests of this kind have no price (`UNPRICED`).
    """
    price = _PRICES.get(type(head))
    if price is None:
        return None
    request = _RequestSizes(head, sizes, schema, counts or UnknownCounts())
    return price(request).with_excluded_edges(sizes.get(EXCLUDED_SOURCES, 0))
