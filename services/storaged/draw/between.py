"""Edges from some nodes to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit.jit import settled
from storaged.draw.blocks import DRAWS, EDGES, Checkpoint, by_work, never
from storaged.draw.lookup import OUT, Rows, checked_edge_types, checked_types, longer
from storaged.draw.targets import Hashed, Marked, Search, Targets
from storaged.draw.version import Version, checked_length, most_rows
from storaged.kernel.between import ROW, TOTAL
from storaged.store.image import EMPTY_F32, EMPTY_I64

_NONE = np.zeros(0, np.int32)
_LEAST, _FIRST = 1 << 10, 1 << 16
"""Edges that there is room for besides those that nodes have, and at most at first: memory that is never written to keeps what is from
being used again."""
_BLOCK = EDGES << 2
"""Edges of a block of rows: some ten milliseconds."""


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
    checkpoint: Checkpoint = never,
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
    checkpoint : callable
        Called between blocks of edges; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        As there; also where the answer would be larger than a message.
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
    found: list[_Along] = []
    most = most_rows(4 + 4 * (len(edge_types) > 1) + 4 * want_weights + 8 * want_edge_ids)
    for edge_type, end in zip(edge_types, near, strict=True):
        edge = schema.edge_types[edge_type]
        far = schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type)
        if far not in targets:
            targets[far] = Targets.of(cols, None if col_types is None else col_types == far, col_groups)
        own = ids if kinds is None and end == node_type else np.where(end == (node_type if kinds is None else kinds), ids, -1)
        rows = Rows.of(version, edge_type, direction, own)
        room = most - sum(some.cols.size for some in found)
        found.append(_along(rows, targets[far], groups, room, checkpoint, want_weights=want_weights, want_edge_ids=want_edge_ids))
        checkpoint()
    return _merged(edge_types, found, checkpoint)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Along:
    """The edges along one type, those of one node after another's."""

    counts: NDArray[np.int32]
    cols: NDArray[np.int32]
    weights: NDArray[np.float32] | None
    eids: NDArray[np.int64] | None


def _along(
    rows: Rows,
    targets: Targets,
    groups: NDArray[np.int32] | None,
    most: int,
    checkpoint: Checkpoint,
    *,
    want_weights: bool,
    want_edge_ids: bool,
) -> _Along:
    """Find the edges along one type, at most so many."""
    counts, state, of = np.empty(rows.lines.size, np.int32), np.zeros(2, np.int64), settled(_NONE if groups is None else groups)
    search: Search = Marked.fit(rows, targets, of) or Hashed(rows, targets, of)
    found = _Found(rows, most, want_weights=want_weights, want_edge_ids=want_edge_ids)
    if not found.by(search, counts, state, checkpoint):
        search, state = Hashed(rows, targets, of), np.zeros(2, np.int64)
        found.by(search, counts, state, checkpoint)
    total = int(state[TOTAL])
    weights, eids = found.weights[:total] if want_weights else None, found.eids[:total] if want_edge_ids else None
    return _Along(counts=counts, cols=found.cols[:total], weights=weights, eids=eids)


class _Found:
    """Edges that are found, and room for more."""

    def __init__(self, rows: Rows, most: int, *, want_weights: bool, want_edge_ids: bool) -> None:
        self.cols, self.weights, self.eids = _NONE.copy(), EMPTY_F32.copy(), EMPTY_I64.copy()
        self._rows, self._most, self._want_weights, self._want_edge_ids = rows, most, want_weights, want_edge_ids

    def by(self, search: Search, counts: NDArray[np.int32], state: NDArray[np.int64], checkpoint: Checkpoint) -> bool:
        """Find them block after block of rows; False where this is no way to find them."""
        room = min(_LEAST + self._rows.edges, _FIRST, self._most)
        for block in by_work(self._rows.degrees, _BLOCK, checkpoint):
            while True:
                self._make_room(int(state[TOTAL]), room)
                if not search.find(state, counts[: block.stop], (self.cols, self.weights, self.eids)):
                    return False
                if int(state[ROW]) == block.stop:
                    break
                checkpoint()
                room = self._foretold(state, room)
            self._check(int(state[TOTAL]))
        return True

    def _make_room(self, kept: int, room: int) -> None:
        self.cols = longer(self.cols, kept, room)
        self.weights = longer(self.weights, kept, room if self._want_weights else 0)
        self.eids = longer(self.eids, kept, room if self._want_edge_ids else 0)

    def _foretold(self, state: NDArray[np.int64], room: int) -> int:
        """Return room for all edges, and some more, if as many of the other nodes' count as of those that are done."""
        row, kept = int(state[ROW]), int(state[TOTAL])
        most = max(self._most, kept + int(self._rows.degrees[row]))  # a row may need room for all of its edges, however few count
        self._check(kept if room < most else self._most + 1)
        whole = kept * self._rows.edges // max(int(self._rows.degrees[:row].sum()), 1)
        return min(max(whole + whole // 8 + int(self._rows.degrees[row]) + _LEAST, room + room // 4), most)

    def _check(self, found: int) -> None:
        if found > self._most:
            raise InvalidRequest(f"edges: more than {self._most} rows do not fit into one answer; ask for fewer nodes at a time")


def _merged(edge_types: Sequence[int], found: Sequence[_Along], checkpoint: Checkpoint) -> Between:
    """Put those of each node together, type after type."""
    total = sum(some.cols.size for some in found)
    if len(found) == 1:
        one = found[0]
        return Between(counts=one.counts, cols=one.cols, types=None, weights=one.weights, eids=one.eids)
    counts = np.zeros(found[0].counts.size, np.int32)
    for some in found:
        counts += some.counts
    cols, types = np.empty(total, np.int32), np.empty(total, np.int32)
    weights = np.empty(total if found[0].weights is not None else 0, np.float32)
    eids = np.empty(total if found[0].eids is not None else 0, np.int64)
    begins = np.cumsum(counts, dtype=np.int64) - counts
    for edge_type, some in zip(edge_types, found, strict=True):
        ends = np.cumsum(some.counts, dtype=np.int64)
        shifts = begins - (ends - some.counts)
        for block in by_work(some.counts.astype(np.int64), DRAWS, checkpoint):
            first, last = int(ends[block.start - 1]) if block.start else 0, int(ends[block.stop - 1]) if block.stop else 0
            own = slice(first, last)
            at = np.repeat(shifts[block], some.counts[block]) + np.arange(first, last)
            cols[at], types[at] = some.cols[own], edge_type
            if some.weights is not None:
                weights[at] = some.weights[own]
            if some.eids is not None:
                eids[at] = some.eids[own]
        begins += some.counts
    return Between(
        counts=counts,
        cols=cols,
        types=types,
        weights=None if found[0].weights is None else weights,
        eids=None if found[0].eids is None else eids,
    )
