"""The heaviest edges of nodes, and how many edges they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit.jit import settled
from storaged.draw.blocks import DRAWS, NODES, Checkpoint, blocks, never, per_node
from storaged.draw.lookup import Group, adjacency, checked_edge_types, groups_of
from storaged.draw.ragged import Ragged
from storaged.draw.stops import Stop
from storaged.draw.version import Version, checked_outputs
from storaged.kernel import top as kernel
from storaged.kernel.rows import measure_rows
from storaged.store.image import EMPTY_F64

_MANY = 1 << 10
"""Neighbors of each node from which on it is worth to count first what there is."""


def top_neighbors(
    version: Version,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    direction: int,
    count: int,
    want_edge_ids: bool,
    checkpoint: Checkpoint = never,
) -> Ragged:
    """The heaviest edges of each node over the union of edge types, heaviest first.

    Parameters
    ----------
    version, edge_types, node_type, ids, types, direction, want_edge_ids
        As in `storaged.draw.neighbors`.
    count : int
        Edges per node at most.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    Ragged
        Rows by weight, largest first; ties by neighbor id, then by (edge type as asked for, edge id). Memory is that of the
        answer, however many edges a node has.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    if count < 1:
        raise InvalidRequest(f"top {count}: expected 1 or more neighbors per node")
    checked_outputs("neighbors", ids.size, count)
    near = checked_edge_types(version, edge_types, node_type, direction)
    asked: dict[str, Any] = {"edge_types": edge_types, "node_type": node_type, "direction": direction}
    if count > _MANY:  # room for more than there are is of no use
        held = measures(version, **asked, ids=ids, types=types, uniform=True, checkpoint=checkpoint).sum(axis=1)
        count = max(min(count, int(held.max(initial=0))), 1)
    first = min(per_node(count), NODES)
    pieces = []
    with Stop(checkpoint) as stop:
        for block in blocks(ids.size, first, checkpoint, most=first):
            groups = groups_of(version, node_type, ids[block], None if types is None else types[block])
            pieces.append(_top(edge_types, near, block.stop - block.start, groups, direction, count, want_edge_ids, stop))
    return _joined(pieces) if len(pieces) > 1 else pieces[0]


def _top(
    edge_types: Sequence[int],
    near: Sequence[int],
    nodes: int,
    groups: Iterable[Group],
    direction: int,
    count: int,
    want_edge_ids: bool,
    stop: Stop,
) -> Ragged:
    """The heaviest edges of the nodes of one block."""
    shape = (nodes, count)
    out_ids, out_types = np.empty(shape, np.int64), np.empty(shape, np.int32)
    out_weights, out_eids = np.empty(shape, np.float32), np.empty(shape if want_edge_ids else (0, 0), np.int64)
    lengths = np.zeros(nodes, np.int64)
    for group in groups:
        union = [edge_type for edge_type, end in zip(edge_types, near, strict=True) if end == group.type_id]
        m = group.rows.size
        met, sizes = np.zeros(m, np.int64), np.zeros(m, np.int64)
        weights, found, orders = np.empty(m * count, np.float32), np.empty(m * count, np.int64), np.empty(m * count, np.int64)
        which, slots = np.empty(m * count, np.int32), np.empty(m * count, np.int64)
        adjacencies = [adjacency(group.image, edge_type, direction) for edge_type in union]
        for mine, edges in enumerate(adjacencies):
            kernel.feed(
                group.rows,
                edges.indptr,
                edges.nbr,
                edges.weights,
                np.int32(mine),
                np.int64(count),
                met,
                sizes,
                weights,
                found,
                orders,
                which,
                slots,
                stop.flag,
            )
        kernel.drain(np.int64(count), sizes, weights, found, orders, which, slots, stop.flag)
        stop.check()
        kept = np.arange(count) < sizes[:, None]
        lengths[group.at] = sizes
        out_ids[group.at], out_weights[group.at] = found.reshape(m, count), weights.reshape(m, count)
        if union:
            out_types[group.at] = np.array(union, np.int32)[np.where(kept, which.reshape(m, count), 0)]
        if want_edge_ids:
            eids = np.empty((m, count), np.int64)
            for mine, edges in enumerate(adjacencies):
                own = kept & (which.reshape(m, count) == mine)
                eids[own] = edges.eid[slots.reshape(m, count)[own]]
            out_eids[group.at] = eids
    kept = np.arange(count) < lengths[:, None]
    indptr = np.zeros(nodes + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return Ragged(indptr=indptr, ids=out_ids[kept], types=out_types[kept], weights=out_weights[kept], eids=out_eids[kept] if want_edge_ids else None)


def _joined(found: Sequence[Ragged]) -> Ragged:
    """Return those of blocks of nodes, one after another."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(each.indptr) for each in found)])
    return Ragged(
        indptr=np.cumsum(sizes),
        ids=np.concatenate([each.ids for each in found]),
        types=np.concatenate([each.types for each in found]),
        weights=np.concatenate([each.weights for each in found if each.weights is not None]),
        eids=np.concatenate([each.eids for each in found if each.eids is not None]) if found[0].eids is not None else None,
    )


def degrees(
    version: Version,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    direction: int,
    checkpoint: Checkpoint = never,
) -> NDArray[np.int64]:
    """How many edges of each type each node has; int64[m, types], 0 for unknown nodes.

    Raises
    ------
    InvalidRequest, Unavailable
        As `storaged.draw.neighbors`.
    """
    asked = {"edge_types": edge_types, "node_type": node_type, "ids": ids, "types": types, "direction": direction}
    counts = measures(version, **asked, uniform=True, checkpoint=checkpoint)  # type: ignore[arg-type]
    return counts.astype(np.int64)


def measures(
    version: Version,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    direction: int,
    uniform: bool,
    checkpoint: Checkpoint = never,
) -> NDArray[np.float64]:
    """What each edge type weighs at each node in draws of neighbors: float64[m, types], the degree where uniform; as `degrees`."""
    near = checked_edge_types(version, edge_types, node_type, direction)
    checked_outputs("degrees", ids.size, len(edge_types))
    out = np.zeros((ids.size, len(edge_types)), np.float64)
    for block in blocks(ids.size, DRAWS // len(edge_types), checkpoint):
        own = out[block]
        for group in groups_of(version, node_type, ids[block], None if types is None else types[block]):
            for column, (edge_type, end) in enumerate(zip(edge_types, near, strict=True)):
                if end == group.type_id:
                    measure, edges = np.empty(group.rows.size, np.float64), adjacency(group.image, edge_type, direction)
                    measure_rows(group.rows, edges.indptr, settled(EMPTY_F64) if uniform else edges.sums, measure)
                    own[group.at, column] = measure
    return out
