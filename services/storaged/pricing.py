"""Prices of the Store service's requests, checked before a handler allocates anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from asterism_proto import prices
from asterism_proto.arrays import Frame
from asterism_proto.methods import STORE
from asterism_proto.prices import Limits, Price, neighbor_width
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.calls import Call, Content, Handler
from storaged.draw import EDGE, NODE, Version
from storaged.draw.scans import DEFAULT_ROWS

Versions = Callable[[int, int, str], Version]
"""Version by space id, number and digest; raises `Stale` where it is not held."""
_MANY = 1 << 12
"""Neighbors per node up to which the number of edges does not matter."""


class _Request:
    """One request's numbers."""

    def __init__(self, request: Frame, versions: Versions) -> None:
        self.head: Any = request.head
        self._arrays, self._versions = request.arrays, versions

    def size(self, section: str) -> int:
        """Return the number of values of a section."""
        found = self._arrays.get(section)
        return 0 if found is None else int(found.size)

    def count(self, element: int, types: Iterable[int] | None) -> int:
        """Return the rows of some types in the version; None: of all."""
        at = self.head.at
        version = self._versions(at.space_id, at.version, at.digest)
        wanted = None if types is None else frozenset(types)

        def summed() -> int:
            return sum(share.count for (of, kind, _), share in version.totals.items() if of == element and (wanted is None or kind in wanted))

        return version.once((_Request, element, wanted), summed)


def _draw(of: _Request, element: int, width: int) -> Price:
    head = of.head
    width += 8 * head.want_probabilities
    if head.race or head.rest:
        return prices.race_rows(head.count, taken=of.size("taken"), width=width, available=of.count(element, head.types))
    return prices.draw_rows(head.count, width=width)


def _draw_nodes(of: _Request) -> Price:
    return _draw(of, NODE, 12)


def _draw_edges(of: _Request) -> Price:
    return _draw(of, EDGE, 32)


def _draw_numbered(of: _Request) -> Price:
    return prices.draw_rows(of.size("numbers"), width=12 + 8 * of.head.want_probabilities)


def _draw_neighbors(of: _Request) -> Price:
    head, types = of.head, len(of.head.edge_types)
    width = neighbor_width(
        types=types,
        weights=head.want_weights,
        edge_ids=head.want_edge_ids,
        probabilities=head.want_probabilities,
        times=head.until.want_times,
    )
    return prices.neighbors(of.size("ids"), head.count, width=width, types=types, replace=head.replace)


def _walk(of: _Request) -> Price:
    head = of.head
    width = 8 + 4 * (head.restart > 0 or any(len(step.edge_types) > 1 for step in head.steps)) + 8 * head.want_edge_ids
    return prices.walks(of.size("ids"), 1, head.length, width=width, attempts=prices.attempts_of(head.p, head.q))


def _join(of: _Request) -> Price:
    return prices.per_node(of.size("ids"), width=1)


def _read_neighbors(of: _Request) -> Price:
    head = of.head
    if head.top:
        edges = of.count(EDGE, head.edge_types) if head.top > _MANY else head.top
        return prices.heaviest(of.size("ids"), head.top, edges=edges, width=16 + 8 * head.want_edge_ids)
    return prices.adjacent(of.size("ids"), edges=0, width=12 + 4 * head.want_weights + 8 * head.want_edge_ids)


def _read_degrees(of: _Request) -> Price:
    return prices.per_node(of.size("ids"), len(of.head.edge_types), width=8, scratch=8)


def _read_node_types(of: _Request) -> Price:
    return prices.per_node(of.size("ids"), width=4)


def _rank(of: _Request) -> Price:
    head = of.head
    nodes, edges = of.count(NODE, None), of.count(EDGE, head.edge_types)
    return prices.ranks(of.size("ids"), head.top, alpha=head.alpha, epsilon=head.epsilon, existing=nodes, edges=edges)


def _read_at(of: _Request) -> Price:
    return prices.per_node(of.size("places"), width=8 if isinstance(of.head, pb.ReadNodesAtRequest) else 28)


def _scan(of: _Request) -> Price:
    head, nodes = of.head, isinstance(of.head, pb.ReadNodesRequest)
    # Fewer rows than the server would choose itself are never refused.
    rows = head.limit if head.limit <= DEFAULT_ROWS else min(head.limit, of.count(NODE if nodes else EDGE, [head.type_id]))
    return prices.draw_rows(rows or DEFAULT_ROWS, width=16 if nodes else 28)


PRICES: dict[str, Callable[[_Request], Price]] = {
    "draw_nodes": _draw_nodes,
    "draw_edges": _draw_edges,
    "draw_numbered": _draw_numbered,
    "draw_neighbors": _draw_neighbors,
    "walk": _walk,
    "join": _join,
    "read_neighbors": _read_neighbors,
    "read_degrees": _read_degrees,
    "read_node_types": _read_node_types,
    "rank": _rank,
    "read_nodes_at": _read_at,
    "read_edges_at": _read_at,
    "read_nodes": _scan,
    "read_edges": _scan,
}
UNPRICED: dict[str, str] = {
    "find_stream": "no arguments",
    "write_blocks": "one message of rows",
    "seal_load": "one load, a row for each partition in the reply",
    "exists": "one message of ids, a byte for each in the reply",
    "list_births": "one row for each chunk of a load",
    "read_births": "one chunk of a load",
    "expand": "what nodes have is counted before it is allocated",
    "grow": "what nodes have is counted before it is allocated, hop by hop",
    "read_between": "found edges are counted while their arrays grow",
    "read_labels": "pages of a fixed size",
    "read_labelled": "what labels lead to is counted before it is read",
    "judge": "conditions have a limit of their own",
    "restrict": "conditions have a limit of their own",
    "read_node_features": "values are counted before they are read",
    "read_edge_features": "values are counted before they are read",
    "read_spread": "a reply of a fixed size",
    "raise_importances": "edges of the nodes are counted before they are read",
}
"""Methods whose cost does not follow from their arguments, with the bound that applies instead."""


def priced(handlers: Mapping[str, Handler], limits: Limits, versions: Versions) -> dict[str, Handler]:
    """Return the handlers with each request's price checked before it runs.

    Parameters
    ----------
    handlers : mapping
        Handlers of the Store service by method path.
    limits : Limits
    versions : callable
        As of `Versions`.
    """
    out = dict(handlers)
    for name, price in PRICES.items():
        path = STORE[name].path
        if path in out:
            out[path] = _checked(out[path], price, limits, versions)
    return out


def _checked(handler: Handler, price: Callable[[_Request], Price], limits: Limits, versions: Versions) -> Handler:
    def run(request: Frame, call: Call) -> Content:
        found = price(_Request(request, versions))
        prices.check(found, limits)
        prices.check_reply(found)
        return handler(request, call)

    return run
