"""Edges from some nodes to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit.jit import settled
from storaged.draw.lookup import OUT, Rows, checked_edge_types, checked_types, longer
from storaged.draw.targets import Hashed, Marked, Search, Targets
from storaged.draw.version import MAX_FOUND, Version, checked_found, checked_length
from storaged.kernel.between import ROW, TOTAL
from storaged.store.image import EMPTY_F32, EMPTY_I64

_NONE = np.zeros(0, np.int32)
_LEAST, _FIRST = 1 << 10, 1 << 16
"""Edges that there is room for besides those that nodes have, and at most at first: memory that is never written to keeps what is from
being used again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Between:
    """The edges of each node of a request that lead to others, by (edge type as asked for, neighbor id, edge id, place)."""

    counts: NDArray[np.int32]
    """int32[m], how many each node has."""
    cols: NDArray[np.int32]
    """int32[k], places of the far ends in the request."""
    types: NDArray[np.int32] | None
    """int32[k], edge types; None where one was asked for."""
    weights: NDArray[np.float32] | None
    """float32[k], when wanted."""
    eids: NDArray[np.int64] | None
    """int64[k], when wanted."""


def edges_between(
    version: Version,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    cols: NDArray[np.int64],
    col_types: NDArray[np.int32] | None = None,
    groups: NDArray[np.int32] | None = None,
    col_groups: NDArray[np.int32] | None = None,
    direction: int,
    want_weights: bool,
    want_edge_ids: bool,
) -> Between:
    """The edges of each node that lead to one of ``cols``; unknown nodes have none.

    Parameters
    ----------
    version, edge_types, node_type, ids, types, direction, want_weights, want_edge_ids
        As in `storaged.draw.neighbors`.
    cols : int64[c]
        Any nodes; -1 is none. One that is there several times has every edge as often.
    col_types : int32[c], optional
        Their types; left out where each edge type leads to the type that they are of.
    groups, col_groups : int32[m], int32[c], optional
        Both or neither: the group of each node, and of each of ``cols``. An edge counts where both of its ends are of one group.

    Raises
    ------
    InvalidRequest, Unavailable
        As there; also where the answer would be too large.
    """
    near = checked_edge_types(version, edge_types, node_type, direction)
    if col_types is not None:
        checked_length("col_types", col_types, cols.size)
    if (groups is None) != (col_groups is None):
        raise InvalidRequest("groups and col_groups: one of the two is missing; give both or neither")
    if groups is not None and col_groups is not None:
        checked_length("groups", groups, ids.size)
        checked_length("col_groups", col_groups, cols.size)
    schema = version.schema
    kinds = checked_types(version, node_type, ids, types)
    targets: dict[int, Targets] = {}
    found = []
    for edge_type, end in zip(edge_types, near, strict=True):
        edge = schema.edge_types[edge_type]
        far = schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type)
        if far not in targets:
            targets[far] = Targets.of(cols, None if col_types is None else col_types == far, col_groups)
        own = ids if kinds is None and end == node_type else np.where(end == (node_type if kinds is None else kinds), ids, -1)
        rows = Rows.of(version, edge_type, direction, own)
        found.append(_along(rows, targets[far], groups, want_weights=want_weights, want_edge_ids=want_edge_ids))
    return _merged(edge_types, found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Along:
    """The edges along one type, those of one node after another's."""

    counts: NDArray[np.int32]
    cols: NDArray[np.int32]
    weights: NDArray[np.float32] | None
    eids: NDArray[np.int64] | None


def _along(rows: Rows, targets: Targets, groups: NDArray[np.int32] | None, *, want_weights: bool, want_edge_ids: bool) -> _Along:
    counts, state, of = np.empty(rows.lines.size, np.int32), np.zeros(2, np.int64), settled(_NONE if groups is None else groups)
    cols, weights, eids, room = _NONE.copy(), EMPTY_F32.copy(), EMPTY_I64.copy(), min(_LEAST + rows.edges, _FIRST)
    search: Search = Marked.fit(rows, targets, of) or Hashed(rows, targets, of)
    while True:
        checked_found("edges", room)
        kept = int(state[TOTAL])
        cols = longer(cols, kept, room)
        weights, eids = longer(weights, kept, room if want_weights else 0), longer(eids, kept, room if want_edge_ids else 0)
        if not search.find(state, counts, (cols, weights, eids)):
            search, state = Hashed(rows, targets, of), np.zeros(2, np.int64)
            search.find(state, counts, (cols, weights, eids))
        if int(state[ROW]) == counts.size:
            break
        more = _foretold(rows, state, room)
        room = more if room == MAX_FOUND else min(more, MAX_FOUND)
    total = int(state[TOTAL])
    return _Along(counts=counts, cols=cols[:total], weights=weights[:total] if want_weights else None, eids=eids[:total] if want_edge_ids else None)


def _foretold(rows: Rows, state: NDArray[np.int64], room: int) -> int:
    """Room for all edges, and some more, if as many of the other nodes' count as of those that are done."""
    row, kept = int(state[ROW]), int(state[TOTAL])
    whole = kept * rows.edges // max(int(rows.degrees[:row].sum()), 1)
    return max(whole + whole // 8 + int(rows.degrees[row]) + _LEAST, room + room // 4)


def _merged(edge_types: Sequence[int], found: Sequence[_Along]) -> Between:
    """Those of each node together, type after type."""
    total = sum(some.cols.size for some in found)
    checked_found("edges", total)
    if len(found) == 1:
        one = found[0]
        return Between(counts=one.counts, cols=one.cols, types=None, weights=one.weights, eids=one.eids)
    counts = np.zeros(found[0].counts.size, np.int32)
    for some in found:
        counts += some.counts
    cols, types = np.empty(total, np.int32), np.empty(total, np.int32)
    weights, eids = np.empty(total, np.float32), np.empty(total, np.int64)
    begins = np.cumsum(counts, dtype=np.int64) - counts
    for edge_type, some in zip(edge_types, found, strict=True):
        own = np.cumsum(some.counts, dtype=np.int64) - some.counts
        at = np.repeat(begins - own, some.counts) + np.arange(some.cols.size)
        cols[at], types[at] = some.cols, edge_type
        if some.weights is not None:
            weights[at] = some.weights
        if some.eids is not None:
            eids[at] = some.eids
        begins += some.counts
    return Between(
        counts=counts,
        cols=cols,
        types=types,
        weights=None if found[0].weights is None else weights,
        eids=None if found[0].eids is None else eids,
    )
