"""Prices of the Graph service's requests, from their heads and section sizes.

graphd checks them before it calls storageds, clients before they send a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism_proto import prices
from asterism_proto.prices import Price, neighbor_width
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import graphd_pb2 as wire

_DEFAULT_ROWS = 65536
_RAGGED_BYTES = 256


class Counts(Protocol):
    """What a version holds."""

    def nodes(self, types: Iterable[int]) -> int:
        """Return the live nodes of some types; none: of all."""

    def edges(self, types: Iterable[int]) -> int:
        """Return the edges of some types; none: of all."""


class Unknown:
    """Counts of an unknown version."""

    def nodes(self, types: Iterable[int]) -> int:
        """Return more nodes than a version can hold."""
        return 1 << 62

    def edges(self, types: Iterable[int]) -> int:
        """Return more edges than a version can hold."""
        return 1 << 62


class _Request:
    """One request's numbers.

    Parameters
    ----------
    head : Message
        Of one of the Graph service's requests.
    sizes : mapping
        The number of entries of each section.
    schema : Schema, optional
        Of its space; without one, what depends on it is left out.
    counts : Counts
        Of its version.
    """

    def __init__(self, head: Any, sizes: Mapping[str, int], schema: Schema | None, counts: Counts) -> None:
        self.head, self.sizes, self.schema, self.counts = head, sizes, schema, counts

    @property
    def nodes(self) -> int:
        """Return the number of nodes in the request."""
        return self.sizes.get("nodes", 0)

    def width(self, types: int) -> int:
        """Bytes of one drawn neighbor."""
        head, fields = self.head, self.head.DESCRIPTOR.fields_by_name
        return neighbor_width(
            types=types,
            weights="want_weights" in fields and head.want_weights,
            edge_ids="want_edge_ids" in fields and head.want_edge_ids,
            probabilities="want_probabilities" in fields and head.want_probabilities,
            times="until" in fields and head.until.want_times,
        )

    def columns(self, of: NodeType | EdgeType | None, names: Iterable[str]) -> tuple[int, bool]:
        """Bytes of a row of dense features, and whether there are ragged ones."""
        found = [feature for feature in (of.features if of is not None else ()) if feature.name in set(names)]
        return sum(_dense_bytes(feature) for feature in found), any(feature.kind != "dense" for feature in found)


def _dense_bytes(feature: Feature) -> int:
    return int(np.dtype(feature.dtype).itemsize * np.prod(feature.shape, dtype=np.int64)) if feature.kind == "dense" else _RAGGED_BYTES


def _nodes(of: _Request) -> Price:
    head = of.head
    width = 8 + 4 * (len(set(head.types)) != 1) + 8 * head.want_probabilities
    available = of.counts.nodes(head.types) if head.distinct else 0
    return prices.draw_rows(head.count, width=width, distinct=head.distinct, available=available)


def _edges(of: _Request) -> Price:
    head = of.head
    available = of.counts.edges(head.types) if head.distinct else 0
    return prices.draw_rows(head.count, width=32 + 8 * head.want_probabilities, distinct=head.distinct, available=available)


def _nodes_like(of: _Request) -> Price:
    return prices.draw_beside(of.nodes, of.head.count, width=8 + 8 * of.head.want_probabilities)


def _negatives(of: _Request) -> Price:
    return prices.draw_beside(of.head.rows, of.head.count, width=12 + 8 * of.head.want_probabilities)


def _neighbors(of: _Request) -> Price:
    head, types = of.head, len(of.head.edge_types)
    return prices.neighbors(of.nodes, head.count, width=of.width(types), types=types, replace=head.replace)


def _fanout(of: _Request) -> Price:
    head = of.head
    types = [len(hop.edge_types) for hop in head.hops]
    widths = [of.width(each) for each in types]
    return prices.fanout(of.nodes, [hop.count for hop in head.hops], widths=widths, types=types, replace=head.replace)


def _subgraph(of: _Request) -> Price:
    head, schema = of.head, of.schema
    ends: Callable[[int], tuple[int, int]] = lambda _: (0, 0)  # noqa: E731  # types are not distinguished without a schema
    if schema is not None:
        known = [(schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)) for edge in schema.edge_types]
        inward = head.direction == pb.IN
        ends = lambda t: (known[t][::-1] if inward else known[t]) if t < len(known) else (0, 0)  # noqa: E731
    reach = [(*ends(one.edge_type), of.counts.edges([one.edge_type]), tuple(one.counts)) for one in head.reach]
    disjoint = "disjoint" in head.DESCRIPTOR.fields_by_name and head.disjoint
    return prices.subgraph(of.nodes, reach, every=head.every, disjoint=disjoint, width=of.width(1) + 8)


def _layer(of: _Request) -> Price:
    return _layered(of, [(of.head.count, of.head.edge_types)])


def _layers(of: _Request) -> Price:
    return _layered(of, [(hop.count, hop.edge_types) for hop in of.head.hops])


def _layered(of: _Request, hops: list[tuple[int, Any]]) -> Price:
    layers = of.nodes // of.head.width if of.head.width > 0 else 1
    edges = max((of.counts.edges(types) for _, types in hops), default=0)
    return prices.layer(layers, sum(max(count, 0) for count, _ in hops), edges=edges, width=24 + 8 * of.head.want_edge_ids)


def _hgt(of: _Request) -> Price:
    head = of.head
    layers = max((len(some.counts) for some in head.counts), default=0)
    count = max((sum(max(n, 0) for n in layer) for layer in zip(*(some.counts for some in head.counts), strict=False)), default=0)
    return prices.budgets(of.nodes, layers, count, edges=of.counts.edges([*head.followed, *head.edge_types]), width=of.width(1) + 8)


def _walks(of: _Request) -> Price:
    head = of.head
    width = 8 + 4 * (head.restart > 0 or any(len(step.edge_types) > 1 for step in head.steps)) + 8 * head.want_edge_ids
    return prices.walks(of.nodes, head.walks, head.length, width=width, attempts=prices.attempts_of(head.p, head.q))


def _visits(of: _Request) -> Price:
    head = of.head
    width = 8 + 4 * any(len(step.edge_types) > 1 for step in head.steps)
    return prices.visits(of.nodes, head.count, head.walks, len(head.steps) * head.traversals, width=width)


def _ranks(of: _Request) -> Price:
    head, counts = of.head, of.counts
    return prices.ranks(
        of.nodes, head.top, alpha=head.alpha, epsilon=head.epsilon, existing=counts.nodes(()), edges=min(counts.edges(head.edge_types), 1 << 50)
    )


def _adjacent(of: _Request) -> Price:
    head, edges = of.head, of.counts.edges(of.head.edge_types)
    width = 12 + 4 * (head.want_weights or head.sort == "weight" or head.top > 0) + 8 * head.want_edge_ids
    if head.top:
        return prices.heaviest(of.nodes, head.top, edges=edges, width=width)
    return prices.adjacent(of.nodes, edges=edges, width=width)


def _degrees(of: _Request) -> Price:
    return prices.per_node(of.nodes, len(of.head.edge_types), width=8, scratch=8)


def _node_types(of: _Request) -> Price:
    return prices.per_node(of.nodes, width=4)


def _between(of: _Request) -> Price:
    head = of.head
    return prices.between(of.nodes, of.sizes.get("cols", of.nodes), edges=of.counts.edges(head.edge_types), width=of.width(2) + 16)


def _labels(of: _Request) -> Price:
    return prices.draw_rows(of.head.count, width=8)


def _node_features(of: _Request) -> Price:
    head, schema = of.head, of.schema
    owner = schema.node_types[head.type_id] if schema is not None and head.type_id < len(schema.node_types) else None
    width, ragged = of.columns(owner, head.names)
    return prices.features(of.nodes, width=width, ragged=ragged)


def _edge_features(of: _Request) -> Price:
    head, schema = of.head, of.schema
    owner = schema.edge_types[head.type_id] if schema is not None and head.type_id < len(schema.edge_types) else None
    width, ragged = of.columns(owner, head.names)
    return prices.features(of.sizes.get("eids", 0), width=width, ragged=ragged)


def _scan(of: _Request) -> Price:
    return prices.scan(min(of.head.limit or _DEFAULT_ROWS, prices.REPLY_BYTES // 8), width=28)


def _places(of: _Request) -> Price:
    return prices.per_node(of.sizes.get("places", 0), width=8 if isinstance(of.head, wire.NodesAtRequest) else 28)


_PRICES: dict[type, Callable[[_Request], Price]] = {
    wire.SampleNodesRequest: _nodes,
    wire.SampleEdgesRequest: _edges,
    wire.SampleNodesLikeRequest: _nodes_like,
    wire.SampleNegativesRequest: _negatives,
    wire.SampleNeighborsRequest: _neighbors,
    wire.SampleFanoutRequest: _fanout,
    wire.SampleSubgraphRequest: _subgraph,
    wire.SampleEgoSubgraphsRequest: _subgraph,
    wire.SampleLaborRequest: _subgraph,
    wire.SampleLayerRequest: _layer,
    wire.SampleLayersRequest: _layers,
    wire.SampleHgtRequest: _hgt,
    wire.RandomWalkRequest: _walks,
    wire.SamplePinsageRequest: _visits,
    wire.PersonalizedPagerankRequest: _ranks,
    wire.NeighborsRequest: _adjacent,
    wire.DegreesRequest: _degrees,
    wire.NodeTypesRequest: _node_types,
    wire.AdjacencyRequest: _between,
    wire.InducedSubgraphRequest: _between,
    wire.SampleGraphLabelsRequest: _labels,
    wire.NodeFeaturesRequest: _node_features,
    wire.EdgeFeaturesRequest: _edge_features,
    wire.ScanNodesRequest: _scan,
    wire.ScanEdgesRequest: _scan,
    wire.NodesAtRequest: _places,
    wire.EdgesAtRequest: _places,
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


def sizes_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Return the number of entries of each section."""
    return {name: array.size for name, array in arrays.items()}


def price_of(head: Any, sizes: Mapping[str, int], *, schema: Schema | None = None, counts: Counts | None = None) -> Price | None:
    """Return what a request to the Graph service takes at most.

    Parameters
    ----------
    head : Message
        The request's head.
    sizes : mapping
        The number of entries of each of its sections.
    schema : Schema, optional
        Of its space.
    counts : Counts, optional
        Of its version.

    Returns
    -------
    Price or None
        None where a request of its kind has no price (`UNPRICED`).
    """
    price = _PRICES.get(type(head))
    return None if price is None else price(_Request(head, sizes, schema, counts or Unknown()))
