"""Prices of the Store service's requests, checked before a handler allocates anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_model import prices
from asterism_model.excluded_edges import EXCLUDED_SOURCES
from asterism_model.prices import Limits, Price, neighbor_width
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.transport import Content
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.request_validation import VersionFields
from storaged.sampling import EDGE, NODE, LocalVersion
from storaged.sampling.scans import DEFAULT_ROWS

Head_co = TypeVar("Head_co", bound=VersionFields, covariant=True)
VersionLookup = Callable[[int, int, str], LocalVersion]
"""Function that returns a version by space id, number and digest; Stale if not held."""
_FREE_NEIGHBORS = 1 << 12
"""Number of neighbors per node up to which the number of edges does not affect the price."""


class _RequestSizes(Generic[Head_co]):
    """The sizes of one request, from which its price is computed."""

    def __init__(self, request: Frame[Head_co], version_lookup: VersionLookup) -> None:
        self.head = request.head
        self._arrays, self._versions = request.arrays, version_lookup

    def size(self, section: str) -> int:
        """Return the number of values of a section."""
        array = self._arrays.get(section)
        return 0 if array is None else int(array.size)

    def count(self, element: int, types: Iterable[int] | None) -> int:
        """Return the number of rows of some types in the version; None means all types."""
        version_ref = self.head.version_ref
        version = self._versions(version_ref.space_id, version_ref.version, version_ref.digest)
        type_ids = None if types is None else frozenset(types)

        def count_rows() -> int:
            return sum(
                share.count
                for (row_element, kind, _), share in version.totals.items()
                if row_element == element and (type_ids is None or kind in type_ids)
            )

        return version.cached((_RequestSizes, element, type_ids), count_rows)


def _draw(
    request: _RequestSizes[storaged_pb.DrawNodesRequest | storaged_pb.DrawEdgesRequest],
    element: int,
    width: int,
) -> Price:
    head = request.head
    width += 8 * head.want_probabilities
    if head.exponential_keys or head.remaining_weight:
        return prices.exponential_key_rows_price(
            head.count,
            excluded=request.size("excluded_ids"),
            width=width,
            available=request.count(element, head.types),
        )
    return prices.draw_rows_price(head.count, width=width)


def _draw_nodes(request: _RequestSizes[storaged_pb.DrawNodesRequest]) -> Price:
    return _draw(request, NODE, 12)


def _draw_edges(request: _RequestSizes[storaged_pb.DrawEdgesRequest]) -> Price:
    return _draw(request, EDGE, 32)


def _draw_by_index(request: _RequestSizes[storaged_pb.DrawNodesByNumberRequest]) -> Price:
    return prices.draw_rows_price(
        request.size("numbers"), width=12 + 8 * request.head.want_probabilities
    )


def _draw_neighbors(request: _RequestSizes[storaged_pb.DrawNeighborsRequest]) -> Price:
    head, types = request.head, len(request.head.edge_types)
    width = neighbor_width(
        types=types,
        weights=head.want_weights,
        edge_ids=head.want_edge_ids,
        probabilities=head.want_probabilities,
        times=head.temporal_filter.want_times,
    )
    return prices.neighbors_price(
        request.size("ids"), head.count, width=width, types=types, replace=head.replace
    )


def _walk(request: _RequestSizes[storaged_pb.WalkRequest]) -> Price:
    head = request.head
    width = (
        8
        + 4 * (head.restart > 0 or any(len(step.edge_types) > 1 for step in head.steps))
        + 8 * head.want_edge_ids
    )
    return prices.walks_price(
        request.size("ids"),
        1,
        head.length,
        width=width,
        attempts=prices.expected_attempts(head.p, head.q),
    )


def _has_edge(request: _RequestSizes[storaged_pb.HasEdgeRequest]) -> Price:
    return prices.per_node_price(request.size("ids"), width=1)


def _read_neighbors(request: _RequestSizes[storaged_pb.ReadNeighborsRequest]) -> Price:
    head = request.head
    if head.top:
        edges = request.count(EDGE, head.edge_types) if head.top > _FREE_NEIGHBORS else head.top
        return prices.top_neighbors_price(
            request.size("ids"), head.top, edges=edges, width=16 + 8 * head.want_edge_ids
        )
    return prices.all_neighbors_price(
        request.size("ids"), edges=0, width=12 + 4 * head.want_weights + 8 * head.want_edge_ids
    )


def _read_degrees(request: _RequestSizes[storaged_pb.ReadDegreesRequest]) -> Price:
    return prices.per_node_price(
        request.size("ids"), len(request.head.edge_types), width=8, scratch=8
    )


def _read_node_types(request: _RequestSizes[storaged_pb.ReadNodeTypesRequest]) -> Price:
    return prices.per_node_price(request.size("ids"), width=4)


def _push_pagerank(request: _RequestSizes[storaged_pb.PushPagerankRequest]) -> Price:
    head = request.head
    nodes, edges = request.count(NODE, None), request.count(EDGE, head.edge_types)
    return prices.pagerank_price(
        request.size("ids"),
        head.top,
        alpha=head.alpha,
        epsilon=head.epsilon,
        existing=nodes,
        edges=edges,
    )


def _read_at(
    request: _RequestSizes[storaged_pb.ReadNodesAtRequest | storaged_pb.ReadEdgesAtRequest],
) -> Price:
    return prices.per_node_price(
        request.size("places"),
        width=8 if isinstance(request.head, storaged_pb.ReadNodesAtRequest) else 28,
    )


def _read_page(
    request: _RequestSizes[storaged_pb.ReadNodesRequest | storaged_pb.ReadEdgesRequest],
) -> Price:
    head, nodes = request.head, isinstance(request.head, storaged_pb.ReadNodesRequest)
    # A page that is no larger than the default is never refused.
    rows = (
        head.limit
        if head.limit <= DEFAULT_ROWS
        else min(head.limit, request.count(NODE if nodes else EDGE, [head.type_id]))
    )
    return prices.draw_rows_price(rows or DEFAULT_ROWS, width=16 if nodes else 28)


PRICES: dict[str, Callable[[_RequestSizes[Any]], Price]] = {
    "draw_nodes": _draw_nodes,
    "draw_edges": _draw_edges,
    "draw_nodes_by_number": _draw_by_index,
    "draw_neighbors": _draw_neighbors,
    "walk": _walk,
    "has_edge": _has_edge,
    "read_neighbors": _read_neighbors,
    "read_degrees": _read_degrees,
    "read_node_types": _read_node_types,
    "push_pagerank": _push_pagerank,
    "read_nodes_at": _read_at,
    "read_edges_at": _read_at,
    "read_nodes": _read_page,
    "read_edges": _read_page,
}
UNPRICED_METHODS: dict[str, str] = {
    "find_binary_endpoint": "no arguments",
    "list_log_records": "a limited number of records of limited length",
    "write_blocks": "one message of rows",
    "seal_load": "one load, a row for each partition in the reply",
    "exists": "one message of ids, a byte for each in the reply",
    "list_revivals": "one row for each chunk of a load",
    "read_revivals": "one chunk of a load",
    "expand": "what nodes have is counted before it is allocated",
    "sample_k_hop": "what nodes have is counted before it is allocated, hop by hop",
    "read_induced_edges": "found edges are counted while their arrays grow",
    "read_graph_labels": "pages of a fixed size",
    "read_nodes_by_label": "what labels lead to is counted before it is read",
    "evaluate_terms": "conditions have a limit of their own",
    "filter_rows": "conditions have a limit of their own",
    "read_node_features": "values are counted before they are read",
    "read_edge_features": "values are counted before they are read",
    "read_weight_histogram": "a reply of a fixed size",
    "update_importance": "edges of the nodes are counted before they are read",
}
"""Methods with a cost that their arguments do not determine, and the bound that applies."""


def with_price_checks(
    handlers: Mapping[str, Handler], limits: Limits, version_lookup: VersionLookup
) -> dict[str, Handler]:
    """Return the handlers with a price check added before each priced method.

    Parameters
    ----------
    handlers : mapping
        Handlers of the Store service by method path.
    limits : Limits
    version_lookup : VersionLookup
        Returns the version that a request names.

    Returns
    -------
    dict
        Handlers by method path. Each raises InvalidRequest for a request above the limits.
    """
    out = dict(handlers)
    for name, price in PRICES.items():
        path = STORE[name].path
        if path in out:
            out[path] = _with_price_check(out[path], price, limits, version_lookup)
    return out


def _with_price_check(
    handler: Handler,
    price: Callable[[_RequestSizes[Any]], Price],
    limits: Limits,
    version_lookup: VersionLookup,
) -> Handler:
    def run(request: Frame[VersionFields], call: CallContext) -> Content:
        sizes = _RequestSizes(request, version_lookup)
        request_price = price(sizes).with_excluded_edges(sizes.size(EXCLUDED_SOURCES))
        prices.check(request_price, limits)
        prices.check_reply(request_price)
        return handler(request, call)

    return run
